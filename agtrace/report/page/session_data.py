"""One session on the page: its row in the list, and the details that are unpacked when it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from agtrace_schema.analysis import ContextPoint, Insight, ReportedSession, Severity, Timeline, TimelineEntry
from agtrace_schema.model import dump
from msgspec.structs import replace

ROW = (
    "id", "provider", "project", "title", "start", "duration", "ending", "score", "turns", "calls", "failed",
    "tokens", "tokens_made", "cost", "cost_made", "model", "severities", "detectors", "worst", "agents",
)  # fmt: skip
"""The columns of a row; the page's script finds them by these names."""

SEVERITIES: tuple[Severity, ...] = ("Critical", "Warning", "Info")
KINDS = ("turn", "step", "tool", "agent", "compaction", "api_error")
_LANDMARKS = {"turn", "agent", "compaction", "api_error"}


def row(session: ReportedSession) -> list[Any]:
    """Return the row of a session, with the columns of `ROW`."""
    severities = [session.severities.get(severity, 0) for severity in SEVERITIES]
    return [
        session.session_id, str(session.provider), session.project, session.title, session.start_time,
        session.duration_seconds, session.ending.ending, session.score, session.turns, session.tool_calls,
        session.failed_calls, session.total_tokens, session.tokens_made, session.cost_usd, session.cost_made,
        session.model, severities, sorted(session.detectors), worst(session), len(session.agents or ()),
    ]  # fmt: skip


def worst(session: ReportedSession) -> str | None:
    """Return the message of a session's first most severe finding; None if it has no findings."""
    found = min(session.insights, key=lambda item: SEVERITIES.index(item.severity), default=None)
    return found.message if found else None


_SHOWN = frozenset({"kind", "active_seconds", "ending", "unscored", "percentile", "parts", "agents", "time"})
"""What the page tells of an opened session, besides its findings and its timeline."""


class Detail(NamedTuple):
    """The details of an opened session: texts, some from a log, and the timeline, which is numbers only."""

    texts: dict[str, Any]
    timeline: dict[str, Any] | None


def detail(session: ReportedSession, most_entries: int) -> Detail:
    """Return the details of a session, with at most this many entries in its timeline; no timeline for 0."""
    texts = {name: value for name, value in dump(replace(session, timeline=None)).items() if name in _SHOWN}
    texts["insights"] = [_insight(session, found) for found in session.insights]
    texts["total_insights"] = session.total_insights
    if not session.timeline or not most_entries:
        return Detail(texts | {"dropped": session.timeline is not None}, None)
    entries = thinned(session.timeline.entries, most_entries)
    names = list(dict.fromkeys(entry.name for entry in entries if entry.name is not None))
    return Detail(texts | {"names": names}, _numbers(session.timeline, entries, names, most_entries))


def _insight(session: ReportedSession, found: Insight) -> dict[str, Any]:
    """Return a finding; a reference is included only if it can't be built from the session and the event's index."""
    own = f"ax://event/{session.session_id}/"
    evidence = [
        [shown.event_index, shown.quote, *([shown.ref] if shown.ref != f"{own}{shown.event_index}" else [])]
        for shown in found.evidence
    ]
    return dump(found) | {"evidence": evidence}


def _numbers(timeline: Timeline, entries: list[TimelineEntry], names: list[str], most: int) -> dict[str, Any]:
    """Return a timeline by columns, with starts and events as differences and times in tenths of a second.

    With numbers of one kind next to each other it compresses to a third of what objects take.
    """
    places = {name: place for place, name in enumerate(names)}
    points = _peaks(timeline.context, most)
    return {
        "kinds": [KINDS.index(entry.kind) for entry in entries],
        "starts": _differences([round(entry.start * 10) for entry in entries]),
        "lengths": [max(round(entry.end * 10) - round(entry.start * 10), 0) for entry in entries],
        "events": _differences([entry.event_index for entry in entries]),
        "named": [-1 if entry.name is None else places[entry.name] for entry in entries],
        "turns": _differences([entry.turn_index or 0 for entry in entries if entry.kind == "turn"]),
        "failed": [place for place, entry in enumerate(entries) if entry.failed],
        "at": _differences([round(point.at * 10) for point in points]),
        "filled": _differences([point.tokens for point in points]),
        "window": timeline.context_window,
        "left_out": (timeline.left_out or 0) + len(timeline.entries) - len(entries),
    }


def thinned(entries: Sequence[TimelineEntry], most: int) -> list[TimelineEntry]:
    """Keep at most this many entries, in order: turns, sub-agents and marks first, then failures, then the longest."""
    if len(entries) <= most:
        return list(entries)
    ranked = sorted(range(len(entries)), key=lambda number: _rank(entries[number]))
    return [entries[number] for number in sorted(ranked[:most])]


def _rank(entry: TimelineEntry) -> tuple[int, float]:
    return 0 if entry.kind in _LANDMARKS else 1 if entry.failed else 2, entry.start - entry.end


def _peaks(points: Sequence[ContextPoint], most: int) -> list[ContextPoint]:
    """Keep at most this many points, the fullest and the last of each piece, so that no peak or drop is lost."""
    if len(points) <= most:
        return list(points)
    size = -(-len(points) * 2 // most)
    kept = []
    for start in range(0, len(points), size):
        piece = range(start, min(start + size, len(points)))
        kept += sorted({max(piece, key=lambda number: points[number].tokens), piece[-1]})
    return [points[number] for number in kept]


def _differences(numbers: Sequence[int]) -> list[int]:
    return [number - before for number, before in zip(numbers, [0, *numbers], strict=False)]
