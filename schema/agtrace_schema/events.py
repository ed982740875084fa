"""Events: the smallest units that an agent's log records.

An event is addressed by its session and `event_index` (0, 1, 2 ... in file order). Its payload is one of the seven
classes below. Only the reader changes one, when it masks the names in it. The names of the types are fixed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
"""Any JSON value."""


Provider: TypeAlias = str
"""The agent that wrote a log, by its name in the indexer's registry of agents: `codex`."""


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
    """The actual origin of a text in the user's role."""

    HUMAN = "human"
    TASK = "task"
    """The prompt that a parent agent gave this sub-agent, in place of a human's."""
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


ILL_ENDED = (Outcome.FAILED, Outcome.REJECTED, Outcome.INTERRUPTED)
"""A failure, and what the human refused or stopped, also together with a call beside it: that is cancelled."""


class OutcomeSource(StrEnum):
    """The source of an outcome: a flag, status or exit code, or only the text."""

    STRUCTURE = "structure"
    TEXT = "text"


class User(Struct):
    """A text in the user's role."""

    text: str
    kind: UserKind


class Message(Struct):
    """A text that the model addressed to the user."""

    text: str


class Reasoning(Struct):
    """Readable reasoning of the model; empty if the log only keeps a signature."""

    text: str


class ToolCall(Struct):
    """The model's request for a tool execution."""

    call_id: str | None
    """The provider's id, which links the result to its call."""
    name: str
    arguments: Json
    """The decoded arguments: usually an object; a string if the tool takes plain text."""


class ToolResult(Struct):
    """The result of a tool execution."""

    call_id: str | None
    text: str
    """The output as the model saw it, with placeholders for images."""
    outcome: Outcome
    outcome_source: OutcomeSource | None = None
    """None if the outcome is unknown."""
    exit_code: int | None = None
    duration_ms: int | None = None
    agent_id: str | None = None
    """The id of the sub-agent session that this execution started, if the log names it."""


class TokenUsage(Struct):
    """The token usage of one model response; the fields mean the same for all providers. None is unknown, not zero."""

    response_id: str | None
    """The identity of the response across files (Claude: message id and request id)."""
    model: str | None
    input_tokens: int | None = None
    """Uncached input only."""
    cache_creation_5m_tokens: int | None = None
    cache_creation_1h_tokens: int | None = None
    cache_read_tokens: int | None = None
    output_tokens: int | None = None
    """All output, including reasoning."""
    reasoning_tokens: int | None = None
    """The part of the output that was reasoning, if the log has it."""
    complete: bool = True
    """False if the log has only a placeholder for the final figures."""
    context_window: int | None = None
    """The model's context window, if the log has or shows it."""
    speed: str | None = None
    """What was paid for, if it isn't standard: `fast`, `us` (processing in the United States alone), `2_searches`
    (in the web), `sum` (further requests that aren't a response of their own); several with a blank between them."""
    cost_usd: float | None = None
    """The cost of the response according to the provider."""


class Notification(Struct):
    """Anything else in a log: harness messages, errors, compactions, unknown records, unreadable lines."""

    kind: str
    """The record's own type, such as `system/api_error`; `unknown/<type>` if agtrace doesn't know it."""
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
