"""The log of server and runner: a line of JSON for each event, with the names and fields of the specification.

No field quotes what an agent asked or what a tool gave: those are the user's texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

EVENTS: Mapping[str, tuple[str, ...]] = {
    "mcp_pruner.disabled": ("reason",),
    "mcp_pruner.ready": ("host", "port", "pid"),
    "mcp_pruner.start_failed": ("error",),
    "mcp_pruner.degraded": ("exit_code", "signal", "error"),
    "mcp_pruner.stopped": ("exit_code", "signal", "duration_ms"),
    "mcp_pruner.not_running": (),
    "mcp_pruner.shutdown_after_degraded": ("exit_code", "signal"),
    "mcp_pruner.config_invalid": ("problems",),
    "mcp_pruner.spawn_error": ("error",),
    "mcp_pruner.start_timeout": ("timeout_ms",),
    "mcp_pruner.exited": ("exit_code", "signal"),
    "mcp_pruner.unreachable": ("failures", "error"),
    "mcp_pruner.kill_escalated": ("pid", "timeout_ms"),
    "tool.request_received": ("request_id", "tool"),
    "tool.request_invalid": ("request_id", "tool", "validation_errors"),
    "tool.request_parse_failed": ("request_id", "error"),
    "tool.exec_start": ("request_id", "tool"),
    "tool.exec_ok": ("request_id", "tool", "duration_ms", "bytes"),
    "tool.exec_failed": ("request_id", "tool", "error", "error_code", "exit_code", "duration_ms"),
    "tool.exec_timeout": ("request_id", "tool", "timeout_ms"),
    "tool.respond_ok": ("request_id", "tool", "mode"),
    "tool.respond_failed": ("request_id", "tool", "error"),
    "tool.internal_error": ("request_id", "tool", "stack"),
    "pruner.call_start": ("request_id", "endpoint"),
    "pruner.call_ok": ("request_id", "duration_ms", "pruned_bytes"),
    "pruner.call_failed": ("request_id", "reason", "duration_ms"),
    "pruner.timeout": ("request_id", "timeout_ms"),
    "pruner.http_error": ("request_id", "status", "error"),
    "pruner.invalid_response": ("request_id", "error"),
}
"""The fields of each event, in their order; one without a value is null."""


class Log:
    """Writes events. Safe to use from several threads if what it writes to is."""

    def __init__(self, write: Callable[[Mapping[str, Any]], None], now: Callable[[], float] = time.time) -> None:
        """Create a log; `write` gets each record, `now` returns seconds since 1970 UTC."""
        self._write, self._now = write, now

    def write(self, event: str, **fields: Any) -> None:
        """Write an event with those of the fields that it has."""
        self._write({"event": event, "at": round(self._now(), 3), **{name: fields.get(name) for name in EVENTS[event]}})
