"""Real sessions as readers judged them, who had not seen the rules, beside what the detectors and the score say.

`tests/health/readings/*.json` has what a reader wrote about a session: the worst things with their lines in the log,
what the human corrected, how it ended, and a mark from 0 to 100. The sessions are those of `../shared/logs`; where they
aren't, nothing is compared.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import correlation, mean
from typing import Any, NamedTuple

from agtrace_indexer.index.queries import sessions
from agtrace_indexer.run import index
from agtrace_schema.analysis import Analysis

from agtrace.health.analysis import analyze
from agtrace.index.reader import Reader
from agtrace.sessions import prices
from agtrace.settings.model import Settings
from tests.documents import ROOT

LOGS = ROOT.parent / "shared" / "logs"
FOLDER = Path(__file__).parent / "readings"

NEAR = 6
"""Lines of a log: a finding and a reader speak of the same thing if what they point at is no further apart."""

_WELL = ("finished", "question_left", "unknown")
"""Endings that tell of nothing bad."""


class Reading(NamedTuple):
    """What one reader wrote about one session."""

    session: str
    """The session's id."""
    part: str
    """develop: looked at while the rules were made; once: only at the end."""
    reader: str
    worst: Sequence[int]
    """The lines of the worst things."""
    corrections: Sequence[int]
    mark: int


@dataclass(frozen=True)
class Examined:
    """What agtrace says of a session."""

    analysis: Analysis
    lines: Mapping[int, int]
    """The line of each event; of a log that is one document, its number, as readers counted there."""

    def pointed_at(self, detector: str | None = None) -> list[int]:
        """The lines that findings point at, and how it ended if not well; or those of one detector."""
        ending = self.analysis.ending
        ended = [] if detector or ending.ending in _WELL or ending.event_index is None else [ending.event_index]
        told = (
            evidence.event_index
            for insight in self.analysis.insights
            if detector in (None, insight.detector)
            for evidence in insight.evidence
        )
        return [self.lines[event] for event in (*told, *ended)]


def readings() -> list[Reading]:
    """Return everything that was read."""
    told = [json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return [
        Reading(
            one["id"],
            one["part"],
            one["reader"],
            [worst["line"] for worst in one["worst"]],
            [correction["line"] for correction in one["corrections"]],
            one["mark"],
        )
        for one in told
    ]


def examined(wanted: set[str]) -> dict[str, Examined]:
    """Return what agtrace says of these sessions, from a fresh index of the logs."""
    found: dict[str, Examined] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), environment={})
        index(settings.database, [str(LOGS)])
        connection, table = Reader(settings).connection, prices.load(None)
        for session in sessions.of_provider(connection, None):
            if session.uid in wanted:
                query = "SELECT event_index, line FROM event WHERE session_id = ?"
                lines = dict(connection.execute(query, (session.id,)).fetchall())
                if set(lines.values()) == {1}:
                    lines = {event: event for event in lines}
                analysis = analyze(connection, session, now=time.time(), prices=table)
                found[session.uid] = Examined(analysis, lines)
    return found


def table(read: Sequence[Reading], found: Mapping[str, Examined]) -> str:
    """Return, for each part, how far agtrace and the readers agree, and the readers among themselves."""
    rows = [("", "sessions", "readings", "worst told", "corrections: precision", "recall", "score", "readers")]
    for part in ("develop", "once"):
        told = [one for one in read if one.part == part and one.session in found]
        if told:
            rows.append((part, *_row(told, found)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(told: Sequence[Reading], found: Mapping[str, Examined]) -> tuple[str, ...]:
    worst = [(one, line) for one in told for line in one.worst]
    seen = sum(_is_near(line, found[one.session].pointed_at()) for one, line in worst)
    by_session: dict[str, list[Reading]] = defaultdict(list)
    for one in told:
        by_session[one.session].append(one)
    ours = [(id, line) for id in by_session for line in found[id].pointed_at("corrections")]
    right = sum(any(_is_near(line, one.corrections) for one in by_session[id]) for id, line in ours)
    theirs = [(one, line) for one in told for line in one.corrections]
    recalled = sum(_is_near(line, found[one.session].pointed_at("corrections")) for one, line in theirs)
    scored = [(found[id].analysis.score, mean(one.mark for one in read)) for id, read in by_session.items()]
    return (
        str(len(by_session)),
        str(len(told)),
        _share(seen, len(worst)),
        _share(right, len(ours)),
        _share(recalled, len(theirs)),
        _ranked([(score, mark) for score, mark in scored if score is not None]),
        _ranked([(one.mark, other.mark) for read in by_session.values() for one, other in combinations(read, 2)]),
    )


def _is_near(line: int, lines: Sequence[int]) -> bool:
    return any(abs(line - other) <= NEAR for other in lines)


def _share(some: int, all_of_them: int) -> str:
    return f"{some}/{all_of_them}" + (f" = {some / all_of_them:.2f}" if all_of_them else "")


def _ranked(pairs: Sequence[tuple[Any, Any]]) -> str:
    """Return the rank correlation of pairs."""
    if len(pairs) < 3:
        return "-"
    one, other = (_ranks(values) for values in zip(*pairs, strict=True))
    if len(set(one)) < 2 or len(set(other)) < 2:
        return "-"
    return f"{correlation(one, other):.2f}"


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal ones have the mean of their ranks."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) - 1) / 2 for value in values]
