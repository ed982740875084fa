"""A report as one HTML file: it fetches nothing, and nothing but its own scripts and styles can run.

The file has a strict content security policy that names its scripts and styles by their hashes, so that no text from a
log could ever run, even if one got past the escaping.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from agtrace_schema.analysis import ContextPoint, Insight, Report, ReportedSession, Timeline, TimelineEntry
from agtrace_schema.model import dump
from markupsafe import Markup
from msgspec import to_builtins
from msgspec.structs import replace

from agtrace.conversation.document import (
    as_script,
    bundled,
    chart_library,
    environment,
    fit_for_the_page,
    scripts,
    source_hash,
    style,
)
from agtrace.conversation.html import styles_within
from agtrace.health.examination import SEVERITIES
from agtrace.report import wording
from agtrace.report.page.overview import charts, overview, worst
from agtrace.report.wording import AGENTS
from agtrace.sessions.terms import ENDINGS
from agtrace.text.numbers import counted

MOST_BYTES = 4_500_000
"""The largest size of a page without conversations; timelines are thinned out to stay below it."""

_HERE = Path(__file__).parent
_SCRIPTS = (
    "dom",
    "words",
    "unpack",
    "look",
    "charts",
    "list",
    "scale",
    "references",
    "timeline",
    "session",
    "pressing",
    "keys",
    "main",
)
_STYLES = ("colours", "page", "overview", "list", "session", "timeline", "narrow", "print")


def html(report: Report, conversations: Mapping[str, str] | None = None) -> str:
    """Return the page for a report; its texts are made visible and their secrets masked first.

    `conversations` are the markup of some sessions' conversations, by the sessions' ids.
    """
    drawn = [to_builtins(chart) for chart in charts(report)]
    shown: Any = fit_for_the_page({"overview": overview(report), "charts": orjson.loads(orjson.dumps(drawn))})
    rows = packed(fit_for_the_page([row(session) for session in report.sessions]))
    bare = _page(shown, rows, Packed([], 0, 0, 0, 0), {})
    return _page(shown, rows, pack(report.sessions, MOST_BYTES - len(bare.encode())), conversations or {})


def _page(shown: dict[str, Any], rows: str, details: Packed, conversations: Mapping[str, str]) -> str:
    styles, library, script = "\n".join(map(style, _STYLES)), chart_library(), bundled(scripts(*_SCRIPTS))
    if conversations:
        styles += styles_within(".conversation")
    facts = {
        **FACTS, "charts": shown["charts"], "columns": ROW, "group": GROUP, "dollars": shown["overview"]["dollars"],
    }  # fmt: skip
    found = environment(_HERE / "templates")
    found.filters |= {"number": wording.plain, "dollars": wording.shown_dollars}
    return found.get_template("page.html").render(
        shown["overview"],
        charts=shown["charts"],
        facts=as_script(facts),
        rows=Markup(rows),
        groups=[Markup(group) for group in details.groups],
        conversations={session: Markup(talk) for session, talk in conversations.items()},
        notes=_notes(details),
        policy=_policy([library, script], [styles]),
        style=Markup(styles),
        library=Markup(library),
        script=Markup(script),
    )


def _notes(details: Packed) -> list[str]:
    said = [
        (details.thinned, f"only the {details.most_entries} most important entries of the timeline"),
        (details.without_timeline, "no timeline; these are the healthiest"),
        (details.without_details, "no details; these are the healthiest, and `agtrace analyze` shows them"),
    ]
    return [f"To keep this file small: {counted(number, 'session')} with {what}." for number, what in said if number]


def _policy(scripts: list[str], styles: list[str]) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(source_hash, scripts))}",
            f"style-src {' '.join(map(source_hash, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


ROW = (
    "id", "provider", "project", "title", "start", "duration", "ending", "score", "turns", "calls", "failed",
    "tokens", "tokens_made", "cost", "cost_made", "model", "severities", "detectors", "worst", "agents",
)  # fmt: skip
"""The columns of a row; the page's script finds them by these names."""

KINDS = ("turn", "step", "tool", "agent", "compaction", "api_error")
FACTS = {"severities": SEVERITIES, "kinds": KINDS, "endings": ENDINGS, "providers": AGENTS}
"""What the page's scripts need to know of any session."""
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


_SHOWN = frozenset({"kind", "active_seconds", "ending", "unscored", "percentile", "parts", "agents", "time"})
"""What the page tells of an opened session, besides its findings and its timeline."""


def detail(session: ReportedSession, most_entries: int) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the texts of an opened session, some from a log, and its timeline, which is numbers only.

    The timeline has at most this many entries; there is none for 0.
    """
    texts = {name: value for name, value in dump(replace(session, timeline=None)).items() if name in _SHOWN}
    texts["insights"] = [_insight(session, found) for found in session.insights]
    texts["total_insights"] = session.total_insights
    if not session.timeline or not most_entries:
        return texts | {"dropped": session.timeline is not None}, None
    entries = thinned(session.timeline.entries, most_entries)
    names = list(dict.fromkeys(entry.name for entry in entries if entry.name is not None))
    return texts | {"names": names}, _numbers(session.timeline, entries, names, most_entries)


def _insight(session: ReportedSession, insight: Insight) -> dict[str, Any]:
    """Return a finding; a reference is included only if it can't be built from the session and the event's index."""
    own = f"ax://event/{session.session_id}/"
    evidence = [
        [shown.event_index, shown.quote, *([shown.ref] if shown.ref != f"{own}{shown.event_index}" else [])]
        for shown in insight.evidence
    ]
    return dump(insight) | {"evidence": evidence}


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


# -- bundle ----------------------------------------------------------------------------------------
# The details of all sessions, compressed to fit the size limit of the page.

GROUP = 24
"""Sessions compressed together: 13 % smaller than groups of 4, and unpacked in a few milliseconds."""

ENTRIES = (1600, 800, 400, 280, 200, 140, 100)
"""The most entries of a timeline, and lower limits to try if the page is too large: the longest are thinned first."""

_LEVEL = 6
"""zlib's compression level: 9 takes twice the time and saves 1 %."""

_SAMPLE = 8
"""One in this many groups is compressed to estimate the size of all."""


class Packed(NamedTuple):
    """The details of a report's sessions."""

    groups: list[str]
    """Base64 of zlib of JSON: an array with the details of `GROUP` sessions; empty if they were left out."""
    most_entries: int
    thinned: int
    """Sessions whose timeline shows less than the report has."""
    without_timeline: int
    without_details: int


def packed(value: Any) -> str:
    """Return a JSON value as base64 of zlib, for the page's script to unpack."""
    return base64.b64encode(zlib.compress(orjson.dumps(value), _LEVEL)).decode("ascii")


def pack(sessions: Sequence[ReportedSession], most_bytes: int) -> Packed:
    """Pack the details of sessions, given the worst first, into at most this many bytes.

    If they don't fit, timelines are thinned out, the longest first; then the best sessions lose their timelines,
    and finally their details.
    """
    parts = [sessions[start : start + GROUP] for start in range(0, len(sessions), GROUP)]
    most = next((most for most in ENTRIES if _estimate(parts, most) <= most_bytes * 0.97), ENTRIES[-1])
    groups = [_group(part, most) for part in parts]
    bare = _lightened(groups, most_bytes, lambda number: _group(parts[number], 0))
    empty = _lightened(groups, most_bytes, lambda number: "")
    return Packed(
        groups=groups,
        most_entries=most,
        thinned=sum(len(session.timeline.entries) > most for session in sessions if session.timeline),
        without_timeline=sum(session.timeline is not None for number in bare for session in parts[number]),
        without_details=sum(len(parts[number]) for number in empty),
    )


def _group(sessions: Sequence[ReportedSession], most_entries: int) -> str:
    details = [detail(session, most_entries) for session in sessions]
    shown: Any = fit_for_the_page([texts for texts, _ in details])
    return packed([texts | {"timeline": times} for texts, (_, times) in zip(shown, details, strict=True)])


def _estimate(parts: Sequence[Sequence[ReportedSession]], most_entries: int) -> float:
    sample = parts[::_SAMPLE] if len(parts) > 2 * _SAMPLE else parts
    return sum(len(_group(part, most_entries)) for part in sample) * len(parts) / max(len(sample), 1)


def _lightened(groups: list[str], most_bytes: int, lighter: Callable[[int], str]) -> list[int]:
    """Replace groups, from the last on, until all fit; return the numbers of those replaced."""
    weight, replaced = sum(map(len, groups)), []
    for number in reversed(range(len(groups))):
        if weight <= most_bytes:
            break
        weight -= len(groups[number])
        groups[number] = lighter(number)
        weight += len(groups[number])
        replaced.append(number)
    return replaced
