"""Every option of the commands has the meaning of its parameter over MCP; a wrong one is refused with exit code 2."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from agtrace.tools import TOOLS
from tests import depth
from tests.agtrace.terminal import AGTRACE, agtrace_here

LARGE, SMALL = "d41f7a52", "e97a4b06"
FAILING = "01a11132-cb80-755b-8f0b-6f22348b7f75"

Asked = tuple[list[str], str, dict[str, Any]]

SESSIONS: list[Asked] = [
    (arguments, "list_sessions", asked)
    for arguments, asked in (
        (["sessions"], {}),
        (["sessions", "--limit", "3", "--provider", "codex"], {"limit": 3, "provider": "codex"}),
        (["sessions", "--query", "surge"], {"query": "surge"}),
        (["sessions", "--path", "store.py"], {"path": "store.py"}),
        (["sessions", "--min-tokens", "100000"], {"min_tokens": 100_000}),
        (["sessions", "--failures"], {"has_failures": True}),
        (["sessions", "--commit", "3fa9c21"], {"commit": "3fa9c21"}),
        (["sessions", "--pr", "104"], {"pr": "104"}),
        (["sessions", "--sort", "failure_run"], {"sort": "failure_run"}),
        (["sessions", "--path", "store.py", "--access", "write"], {"path": "store.py", "access": "write"}),
        (["sessions", "--kind", "subagent", "--sort", "oldest"], {"kind": "subagent", "sort": "oldest"}),
        (["sessions", "--no-failures"], {"has_failures": False}),
    )
]
SEARCHES: list[Asked] = [
    (arguments, "search_event_previews", asked)
    for arguments, asked in (
        (["search", "database is locked"], {"query": "database is locked"}),
        (["search", "e", "--failed"], {"query": "e", "failed": True}),
        (["search", "surge", "--oldest"], {"query": "surge", "order": "oldest"}),
        (["search", "surge", "--by-session"], {"query": "surge", "group_by": "session"}),
        (["search", "", "--path", "store.py"], {"query": "", "path": "store.py"}),
        (["search", "e", "--limit", "2"], {"query": "e", "limit": 2}),
    )
]
TEXTS: list[Asked] = [
    (["show", f"{LARGE}:3"], "get_event_details", {"session_id": LARGE, "event_index": 3}),
    (
        ["show", f"{LARGE}:110", "--lines", "2:4"], "get_event_details",
        {"session_id": LARGE, "event_index": 110, "start_line": 2, "end_line": 4},
    ),
    (
        ["show", f"{LARGE}:110", "--mode", "minimal"], "get_event_details",
        {"session_id": LARGE, "event_index": 110, "mode": "minimal"},
    ),
    (["show", f"ax://event/{LARGE}/110"], "read_artifact", {"ref": f"ax://event/{LARGE}/110"}),
    (
        ["show", f"ax://session/{LARGE}", "--lines", "5:9"], "read_artifact",
        {"ref": f"ax://session/{LARGE}", "start_line": 5, "end_line": 9},
    ),
    (
        ["show", f"ax://session/{LARGE}", "--mode", "standard"], "read_artifact",
        {"ref": f"ax://session/{LARGE}", "mode": "standard"},
    ),
]  # fmt: skip
OPENED: list[Asked] = [
    (["show", LARGE], "get_session_details", {"session_id": LARGE}),
    (["show", LARGE, "--level", "turns"], "get_session_details", {"session_id": LARGE, "detail_level": "turns"}),
    (
        ["show", LARGE, "--sections", "tools,failures"], "get_session_details",
        {"session_id": LARGE, "sections": ["tools", "failures"]},
    ),
    (["analyze", FAILING], "analyze_session", {"session_id": FAILING, "include_loops": True}),
]  # fmt: skip


def test_json_is_what_an_agent_gets_over_mcp(indexed: Path) -> None:
    asked = depth.part([*SESSIONS, *SEARCHES, *TEXTS, *OPENED], 0, 3)
    for (arguments, _, _), answer in zip(asked, anyio.run(answered_over_mcp, asked), strict=True):
        said = agtrace_here(*arguments, "--json")
        assert said.json() == answer and answer["success"], arguments
        assert (said.code, said.err) == (0, ""), arguments


async def answered_over_mcp(asked: Sequence[Asked]) -> list[Any]:
    server = StdioServerParameters(command=str(AGTRACE), args=["mcp"], env=dict(os.environ))
    with Path(os.devnull).open("w") as errors:
        async with Client(stdio_client(server, errors)) as client:
            return [(await client.call_tool(tool, arguments)).structured_content for _, tool, arguments in asked]


_NOT_OFFERED = {("search", "query"), ("search", "event_type")}
"""An argument of the command, and a parameter that `kind` has replaced."""


def test_a_person_can_ask_with_every_parameter_of_the_tools_that_list_and_search() -> None:
    """What is left out is for whoever pays by the byte."""
    named = {"session_id": "session", "has_failures": "failures",
             "group_by": "by-session", "order": "oldest"}  # fmt: skip
    for command, tool in (("sessions", "list_sessions"), ("search", "search_event_previews")):
        shown = agtrace_here(command, "--help").out.replace("-n, --limit", "--limit")
        known = TOOLS[tool].arguments.__struct_fields__
        options = [
            f"--{named.get(name, name.replace('_', '-'))}"
            for name in known
            if (command, name) not in _NOT_OFFERED and name not in ("cursor", "fields")
        ]
        assert [option for option in options if f"  {option}" not in shown] == []


@pytest.mark.parametrize(
    "arguments",
    [("sessions", "--provider", "codex"), ("cost", "--by", "agent"),
     ("report", "--provider", "gemini"), ("lessons", "--provider", "claude"),
     ("search", "tide", "--provider", "codex")],
)  # fmt: skip
def test_agent_and_provider_are_two_words_for_the_same(arguments: list[str], indexed: Path) -> None:
    other = {"--provider": "--agent", "agent": "provider"}
    said, again = agtrace_here(*arguments), agtrace_here(*(other.get(word, word) for word in arguments))
    assert (said.code, again.code) == (0, 0) and said.out == again.out
    assert "--agent" not in agtrace_here(arguments[0], "--help").out, "one of them is enough for the help"


WRONG = [
    (["show", f"{LARGE}:3", "--lines", "-1"], "expected lines such as"),
    (["show", f"{LARGE}:3", "--lines", "5000:"], "this text has"),
    (["show", f"{LARGE}:3", "--mode", "tiny"], "'tiny' is not one of"),
    (["show", f"{LARGE}:{'9' * 5000}"], "expected SESSION:NUMBER"),
    (["show", LARGE, "--lines", "1:2"], "--lines is for one event"),
    (["show", LARGE, "--mode", "minimal"], f"agtrace show ax://session/{LARGE}"),
    (["show", f"{LARGE}:3", "--sections", "tools"], "--sections is for a session"),
    (["show", f"{LARGE}:3", "--turns", "0"], "--turns is for a session"),
    (["show", LARGE, "--sections", "tools", "--turns", "0"], "--turns can't be combined with --sections"),
    (["show", LARGE, "--sections", "nonsense"], "'nonsense' is not one of session, stats"),
    (["show", LARGE, "--sections", ""], "sections: list should have at least 1 item"),
    (["show", LARGE, "--sections", "tools", "--cursor", "abc"], "invalid cursor format"),
    (["show", LARGE, "--raw"], "--raw is for one event"),
    (["show", LARGE, "--turns", "1:9999"], "out of bounds"),
    (["show", LARGE, "--turns", "a"], "expected turns such as"),
    (["show", LARGE, "--turns", "0:1", "--json"], "--turns A:B is for the conversation"),
    (["show", LARGE, "--tools", "--json"], "--tools is for the conversation"),
    (["show", LARGE, "--all", "--sections", "tools"], "--all can't be combined with --sections"),
    (["export", LARGE, "--images"], "--images is for --html"),
    (["export", LARGE, "--html", "--tools"], "--tools is for --markdown"),
    (["export", LARGE, "--jsonl", "--thinking"], "--thinking is for --markdown"),
    (["export", LARGE, "--force"], "--force needs --out"),
    (["export", "ffff0000"], "Session not found: ffff0000"),
    (["report", "--json", "--markdown"], "--markdown"),
    (["report", "--html", "-", "--json"], "--json"),
    (["report", "--since", "once"], "since"),
    (["report", "--fail-under", "101"], "101 is not in the range"),
    (["report", "--provider", "nobody"], "'nobody' is not one of"),
    (["no-such-command"], "No such command"),
    (["sessions", "--colour"], "No such option"),
    (["sessions", "--provider", "aider"], "'aider' is not one of"),
    (["sessions", "--limit", "51", "--json"], "limit exceeds maximum of 50"),
    (["sessions", "--min-tokens", "many"], "expected a number such as 50000"),
    (["sessions", "--limit", "none"], "not a valid integer"),
    (["sessions", "--since", "whenever"], "since"),
    (["sessions", "--project", "xyz"], "project"),
    (["show"], "Missing argument"),
    (["show", "zzzzzzzz"], "Session not found: zzzzzzzz"),
    (["show", "01a1"], "Session ID prefix '01a1' matches"),
    (["show", ""], ""),
    (["show", f"{LARGE}:999999"], "Event index 999999 out of bounds"),
    (["show", f"{LARGE}:last"], "expected SESSION:NUMBER"),
    (["show", LARGE, "--turns", "9999"], "9999"),
    (["analyze", "zzzzzzzz"], "Session not found: zzzzzzzz"),
    (["search", "x" * 3000], "query"),
    (["search"], "Missing argument"),
    (["search", "x", "--session", "zzzzzzzz"], "Session not found: zzzzzzzz"),
    (["setup", "aider"], "'aider' is not one of"),
    (["show", "\x1b[31mred"], "Session not found"),
    (["show", "ax://nonsense"], "use ax://session/"),
    (["show", "ax://session/zzzzzzzz"], "Session not found: zzzzzzzz"),
    (["show", f"ax://event/{LARGE}/999999"], "Event index 999999 out of bounds"),
    (["mcp", "--http", "8765"], "expected HOST:PORT"),
    (["mcp", "--http", "127.0.0.1:99999999999999999999"], "expected HOST:PORT"),
    (["mcp", "--no-token"], "--no-token needs --http"),
    (["mcp", "--http", "127.0.0.1:0", "--show-token"], "--show-token can't be combined"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: ascii(str(value))[:40])
def test_a_wrong_option_says_why_and_exits_with_2(arguments: list[str], message: str, indexed: Path) -> None:
    said = agtrace_here(*arguments)
    assert (said.code, said.out) == (2, "") and len(said.err) < 1500
    assert message in " ".join(said.err.split())


def test_what_a_reference_refers_to_is_printed_to_its_end(indexed: Path) -> None:
    lines = agtrace_here("show", LARGE, "--level", "full", "--turns", "0").out.splitlines()[8:]
    whole = agtrace_here("show", f"ax://session/{LARGE}", AGTRACE_MAX_RESPONSE_BYTES="40960").out
    assert "\n".join(lines) in whole
    assert all(f"\n## event {number} " in whole for number in events_of(indexed, LARGE))
    some = agtrace_here("show", f"ax://session/{LARGE}", "--lines", "20:700", AGTRACE_MAX_RESPONSE_BYTES="40960").out
    assert some.partition("\n\n")[2] == "".join(whole.partition("\n\n")[2].splitlines(keepends=True)[19:700])


def events_of(data: Path, session: str) -> Iterator[int]:
    """The events of a session that are still valid."""
    with closing(sqlite3.connect(data / "index.sqlite3")) as connection:
        found = connection.execute(
            "SELECT event_index FROM event JOIN session s ON s.id = session_id "
            "WHERE s.uid LIKE ? || '%' AND superseded_by IS NULL", (session,),
        ).fetchall()  # fmt: skip
    assert found
    yield from (number for (number,) in found)
