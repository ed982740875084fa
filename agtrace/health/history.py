"""What happened in one session, as detectors see it: plain values in file order, made by `history_reader.py`.

Times are milliseconds since 1970 UTC, 0 is unknown. What the log took back and what it copied from an older log is
left out, so a failure that two logs hold is found once. Texts are the beginning and the end of longer ones
(`KEPT` characters of each): a finding is about what was done, not about every word of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from agtrace_schema.events import Json, Outcome, Provider, UserKind

KEPT = 4_000
"""Characters that are kept of the beginning and of the end of a longer text."""

_VARIES = re.compile(
    r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"  # a time of day
    r"|\b(?:pid|PID|PGID|process|session)\b[ =:#]*\d+"
    r"|^Chunk ID: \w+"  # Codex names every output anew, Gemini CLI its process group
)
_TOOK = re.compile(
    r"(\b(?:pass|fail|ok\b|done\b|finish|complet|compil|buil[dt]|ran\b|tests?\b|took\b|elapsed|duration|wall time"
    r"|real\b|user\b|sys\b)[^\n]{0,80}?)\b\d+(?:[.,]\d+)?\s?(?:ms|s|secs?|seconds?|m|min|minutes?)\b",
    re.IGNORECASE,
)
"""How long something took, beside a word that it ended: a figure alone can be what was asked for."""


def _lasting(line: str) -> str:
    """A line of an output without what differs between two that say the same."""
    return _TOOK.sub(r"\1#", _VARIES.sub("#", line))


@dataclass(slots=True)
class Call:
    """A tool execution: the call and what came back."""

    event_index: int
    turn: int | None
    step: int | None
    at: int
    tool: str
    arguments: Json
    action: bytes
    """A digest of tool and arguments: equal for equal actions."""
    outcome: Outcome
    """Unknown where there is no result."""
    result_event: int | None = None
    """The event of the result; None where the log has none."""
    answered_at: int = 0
    result: str = ""
    result_chars: int = 0
    """Characters of the whole result."""
    middle: bytes = b""
    """A digest of what isn't kept of the result."""
    told_by_text: bool = False
    """Whether the outcome was read in the text of the result, where no flag, status or exit code tells it."""
    exit_code: int | None = None
    duration_ms: int | None = None
    """From call to result; None where it isn't known, or where a human was asked."""
    reads: tuple[str, ...] = ()
    """Files that it names to read, as the log writes them."""
    writes: tuple[str, ...] = ()
    agent: bool = False
    """Whether it started a sub-agent that the index knows."""
    script: str | None = field(default=None, repr=False, compare=False)
    """The command of a shell, kept by `actions`, which tells it; empty where there is none."""

    @property
    def failed(self) -> bool:
        """Whether the log says that it failed."""
        return self.outcome is Outcome.FAILED

    def says_the_same(self, other: Call) -> bool:
        """Whether both results say the same: how long something took and what time it was don't matter."""
        if self.middle != other.middle or self.result == other.result:
            return self.middle == other.middle
        lines, others = self.result.split("\n"), other.result.split("\n")  # equal lines, nearly all, are passed over
        return len(lines) == len(others) and all(
            one == two or _lasting(one) == _lasting(two) for one, two in zip(lines, others, strict=True)
        )

    @property
    def evidence(self) -> int:
        """The event that shows how it ended."""
        return self.event_index if self.result_event is None else self.result_event


@dataclass(slots=True)
class Said:
    """A text in the user's role: of the human, or what a harness put there."""

    event_index: int
    turn: int | None
    at: int
    kind: UserKind
    text: str
    opens_turn: bool
    """Whether it is a request of a human (or of the parent agent)."""


@dataclass(slots=True)
class Message:
    """A text of the model to the user."""

    event_index: int
    turn: int | None
    step: int | None
    at: int
    text: str


@dataclass(slots=True)
class Thought:
    """A piece of thinking; its text doesn't matter here."""

    event_index: int
    turn: int | None
    step: int | None
    at: int


@dataclass(slots=True)
class Usage:
    """The token figures of one response; None is unknown."""

    event_index: int
    turn: int | None
    step: int | None
    at: int
    model: str | None
    input_tokens: int | None
    cache_creation_tokens: int | None
    cache_read_tokens: int | None
    output_tokens: int | None
    context_window: int | None
    """As the log names it, else that of the price table; None where neither does."""

    @property
    def whole_input(self) -> int | None:
        """All that the model was given to read, cached or not: what filled its context window."""
        known = [f for f in (self.input_tokens, self.cache_creation_tokens, self.cache_read_tokens) if f is not None]
        return sum(known) if known else None

    @property
    def total(self) -> int:
        """Input and output."""
        return (self.whole_input or 0) + (self.output_tokens or 0)


@dataclass(slots=True)
class Notice:
    """Anything else that the log tells: errors of the model's API, compactions, messages of the harness."""

    event_index: int
    turn: int | None
    at: int
    kind: str
    """As in `agtrace_schema.events.Notification`."""
    text: str


Entry: TypeAlias = Call | Said | Message | Thought | Usage | Notice
"""Each has `event_index`, `turn` and `at`."""


def of_one_response(one: Call | Message | Thought, other: Call | Message | Thought) -> bool:
    """Whether one response of the model gave both, where the log tells its responses apart."""
    return one.step is not None and (one.turn, one.step) == (other.turn, other.step)


@dataclass
class History:
    """One session. Detectors read it and change nothing."""

    provider: Provider
    entries: list[Entry]
    """In file order; a call stands where it was asked for."""
    turns: int
    at_work: bool = False
    """Whether the log grew a moment ago: how it ends isn't known yet."""
    agents: dict[int, str] = field(default_factory=dict)
    """By the event of the call: the sub-agent session that it started."""
    derived: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What was worked out of it once, for all detectors that ask."""

    @cached_property
    def calls(self) -> list[Call]:
        """The tool executions."""
        return [entry for entry in self.entries if isinstance(entry, Call)]

    @cached_property
    def said(self) -> list[Said]:
        """The texts in the user's role."""
        return [entry for entry in self.entries if isinstance(entry, Said)]

    @cached_property
    def requests(self) -> list[Said]:
        """What opened the turns: requests of the human, or of the parent agent."""
        return [entry for entry in self.said if entry.opens_turn]

    @cached_property
    def messages(self) -> list[Message]:
        """What the model said."""
        return [entry for entry in self.entries if isinstance(entry, Message)]

    @cached_property
    def usages(self) -> list[Usage]:
        """The token figures of the responses."""
        return [entry for entry in self.entries if isinstance(entry, Usage)]

    @cached_property
    def notices(self) -> list[Notice]:
        """What else was told."""
        return [entry for entry in self.entries if isinstance(entry, Notice)]
