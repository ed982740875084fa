"""The states of a run and of a request, every transition, as data, and the log of what happens.

The design that these come from is quoted in `tests/pruning/specification.md`; a test compares the two row by row. No
field of the log quotes what an agent asked or what a tool gave: those are the user's texts.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

from agtrace.problems import SettingError
from agtrace.settings.environment import data_dir


class Run(StrEnum):
    """The states of a run of `agtrace run`."""

    INIT = "run:init"
    DISABLED = "run:mcp_pruner_disabled"
    STARTING = "run:mcp_pruner_starting"
    RUNNING = "run:mcp_pruner_running"
    DEGRADED = "run:mcp_pruner_degraded"
    SHUTDOWN = "run:shutdown"


class Req(StrEnum):
    """The states of a request to `agtrace prune`."""

    RECEIVED = "req:received"
    VALIDATING = "req:validating"
    INVALID_REQUEST = "req:invalid_request"
    EXECUTING_TOOL = "req:executing_tool"
    TOOL_ERROR = "req:tool_error"
    RAW_OUTPUT_READY = "req:raw_output_ready"
    PRUNE_CHECK = "req:prune_check"
    CALLING_PRUNER = "req:calling_pruner"
    PRUNER_ERROR_FALLBACK = "req:pruner_error_fallback"
    RESPOND_RAW = "req:respond_raw"
    RESPOND_PRUNED = "req:respond_pruned"
    RESPONDED = "req:responded"
    INTERNAL_ERROR = "req:internal_error"


TERMINAL = frozenset({Run.SHUTDOWN, Req.INVALID_REQUEST, Req.TOOL_ERROR, Req.RESPONDED, Req.INTERNAL_ERROR})
"""The states that nothing follows."""

State = Run | Req
S = TypeVar("S", Run, Req)

ANY_REQUEST = tuple(state for state in Req if state not in TERMINAL)
"""Where a defect may strike."""


class Transition(NamedTuple):
    """A transition."""

    sources: tuple[State, ...]
    condition: str
    target: State
    events: tuple[str, ...] = ()
    """The log events that it writes, always."""


def _from(source: State, condition: str, target: State, *events: str) -> Transition:
    return Transition((source,), condition, target, events)


TRANSITIONS = (
    _from(Run.INIT, "disabled", Run.DISABLED, "mcp_pruner.disabled"),
    _from(Run.INIT, "enabled", Run.STARTING),
    _from(Run.STARTING, "ready", Run.RUNNING, "mcp_pruner.ready"),
    _from(Run.STARTING, "start failed", Run.DISABLED, "mcp_pruner.start_failed"),
    _from(Run.RUNNING, "server lost", Run.DEGRADED, "mcp_pruner.degraded"),
    _from(Run.RUNNING, "agent ended", Run.SHUTDOWN, "mcp_pruner.stopped"),
    _from(Run.DISABLED, "agent ended", Run.SHUTDOWN, "mcp_pruner.not_running"),
    _from(Run.DEGRADED, "agent ended", Run.SHUTDOWN, "mcp_pruner.shutdown_after_degraded"),
    _from(Req.RECEIVED, "accepted", Req.VALIDATING, "tool.request_received"),
    _from(Req.VALIDATING, "invalid", Req.INVALID_REQUEST, "tool.request_invalid"),
    _from(Req.VALIDATING, "valid", Req.EXECUTING_TOOL, "tool.exec_start"),
    _from(Req.EXECUTING_TOOL, "failed", Req.TOOL_ERROR, "tool.exec_failed"),
    _from(Req.EXECUTING_TOOL, "done", Req.RAW_OUTPUT_READY, "tool.exec_ok"),
    _from(Req.RAW_OUTPUT_READY, "captured", Req.PRUNE_CHECK),
    _from(Req.PRUNE_CHECK, "no question", Req.RESPOND_RAW),
    _from(Req.PRUNE_CHECK, "disabled or unconfigured", Req.RESPOND_RAW),
    _from(Req.PRUNE_CHECK, "input too large", Req.RESPOND_RAW),
    _from(Req.PRUNE_CHECK, "eligible", Req.CALLING_PRUNER, "pruner.call_start"),
    _from(Req.CALLING_PRUNER, "pruned", Req.RESPOND_PRUNED, "pruner.call_ok"),
    _from(Req.CALLING_PRUNER, "failed", Req.PRUNER_ERROR_FALLBACK, "pruner.call_failed"),
    _from(Req.PRUNER_ERROR_FALLBACK, "fallback", Req.RESPOND_RAW),
    _from(Req.RESPOND_RAW, "written", Req.RESPONDED, "tool.respond_ok"),
    _from(Req.RESPOND_PRUNED, "written", Req.RESPONDED, "tool.respond_ok"),
    Transition(ANY_REQUEST, "defect", Req.INTERNAL_ERROR, ("tool.internal_error",)),
)
"""Every transition of the specification, in its order."""

FAULTS = (
    _from(Run.INIT, "invalid configuration", Run.DISABLED, "mcp_pruner.config_invalid", "mcp_pruner.disabled"),
    _from(Run.STARTING, "spawn failed", Run.DISABLED, "mcp_pruner.spawn_error", "mcp_pruner.start_failed"),
    _from(Run.STARTING, "start timed out", Run.DISABLED, "mcp_pruner.start_timeout", "mcp_pruner.start_failed"),
    _from(Run.RUNNING, "server exited", Run.DEGRADED, "mcp_pruner.exited", "mcp_pruner.degraded"),
    _from(Run.RUNNING, "server unreachable", Run.DEGRADED, "mcp_pruner.unreachable", "mcp_pruner.degraded"),
    _from(Run.SHUTDOWN, "server doesn't end", Run.SHUTDOWN, "mcp_pruner.kill_escalated"),
    _from(Req.RECEIVED, "unreadable", Req.INVALID_REQUEST, "tool.request_parse_failed"),
    _from(Req.VALIDATING, "invalid", Req.INVALID_REQUEST, "tool.request_invalid"),
    _from(Req.EXECUTING_TOOL, "failed", Req.TOOL_ERROR, "tool.exec_failed"),
    _from(Req.EXECUTING_TOOL, "timed out", Req.TOOL_ERROR, "tool.exec_timeout", "tool.exec_failed"),
    _from(Req.CALLING_PRUNER, "timeout", Req.PRUNER_ERROR_FALLBACK, "pruner.timeout", "pruner.call_failed"),
    _from(Req.CALLING_PRUNER, "http_error", Req.PRUNER_ERROR_FALLBACK, "pruner.http_error", "pruner.call_failed"),
    _from(
        Req.CALLING_PRUNER,
        "invalid_response",
        Req.PRUNER_ERROR_FALLBACK,
        "pruner.invalid_response",
        "pruner.call_failed",
    ),
    Transition((Req.RESPOND_RAW, Req.RESPOND_PRUNED), "unwritten", Req.INTERNAL_ERROR, ("tool.respond_failed",)),
    Transition(ANY_REQUEST, "defect", Req.INTERNAL_ERROR, ("tool.internal_error",)),
)
"""Every row of the specification's table of errors, in its order; its event comes before that of the transition."""

_UNANSWERED = tuple(state for state in ANY_REQUEST if state not in (Req.RESPOND_RAW, Req.RESPOND_PRUNED))

ADDED = (
    _from(Req.PRUNE_CHECK, "not prunable", Req.RESPOND_RAW),
    _from(Req.CALLING_PRUNER, "nothing left out", Req.RESPOND_RAW, "pruner.call_ok"),
    Transition(_UNANSWERED, "client left", Req.INTERNAL_ERROR, ("tool.respond_failed",)),
    _from(Run.STARTING, "agent ended", Run.SHUTDOWN, "mcp_pruner.stopped"),
)
"""What the specification leaves open: texts that pruning would spoil or hardly shorten, and who leaves early: clients
of the server, and users who end a run before the agent is started."""

BY_CONDITION = {(source, one.condition): one for one in (*TRANSITIONS, *FAULTS, *ADDED) for source in one.sources}
"""Every transition by its source and its condition."""


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


class StateMachine(Generic[S]):
    """Where a run or a request is: only the transitions above change it, and each writes its log events."""

    def __init__(self, start: S, log: Log) -> None:
        self.state: S = start
        self._log = log

    def go(self, condition: str, **fields: Any) -> None:
        """Make the transition of this condition; of the fields, each event gets those that it has.

        Raises `KeyError` if none begins here.
        """
        transition = BY_CONDITION[self.state, condition]
        for event in transition.events:
            self._log.write(event, **fields)
        self.state = cast(S, transition.target)

    @contextmanager
    def during(self, condition: str) -> Iterator[dict[str, Any]]:
        """Make the transition of this condition now, and write its log events at the end of the block.

        They get the fields that the block puts into the dictionary. Raises `KeyError` if none begins here.
        """
        transition = BY_CONDITION[self.state, condition]
        self.state = cast(S, transition.target)
        fields: dict[str, Any] = {}
        yield fields
        for event in transition.events:
            self._log.write(event, **fields)


FILE = "run.log"
"""The log of runs in the data folder."""

_LARGEST_FILE = 1_048_576
"""Bytes after which the next run begins that log anew; the one before is kept beside it."""

_STDERR = 2
_AT_ONCE = 4_096
"""Bytes that a pipe takes at once if it takes any."""
_PATIENCE = 0.5
"""Seconds for which a log that is a full pipe is waited for."""


class RunLog:
    """The log of a run: lines of JSON, in a file or on stderr.

    A line that can't be written is left out: no agent is kept from its work by a full disk, or by whoever reads slowly.
    """

    def __init__(self, descriptor: int | None) -> None:
        """Write to this descriptor of our own, or to nothing."""
        self._descriptor = descriptor

    @classmethod
    def usual(cls) -> RunLog:
        """Return the log in the data folder if stderr is a terminal, which belongs to the agent, else on stderr."""
        with suppress(OSError):
            if not os.isatty(_STDERR):
                return cls(os.dup(_STDERR))
            file = data_dir() / FILE
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if file.exists() and file.stat().st_size > _LARGEST_FILE:
                file.replace(file.with_name(f"{FILE}.1"))
            return cls(_opened(file))
        return cls(None)

    @classmethod
    def at(cls, name: str) -> RunLog:
        """Return a log in a file that the user names, `-` for stderr. Raises `SettingError`."""
        try:
            return cls(os.dup(_STDERR) if name == "-" else _opened(Path(name)))
        except OSError as error:
            raise SettingError(f"can't write the log {name}: {error.strerror or error}") from error

    def write(self, record: Mapping[str, Any]) -> None:
        """Write a record as a line of its own."""
        self._put(json.dumps(record, ensure_ascii=False).encode(errors="replace"))

    def relay(self, line: bytes) -> None:
        """Write a line of the server's: its own record, or any other text within one."""
        if line.startswith(b"{"):
            self._put(line)
        elif line.strip():
            self.write({"at": round(time.time(), 3), "output": line.decode(errors="replace")})

    def close(self) -> None:
        """Close the log."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _put(self, line: bytes) -> None:
        if self._descriptor is None:
            return
        line += b"\n"
        with suppress(OSError):
            while line and select.select([], [self._descriptor], [], _PATIENCE)[1]:
                line = line[os.write(self._descriptor, line[:_AT_ONCE]) :]


def _opened(file: Path) -> int:
    """Open a log to append to. Raises `OSError`, also for a pipe that nobody reads."""
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
