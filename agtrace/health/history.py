"""The history of one session as detectors see it: plain values in file order, made by `history_reader.py`.

Times are milliseconds since 1970 UTC, 0 if unknown. Superseded events, and events copied from an older log, are left
out, so that a failure in two logs is found once. Of long texts only the beginning and the end are kept (`KEPT`
characters of each): a finding is about what was done, not about every word of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from agtrace_schema.events import Json, Outcome, Provider, UserKind
from agtrace_schema.patterns import later
from msgspec import Struct

KEPT = 4_000
"""Characters kept of the beginning, and of the end, of a longer text."""

_VARIES = later(
    r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"  # a time of day
    r"|\b(?:pid|PID|PGID|process|session)\b[ =:#]*\d+"
    r"|^Chunk ID: \w+"  # Codex gives every output a new id, Gemini CLI every process group
)
_TOOK = later(
    r"(\b(?:pass|fail|ok\b|done\b|finish|complet|compil|buil[dt]|ran\b|tests?\b|took\b|elapsed|duration|wall time"
    r"|real\b|user\b|sys\b)[^\n]{0,80}?)\b\d+(?:[.,]\d+)?\s?(?:ms|s|secs?|seconds?|m|min|minutes?)\b",
    re.IGNORECASE,
)
"""How long something took, after a word that says it ended: a duration alone may be what was asked for."""


def _lasting(line: str) -> str:
    """Remove from a line of output what varies between runs with the same result, such as times and process ids."""
    return _TOOK.sub(r"\1#", _VARIES.sub("#", line))


@dataclass(slots=True)
class Call:
    """A tool call and its result."""

    event_index: int
    turn: int | None
    step: int | None
    at: int
    tool: str
    arguments: Json
    action: bytes
    """A digest of tool and arguments, equal for equal calls."""
    outcome: Outcome
    """Unknown if there is no result."""
    result_event: int | None = None
    """The event of the result; None if the log has none."""
    answered_at: int = 0
    result: str = ""
    result_chars: int = 0
    """Characters of the whole result."""
    middle: bytes = b""
    """A digest of the part of the result that isn't kept."""
    told_by_text: bool = False
    """Whether the outcome was inferred from the text of the result, as no flag, status or exit code records it."""
    exit_code: int | None = None
    duration_ms: int | None = None
    """From call to result; None if unknown, or if a human was asked."""
    reads: tuple[str, ...] = ()
    """Files that it reads, as the log names them."""
    writes: tuple[str, ...] = ()
    agent: bool = False
    """Whether it started a sub-agent that is in the index."""
    script: str | None = field(default=None, repr=False, compare=False)
    """The shell command, cached by `actions`, which determines it; empty if there is none."""
    changed: tuple[Any, ...] | None = field(default=None, repr=False, compare=False)
    """What it changes in files, cached by `changes`, which determines it."""

    @property
    def failed(self) -> bool:
        """Whether it failed, according to the log."""
        return self.outcome is Outcome.FAILED

    def says_the_same(self, other: Call) -> bool:
        """Whether both results say the same, apart from durations, times of day and process ids."""
        if self.middle != other.middle or self.result == other.result:
            return self.middle == other.middle
        lines, others = self.result.split("\n"), other.result.split("\n")  # nearly all are equal, cheap to see
        return len(lines) == len(others) and all(
            one == two or _lasting(one) == _lasting(two) for one, two in zip(lines, others, strict=True)
        )

    @property
    def evidence(self) -> int:
        """The event that shows its outcome: the result if there is one, else the call."""
        return self.event_index if self.result_event is None else self.result_event


class Said(Struct):
    """A text in the user's role, by the human or inserted by the agent's harness."""

    event_index: int
    turn: int | None
    at: int
    kind: UserKind
    text: str
    opens_turn: bool
    """Whether it is a request of a human (or of the parent agent)."""


class Message(Struct):
    """A text of the model to the user."""

    event_index: int
    turn: int | None
    step: int | None
    """None if the agent wrote it itself, without asking a model."""
    at: int
    text: str


class Thought(Struct):
    """A thought of the model; its text doesn't matter here."""

    event_index: int
    turn: int | None
    step: int | None
    at: int


class Usage(Struct):
    """The token usage of one response; None if unknown."""

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
    """From the log, else from the price table; None if neither has it."""

    @property
    def whole_input(self) -> int | None:
        """All input tokens, cached or not: what filled the context window; None for a sum over several responses."""
        known = self._known_input
        return sum(known) if known and self.step is not None else None

    @property
    def total(self) -> int:
        """Input and output."""
        return sum(self._known_input) + (self.output_tokens or 0)

    @property
    def _known_input(self) -> list[int]:
        return [f for f in (self.input_tokens, self.cache_creation_tokens, self.cache_read_tokens) if f is not None]


class Notice(Struct):
    """Any other record: errors of the model's API, compactions, messages of the harness."""

    event_index: int
    turn: int | None
    at: int
    kind: str
    """As in `agtrace_schema.events.Notification`."""
    text: str


Entry: TypeAlias = Call | Said | Message | Thought | Usage | Notice
"""Each has `event_index`, `turn` and `at`."""


def of_one_response(one: Call | Message | Thought, other: Call | Message | Thought) -> bool:
    """Whether both belong to one response of the model; False if the log doesn't tell responses apart."""
    return one.step is not None and (one.turn, one.step) == (other.turn, other.step)


@dataclass
class History:
    """The history of one session. Detectors only read it."""

    provider: Provider
    entries: list[Entry]
    """In file order; a call is at the place of the call, not of its result."""
    turns: int
    at_work: bool = False
    """Whether the log grew a moment ago, so that how it ends isn't known yet."""
    cwd: str | None = None
    """The folder in which the session began."""
    continued: bool = False
    """Whether another session began with its plan at the moment at which it ended."""
    agents: dict[int, str] = field(default_factory=dict)
    """The sub-agent session started by each call, by the call's event."""
    derived: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """A cache of what detectors derive from the history and share."""

    @cached_property
    def calls(self) -> list[Call]:
        """The tool calls."""
        return [entry for entry in self.entries if isinstance(entry, Call)]

    @cached_property
    def said(self) -> list[Said]:
        """The texts in the user's role."""
        return [entry for entry in self.entries if isinstance(entry, Said)]

    @cached_property
    def requests(self) -> list[Said]:
        """The requests that opened the turns, by the human or the parent agent."""
        return [entry for entry in self.said if entry.opens_turn]

    @cached_property
    def messages(self) -> list[Message]:
        """The messages of the model."""
        return [entry for entry in self.entries if isinstance(entry, Message)]

    @cached_property
    def usages(self) -> list[Usage]:
        """The token usage of the responses."""
        return [entry for entry in self.entries if isinstance(entry, Usage)]

    @cached_property
    def notices(self) -> list[Notice]:
        """The other records."""
        return [entry for entry in self.entries if isinstance(entry, Notice)]
