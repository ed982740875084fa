"""What detectors give: findings, each with its severity, a sentence, and the events that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agtrace_schema.analysis import Lens, Severity

from agtrace.health.history import History

EVIDENCE = 5
"""Events that a finding refers to, at most."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a detector found in a session."""

    severity: Severity
    message: str
    """What happened and what it cost, as a sentence without a full stop. Text of the log in it is cut by the one
    who shows it."""
    count: int
    """How many of whatever it is about: exact, however few events are named."""
    events: tuple[int, ...]
    """Events that show it, in file order, at most `EVIDENCE`."""
    turn: int | None = None
    """The turn where it begins."""
    caught: int = 0
    """Executions that it is about, of a loop or a streak: what of the session was lost on it."""


@dataclass(frozen=True, slots=True)
class Detector:
    """A rule that looks for one thing."""

    name: str
    lens: Lens
    rule: str
    """When it fires, as a sentence: the table of docs/health.md is made of these."""
    find: Callable[[History], Iterable[Finding]]
    structural: bool = False
    """Whether it looks only at what the log says by its structure: no text is read, and nothing is measured."""
    version: int = 1
    """Raised whenever the same session could give other findings."""

    def __call__(self, history: History) -> Iterable[Finding]:
        """What it finds in a session."""
        return self.find(history)


def detector(
    lens: Lens, rule: str, *, structural: bool = False, version: int = 1
) -> Callable[[Callable[[History], Iterable[Finding]]], Detector]:
    """Make a function `find_something` the detector `something`, by this rule."""

    def make(find: Callable[[History], Iterable[Finding]]) -> Detector:
        return Detector(find.__name__.removeprefix("find_"), lens, rule, find, structural, version)

    return make


def evidence(events: Sequence[int], most: int = EVIDENCE) -> tuple[int, ...]:
    """The first of these events and the last one, at most so many."""
    shown = tuple(events)
    return shown if len(shown) <= most else (*shown[: most - 1], shown[-1])
