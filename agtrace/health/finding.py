"""Detectors and their findings, each with a severity, a sentence, and the events that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from agtrace_schema.analysis import Lens, Severity
from msgspec import Struct

from agtrace.health.history import Call, History
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
    ) -> Finding:
        """Return a finding that these events show, as many as it is about unless `count` says otherwise."""
        shown = tuple(events if len(events) <= EVIDENCE else (*events[: EVIDENCE - 1], events[-1]))
        return cls(severity, message, len(events) if count is None else count, shown, turn)


class Detector(Struct, frozen=True):
    """A rule that looks for one kind of trouble."""

    name: str
    lens: Lens
    rule: str
    """When it fires, as a sentence: the table of docs/health.md is made from these."""
    find: Callable[[History], Iterable[Finding]]
    version: int = 1
    """Raised whenever the same session could give other findings."""

    def __call__(self, history: History) -> Iterable[Finding]:
        """Return what it finds in a session."""
        return self.find(history)


def detector(lens: Lens, *, version: int = 1) -> Callable[[Callable[[History], Iterable[Finding]]], Detector]:
    """Turn a function `find_something`, whose docstring is the rule, into the detector `something`."""

    def make(find: Callable[[History], Iterable[Finding]]) -> Detector:
        rule = " ".join((find.__doc__ or "").split())
        return Detector(find.__name__.removeprefix("find_"), lens, rule, find, version)

    return make


def took(history: History, first_event: int, last_event: int) -> str:
    """Return the time from one event to another as a clause, ` within 4 min`; empty if unknown or under a second."""
    among = [entry for entry in history.entries if first_event <= entry.event_index <= last_event and entry.at]
    ends = [entry.answered_at for entry in among if isinstance(entry, Call) and entry.evidence <= last_event]
    lasted = max([entry.at for entry in among] + ends) - among[0].at if among and history.timed else 0
    return f" within {duration(lasted)}" if lasted >= 1_000 else ""
