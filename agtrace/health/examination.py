"""What the rules find in one session, without its sub-agents: the index keeps it (`histories.kept_health`)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from agtrace_schema.analysis import Insight, SessionEnding, SessionFigures, Severity, Timeline, TimeSpent, TokenShares
from msgspec import Struct

SEVERITIES: tuple[Severity, ...] = ("Critical", "Warning", "Info")
"""The worst first."""

How = Literal["instead", "before"]
"""The same command worked, changed; or it worked after another one."""


class Checks(NamedTuple):
    """The turns of a session that ran checks."""

    turns: int
    failing: int
    """Those whose last check failed."""
    failed: int
    """Checks that failed."""


class Experience(NamedTuple):
    """A failure, with what is known of its end."""

    what: str
    """The program with its subcommand."""
    error: str
    """The key of the error, equal for equal errors."""
    line: str
    """The error as the log has it."""
    tried: str
    """The command that failed."""
    failed_event: int
    at: int
    worked_event: int | None
    """The call that succeeded; None if none did."""
    how: How | None
    worked: str | None
    """The command that worked, or the one before."""
    way: str | None
    """What was different, equal for equal differences."""
    milliseconds: int
    tokens: int
    times: int = 1
    """How often it failed so before it worked, or before this was given up."""


class Examination(Struct, frozen=True):
    """The findings in a session, and the facts that the score is made from."""

    calls: int
    """Tool calls, without probes."""
    failed: int
    """Calls that failed; not what was refused, interrupted, or reported later."""
    unanswered: int
    """Calls that never got a result although the session went on."""
    probes: int
    """Calls that only looked whether something is there."""
    turns: int
    corrections: int
    """What the human corrected, refusals without a word among it."""
    mild: int
    """Those that count half: refusals without a word, and those that little speaks for."""
    reviews: int
    """Reviews by another model that found problems."""
    checks: Checks
    ending: SessionEnding
    insights: list[Insight]
    """Of one severity in the order in which detectors tell most; without the references of evidence, which hold ids
    that other sessions can make longer."""
    untold: bool
    """Whether its log doesn't say how its calls ended."""
    spoken: bool
    """Whether the model said anything after the event that shows how it ended."""
    time: TimeSpent
    shares: TokenShares
    figures: SessionFigures
    experiences: list[Experience]
    timeline: Timeline | None = None
    """Only if it was asked for; it isn't kept."""
