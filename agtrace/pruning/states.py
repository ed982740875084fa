"""The states of a run and of a request, and every way from one to the next, as data.

The design that these come from is quoted in `tests/pruning/specification.md`; a test compares the two row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar, cast

from agtrace.pruning.events import Log


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


class Way(NamedTuple):
    """A transition."""

    sources: tuple[State, ...]
    condition: str
    target: State
    events: tuple[str, ...] = ()
    """The log events that it writes, always."""


def _from(source: State, condition: str, target: State, *events: str) -> Way:
    return Way((source,), condition, target, events)


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
    Way(ANY_REQUEST, "defect", Req.INTERNAL_ERROR, ("tool.internal_error",)),
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
    Way((Req.RESPOND_RAW, Req.RESPOND_PRUNED), "unwritten", Req.INTERNAL_ERROR, ("tool.respond_failed",)),
    Way(ANY_REQUEST, "defect", Req.INTERNAL_ERROR, ("tool.internal_error",)),
)
"""Every row of the specification's table of errors, in its order; its event comes before that of the transition."""

_UNANSWERED = tuple(state for state in ANY_REQUEST if state not in (Req.RESPOND_RAW, Req.RESPOND_PRUNED))

ADDED = (
    _from(Req.PRUNE_CHECK, "not prunable", Req.RESPOND_RAW),
    _from(Req.CALLING_PRUNER, "nothing left out", Req.RESPOND_RAW, "pruner.call_ok"),
    Way(_UNANSWERED, "client left", Req.INTERNAL_ERROR, ("tool.respond_failed",)),
    _from(Run.STARTING, "agent ended", Run.SHUTDOWN, "mcp_pruner.stopped"),
)
"""What the specification leaves open: texts that pruning would spoil or hardly shorten, and who leaves early: clients
of the server, and users who end a run before the agent is started."""

WAYS = {(source, way.condition): way for way in (*TRANSITIONS, *FAULTS, *ADDED) for source in way.sources}
"""Every way by its source and its condition."""


class Course(Generic[S]):
    """Where a run or a request is: it moves along the ways only, and each step writes its log events."""

    def __init__(self, start: S, log: Log) -> None:
        self.state: S = start
        self._log = log

    def go(self, condition: str, **fields: Any) -> None:
        """Take the way of this condition; of the fields, each event gets those that it has.

        Raises `KeyError` if no such way begins here.
        """
        way = WAYS[self.state, condition]
        for event in way.events:
            self._log.write(event, **fields)
        self.state = cast(S, way.target)

    @contextmanager
    def going(self, condition: str) -> Iterator[dict[str, Any]]:
        """Take the way of this condition now, and write its log events at the end of the block.

        They get the fields that the block puts into the dictionary. Raises `KeyError` if no such way begins here.
        """
        way = WAYS[self.state, condition]
        self.state = cast(S, way.target)
        fields: dict[str, Any] = {}
        yield fields
        for event in way.events:
            self._log.write(event, **fields)
