"""How large answers get: every tool asked over sessions of the index, each answer against the bytes it may take."""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from agtrace_indexer.index.questions import upkeep
from agtrace_schema.health import SizeOfCall, Sizes

from agtrace.answers.desk import Answers
from agtrace.sessions.query import find_session, short_id

_GENERAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_sessions", {}),
    ("list_sessions", {"limit": 50}),
    ("get_project_info", {}),
    ("get_project_info", {"limit": 50}),
    ("search_event_previews", {"query": "error"}),
    ("search_event_previews", {"query": "error", "limit": 50}),
    ("search_event_previews", {"query": "error", "group_by": "session"}),
    ("read_artifact", {"ref": "ax://health"}),
)
"""What is asked once."""

_OF_SESSION: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_session_details", {}),
    ("get_session_details", {"detail_level": "turns"}),
    ("get_session_details", {"detail_level": "steps"}),
    ("get_session_details", {"detail_level": "full"}),
    ("get_session_details", {"detail_level": "full", "max_bytes": 102_400}),
    ("analyze_session", {"include_loops": True}),
    ("get_reasoning_chain", {}),
    ("get_reasoning_chain", {"limit": 50}),
)
"""What is asked of every session."""

_OF_EVENT: tuple[dict[str, Any], ...] = (
    {}, {"mode": "minimal"}, {"mode": "standard"}, {"mode": "verbose"}, {"max_bytes": 102_400},
)  # fmt: skip
"""How the largest event of every session is opened."""


class _Call(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    asked: dict[str, Any]
    """The arguments that aren't the address of what is asked for."""


def chosen(connection: sqlite3.Connection, session: str | None, most: int) -> list[tuple[str, int | None]]:
    """A session, or the newest ones, at most this many: each with its largest event."""
    found = upkeep.newest_sessions(connection, most) if session is None else [find_session(connection, session)]
    return [(short_id(connection, one.uid), upkeep.largest_event(connection, one.id)) for one in found]


def measure(answers: Answers, sessions: Iterable[tuple[str, int | None]]) -> Sizes:
    """Ask everything of these sessions, each given with its largest event, and say how large the answers are."""
    found: dict[str, list[tuple[int, int, str | None]]] = {}
    for session, call in _calls(sessions):
        given = answers.ask(call.tool, call.arguments)
        name = f"{call.tool}({', '.join(f'{key}={value!r}' for key, value in call.asked.items())})"
        found.setdefault(name, []).append((len(given.text.encode()), given.budget, session))
    calls = [_size(name, sizes) for name, sizes in found.items()]
    usual = [size for name, sizes in found.items() if name.endswith("()") for size, _, _ in sizes]
    return Sizes(
        answers=sum(call.answers for call in calls),
        median_bytes=round(statistics.median(size for sizes in found.values() for size, _, _ in sizes)),
        median_default_bytes=round(statistics.median(usual)),
        over_budget=sum(size > most for sizes in found.values() for size, most, _ in sizes),
        calls=calls,
    )


def _size(name: str, sizes: list[tuple[int, int, str | None]]) -> SizeOfCall:
    largest, most, session = max(sizes, key=lambda size: (size[0], size[1]))
    return SizeOfCall(
        call=name,
        answers=len(sizes),
        median_bytes=round(statistics.median(size for size, _, _ in sizes)),
        largest_bytes=largest,
        budget_bytes=most,
        largest_in=session,
    )


def _calls(sessions: Iterable[tuple[str, int | None]]) -> Iterator[tuple[str | None, _Call]]:
    for tool, asked in _GENERAL:
        yield None, _Call(tool, asked, asked)
    before: str | None = None
    for session, event in sessions:
        for tool, asked in _OF_SESSION:
            yield session, _Call(tool, {"session_id": session, **asked}, asked)
        for reference in ("session", "analysis"):
            yield session, _Call("read_artifact", {"ref": f"ax://{reference}/{session}"}, {"ref": f"ax://{reference}/"})
        if event is not None:
            for asked in _OF_EVENT:
                place = {"session_id": session, "event_index": event}
                yield session, _Call("get_event_details", {**place, **asked}, asked)
        if before is not None:
            yield session, _Call("compare_sessions", {"id1": before, "id2": session}, {})
        before = session
