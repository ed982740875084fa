"""Results of tool executions: what the model was given, and the outcome.

A command that fails is still a success in the log: its exit code says otherwise, in the telemetry, in a part of the
result, or on its last line, which the CLI writes. The last one only counts for the tools that run commands.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from agtrace_schema.events import Outcome, OutcomeSource, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import fields, image_placeholder, items, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.copilot import AGENT_TOOL, POLLING, SHELLS
from agtrace_indexer.providers.copilot.background import note_running, settled_by_result, still_running
from agtrace_indexer.providers.copilot.envelope import Entry, readable
from agtrace_indexer.providers.copilot.sub_agents import session_of
from agtrace_indexer.providers.copilot.tool_calls import call_of
from agtrace_indexer.providers.notes import remember, skip

_DECISIONS_REMEMBERED = 256
_REFUSED = frozenset({"denied", "rejected"})
_LAST_LINE = later(r"<(?:shellId: \S{1,64} completed with exit code|exited with exit code) (-?\d{1,10})>\s*\Z")
_TRAILER = 200  # more than the longest last line


class _Told(NamedTuple):
    outcome: Outcome
    source: OutcomeSource | None
    exit_code: int | None = None


def completed(entry: Entry, state: LogState) -> list[Said]:
    """Read the result of an execution; some tell how another one ended, which their call asked about."""
    call_id = identifier(entry.data.get("toolCallId"))
    tool, shell = call_of(call_id, state)
    said = _shown(entry.data)
    outcome, source, exit_code = _outcome(entry.data, said, call_id, tool, state)
    agent = session_of(call_id, state) if tool == AGENT_TOOL else None
    result = ToolResult(call_id, said, outcome, source, exit_code, agent_id=agent)
    if outcome is Outcome.RUNNING:
        if tool not in POLLING:
            note_running(result, entry, state)
        ends = []
    else:
        ends = settled_by_result(result, tool, shell, entry, state)
    return [Draft(result, entry.at, thread=entry.thread, reports=bool(ends)), *ends]


def decided(entry: Entry, state: LogState) -> list[Said]:
    """Read what became of a request for permission: the result of the call may not say it."""
    call_id, kind = identifier(entry.data.get("toolCallId")), text(fields(entry.data.get("result")).get("kind")) or ""
    outcome = Outcome.REJECTED if kind.startswith("denied") else Outcome.INTERRUPTED if kind == "cancelled" else None
    if call_id and outcome:
        remember(state.memory.setdefault("decided", {}), call_id, outcome, _DECISIONS_REMEMBERED)
    return [*skip(entry.kind, state)]


def _outcome(data: Record, said: str, call_id: str | None, tool: str, state: LogState) -> _Told:
    decision = state.memory.get("decided", {}).pop(call_id, None)
    succeeded = data.get("success")
    if succeeded is not True:
        if decision is None and text(fields(data.get("error")).get("code")) in _REFUSED:
            decision = Outcome.REJECTED
        if decision:
            return _Told(Outcome(decision), OutcomeSource.STRUCTURE)
        if succeeded is not False:
            return _Told(Outcome.UNKNOWN, None)
        return _Told(Outcome.FAILED, OutcomeSource.STRUCTURE, _recorded_code(data))
    if running := still_running(data, said, tool):
        return _Told(Outcome.RUNNING, running)
    recorded = _recorded_code(data)
    if recorded is not None:
        return _Told(Outcome.FAILED if recorded else Outcome.OK, OutcomeSource.STRUCTURE, recorded)
    found = _LAST_LINE.search(said[-_TRAILER:]) if tool in SHELLS or tool in POLLING else None
    if found:
        code = int(found[1])
        return _Told(Outcome.FAILED if code else Outcome.OK, OutcomeSource.TEXT, code)
    return _Told(Outcome.OK, OutcomeSource.STRUCTURE)


def _recorded_code(data: Record) -> int | None:
    """Return the exit code in the telemetry, where it is only if it isn't zero, or in a part of the result."""
    metrics = fields(fields(data.get("toolTelemetry")).get("metrics"))
    parts = map(fields, items(fields(data.get("result")).get("contents")))
    codes = [metrics.get("exit_code"), *(part.get("exitCode") for part in parts if part.get("type") == "shell_exit")]
    return next((code for code in codes if type(code) is int and abs(code) < 2**53), None)


def _shown(data: Record) -> str:
    """Return what the model saw: the content of the result, else the message of the error."""
    result, error = data.get("result"), data.get("error")
    if isinstance(result, str):
        return result
    given = fields(result)
    said = [text(given.get("content")), *map(_binary, items(given.get("binaryResultsForLlm")))]
    shown = "\n".join(filter(None, said))
    if shown or data.get("success") is True:
        return shown or _structure(given)
    return error if isinstance(error, str) else text(fields(error).get("message")) or readable(error)


def _structure(given: Record) -> str:
    """Return the parts of a result without a text of its own."""
    texts = (text(fields(part).get("text")) for part in items(given.get("contents")))
    return "\n".join(filter(None, texts)) or readable(given.get("structuredContent"))


def _binary(part: Any) -> str | None:
    found = fields(part)
    return image_placeholder(found.get("mimeType"), found.get("data")) if found else None
