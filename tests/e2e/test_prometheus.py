"""What monitoring reads of a running server, as Prometheus' own library parses it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from prometheus_client.parser import text_string_to_metric_families as text_format

from agtrace import __version__
from agtrace.settings.limits import CLIENTS
from agtrace.shaping.shape import estimated_tokens
from tests.agtrace.asking import claude_log
from tests.e2e.test_http import Listening, listening
from tests.e2e.test_telemetry import MARKER, everything

pytestmark = pytest.mark.thorough

PAGE = "/metrics"
SECONDS = 300
HISTOGRAMS = ("agtrace_request_duration_seconds", "agtrace_response_bytes", "agtrace_response_tokens")
OPEN = "application/openmetrics-text"

Samples = Counter[tuple[str, frozenset[tuple[str, str]]]]
Call = tuple[str, dict[str, Any]]


@pytest.fixture
def machine(own_home: Path) -> Path:
    """A home with a session that says a marker everywhere."""
    log = claude_log(own_home / ".claude" / "projects" / MARKER, "0badc0de-0000-4000-8000-000000000001")
    log.prompt(f"Where is the {MARKER}?")
    log.call("Bash", {"command": f"cat {MARKER}"}, f"{MARKER}\n" * 3_000)
    log.say(f"The {MARKER} is there.")
    return own_home


@pytest.fixture
def server(machine: Path) -> Iterator[Listening]:
    """A server with that session in its index."""
    with listening(machine) as found:
        while json.loads(found.request("GET", "/readyz")[2])["state"] != "ready":
            pass  # it is being indexed
        yield found


def ask(server: Listening, calls: Sequence[Call], name: str = "tester", mode: str = "auto") -> list[str]:
    """Call tools, one after the other, as a client of this name; return the texts of the answers."""
    texts: list[str] = []

    async def story() -> None:
        with anyio.fail_after(SECONDS):
            async with server.client(mode, name) as client:
                for tool, arguments in calls:
                    given = await client.call_tool(tool, arguments)
                    texts.append(given.content[0].text)  # type: ignore[union-attr]

    anyio.run(story)
    return texts


def ask_everything(server: Listening) -> None:
    """Ask seven times, with the marker in every argument; by the client's name, too."""

    async def story() -> None:
        with anyio.fail_after(SECONDS):
            async with server.client("auto", MARKER) as client:
                await everything(client)

    anyio.run(story)


def page(server: Listening) -> str:
    status, _, text = server.request("GET", PAGE)
    assert status == 200
    return text


def samples(server: Listening) -> Samples:
    """Every value of the page by its name and labels."""
    return read(page(server))


def read(text: str) -> Samples:
    found = [sample for family in text_format(text) for sample in family.samples]
    values: Samples = Counter({(one.name, frozenset(one.labels.items())): one.value for one in found})  # type: ignore[misc]
    assert len(values) == len(found), "no value is told twice"
    return values


def of(values: Samples, name: str, **labels: str) -> float:
    """The sum of all values of this name that have these labels."""
    return sum(value for (called, having), value in values.items() if called == name and labels.items() <= having)


# -- what is counted -------------------------------------------------------------------------------


def test_every_answer_is_counted_once_by_tool_outcome_transport_and_client(server: Listening) -> None:
    before = samples(server)
    assert of(before, "agtrace_requests_total") == 0 == of(before, "agtrace_response_bytes_count")
    listed = ask(server, [("list_sessions", {"limit": number}) for number in (1, 2, 3)])
    refused = ask(server, [("list_sessions", {"limit": 51}), ("get_session_details", {"session_id": "nobody"})])
    ask_everything(server)
    values = samples(server)
    here = {"transport": "http", "client": "other"}
    assert {key: value for key, value in values.items() if key[0] == "agtrace_requests_total"} == {
        ("agtrace_requests_total", frozenset({"tool": tool, "outcome": outcome, **here}.items())): number
        for tool, outcome, number in (
            ("list_sessions", "ok", 3),
            ("list_sessions", "invalid_parameter", 3),
            ("search_event_previews", "ok", 1),
            ("get_event_details", "ok", 2),
            ("get_session_details", "session_not_found", 2),
            ("read_artifact", "session_not_found", 1),
        )
    }
    assert of(values, "agtrace_requests_total") == 12
    for name in HISTOGRAMS:
        assert of(values, f"{name}_count") == 12 and of(values, f"{name}_count", tool="list_sessions") == 6
    ours = sum(len(text.encode()) for text in [*listed, *refused])
    assert ours < of(values, "agtrace_response_bytes_sum") < ours + 30_000
    assert 0 < of(values, "agtrace_request_duration_seconds_sum") < SECONDS


def test_sizes_are_those_of_the_answers_that_the_client_got(server: Listening) -> None:
    texts = ask(server, [("list_sessions", {}), ("get_event_details", {"session_id": "0badc0de", "event_index": 2})])
    values = samples(server)
    sizes = [len(text.encode()) for text in texts]
    assert of(values, "agtrace_response_bytes_sum") == sum(sizes)
    tokens = sum(estimated_tokens(len(text)) for text in texts)
    assert of(values, "agtrace_response_tokens_sum") == tokens
    for (name, labels), number in values.items():
        if name == "agtrace_response_bytes_bucket" and dict(labels)["tool"] == "list_sessions":
            assert number == (sizes[0] <= float(dict(labels)["le"]))


def test_how_answers_were_made_to_fit_is_counted(server: Listening) -> None:
    ask(server, [("get_event_details", {"session_id": "0badc0de", "event_index": 2})])
    values = samples(server)
    shaped = {dict(labels)["how"]: n for (name, labels), n in values.items() if name == "agtrace_requests_shaped_total"}
    assert shaped == {"chunked": 1, "oversized": 1}
    assert of(values, "agtrace_oversized_asked_bytes_total") > 40_000
    digest = {"session_id": "0badc0de", "event_index": 2, "mode": "minimal"}
    ask(server, [("get_event_details", digest)])
    assert of(samples(server), "agtrace_requests_shaped_total", tool="get_event_details", how="summarized") == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_known_clients_are_told_apart_and_all_others_are_one(server: Listening, mode: str) -> None:
    """However many names there are, so that there are never many labels."""
    names = [*CLIENTS, *(f"{client}-of-somebody" for client in CLIENTS), *(f"{MARKER}-{number}" for number in range(5))]
    for name in names:
        ask(server, [("list_sessions", {})], name, mode)
    values = samples(server)
    clients = {dict(labels)["client"] for name, labels in values if name == "agtrace_requests_total"}
    assert clients == {*CLIENTS, "other"}
    assert [of(values, "agtrace_requests_total", client=client) for client in CLIENTS] == [2] * len(CLIENTS)
    assert of(values, "agtrace_requests_total", client="other") == 5


def test_a_tool_that_does_not_exist_is_no_label(server: Listening) -> None:
    with pytest.raises((MCPError, ExceptionGroup)):
        ask(server, [(MARKER, {})])
    assert MARKER not in page(server) and of(samples(server), "agtrace_requests_total") == 0


def test_nothing_of_what_was_asked_or_answered_is_told(server: Listening, tmp_path: Path) -> None:
    ask_everything(server)
    for accept in ("", OPEN):
        text = server.request("GET", f"{PAGE}?name[]={MARKER}", Accept=accept)[2]
        assert "list_sessions" in text
        for secret in (MARKER, "0badc0de", str(tmp_path), server.shown["Authorization"].split()[1]):
            assert secret not in text


# -- the state of server and index -----------------------------------------------------------------


def test_the_state_is_the_one_that_the_probes_tell(server: Listening) -> None:
    values, told = samples(server), json.loads(server.request("GET", "/healthz")[2])
    index = told["index"]
    for figure in ("sessions", "events"):
        assert values[f"agtrace_index_{figure}", frozenset()] == index[figure] > 0
    for figure in ("behind_files", "behind_bytes"):
        assert values[f"agtrace_index_{figure}", frozenset()] == 0
    states = {dict(labels)["state"]: n for (name, labels), n in values.items() if name == "agtrace_index_state"}
    assert states == {"ready": 1, "catching_up": 0, "building": 0}
    assert values["agtrace_build_info", frozenset({("version", __version__)})] == 1
    assert time.time() - SECONDS < of(values, "agtrace_start_time_seconds") < time.time()
    assert values["agtrace_telemetry_dropped_total", frozenset()] == 0


def test_without_an_index_the_page_says_that(own_home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    token = "a-token-of-the-tests"
    with listening(own_home, AGTRACE_DATA_DIR=str(tmp_path / "file"), AGTRACE_HTTP_TOKEN=token) as server:
        ask(server, [("list_sessions", {})])
        values = samples(server)
    assert of(values, "agtrace_index_state", state="building") == 1 == of(values, "agtrace_index_state")
    assert of(values, "agtrace_requests_total", outcome="index_unavailable") == 1


def test_requests_that_could_not_be_recorded_are_counted_although_their_file_can_not_be_read(machine: Path) -> None:
    (machine.parent / "data" / "telemetry.sqlite3").mkdir()
    with listening(machine) as server:
        ask(server, [("list_sessions", {})] * 3)
        end = time.monotonic() + SECONDS
        while of(samples(server), "agtrace_telemetry_dropped_total") < 3:
            assert time.monotonic() < end
        assert of(samples(server), "agtrace_requests_total", outcome="ok") == 3


def test_requests_are_counted_although_none_is_recorded(machine: Path) -> None:
    with listening(machine, AGTRACE_TELEMETRY="0") as server:
        ask(server, [("list_sessions", {})])
        text = page(server)
    assert of(read(text), "agtrace_requests_total") == 1 and "agtrace_telemetry" not in text


def test_the_environment_makes_the_server_write_no_files_of_the_library(machine: Path, tmp_path: Path) -> None:
    """Of other programs, this variable makes a file for each process."""
    (tmp_path / "shared").mkdir()
    for folder in (tmp_path / "shared", tmp_path / "nowhere"):
        with listening(machine, PROMETHEUS_MULTIPROC_DIR=str(folder)) as server:
            ask(server, [("list_sessions", {})])
            assert of(samples(server), "agtrace_requests_total") == 1
    assert list((tmp_path / "shared").iterdir()) == [] and not (tmp_path / "nowhere").exists()


# -- who reads it, and how -------------------------------------------------------------------------


def test_only_who_shows_the_token_reads_it(server: Listening) -> None:
    shown = server.shown["Authorization"]
    for wrong in ("", "Bearer", f"{shown}x", shown.removeprefix("Bearer ")):
        status, headers, text = server.request("GET", PAGE, Authorization=wrong)
        assert (status, headers["www-authenticate"]) == (401, "Bearer") and "agtrace_" not in text
    assert "agtrace_build_info" in page(server)
    assert server.request("POST", PAGE, "{}")[0] == 405
    assert server.request("GET", PAGE, Host="evil.example")[0] == 421
    assert server.request("GET", PAGE, Origin="http://evil.example")[0] == 403


def test_where_no_token_is_required_anyone_on_the_machine_reads_it(own_home: Path) -> None:
    with listening(own_home, "127.0.0.1:0", "--no-token") as server:
        assert server.shown == {} and "agtrace_build_info" in page(server)


def test_every_name_keeps_to_the_conventions_and_every_figure_is_explained(server: Listening) -> None:
    ask_everything(server)
    for family in text_format(page(server)):
        assert family.name.startswith("agtrace_") and family.documentation.endswith(".")
        assert family.type in ("histogram", "counter", "gauge")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
