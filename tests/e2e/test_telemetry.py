"""What a running server records of its requests, over stdio and over HTTP, and what it never records."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Implementation

from agtrace.answers.telemetry.store import Request
from tests.agtrace.asking import claude_log
from tests.e2e.test_http import listening

pytestmark = pytest.mark.thorough

AGTRACE = str(Path(sys.executable).with_name("agtrace"))
MARKER = "pelikanmarker"
SECONDS = 300

Ask = Callable[[Client], Any]


@pytest.fixture
def machine(own_home: Path) -> Path:
    """A home with a session that says a marker everywhere."""
    log = claude_log(own_home / ".claude" / "projects" / MARKER, "0badc0de-0000-4000-8000-000000000001")
    log.prompt(f"Where is the {MARKER}?")
    log.call("Bash", {"command": f"cat {MARKER}"}, f"{MARKER}\n" * 3_000)
    log.say(f"The {MARKER} is there.")
    return own_home


def over_stdio(story: Ask, home: Path, data: Path, **environment: str) -> str:
    """Tell a story to a server of its own; return what it logged."""
    variables = {"HOME": str(home), "AGTRACE_DATA_DIR": str(data), **environment}
    server = StdioServerParameters(command=AGTRACE, args=["mcp"], env=variables)
    log = home / "stderr"
    with log.open("w") as errors:

        async def connected() -> None:
            with anyio.fail_after(SECONDS):
                who = Implementation(name="tester", version="4.2")
                async with Client(stdio_client(server, errors), client_info=who) as client:
                    await story(client)

        anyio.run(connected)
    return log.read_text()


def recorded(data: Path) -> list[Request]:
    with closing(sqlite3.connect(data / "telemetry.sqlite3")) as connection:
        return list(map(Request._make, connection.execute("SELECT * FROM request ORDER BY rowid")))


def printed(*arguments: str) -> dict[str, Any]:
    said = subprocess.run([AGTRACE, *arguments, "--json"], capture_output=True, text=True, check=True)
    value: dict[str, Any] = json.loads(said.stdout)
    return value


async def everything(client: Client) -> None:
    """Ask with the marker in every argument that takes a text."""
    await client.call_tool("search_event_previews", {"query": MARKER, "order": "newest", "limit": 1})
    await client.call_tool("list_sessions", {"query": MARKER, "project": MARKER})
    await client.call_tool("get_event_details", {"session_id": "0badc0de", "event_index": 2})
    await client.call_tool("get_event_details", {"session_id": "0badc0de", "event_index": 2, "mode": "minimal"})
    await client.call_tool("get_session_details", {"session_id": MARKER})
    await client.call_tool("list_sessions", {MARKER: MARKER})
    await client.call_tool("read_artifact", {"ref": f"ax://session/{MARKER}"})


def test_a_hundred_requests_are_a_hundred_rows_with_every_field(machine: Path, tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        for number in range(100):
            await client.call_tool("list_sessions", {"limit": 1 + number % 50})

    logged = over_stdio(story, machine, tmp_path / "data")
    rows = recorded(tmp_path / "data")
    assert len(rows) == 100
    for row in rows:
        assert (row.tool, row.outcome, row.transport) == ("list_sessions", "ok", "stdio")
        assert (row.client, row.client_version) == ("tester", "4.2") and row.protocol
        assert row.at > 1_700_000_000_000 and row.ms > 0 and row.tokens > 0
        assert 0 < row.bytes == row.asked_bytes and row.items == 1 and row.attempt == 1
        assert (row.paginated, row.chunked, row.summarized, row.pruned, row.cut) == (0, 0, 0, 0, 0)
        assert row.index_state in ("ready", "catching_up", "building")
    ids = [line["request"] for line in map(json.loads, logged.splitlines()) if line["event"] == "answer"]
    assert ids == [row.request_id for row in rows] and len(set(ids)) == 100


def test_how_an_answer_was_made_to_fit_is_recorded(machine: Path, tmp_path: Path) -> None:
    over_stdio(everything, machine, tmp_path / "data")
    rows = recorded(tmp_path / "data")
    assert [row.tool for row in rows].count("get_event_details") == 2 and len(rows) == 7
    chunked, digest = (row for row in rows if row.tool == "get_event_details")
    assert chunked.chunked and not chunked.summarized and chunked.asked_bytes > 40_000 > chunked.bytes
    assert digest.summarized
    assert {row.outcome for row in rows} == {"ok", "session_not_found", "invalid_parameter"}


def test_nothing_of_what_was_asked_or_answered_is_recorded_or_logged(machine: Path, tmp_path: Path) -> None:
    logged = over_stdio(everything, machine, tmp_path / "data")
    recorded_bytes = b"".join(path.read_bytes() for path in (tmp_path / "data").glob("telemetry*"))
    assert b"list_sessions" in recorded_bytes and MARKER.encode() not in recorded_bytes
    assert "list_sessions" in logged and MARKER not in logged
    assert MARKER not in json.dumps(printed("metrics"))


def test_metrics_are_told_to_a_person_and_the_same_to_an_agent(machine: Path, tmp_path: Path) -> None:
    over_stdio(everything, machine, tmp_path / "data")
    for_person = printed("metrics", "--since", "1d")
    total = for_person["total"]
    assert (total["requests"], total["errors"]) == (7, 4)
    assert total["oversized"] == 1 and total["oversized_asked_bytes"] > total["oversized_bytes"]
    groups = {group["group"]: group["requests"] for group in for_person["groups"]}
    assert groups == {"get_event_details": 2, "list_sessions": 2, "search_event_previews": 1,
                      "get_session_details": 1, "read_artifact": 1}  # fmt: skip
    assert printed("metrics", "--by", "client")["groups"][0]["group"] == "tester"
    assert printed("metrics", "--outcome", "oversized")["total"]["requests"] == 1
    assert printed("metrics", "--tool", "list_sessions", "--outcome", "error")["total"]["requests"] == 2
    assert printed("metrics", "--until", "2020-01-01")["total"]["requests"] == 0

    async def story(client: Client) -> None:
        given = await client.read_resource("ax://metrics/1d")
        told = json.loads(json.loads(given.contents[0].text)["data"]["text"])  # type: ignore[union-attr]
        assert told["total"] == total and told["groups"] == for_person["groups"] and told["dropped"] == 0

    over_stdio(story, machine, tmp_path / "data")


def test_over_http_the_client_and_the_transport_are_recorded(machine: Path, tmp_path: Path) -> None:
    with listening(machine) as server:

        async def story() -> None:
            with anyio.fail_after(SECONDS):
                async with server.client("auto") as client:
                    await client.call_tool("list_sessions", {})

        anyio.run(story)
    (row,) = recorded(tmp_path / "data")
    assert (row.tool, row.transport, row.outcome) == ("list_sessions", "http", "ok") and row.protocol


def test_switched_off_nothing_is_recorded(machine: Path, tmp_path: Path) -> None:
    over_stdio(everything, machine, tmp_path / "data", AGTRACE_TELEMETRY="0")
    assert not (tmp_path / "data" / "telemetry.sqlite3").exists()
    assert printed("metrics")["total"]["requests"] == 0


# -- a file that can't be written ------------------------------------------------------------------


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def _a_folder(path: Path) -> Iterator[None]:
    path.unlink()
    path.mkdir()
    yield


@contextmanager
def _no_database(path: Path) -> Iterator[None]:
    path.write_bytes(b"nothing that SQLite knows " * 400)
    yield


@contextmanager
def _deleted(path: Path) -> Iterator[None]:
    path.unlink()
    yield


TROUBLES = (_locked, _a_folder, _no_database, _deleted)


def test_answers_are_the_same_whatever_is_wrong_with_the_file(machine: Path, tmp_path: Path) -> None:
    answers: list[list[str]] = []

    async def story(client: Client) -> None:
        given = [await client.call_tool("get_event_details", {"session_id": "0badc0de", "event_index": n % 3})
                 for n in range(9)]  # fmt: skip
        answers.append([one.content[0].text for one in given])  # type: ignore[union-attr]

    over_stdio(story, machine, tmp_path / "data")
    over_stdio(story, machine, tmp_path / "data", AGTRACE_TELEMETRY="0")
    for trouble in TROUBLES:
        data = shutil.copytree(tmp_path / "data", tmp_path / trouble.__name__)
        with trouble(data / "telemetry.sqlite3"):
            over_stdio(story, machine, data)
    cursors = [[json.loads(text).get("chunk", {}).pop("next_cursor", None) for text in told] for told in answers]
    expected, *others = zip(cursors, answers, strict=True)
    assert len(others) == 1 + len(TROUBLES)
    for with_cursors, told in others:
        assert [c is None for c in with_cursors] == [c is None for c in expected[0]]
        assert _without_cursors(told) == _without_cursors(expected[1])


def _without_cursors(texts: list[str]) -> list[Any]:
    """A cursor is signed with its time."""
    values = list(map(json.loads, texts))
    for value in values:
        value.get("chunk", {}).pop("next_cursor", None)
        value.pop("hint", None)
    return values


def test_two_servers_record_in_one_file(own_home: Path, tmp_path: Path) -> None:
    with listening(own_home) as server:

        async def story(client: Client) -> None:
            async with server.client("auto") as other:
                for _ in range(20):
                    await client.call_tool("list_sessions", {})
                    await other.call_tool("get_project_info", {})

        over_stdio(story, own_home, tmp_path / "data")
    assert sorted({(row.tool, row.transport) for row in recorded(tmp_path / "data")}) == [
        ("get_project_info", "http"),
        ("list_sessions", "stdio"),
    ]
    assert len(recorded(tmp_path / "data")) == 40
