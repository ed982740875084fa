"""Events: the smallest things that an agent's log records.

An event is addressed as session + `event_index` (0, 1, 2 ... in file order). Its payload is
one of the seven classes below, which nobody changes (frozen ones take three times as long to make); the names of
the types are fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
"""Any JSON value."""


Provider: TypeAlias = str
"""The agent that wrote a log, by the name that the indexer's registry of agents has for it: `codex`."""


class EventType(StrEnum):
    """The seven kinds of events."""

    USER = "User"
    MESSAGE = "Message"
    REASONING = "Reasoning"
    TOOL_CALL = "ToolCall"
    TOOL_RESULT = "ToolResult"
    TOKEN_USAGE = "TokenUsage"
    NOTIFICATION = "Notification"


class UserKind(StrEnum):
    """What a text in the user's role really is. `HUMAN` and `TASK` open a turn, nothing else does."""

    HUMAN = "human"
    TASK = "task"
    """The prompt that a parent agent gave to this sub-agent: it stands in the human's place."""
    COMMAND = "command"
    INJECTED = "injected"
    NOTIFICATION = "notification"
    COMPACTION_SUMMARY = "compaction_summary"
    INTERRUPTION = "interruption"


class Outcome(StrEnum):
    """How a tool execution ended. `UNKNOWN` is never `OK`."""

    OK = "ok"
    FAILED = "failed"
    REJECTED = "rejected"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    UNKNOWN = "unknown"


class OutcomeSource(StrEnum):
    """Where an outcome was read: from a flag, status or exit code, or only from the text."""

    STRUCTURE = "structure"
    TEXT = "text"


@dataclass(slots=True)
class User:
    """A text in the user's role."""

    text: str
    kind: UserKind


@dataclass(slots=True)
class Message:
    """A text that the model addressed to the user."""

    text: str


@dataclass(slots=True)
class Reasoning:
    """Readable thinking of the model; empty where the log only keeps a signature."""

    text: str


@dataclass(slots=True)
class ToolCall:
    """The model asks for a tool execution."""

    call_id: str | None
    """The provider's id, by which the result finds its call."""
    name: str
    arguments: Json
    """The decoded arguments: usually an object, a string where the tool takes plain text."""


@dataclass(slots=True)
class ToolResult:
    """What a tool execution gave back."""

    call_id: str | None
    text: str
    """The output as the model saw it; images are counted placeholders."""
    outcome: Outcome
    outcome_source: OutcomeSource | None = None
    """None where the outcome is unknown."""
    exit_code: int | None = None
    duration_ms: int | None = None
    agent_id: str | None = None
    """The id of the sub-agent session that this execution started, where the log names it."""


@dataclass(slots=True)
class TokenUsage:
    """The tokens of one model response, in one meaning for all providers. None is unknown, not zero."""

    response_id: str | None
    """What identifies the response across files (Claude: message id and request id)."""
    model: str | None
    input_tokens: int | None
    """Uncached input only."""
    cache_creation_5m_tokens: int | None
    cache_creation_1h_tokens: int | None
    cache_read_tokens: int | None
    output_tokens: int | None
    """All output, reasoning included."""
    reasoning_tokens: int | None
    """The part of the output that was reasoning, where the log tells."""
    complete: bool = True
    """False where the log holds only a placeholder of the final figures."""
    context_window: int | None = None
    """The model's window, where the log names it."""
    speed: str | None = None
    """What was paid for beyond the standard: `fast`."""
    cost_usd: float | None = None
    """What the provider itself says the response cost."""


@dataclass(slots=True)
class Notification:
    """Anything else a log records: harness messages, errors, compactions, unknown records, unreadable lines."""

    kind: str
    """The record's own type, such as `system/api_error`; `unknown/<type>` where agtrace doesn't know it."""
    text: str


Payload: TypeAlias = User | Message | Reasoning | ToolCall | ToolResult | TokenUsage | Notification

EVENT_TYPES: dict[type[Payload], EventType] = {
    User: EventType.USER,
    Message: EventType.MESSAGE,
    Reasoning: EventType.REASONING,
    ToolCall: EventType.TOOL_CALL,
    ToolResult: EventType.TOOL_RESULT,
    TokenUsage: EventType.TOKEN_USAGE,
    Notification: EventType.NOTIFICATION,
}
"""The type of every payload class."""
