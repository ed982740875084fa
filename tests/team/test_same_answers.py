"""A team's index answers as one's own does: every tool, with every kind of argument, over all logs at hand.

The differences that there are have names here (`DIFFERENCES`); any other fails.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from agtrace_indexer.index.queries import sessions
from agtrace_indexer.index.queries.sessions import SessionFilters
from agtrace_schema.requests import Section, Sort
from agtrace_team.server import Server

from agtrace.answers.service import Service
from agtrace.report.selection import Selection
from agtrace.sessions import prices
from agtrace.web import lists, session
from tests.agtrace.terminal import agtrace_here
from tests.depth import part
from tests.team.conftest import new_team
from tests.team.teams import Team, own_answers

_NAMED = re.compile(r"- \*\*User:\*\* `Ann`\n|<div><dt>User</dt><dd>.*?Ann.*?</dd></div>\n|^Ann  ", re.M)
"""Who pushed a session, as conversations say it of a team's index."""

DIFFERENCES = {
    "next_cursor": "a cursor names rows, which have other numbers on the server",
    "cursor": "so do the hints that quote it",
    "budget": "the estimated tokens of an answer count the digits of its cursor, too",
    "bytes": "one's own index is a file of some size; that of a team is its server's business",
    "version": "the settings differ: one of them names the team",
    "user": "a team's index says who pushed a session",
    "started_at": "each started at its own time",
}
"""Fields that may differ, and why."""

QUERIES = (
    "error", "PYTHONPATH", "the", "_", "%", "\\",
    '{"', "日本", "é", "É", "🎉", "test.py", "npm ERR!", "fix the bug",
    "ModuleNotFoundError", "database is locked", "import error module", "xyzzy-nowhere-at-all",
)  # fmt: skip
SEARCHES: tuple[dict[str, Any], ...] = (
    {}, {"order": "newest"}, {"order": "oldest"}, {"failed": True},
    {"failed": False}, {"tool": "bash"}, {"kind": "human"}, {"kind": "command"}, {"kind": "edit"}, {"kind": "error"},
    {"path": ".py"}, {"event_type": "ToolResult"}, {"provider": "codex"}, {"group_by": "session"}, {"regex": True},
    {"since": "2026-01-01"}, {"until": "2026-02-01"}, {"limit": 50},
)  # fmt: skip
LISTS: tuple[dict[str, Any], ...] = (
    {}, {"limit": 5}, {"provider": "codex"}, {"has_failures": True}, {"has_failures": False}, {"min_tokens": 1000},
    {"query": "fix"}, {"query": "É"}, {"path": ".py"}, {"access": "write"}, {"kind": "subagent"}, {"kind": "main"},
    {"commit": "any"}, {"pr": "any"}, {"since": "2026-03-01"}, {"until": "2026-01-01"}, {"project": "tidepool"},
    *({"sort": by} for by in get_args(Sort)),
)  # fmt: skip
GROUPS = ("tool", "program", "file", "project", "agent", "model", "day", "session")
COUNTS: tuple[dict[str, Any], ...] = (
    {}, {"measure": "tokens"}, {"failed": True}, {"provider": "codex"}, {"kind": "main"}, {"path": "src"},
    {"since": "2026-01-01"}, {"tool": "Bash"},
)  # fmt: skip


class Both:
    """One's own index, and a team's that one person has pushed all of it to."""

    def __init__(self, own: Service, team: Team) -> None:
        self.own, self.team = own, team
        self.ids = [one["id"] for page in self._pages() for one in page]

    def _pages(self) -> Iterator[list[dict[str, Any]]]:
        arguments: dict[str, Any] = {"limit": 50}
        while True:
            found = self.own.ask("list_sessions", arguments).value
            yield found["data"]["sessions"]
            cursor = found.get("pagination", {}).get("next_cursor")
            if cursor is None:
                return
            arguments["cursor"] = cursor

    def agree(self, tool: str, arguments: dict[str, Any], *, succeeds: bool | None = True) -> None:
        """Ask both, and compare what they say, page by page up to the second; whether that is an error, if known."""
        own, other = dict(arguments), dict(arguments)
        for _ in range(2):
            one, two = self.own.ask(tool, own).value, self.team.ask("ann", tool, other)
            assert succeeds in (None, one["success"]), one
            if tool == "search_event_previews" and "best" in str(one) + str(two):  # each ranks in its own way
                assert one["success"] and two["success"]
                assert _clear(one) <= {*_ranked(two)[:3]} and _clear(two) <= {*_ranked(one)[:3]}, (tool, arguments)
                return
            if not (
                _is_exact(one) and _is_exact(two)
            ):  # how many blocks are left, and how fast, decides how far one counts
                one, two = _uncounted(one), _uncounted(two)
            assert _without_differences(two) == _without_differences(one), (tool, arguments)
            cursors = [answer.get("pagination", {}).get("next_cursor") for answer in (one, two)]
            if None in cursors:
                assert cursors == [None, None]
                return
            own["cursor"], other["cursor"] = cursors


def _without_differences(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_differences(one) for name, one in value.items() if name not in DIFFERENCES}
    if isinstance(value, list):
        return [_without_differences(one) for one in value]
    return value


@pytest.fixture(scope="module")
def both(server: Server, everything: Path) -> Both:
    team = new_team(server)
    team.add("ann")
    team.push(everything, "ann")
    return Both(own_answers(everything), team)


@pytest.mark.parametrize("arguments", part(LISTS, 0, 3), ids=str)
def test_lists_agree(both: Both, arguments: dict[str, Any]) -> None:
    both.agree("list_sessions", arguments)


@pytest.mark.parametrize("arguments", ({}, {"limit": 50}, {"limit": 2}), ids=str)
def test_projects_agree(both: Both, arguments: dict[str, Any]) -> None:
    both.agree("get_project_info", arguments)


@pytest.mark.parametrize("query", part(QUERIES, 0, 3))
def test_searches_agree(both: Both, query: str) -> None:
    for more in part(SEARCHES, QUERIES.index(query) // 3, 6):
        refused = query == "\\" and "regex" in more
        both.agree("search_event_previews", {"query": query, **more}, succeeds=not refused)


def test_what_is_said_of_single_sessions_agrees(both: Both) -> None:
    for number, id in enumerate(part(both.ids, 0, 23)):
        both.agree("get_session_details", {"session_id": id})
        both.agree("analyze_session", {"session_id": id})
        both.agree("get_event_details", {"session_id": id, "event_index": number % 7}, succeeds=None)
        if number % 3 == 0:
            for level in ("turns", "steps", "full"):
                both.agree(
                    "get_session_details", {"session_id": id, "detail_level": level, "turn_index": 0}, succeeds=None
                )
            for section in get_args(Section):
                both.agree("get_session_details", {"session_id": id, "sections": [section]})
            both.agree("get_reasoning_chain", {"session_id": id})
            other = next(one for one in both.ids if one != id)
            both.agree("compare_sessions", {"id1": id, "id2": other})
            both.agree("read_artifact", {"ref": f"ax://session/{id}"})


@pytest.mark.parametrize(
    "reference", ("ax://lessons/tidepool", "ax://session/nope", "ax://nothing", "ax://lessons/nope")
)
def test_references_agree(both: Both, reference: str) -> None:
    both.agree("read_artifact", {"ref": reference}, succeeds=None)


@pytest.mark.parametrize("tool", ("list_sessions", "search_event_previews", "get_session_details"))
def test_what_is_refused_is_refused_by_both(both: Both, tool: str) -> None:
    for arguments in ({"nonsense": 1}, {"session_id": "nope"}, {"cursor": "nope"}, {"query": ""}, {"limit": -1}):
        both.agree(tool, arguments, succeeds=None)


COMMANDS = (
    ("sessions", "--sort", "cost"), ("projects",), ("cost", "--by", "project"),
    ("cost", "--by", "day"), ("cost", "--by", "model"), ("report", "--since", "2026-01-01"), ("lessons",), ("week",),
    ("search", "database is locked", "--newest"), ("search", "error", "--newest", "--failed"), ("show", "last"),
    ("analyze", "last"), ("resume", "last"),
)  # fmt: skip
TEXTS = (("show", "last"), *(("export", "last", form) for form in ("--markdown", "--jsonl", "--html")))
_MOMENTS = frozenset({"made_at", "since", "until", "compared"})


@pytest.mark.parametrize("command", part(COMMANDS, 0, 4), ids=" ".join)
def test_commands_agree(both: Both, everything: Path, command: tuple[str, ...]) -> None:
    own = agtrace_here(*command, "--json", AGTRACE_DATA_DIR=str(everything.parent))
    team = agtrace_here("--index", both.team.url("ann"), *command, "--json", AGTRACE_DATA_DIR=str(everything.parent))
    assert (own.code, own.err) == (team.code, team.err)
    assert own.code == 0
    assert without_moments(team.json()) == without_moments(own.json())


@pytest.mark.parametrize("command", TEXTS, ids=" ".join)
def test_conversations_agree(both: Both, everything: Path, command: tuple[str, ...]) -> None:
    own = agtrace_here(*command, AGTRACE_DATA_DIR=str(everything.parent))
    team = agtrace_here("--index", both.team.url("ann"), *command, AGTRACE_DATA_DIR=str(everything.parent))
    assert own.code == 0 and team._replace(out=_NAMED.sub("", team.out)) == own


@pytest.mark.thorough
def test_pages_are_of_the_same_sessions(both: Both, everything: Path) -> None:
    table = prices.load(None)
    with closing(sqlite3.connect(everything)) as own, closing(both.team.connection("ann")) as other:
        shown = []
        for connection in (own, cast(sqlite3.Connection, other)):
            one = min(sessions.of_provider(connection, None), key=lambda session: (-session.event_count, session.uid))
            listed = lists.session_page(connection, SessionFilters(), "newest", None, table)
            page = session.about(connection, one, now=0, prices=table)
            outline = session.outline(connection, one, 0)
            examined = session.examined(connection, one, now=0, prices=table, dollars=True)
            spent = lists.ledger(connection, Selection(), "day", table, now=0, dollars=True)
            shown.append((listed.total, page.title, outline.turns, examined, spent.bars))
            assert lists.projects(connection, table)
    assert shown[0] == shown[1]


def without_moments(value: Any) -> Any:
    """What commands say, without the moments at which they were asked."""
    value = _without_differences(value)
    if isinstance(value, dict):
        return {name: without_moments(one) for name, one in value.items() if name not in _MOMENTS}
    return [without_moments(one) for one in value] if isinstance(value, list) else value


def _is_exact(answer: dict[str, Any]) -> bool:
    return bool(answer.get("pagination", {}).get("total_exact", True))


def _uncounted(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what it says of the number of hits."""
    pages = {name: value for name, value in answer.get("pagination", {}).items() if not name.startswith("total")}
    rest = {name: value for name, value in answer.items() if name not in ("summary", "hint")}
    return {**rest, "pagination": pages}


def _clear(answer: dict[str, Any]) -> set[str]:
    """The session of a ranked answer that is sure of one; else none."""
    sessions = answer["data"].get("sessions", ())
    sure = answer["summary"].startswith("Best matches") and len(sessions) == 1
    return {sessions[0]["session_id"]} if sure else set()


def _ranked(answer: dict[str, Any]) -> list[str]:
    """The sessions of a ranked answer, the best first."""
    data = answer["data"]
    return [*(one["session_id"] for one in data.get("sessions", ())), *(one[0] for one in data.get("others", ()))]
