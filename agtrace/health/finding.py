"""Detectors and their findings, each with a severity, a sentence, and the events that show it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from agtrace_schema.analysis import Lens, Severity
from msgspec import Struct

from agtrace.health.history import Call, Entry, History, Usage, derived
from agtrace.text.numbers import duration

EVIDENCE = 5
"""The most events that a finding refers to."""


class Finding(Struct, frozen=True):
    """One thing that a detector found in a session."""

    severity: Severity
    message: str
    """What happened and what it cost, as a sentence without a full stop. It is shortened where it is shown."""
    count: int
    """The number of what the finding is about: exact, even if fewer events are listed."""
    events: tuple[int, ...]
    """Events that show it, in file order, at most `EVIDENCE`."""
    told: frozenset[int] = frozenset()
    """All events that show it, if there are more: a finding about the same events as a more telling one is left out."""
    turn: int | None = None
    """The turn in which it begins."""

    @classmethod
    def of(
        cls,
        severity: Severity,
        message: str,
        events: Sequence[int],
        turn: int | None = None,
        *,
        count: int | None = None,
        told: frozenset[int] = frozenset(),
    ) -> Finding:
        """Return a finding that these events show, as many as it is about unless `count` says otherwise."""
        shown = tuple(events if len(events) <= EVIDENCE else (*events[: EVIDENCE - 1], events[-1]))
        return cls(severity, message, len(events) if count is None else count, shown, told, turn)


class Detector(Struct, frozen=True):
    """A rule that looks for one kind of trouble."""

    name: str
    lens: Lens
    rule: str
    """When it fires, as a sentence: the table of docs/health.md is made from these."""
    find: Callable[[History], Iterable[Finding]]
    structural: bool = False
    """Whether it uses only the structure of the log: it interprets no text and measures nothing."""
    version: int = 1
    """Raised whenever the same session could give other findings."""

    def __call__(self, history: History) -> Iterable[Finding]:
        """Return what it finds in a session."""
        return self.find(history)


def detector(
    lens: Lens, *, structural: bool = False, version: int = 1
) -> Callable[[Callable[[History], Iterable[Finding]]], Detector]:
    """Turn a function `find_something`, whose docstring is the rule, into the detector `something`."""

    def make(find: Callable[[History], Iterable[Finding]]) -> Detector:
        rule = " ".join((find.__doc__ or "").split())
        return Detector(find.__name__.removeprefix("find_"), lens, rule, find, structural, version)

    return make


def cost(history: History, first_event: int, last_event: int) -> str:
    """Return the time and tokens between two events as a clause, `, 4 min and 120,000 tokens`; empty if unknown."""
    begin = bisect_left(history.entries, first_event, key=_place)
    end = bisect_right(history.entries, last_event, lo=begin, key=_place)
    if begin == end:
        return ""
    sums = _token_sums(history)
    start, tokens = history.entries[begin].at, sums[end] - sums[begin]
    lasted = max(map(_ended_at, history.entries[max(begin, end - 20) : end])) - start if start else 0
    known = [duration(lasted)] if lasted >= 1_000 else []
    known += [f"{tokens:,} tokens"] if tokens else []
    return f", {' and '.join(known)}" if known else ""


@derived
def _token_sums(history: History) -> list[int]:
    """Return the sums of tokens before each entry, and finally of all entries."""
    return list(accumulate((entry.total if isinstance(entry, Usage) else 0 for entry in history.entries), initial=0))


def _ended_at(entry: Entry) -> int:
    return max(entry.at, entry.answered_at) if isinstance(entry, Call) else entry.at


def _place(entry: Entry) -> int:
    return entry.event_index
