"""Tool calls: requests in a model's message, executions that no message asked for, commands of the human."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Json, ToolCall

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import fields, first_text, items
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.logs.decoding import loads
from agtrace_indexer.providers.copilot.envelope import Entry
from agtrace_indexer.providers.copilot.sub_agents import note_task
from agtrace_indexer.providers.notes import remember, skip

_CALLS_REMEMBERED = 256


def requested(entry: Entry, step: str, state: LogState) -> list[Said]:
    """Return the calls of a message, without those that were known before it: a message may be written twice."""
    said: list[Said] = []
    for request in map(fields, items(entry.data.get("toolRequests"))):
        name = first_text(request.get("name"), request.get("toolName")) or "unknown"
        said += _call(request, name, entry, step, state)
    return said


def begun(entry: Entry, state: LogState) -> list[Said]:
    """Read the start of an execution, which repeats its request unless there was none."""
    name = first_text(entry.data.get("toolName"), entry.data.get("mcpToolName")) or "unknown"
    step = state.memory.get("steps", {}).get(entry.thread) or f"call/{identifier(entry.data.get('toolCallId'))}"
    return _call(entry.data, name, entry, step, state) or [*skip(entry.kind, state)]


def requested_by_user(entry: Entry, state: LogState) -> list[Said]:
    """Read a command that the human typed after `!`: no response asked for it."""
    name = first_text(entry.data.get("toolName")) or "unknown"
    return _call(entry.data, name, entry, None, state) or [*skip(entry.kind, state)]


def call_of(call_id: str | None, state: LogState) -> tuple[str, str | None]:
    """Return the tool of a call and the shell that it asks about, `""` and None if the call isn't remembered."""
    name, shell = state.memory.get("calls", {}).get(call_id, ("", None))
    return name, shell


def _call(request: Record, name: str, entry: Entry, step: str | None, state: LogState) -> list[Said]:
    call_id, arguments = identifier(request.get("toolCallId")), _decoded(request.get("arguments"))
    calls = state.memory.setdefault("calls", {})
    if call_id in calls:
        return []
    if call_id:
        remember(calls, call_id, [name[:_LONGEST_NAME], _shell(arguments)], _CALLS_REMEMBERED)
        note_task(call_id, name, arguments, state)
    return [Draft(ToolCall(call_id, name, arguments), entry.at, step, entry.thread)]


_LONGEST_NAME = 64


def _shell(arguments: Json) -> str | None:
    """Return the id of the shell that a call names: a text or a number."""
    named = fields(arguments).get("shellId")
    return identifier(str(named)) if isinstance(named, (str, int)) else None


def _decoded(value: Any) -> Json:
    """Decode arguments that are JSON in a string; any other text is returned unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value  # type: ignore[no-any-return]  # a value of a decoded record is JSON
    try:
        decoded: Json = loads(value)
    except ValueError:
        return value
    return decoded
