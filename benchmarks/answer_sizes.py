"""Sizes of answers: `python -m benchmarks.answer_sizes [SESSION] [--sessions N]`.

The index is that of AGTRACE_DATA_DIR. Every tool is called on a session, or on the newest ones, as an agent would; for
each kind of call the table shows the sizes and their limit in bytes. The exit code is 1 if an answer exceeds it.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from agtrace.answers.service import Service
from agtrace.commands.asking import answers
from agtrace.commands.errors import explained
from agtrace.index.reader import Reader
from agtrace.sessions.query import find_session, short_id
from agtrace.settings import load
from benchmarks.table import NOTHING, ratio, table

SESSIONS = 50

_GENERAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_sessions", {}),
    ("list_sessions", {"limit": 50}),
    ("get_project_info", {}),
    ("get_project_info", {"limit": 50}),
    ("list_sessions", {"limit": 50, "sort": "failure_run"}),
    ("run_sql", {"sql": "SELECT path, count(*) FROM files GROUP BY 1 ORDER BY 2 DESC"}),
    ("search_event_previews", {"query": "error"}),
    ("search_event_previews", {"query": "error", "limit": 50}),
    ("search_event_previews", {"query": "error", "group_by": "session"}),
    ("read_artifact", {"ref": "ax://health"}),
)
"""Calls made once."""

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
"""Calls made for every session."""

_OF_EVENT: tuple[dict[str, Any], ...] = (
    {}, {"mode": "minimal"}, {"mode": "standard"}, {"mode": "verbose"}, {"max_bytes": 102_400},
)  # fmt: skip
"""Arguments with which the largest event of every session is opened."""

_NEWEST = "SELECT id, uid FROM session ORDER BY started_at DESC, id DESC LIMIT ?"
_LARGEST = "SELECT event_index FROM event WHERE session_id = ? ORDER BY length DESC, event_index LIMIT 1"


class SizeOfCall(NamedTuple):
    """The sizes of the answers to one kind of call, in bytes of the JSON text."""

    call: str
    answers: int
    median: int
    largest: int
    budget: int
    """The limit of the largest."""
    largest_in: str | None
    """The session of the largest."""


class Sizes(NamedTuple):
    """The sizes of all answers, in bytes of the JSON text."""

    answers: int
    median: int
    median_by_default: int
    """The median for calls with required arguments only."""
    over_budget: int
    """Answers that exceed their limit; anything but 0 is a defect."""
    calls: list[SizeOfCall]


class _Call(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    asked: dict[str, Any]
    """The arguments, without those that only address a session or event."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    wanted = _parser().parse_args(arguments)
    with explained():
        asking = answers()
        asking.ask("list_sessions", {})  # brings the index up to date
        sizes = measure(asking, chosen(Reader(load()).connection, wanted.session, wanted.sessions))
    sys.stdout.write("\n".join(_report(sizes)) + "\n")
    return 1 if sizes.over_budget else 0


def _report(sizes: Sizes) -> Iterator[str]:
    rows = [
        [call.call, f"{call.answers:,}", f"{call.median:,}", f"{call.largest:,}", f"{call.budget:,}",
         ratio(call.largest, call.budget), call.largest_in or NOTHING]
        for call in sizes.calls
    ]  # fmt: skip
    yield table(["call", "answers", "median", "largest", "budget", "of it", "largest in"], rows)
    yield ""
    by_default = f"{sizes.median_by_default:,} with default arguments"
    yield f"{sizes.answers:,} answers, median {sizes.median:,} bytes, {by_default}"
    yield f"{sizes.over_budget} answers exceed their budget" if sizes.over_budget else "none exceeds its budget"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answer_sizes", description="Measure answers.")
    parser.add_argument("session", nargs="?", help="a session; by default the newest ones")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="sessions at most")
    return parser


def chosen(connection: sqlite3.Connection, session: str | None, most: int) -> list[tuple[str, int | None]]:
    """Return this session, or at most `most` of the newest ones, each with its largest event."""
    found: list[tuple[int, str]] = connection.execute(_NEWEST, (most,)).fetchall()
    if session is not None:
        one = find_session(connection, session)
        found = [(one.id, one.uid)]
    largest = (connection.execute(_LARGEST, (row,)).fetchone() for row, _ in found)
    return [(short_id(connection, uid), event and event[0]) for (_, uid), event in zip(found, largest, strict=True)]


def measure(answers: Service, sessions: Iterable[tuple[str, int | None]]) -> Sizes:
    """Make all calls for these sessions, each given with its largest event, and return the sizes of the answers."""
    found: dict[str, list[tuple[int, int, str | None]]] = {}
    for session, call in _calls(sessions):
        given = answers.ask(call.tool, call.arguments)
        name = f"{call.tool}({', '.join(f'{key}={value!r}' for key, value in call.asked.items())})"
        found.setdefault(name, []).append((len(given.text.encode()), given.budget, session))
    calls = [_size(name, sizes) for name, sizes in found.items()]
    usual = [size for name, sizes in found.items() if name.endswith("()") for size, _, _ in sizes]
    return Sizes(
        answers=sum(call.answers for call in calls),
        median=round(statistics.median(size for sizes in found.values() for size, _, _ in sizes)),
        median_by_default=round(statistics.median(usual)),
        over_budget=sum(size > most for sizes in found.values() for size, most, _ in sizes),
        calls=calls,
    )


def _size(name: str, sizes: list[tuple[int, int, str | None]]) -> SizeOfCall:
    largest, most, session = max(sizes, key=lambda size: (size[0], size[1]))
    return SizeOfCall(
        call=name,
        answers=len(sizes),
        median=round(statistics.median(size for size, _, _ in sizes)),
        largest=largest,
        budget=most,
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


if __name__ == "__main__":
    sys.exit(main())
