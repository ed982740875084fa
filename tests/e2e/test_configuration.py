"""The configuration of a running server, over stdio and over HTTP: what a file changes, and what none can."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import httpx2
import pytest

from agtrace.answers.telemetry.store import Request
from agtrace.settings.limits import limits_for
from agtrace.settings.model import Settings, ToolSettings
from tests.agtrace.asking import claude_log
from tests.conftest import keep_rules
from tests.e2e.reloading import SECONDS, Running, bytes_allowed, replace, running, tokens, until
from tests.e2e.test_telemetry import recorded

pytestmark = pytest.mark.thorough

SESSIONS = 120
SECRET = "ghp_" + "k3Jx9Qm2Lr7Tz5Vb8Nc4Wd6Yf1Hg0Ps" + "A4Ze"
WAYS = ["stdio", "http"]
TOOLS_LIST = Path(__file__).parents[1] / "agtrace" / "tools_list.json"
LONG = "0000aaaa"
"""A session with an output of 120 KB at event 2, and one of 3 MB with a secret at event 4."""


@pytest.fixture(scope="module")
def home(compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("machine") / "home"
    keep_rules(compiled_rules, home.parent / "data")
    for number in range(SESSIONS - 1):
        log = claude_log(home / ".claude", f"{number:08x}-0000-4000-8000-000000000001")
        log.prompt(f"Request {number} " + "about tides " * 8)
        log.say("Done.")
    log = claude_log(home / ".claude", f"{LONG}-0000-4000-8000-000000000001")
    log.prompt("Show everything.")
    log.call("Bash", {"command": "tides"}, "\n".join(f"{number:05} {'high water ' * 10}" for number in range(1000)))
    log.call(
        "Bash", {"command": "sea"}, "\n".join([f"token={SECRET}", *(f"{n:07} {'ebb ' * 15}" for n in range(45_000))])
    )
    return home


@pytest.fixture(scope="module")
def stdio(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of the module over stdio, with everything indexed."""
    yield from _indexed("stdio", home, tmp_path_factory.mktemp("settings") / "agtrace.json")


@pytest.fixture(scope="module")
def http(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The same over HTTP."""
    yield from _indexed("http", home, tmp_path_factory.mktemp("settings") / "agtrace.json")


def _indexed(way: str, home: Path, file: Path) -> Iterator[Running]:
    file.write_text("{}")
    with running(way, home, file) as server:
        until(lambda: "index" not in server.ask())
        yield server


@pytest.fixture(params=["stdio"])
def server(request: pytest.FixtureRequest) -> Running:
    """One of the servers of the module, with default settings: both follow a file by the same code."""
    found: Running = request.getfixturevalue(request.param)
    return afresh(found)


def afresh(server: Running) -> Running:
    """Let a server of the module forget what another test did."""
    if server.file.is_dir():
        server.file.rmdir()
    server.set()
    assert server.page() == 10
    server.forget_log()
    return server


# -- a change is seen at once ----------------------------------------------------------------------


@pytest.mark.parametrize("server", WAYS, indirect=True)
def test_the_very_next_request_sees_a_changed_file(server: Running) -> None:
    assert (server.page(), bytes_allowed(server.ask())) == (10, tokens(10_240))
    server.set(default_page_size=20, token_budget_threshold=8_000)
    assert (server.page(), bytes_allowed(server.ask())) == (20, tokens(20_480))
    server.set(default_page_size=5)
    assert (server.page(), bytes_allowed(server.ask())) == (5, tokens(10_240))


def test_a_chunk_has_the_size_that_the_file_says(server: Running) -> None:
    server.set(chunk_size=500)
    assert 1_400 < len(long_text(server)) <= 500 * 4
    server.set(chunkSize=1_000)
    assert 2_900 < len(long_text(server)) <= 1_000 * 4
    server.set(chunk_lines=10)
    assert long_text(server).count("\n") == 10


def long_text(server: Running, event: int = 2) -> str:
    """The text of an event, or its first chunk."""
    data = server.ask("get_event_details", session_id=LONG, event_index=event)["data"]
    return str(data["payload"]["content"])


def limits_listed(server: Running) -> dict[str, tuple[int, int]]:
    """The default and the largest limit of each tool that has one, as clients are told."""
    found = {tool.name: tool.input_schema["properties"].get("limit") for tool in tools(server)}
    return {name: (limit["default"], limit["maximum"]) for name, limit in found.items() if limit}


def tools(server: Running) -> list[Any]:
    return list(server.portal.call(server.client.list_tools).tools)


def test_the_list_of_tools_is_the_committed_one_until_page_sizes_are_configured(server: Running) -> None:
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools(server)]
    assert json.dumps(listed, ensure_ascii=False, indent=2) + "\n" == TOOLS_LIST.read_text(encoding="utf-8")
    server.set(default_page_size=15, max_page_size=80)
    assert set(limits_listed(server).values()) == {(15, 80)}


@pytest.mark.parametrize("server", WAYS, indirect=True)
def test_sighup_has_the_file_read_without_any_request(server: Running) -> None:
    server.set(default_page_size=12)
    server.hang_up()
    (changed,) = until(lambda: server.events("config.changed"))
    assert (changed["key"], changed["old"], changed["new"]) == ("default_page_size", 10, 12)
    assert not server.events("answer")


def test_a_change_is_logged_with_key_old_new_and_time(server: Running) -> None:
    server.set(default_page_size=12, tools={"list_sessions": {"rollout": 30}})
    server.ask()
    changes = server.events("config.changed")
    assert [(one["key"], one["old"], one["new"]) for one in changes] == [
        ("default_page_size", 10, 12),
        ("tools.list_sessions.rollout", 100, 30),
    ]
    assert all(datetime.fromisoformat(one["at"]).tzinfo == UTC for one in changes)
    server.ask()
    assert len(server.events("config.changed")) == 2


# -- where settings come from ----------------------------------------------------------------------

FORMS = {
    "toml": "default_page_size = {page}\ntoken_budget_threshold = {budget}\n",
    "yaml": "# ours\ndefaultPageSize: {page}\ntokenBudgetThreshold: {budget}\nmaxPageSize: 40\n",
    "json": '{{"$schema": "x", "defaultPageSize": {page}, "tokenBudgetThreshold": {budget}, "chunkSize": 700}}',
}


@pytest.mark.parametrize(
    ("way", "form", "named"),
    [("stdio", "toml", "option"), ("http", "yaml", "variable"), ("stdio", "toml", "place")],
)
def test_a_file_is_followed_in_each_form_and_place(home: Path, tmp_path: Path, way: str, form: str, named: str) -> None:
    folder = tmp_path / "agtrace"
    folder.mkdir()
    file = folder / f"config.{form}"
    file.write_text(FORMS[form].format(page=5, budget=2_000))
    options = ["--config", str(file)] if named == "option" else []
    variables = {"XDG_CONFIG_HOME": str(tmp_path)} if named == "place" else {}
    with running(way, home, file, *options, **variables) as server:
        assert (server.page(), bytes_allowed(server.ask())) == (5, tokens(5_120))
        replace(file, FORMS[form].format(page=6, budget=8_000))
        assert (server.page(), bytes_allowed(server.ask())) == (6, tokens(20_480))
        assert server.configuration["file"] == str(file)


def test_the_command_line_is_above_the_environment_and_that_above_the_file(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "agtrace.json"
    file.write_text('{"default_page_size": 5, "max_page_size": 30, "token_budget_threshold": 1500}')
    variables = {
        "AGTRACE_CONFIG": str(file), "AGTRACE_DEFAULT_PAGE_SIZE": "6", "AGTRACE_TOKEN_BUDGET_THRESHOLD": "2000",
    }  # fmt: skip
    with running("stdio", home, file, "--set", "token_budget_threshold=8000", **variables) as server:
        assert (server.page(), bytes_allowed(server.ask())) == (6, tokens(20_480))
        server.set(default_page_size=9, max_page_size=31, token_budget_threshold=1_600)
        assert limits_listed(server)["search_event_previews"] == (6, 31)
        assert (server.page(), bytes_allowed(server.ask())) == (6, tokens(20_480))


# -- a hundred requests during fifty reloads -------------------------------------------------------


@pytest.mark.parametrize("server", WAYS, indirect=True)
def test_each_of_many_requests_during_fifty_reloads_is_answered_from_one_state(server: Running) -> None:
    few = {"default_page_size": 5, "token_budget_threshold": 4_000, "max_page_size": 50}
    many = {"default_page_size": 7, "token_budget_threshold": 6_000, "max_page_size": 20}
    seen: dict[int | None, set[tuple[int, int]]] = {None: set(), 6: set(), 30: set()}
    server.set(**few)
    assert server.page() == 5
    server.forget_log()
    answered = server.portal.call(reload_and_ask, server, [many, few] * 25, seen)
    assert answered >= 100
    assert seen[None] == {(5, tokens(10_240)), (7, tokens(15_360))}
    assert seen[6] == {(6, tokens(20_480)), (6, tokens(15_360))}
    assert seen[30] == {(30, tokens(20_480)), (0, 20)}
    changed = [one for one in server.events("config.changed") if one["key"] == "default_page_size"]
    assert len(changed) == 50 and not server.events("config.invalid")


async def reload_and_ask(server: Running, states: list[Any], seen: dict[int | None, set[tuple[int, int]]]) -> int:
    """Replace the file again and again while requests are under way; return the number of these."""
    answered = 0
    over = False

    async def ask(limit: int | None) -> None:
        nonlocal answered
        while not over:
            given = await server.client.call_tool("list_sessions", {} if limit is None else {"limit": limit})
            seen[limit].add(signs(given.structured_content or {}))
            answered += 1

    with anyio.fail_after(10 * SECONDS):
        async with anyio.create_task_group() as group:
            for limit in seen:
                group.start_soon(ask, limit)
            for number, state in enumerate(states, 1):
                server.set(**state)
                while server.logged.count("config.changed") < 3 * number or answered < 3 * number:
                    await anyio.lowlevel.checkpoint()
            over = True
    return answered


def signs(answer: dict[str, Any]) -> tuple[int, int]:
    """What tells from which settings an answer was made: its items and budget, or the largest limit that it names."""
    if not answer["success"]:
        return 0, int(answer["error"]["details"]["nearest"])
    return len(answer["data"]["sessions"]), bytes_allowed(answer)


# -- files that can't be used ----------------------------------------------------------------------

DEEP = "[" * 60_000
INVALID = {
    "half written": ('{"default_page_size": 2', "", "valid JSON"),
    "nested deeply": ('{"limits": ' + "[" * 900 + "]" * 900 + "}", "limits", "a table with max_bytes"),
    "another encoding": (b'{"prices": "\xe9"}', "", "UTF-8"),
    "too large": ('{"prices": "' + "x" * 65_536 + '"}', "", "at most 65,536 bytes"),
    "wrong type": ('{"default_page_size": "20"}', "default_page_size", "a whole number from 1 to 200"),
    "out of range": ('{"default_page_size": 201}', "default_page_size", "a whole number from 1 to 200"),
}


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_file_changes_nothing_and_is_told_until_it_is_mended(server: Running, kind: str) -> None:
    content, key, expected = INVALID[kind]
    server.set(default_page_size=7)
    assert server.page() == 7
    replace(server.file, content)
    stays(server, key, expected)
    is_mended(server)


def stays(server: Running, key: str, expected: str) -> None:
    """The old values hold, one line says why, and health says it, too."""
    assert [server.page() for _ in range(3)] == [7, 7, 7]
    (told,) = server.events("config.invalid")
    assert told["key"] == key and expected in told["problem"] and bool(told["value"]) is bool(key)
    assert told["level"] == "error" and told["file"] == str(server.file)
    assert told["problem"][:40] in server.configuration["problem"]


def is_mended(server: Running) -> None:
    server.set(default_page_size=8)
    assert server.page() == 8
    assert "problem" not in server.configuration
    assert len(server.events("config.mended")) == 1


def _vanished(file: Path) -> None:
    file.unlink()


def _a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _forbidden(file: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    file.chmod(0)


@pytest.mark.parametrize("trouble", [_vanished, _a_folder, _forbidden])
def test_a_file_that_can_not_be_read_changes_nothing(server: Running, trouble: Any) -> None:
    server.set(default_page_size=7)
    assert server.page() == 7
    trouble(server.file)
    stays(server, "", "can't be read")
    if server.file.is_dir():
        server.file.rmdir()
    is_mended(server)


def test_a_file_that_is_emptied_before_it_is_written_is_no_change(server: Running) -> None:
    """Editors do that. The time of the file is in the future, so that a slow machine isn't too late for the moment."""
    server.set(default_page_size=7)
    assert server.page() == 7
    server.file.write_bytes(b"")
    os.utime(server.file, (time.time() + 60,) * 2)
    assert server.page() == 7
    server.file.write_text('{"default_page_size": 9}')
    assert server.page() == 9
    assert [one["new"] for one in server.events("config.changed")] == [7, 9]


def test_a_faulty_file_shows_in_the_summary_of_health_and_in_monitoring(stdio: Running, http: Running) -> None:
    for server, valid in ((stdio, "1.0"), (http, "1.0"), (stdio, "0.0"), (http, "0.0")):
        afresh(server).set(default_page_size=int(valid[0]))
        if server.url:
            page = httpx2.get(server.url.replace("/mcp", "/metrics"), headers=server.shown, timeout=SECONDS).text
            assert f"\nagtrace_configuration_valid {valid}\n" in page
        else:
            summary = server.ask("read_artifact", ref="ax://health")["summary"]
            assert summary.endswith("; see the problem of configuration") is (valid == "0.0")


def test_a_command_shows_the_problem_too(stdio: Running) -> None:
    afresh(stdio).set(default_page_size=0)
    told = stdio.agtrace("doctor", "--json")
    assert told.returncode == 1
    assert "a whole number from 1 to 200, got 0" in told.stdout
    stdio.set()
    assert "a whole number" not in stdio.agtrace("doctor", "--json").stdout


BOMB = "a: &a [x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)


FAULTS = {"default_page_size": 0, "chunk_size": True, "keep_days": "ten", "http": {"hosts": ["*"]}, "nothing": 1}


def test_a_server_that_starts_with_an_invalid_file_has_defaults_and_says_so(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "agtrace.json"
    file.write_text(json.dumps(FAULTS))
    with running("stdio", home, file) as server:
        assert server.page() == 10
        assert len(server.events("config.invalid")) == 4 and server.events("config.unknown")[0]["key"] == "nothing"
        assert "default_page_size: expected a whole number" in server.configuration["problem"]
        is_mended(server)


def test_a_server_starts_without_a_variable_that_can_not_be_used(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "agtrace.json"
    file.write_text('{"default_page_size": 7}')
    bad = {"AGTRACE_MAX_PAGE_SIZE": "many", "AGTRACE_TOKEN_BUDGET_THRESHOLD": "8000"}
    with running("stdio", home, file, **bad) as server:
        assert (server.page(), bytes_allowed(server.ask())) == (7, tokens(20_480))
        (told,) = server.events("config.invalid")
        assert (told["file"], told["value"]) == ("AGTRACE_MAX_PAGE_SIZE", "'many'") and "1 to 200" in told["expected"]
        server.set(default_page_size=8)
        assert server.page() == 8 and "AGTRACE_MAX_PAGE_SIZE" in server.configuration["problem"]


def test_a_key_that_is_not_known_is_told_and_the_others_are_used(stdio: Running) -> None:
    afresh(stdio).set(default_page_size=7, tools={"list_sessions": {"features": {"pagination": False}}})
    assert stdio.page() == 7 and "problem" not in stdio.configuration
    (told,) = stdio.events("config.unknown")
    assert told["key"] == "tools.list_sessions.features"


# -- what needs a restart, and what is never shown -------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_what_can_not_change_in_a_process_stays_and_is_listed(home: Path, tmp_path: Path, way: str) -> None:
    file, data = tmp_path / "agtrace.json", str(home.parent / "data")
    file.write_text(json.dumps({"data_dir": data}))
    with running(way, home, file, AGTRACE_DATA_DIR="") as server:
        assert server.page() == 10
        http = {"hosts": ["tidepool.example"], "token": TOKEN}
        server.set(data_dir=str(tmp_path / "other"), http=http, default_page_size=11)
        assert server.page() == 11 and len(tools(server)) == 10
        staying = ["data_dir", "http.token", "http.hosts"]
        assert server.configuration["needs_restart"] == staying
        changes = {one["key"]: one for one in server.events("config.changed")}
        assert [key for key, one in changes.items() if one.get("needs_restart")] == staying
        assert not (tmp_path / "other").exists()
        assert TOKEN not in server.logged + json.dumps(server.configuration)
        assert (changes["http.token"]["old"], changes["http.token"]["new"]) == (None, "(secret)")
        server.set(data_dir=data)
        assert server.page() == 10 and "needs_restart" not in server.configuration


TOKEN = "tok-" + "73b1" * 6
MISPLACED: list[dict[str, Any]] = [
    {"http": {"token": f"{TOKEN} and more"}},
    {"http": {"token": [TOKEN]}},
    {"http": {"token": {"is": TOKEN}}},
    {"http": {"tokn": TOKEN}},
    {"http": TOKEN},
    {"http.token": TOKEN},
    {"token": TOKEN},
    {"htpp": {"token": TOKEN}},
    {"tools": [TOKEN]},
]


@pytest.mark.parametrize("values", MISPLACED, ids=lambda values: json.dumps(values).replace(TOKEN, "..."))
def test_a_token_in_the_wrong_place_is_not_shown(server: Running, values: dict[str, Any]) -> None:
    server.set(**values)
    assert server.page() == 10
    assert server.events("config.invalid") or server.events("config.unknown")
    assert TOKEN not in server.logged + json.dumps(server.configuration)


# -- features --------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", WAYS, indirect=True)
def test_without_protection_of_its_tool_an_answer_is_whole(server: Running) -> None:
    others = [
        ("search_event_previews", {"query": "tides"}),
        ("get_event_details", {"session_id": LONG, "event_index": 2}),
    ]
    before = [shape(server.ask(name, **arguments)) for name, arguments in others]
    server.set(tools={"list_sessions": {"enabled": False}})
    whole = server.ask()
    assert len(whole["data"]["sessions"]) == SESSIONS and whole.get("pagination", {}).get("next_cursor") is None
    assert [shape(server.ask(name, **arguments)) for name, arguments in others] == before
    assert server.page(limit=5) == 5
    server.set(tools={"get_event_details": {"enabled": False}})
    assert long_text(server).count("\n") == 999
    answer = server.ask("get_event_details", session_id=LONG, event_index=2)
    assert "chunk" not in answer and "truncation" not in answer and server.page() == 10


def shape(answer: dict[str, Any]) -> str:
    """An answer without its cursors, which are signed with their time."""
    return re.sub(r"(next_cursor\": ?\"|cursor=')[\w.-]+", r"\1", json.dumps(answer))


LIMITLESS = {
    "max_response_bytes": 102_400, "default_page_size": 200, "max_page_size": 200, "token_budget_threshold": 30_000,
    "chunk_size": 30_000, "chunk_lines": 60_000,
}  # fmt: skip


@pytest.mark.parametrize("server", WAYS, indirect=True)
def test_whatever_a_file_says_answers_stay_below_a_mebibyte_and_without_secrets(server: Running) -> None:
    server.set(**LIMITLESS, tools={tool.name: {"enabled": False} for tool in tools(server)})
    for name, arguments in [
        ("get_event_details", {"session_id": LONG, "event_index": 4}),
        ("get_event_details", {"session_id": LONG, "event_index": 4, "max_bytes": 102_400}),
        ("read_artifact", {"ref": f"ax://event/{LONG}/4"}),
        ("read_artifact", {"ref": f"ax://session/{LONG}"}),
        ("get_session_details", {"session_id": LONG, "detail_level": "full"}),
        ("search_event_previews", {"query": "ebb", "order": "newest"}),
        ("list_sessions", {"limit": 200}),
    ]:
        text = server.text(name, **arguments)
        assert len(text.encode()) < 1_048_576 and json.loads(text)["success"], name
        assert SECRET not in text and "ghp_" not in text, name
    assert "[redacted: " in server.text("get_event_details", session_id=LONG, event_index=4)


# -- a share of the connections --------------------------------------------------------------------


def each_answer(server: Running, connections: list[str], many: int = 4) -> list[dict[str, Any]]:
    """What `list_sessions` answers to each of these connections."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_sessions"}})
    headers = {**server.shown, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def asked(part: list[str]) -> list[dict[str, Any]]:
        address = urlsplit(server.url)
        with closing(HTTPConnection(address.hostname or "", address.port, timeout=300)) as connection:
            found = []
            for one in part:
                connection.request("POST", "/mcp", body, {**headers, "Mcp-Session-Id": one})
                found.append(json.loads(connection.getresponse().read())["result"]["structuredContent"])
            return found

    size = -(-len(connections) // many)
    parts = [connections[start : start + size] for start in range(0, len(connections), size)]
    with ThreadPoolExecutor(many) as pool:
        return [answer for part in pool.map(asked, parts) for answer in part]


CONNECTIONS = 200


def is_paged(answer: dict[str, Any]) -> bool:
    return len(answer["data"]["sessions"]) < SESSIONS


def roll_out(server: Running, percent: int) -> None:
    """Protect a share of the connections; whoever asks while another request reads the file gets the state before."""
    afresh(server).set(default_page_size=1, tools={"list_sessions": {"rollout": percent}})
    each_answer(server, ["the one that reads"])


def test_a_rollout_protects_its_share_of_connections_and_none_changes_sides(http: Running) -> None:
    roll_out(http, 25)
    connections = [f"connection-{number}" for number in range(CONNECTIONS)]
    paged = [is_paged(answer) for answer in each_answer(http, connections)]
    settings = Settings(data_dir=http.home, tools={"list_sessions": ToolSettings(rollout=25)})
    protected = [limits_for(settings, "list_sessions", f"connection-{number}").protected for number in range(10_000)]
    assert abs(sum(protected) - 2_500) < 3 * 1_875**0.5 and paged == protected[:CONNECTIONS]
    again = range(0, CONNECTIONS, 4)
    assert [is_paged(one) for one in each_answer(http, [connections[at] for at in again])] == [
        paged[at] for at in again
    ]


# -- a comparison ----------------------------------------------------------------------------------


def forget_figures(server: Running) -> None:
    (server.home.parent / "data" / "telemetry.sqlite3").unlink(missing_ok=True)


def figures(server: Running, arm: str | None) -> list[Request]:
    """What was recorded of the requests to this server on this side of a comparison."""
    data = server.home.parent / "data"
    if not (data / "telemetry.sqlite3").exists():
        return []
    way = "http" if server.url else "stdio"
    try:
        return [row for row in recorded(data) if row.transport == way and row.arm == arm]
    except sqlite3.OperationalError:  # its table is being made
        return []


def test_a_split_gives_a_share_the_unprotected_answer(http: Running) -> None:
    forget_figures(afresh(http))
    http.set(ab={"mode": "split", "share": 50})
    connections = [f"connection-{number}" for number in range(60)]
    first = each_answer(http, connections[:1])  # those that ask while it reads the file get the state before
    answers = first + each_answer(http, connections[1:])
    whole = [len(answer["data"]["sessions"]) for answer in answers]
    assert set(whole) == {10, SESSIONS} and 15 <= whole.count(SESSIONS) <= 45
    until(lambda: len(figures(http, "protected")) + len(figures(http, "unprotected")) >= 60)
    told = json.loads(http.agtrace("metrics", "--ab", "--json").stdout)["arms"]
    arms = {arm["arm"]: arm for arm in told}
    assert arms["unprotected"]["requests"] == arms["unprotected"]["connections"] == whole.count(SESSIONS)
    assert arms["protected"]["bytes"]["largest"] < 10_240 < 30_000 < arms["unprotected"]["bytes"]["p50"]


# -- telemetry -------------------------------------------------------------------------------------


def test_telemetry_is_switched_off_and_on_by_the_file(server: Running) -> None:
    forget_figures(server)
    server.set(telemetry={"enabled": False})
    server.ask("get_project_info")
    server.set()
    server.ask("run_sql", sql="SELECT 1")
    until(lambda: "run_sql" in {row.tool for row in figures(server, None)})
    assert "get_project_info" not in {row.tool for row in figures(server, None)}


def test_arguments_are_recorded_without_secrets_if_the_file_says_so(server: Running) -> None:
    forget_figures(server)
    server.set(telemetry={"arguments": True})
    server.ask(query=f"tides {SECRET}", limit=3)
    server.set()
    server.ask(query="ebb", limit=4)
    with_text, without = until(lambda: len(found := rows_with_arguments(server)) == 2 and found)
    assert json.loads(with_text)["limit"] == 3 and "tides" in with_text
    assert SECRET not in with_text and without is None


def rows_with_arguments(server: Running) -> list[str | None]:
    return [row.arguments for row in figures(server, None) if row.items == 0]


def test_figures_are_kept_for_as_many_days_as_the_file_says(home: Path, stdio: Running, tmp_path: Path) -> None:
    forget_figures(afresh(stdio))
    stdio.ask("get_project_info")
    until(lambda: figures(stdio, None))
    data, file = home.parent / "data", tmp_path / "agtrace.json"
    with closing(sqlite3.connect(data / "telemetry.sqlite3")) as connection, connection:
        connection.execute("UPDATE request SET at = at - 2 * 86400000")
    file.write_text('{"telemetry": {"keep_days": 1}}')
    with running("stdio", home, file) as server:
        server.ask("list_sessions")
        until(lambda: [row.tool for row in figures(server, None)] == ["list_sessions"])
