"""The numbers by which the tables hold event types and outcomes."""

from __future__ import annotations

from agtrace_schema.events import EventType, Outcome

EVENT_TYPE_CODES: tuple[EventType, ...] = (
    EventType.USER,
    EventType.MESSAGE,
    EventType.REASONING,
    EventType.TOOL_CALL,
    EventType.TOOL_RESULT,
    EventType.TOKEN_USAGE,
    EventType.NOTIFICATION,
)
"""`event.type` is a position in this tuple."""

OUTCOME_CODES: tuple[Outcome, ...] = (
    Outcome.OK,
    Outcome.FAILED,
    Outcome.REJECTED,
    Outcome.INTERRUPTED,
    Outcome.RUNNING,
    Outcome.UNKNOWN,
)
"""`event.outcome` is a position in this tuple."""
