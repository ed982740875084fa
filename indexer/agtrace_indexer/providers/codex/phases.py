"""Whether a turn of Codex goes on, by single records of its rollout.

`task_started` and `task_complete` frame a turn (`turn_started` and `turn_complete` in newer versions); older rollouts
have neither. Requests for approval go to the screen only: codex-rs doesn't persist them (rollout/src/policy.rs). They
are understood here for versions that do.
"""

from __future__ import annotations

from typing import Any

from agtrace_indexer.providers.provider import Phase

_OF_EVENTS = {
    "task_started": Phase.GOES_ON,
    "turn_started": Phase.GOES_ON,
    "user_message": Phase.GOES_ON,
    "task_complete": Phase.OVER,
    "turn_complete": Phase.OVER,
    "turn_aborted": Phase.OVER,
    "shutdown_complete": Phase.CLOSED,
    "exec_approval_request": Phase.ASKS_PERMISSION,
    "apply_patch_approval_request": Phase.ASKS_PERMISSION,
    "request_permissions": Phase.ASKS_PERMISSION,
}
_AT_WORK = ("call", "call_output", "reasoning")


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    payload = record.get("payload")
    kind = payload.get("type") if isinstance(payload, dict) else None
    if not isinstance(kind, str):
        return None
    if record.get("type") == "event_msg":
        return _OF_EVENTS.get(kind)
    if record.get("type") == "response_item" and kind.endswith(_AT_WORK):
        return Phase.GOES_ON
    return None
