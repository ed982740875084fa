"""Every question of every topic is answered by both engines, and with as many rows."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, cast

import pytest
from agtrace_indexer.index import questions
from agtrace_indexer.index.questions import events, matches, projects, sessions, turns
from agtrace_indexer.index.questions.events import Snapshot
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_indexer.index.questions.ranking import Word
from agtrace_indexer.index.questions.sessions import SessionFilters
from agtrace_indexer.index.questions.usage import Among
from agtrace_schema.events import EventType
from agtrace_team.server import Server

from tests.team.conftest import new_team

BIG = events.NOW.newest_row
OTHERWISE = {
    "upkeep.roots": "nothing is kept fresh from a team's index",
    "upkeep.logs": "only logs with sessions are pushed",
    "upkeep.files_not_read": "what isn't read isn't pushed",
    "state.masked_by": "each machine masks by its own rules before it pushes",
    "sessions.people_of": "one's own index is of one person",
    "candidates.candidates": "the engines narrow blocks down in their own ways",
    "candidates.candidates_of_all": "the engines narrow blocks down in their own ways",
}
"""Questions that are answered otherwise, and why."""


def _questions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for topic in {one.name for one in iter_modules(questions.__path__)} - {"queries"}:
        module = import_module(f"{questions.__name__}.{topic}")
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or function.__module__ != module.__name__ or name.startswith("_"):
                continue
            if "connection" in inspect.signature(function).parameters:
                yield f"{topic}.{name}", function


QUESTIONS = dict(sorted(one for one in _questions() if one[0] != "upkeep.tables"))  # that is about a file


@pytest.fixture(scope="module")
def connections(server: Server, samples: Path) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    team = new_team(server)
    team.add("ann")
    team.push(samples, "ann")
    with closing(sqlite3.connect(samples)) as own, closing(team.connection("ann")) as other:
        yield own, cast(sqlite3.Connection, other)


def _values(connection: sqlite3.Connection) -> dict[str, Any]:
    """An argument for each parameter, of the longest session."""
    session = min(sessions.of_provider(connection, None), key=lambda one: (-one.event_count, one.uid))
    uid = session.uid
    row, span = session.id, matches.Span(0, BIG)
    block = next(matches.blocks(connection, EventFilters(session_row=row), span, newest_first=False))
    all_turns = turns.several(connection, row, range(3))
    of_turn = turns.Span(0, all_turns[0].first_event, all_turns[0].last_event)
    step = turns.steps(connection, row, of_turn, -1)[0]
    folder = min(projects.folders(connection), key=lambda one: one.hash).id
    return {
        "after": 0, "agents": ["codex"], "among": Among("all", sessions=(row,)), "api_errors": ["api_error"],
        "backwards": True, "before": 99,
        "beginning": False,
        "block": block, "blocks": [block.id], "by": "tool", "calls": [1, 2, 3], "commit": "any",
        "connection": connection, "event_index": 3, "events": [events.one(connection, row, 3)], "file": session.file_id,
        "file_row": session.file_id, "files": [session.file_id], "from_event": 0, "from_turn": 0, "ids": [row],
        "first": 0, "last": 99,
        "indices": [0, 1, 2], "kind": "main", "last_event": 99, "measure": "edits", "most": 5, "name": "store.py",
        "newest": BIG, "newest_event": BIG, "newest_first": True, "numbers": None, "oldest_first": False, "one": row,
        "other": row, "path": "store.py", "pr": "any", "prefix": uid[:4], "project": folder, "provider": None,
        "queries": [b"error", b"the"], "query": b"error", "repositories": [folder], "repository": folder, "row": row,
        "session": session, "session_row": row, "session_rows": [row], "sessions": [row], "since": 0, "snapshot": BIG,
        "span": span, "status": "unknown", "step": step, "steps": [(0, 0)], "then": Snapshot(99, BIG), "thorough": True,
        "tool": "Bash", "turn_index": 0, "turns": all_turns, "type": EventType.MESSAGE, "types": [EventType.MESSAGE],
        "size": 100, "uid": uid, "until": BIG, "word": Word("error"), "words": [Word("error", 10)],
    }  # fmt: skip


def asked(question: str, connection: sqlite3.Connection) -> Any:
    values, function = _values(connection), QUESTIONS[question]
    of_kind = {  # what else a parameter of this name may be: by a part of its type, or the question's name
        ("filters", "SessionFilters"): SessionFilters(), ("filters", "EventFilters"): EventFilters(),
        ("behind", "tuple"): None, ("behind", ""): -1, ("span", "turns."): turns.Span(0, 0, 99),
        ("turns", "tuple"): [(values["row"], 0)], ("block", "int"): values["block"].id,
        ("session", "int"): values["row"], ("among", "Collection"): [values["block"].id],
        ("by", "counts.tokens"): "model",
    }  # fmt: skip
    given = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = f"{question} {parameter.annotation}"
        special = (value for (one, part), value in of_kind.items() if one == name and part in kind)
        given[name] = next(special, values.get(name))
    found = function(**given)
    return list(found) if isinstance(found, Iterator) else found


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_as_many_rows_in_both(
    question: str, connections: tuple[sqlite3.Connection, sqlite3.Connection]
) -> None:
    own, team = (asked(question, connection) for connection in connections)
    if question in OTHERWISE:
        return
    assert type(own) is type(team)
    if isinstance(own, (list, dict, set)):
        assert len(own) == len(team)
