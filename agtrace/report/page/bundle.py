"""The details of all sessions, compressed to fit the size limit of the page."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson
from agtrace_schema.analysis import ReportedSession

from agtrace.report.page.session_data import detail
from agtrace.report.page.visible_text import fit_for_the_page

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
    texts: Any = fit_for_the_page([one.texts for one in details])
    return packed([text | {"timeline": one.timeline} for text, one in zip(texts, details, strict=True)])


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
