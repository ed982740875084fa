"""Whether a turn of Copilot CLI goes on, by single records of its events.

A request for permission is in the log (from 1.0.64). `assistant.turn_end` ends one response of the model, not the turn
that the human began: nothing tells when that is over.
"""

from __future__ import annotations

from typing import Any

from agtrace_indexer.providers.provider import Phase

_OF_TYPES = {
    "session.start": Phase.GOES_ON,
    "session.resume": Phase.GOES_ON,
    "user.message": Phase.GOES_ON,
    "assistant.turn_start": Phase.GOES_ON,
    "assistant.message": Phase.GOES_ON,
    "tool.execution_start": Phase.GOES_ON,
    "tool.execution_complete": Phase.GOES_ON,
    "permission.completed": Phase.GOES_ON,
    "permission.requested": Phase.ASKS_PERMISSION,
    "abort": Phase.OVER,
    "session.shutdown": Phase.CLOSED,
}


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    kind = record.get("type")
    return _OF_TYPES.get(kind) if isinstance(kind, str) else None
