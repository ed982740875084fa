"""The numbers that stand for event types and outcomes in the tables."""

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

TYPE_CODE: dict[EventType, int] = {kind: code for code, kind in enumerate(EVENT_TYPE_CODES)}
OUTCOME_CODE: dict[Outcome, int] = {outcome: code for code, outcome in enumerate(OUTCOME_CODES)}

CONTEXT_CLASSES: tuple[int, ...] = (100_000, 200_000, 272_000)
"""Sizes of a request's entire input, in tokens, above which some vendor's prices change.

`model_usage.context_class` has the number of these that a request exceeds.
"""

PRICE_DAYS: tuple[str, ...] = ("2025-06-10", "2026-07-30", "2026-08-21", "2026-10-07", "2027-01-01")
"""Days (UTC) from which a model of the price table has another price; `model_usage.context_class` has the number of
these that a request came after."""
