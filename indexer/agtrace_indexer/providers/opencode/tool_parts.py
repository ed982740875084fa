"""Tool executions: one part has the call, and its result once there is one."""

from __future__ import annotations

import re
from typing import Any

from agtrace_schema.events import Outcome, OutcomeSource, ToolCall, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import compact_json, fields, first_text, milliseconds, text
from agtrace_indexer.events.strings import identifier

_ENDED = ("completed", "success")  # the second in a published fixture
_REJECTED = later(r"The user (?:rejected permission|dismissed this question|has specified a rule which prevents)", re.I)
_STARTED = later(r"(?:task_id: |<task id=\")(ses_[0-9A-Za-z]{1,60})")
_ABORTED = "User aborted the command"
_NOTE = later(r"<(?:bash|shell)_metadata>(.*?)(?:</(?:bash|shell)_metadata>|\Z)", re.S)
_NOTE_LOOKED_FOR = 4_000
"""Characters at the end of an output, among which is what the harness says about a command."""
_SHELL = "bash"


def call_of(part: Record, call_id: str) -> ToolCall:
    """Read the call. A call that the model got wrong is one to the tool `invalid`, which names the one it meant."""
    given = fields(part.get("state")).get("input", {})
    name = text(part.get("tool")) or "unknown"
    if name == "invalid":
        name = text(fields(given).get("tool")) or name
    return ToolCall(call_id, name, given)


def result_of(part: Record, call_id: str, *, over: bool) -> ToolResult | None:
    """Read the result; `over` says that nothing in its message can still be running."""
    state = fields(part.get("state"))
    status, metadata = state.get("status"), fields(state.get("metadata"))
    said = _said(state, metadata)
    if status not in ("pending", "running", "error", *_ENDED) and not said:
        return None
    exit_code = metadata.get("exit")
    number = exit_code if type(exit_code) is int and abs(exit_code) < 2**31 else None
    outcome, source = _outcome(part, state, said, over=over)
    return ToolResult(call_id, said, outcome, source, number, _duration(state), _agent(part, metadata, said))


def _said(state: Record, metadata: Record) -> str:
    said = state.get("error") if state.get("status") == "error" else state.get("output", metadata.get("output"))
    if isinstance(said, str) or said is None:
        return said or ""
    return compact_json(said)


def _outcome(part: Record, state: Record, said: str, *, over: bool) -> tuple[Outcome, OutcomeSource | None]:
    status, metadata = state.get("status"), fields(state.get("metadata"))
    if status in ("pending", "running"):
        return (Outcome.INTERRUPTED if over else Outcome.RUNNING), OutcomeSource.STRUCTURE
    if status == "error":
        if _REJECTED.search(said[:_NOTE_LOOKED_FOR]):
            return Outcome.REJECTED, OutcomeSource.TEXT
        if said.startswith("Tool execution aborted") or metadata.get("interrupted") is True:
            return Outcome.INTERRUPTED, OutcomeSource.STRUCTURE
        return Outcome.FAILED, OutcomeSource.STRUCTURE
    if status not in _ENDED:
        return Outcome.UNKNOWN, None
    return (
        (Outcome.FAILED, OutcomeSource.STRUCTURE) if part.get("tool") == "invalid" else _of_ended(part, metadata, said)
    )


def _of_ended(part: Record, metadata: Record, said: str) -> tuple[Outcome, OutcomeSource]:
    """Determine the outcome of a completed execution: the exit code of a command that failed doesn't make it an error.

    It is null if the command was ended: by a timeout, or by the user.
    """
    if part.get("tool") != _SHELL or "exit" not in metadata:
        return Outcome.OK, OutcomeSource.STRUCTURE
    if metadata["exit"] is not None:
        return (Outcome.FAILED if metadata["exit"] else Outcome.OK), OutcomeSource.STRUCTURE
    note = _NOTE.search(said[-_NOTE_LOOKED_FOR:])
    if note and _ABORTED in note[1]:
        return Outcome.INTERRUPTED, OutcomeSource.TEXT
    return (Outcome.FAILED if note else Outcome.OK), OutcomeSource.TEXT if note else OutcomeSource.STRUCTURE


def _duration(state: Record) -> int | None:
    time = fields(state.get("time"))
    start, end = milliseconds(time.get("start")), milliseconds(time.get("end"))
    return end - start if start is not None and end is not None and end >= start else None


def _agent(part: Record, metadata: Record, said: str) -> str | None:
    """Return the session of the sub-agent that an execution started; it is known while that is running."""
    if part.get("tool") != "task":
        return None
    named: Any = _STARTED.match(said)
    return identifier(first_text(metadata.get("sessionId"), named and named[1]))
