"""Tool runs in events (`*_begin`, `*_end`, and the TurnItems that replace these).

Once a response item has had a call, Codex's events about tool runs become no events of ours; `*_end` events before
the output of their call supply its exit code, status and duration. After the output they only report the end of an
execution that was running (`background`). Before any item has had a call (and so in logs that have only events) they
are calls and results themselves, and a response item that then repeats such a call is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agtrace_schema.events import Json, Outcome, OutcomeSource

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import fields, first_text, text
from agtrace_indexer.events.strings import first_identifier
from agtrace_indexer.providers.codex.background import settled_by_event
from agtrace_indexer.providers.codex.content import content_text, texts
from agtrace_indexer.providers.codex.handlers import Handler
from agtrace_indexer.providers.codex.tool_calls import OPEN_CALLS, draft_call, search_mark, tool_name
from agtrace_indexer.providers.codex.tool_outputs import (
    Reading,
    by_status,
    duration,
    mcp_result,
    of_exit_code,
    of_status,
    of_success,
    whole,
)
from agtrace_indexer.providers.codex.tool_results import draft_result, image_reading
from agtrace_indexer.providers.notes import remember, skip

_ENDS = 64  # ends that wait for the output of their call


def _call_event(kind: str, name: Callable[[Record], str], arguments: Callable[[Record], Json]) -> Handler:
    """Make a handler for a `*_begin` event, which is a call if no response item has the calls."""

    def begin_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        call_id = _event_id(payload)
        if not call_id or state.memory.get("carried") or payload.get("source") == "user_shell":
            return skip(kind, state)
        return _told_call(call_id, name(payload), arguments(payload), "begun", state, at)

    return begin_call


def _end_event(
    kind: str,
    name: Callable[[Record], str],
    arguments: Callable[[Record], Json],
    read: Callable[[Record], Reading],
) -> Handler:
    """Make a handler for an `*_end` event: details of an output to come, the end of a running execution, or a run."""

    def end_call(payload: Record, state: LogState, at: int | None) -> list[Said]:
        call_id, memory = _event_id(payload), state.memory
        told = memory.get("told", {}).get(call_id) if call_id else None
        if not call_id or told == "ended" or payload.get("source") == "user_shell":
            return [*skip(kind, state)]
        if told is None and memory.get("carried"):
            skip(kind, state)
            if call_id not in memory.get("calls", {}):
                return [*settled_by_event(call_id, read(payload), state, at)]
            _note_end(call_id, read(payload), memory)
            return []
        begun = [] if told else _told_call(call_id, name(payload), arguments(payload), "ended", state, at)
        memory["told"][call_id] = "ended"
        return [*begun, *draft_result(call_id, read(payload), state, at)]

    return end_call


def _note_end(call_id: str, reading: Reading, memory: dict[str, Any]) -> None:
    outcome = None if reading.outcome is Outcome.UNKNOWN else str(reading.outcome)
    remember(memory.setdefault("ends", {}), call_id, [outcome, reading.exit_code, reading.duration_ms], _ENDS)


def _told_call(call_id: str, name: str, arguments: Json, how: str, state: LogState, at: int | None) -> list[Draft]:
    """Return a call that an event is the first to report; a later response item of it is a double."""
    remember(state.memory.setdefault("told", {}), call_id, how, OPEN_CALLS)
    return draft_call(call_id, name, arguments, state, at)


def _event_id(payload: Record) -> str | None:
    return first_identifier(payload.get("call_id"), payload.get("callId"), payload.get("id"))


def _exec_arguments(payload: Record) -> Json:
    return {key: payload[key] for key in ("command", "cwd") if key in payload}


def _exec_reading(payload: Record) -> Reading:
    shown = first_text(payload.get("aggregated_output"), payload.get("stdout"), payload.get("formatted_output"))
    exit_code = whole(payload.get("exit_code"))
    outcome = of_status(payload.get("status"))
    if outcome is None and exit_code is not None:
        outcome = of_exit_code(exit_code)
    return _event_reading(shown or text(payload.get("stderr")) or "", outcome, payload, exit_code)


def _patch_reading(payload: Record) -> Reading:
    shown = first_text(payload.get("stdout"), payload.get("stderr")) or ""
    outcome = of_success(payload.get("success")) or of_status(payload.get("status"))
    return _event_reading(shown, outcome, payload)


def _event_reading(shown: str, outcome: Outcome | None, payload: Record, exit_code: int | None = None) -> Reading:
    source = OutcomeSource.STRUCTURE if outcome else None
    return Reading(shown, outcome or Outcome.UNKNOWN, source, exit_code, duration(payload.get("duration")))


def _mcp_reading(payload: Record) -> Reading:
    reading = mcp_result(payload.get("result"))
    return by_status(reading, payload.get("status"))._replace(duration_ms=duration(payload.get("duration")))


def _mcp_name(payload: Record) -> str:
    asked = fields(payload.get("invocation")) or payload
    return "__".join(texts([asked.get("server"), asked.get("tool")])) or "unknown"


def _mcp_arguments(payload: Record) -> Json:
    return (fields(payload.get("invocation")) or payload).get("arguments")


def _dynamic_name(payload: Record) -> str:
    return tool_name({"name": payload.get("tool"), "namespace": payload.get("namespace")})


def _dynamic_reading(payload: Record) -> Reading:
    shown = content_text(payload.get("content_items")) or content_text(payload.get("error"))
    return _event_reading(shown, of_success(payload.get("success")), payload)


def web_search_end(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a `web_search_end`: it comes before its item and may have another id, so they are matched by query."""
    asked, call_id = payload.get("action") or payload.get("query"), _event_id(payload)
    if state.memory.get("carried") or not call_id or not asked:
        return skip("web_search_end", state)
    remember(state.memory.setdefault("told", {}), search_mark(asked), "begun", OPEN_CALLS)
    return _told_call(call_id, "web_search", asked, "ended", state, at)


def _constant(name: str) -> Callable[[Record], str]:
    return lambda payload: name


def _field(key: str) -> Callable[[Record], Json]:
    return lambda payload: payload.get(key)


exec_begin = _call_event("exec_command_begin", _constant("exec_command"), _exec_arguments)
exec_end = _end_event("exec_command_end", _constant("exec_command"), _exec_arguments, _exec_reading)
patch_begin = _call_event("patch_apply_begin", _constant("apply_patch"), _field("changes"))
patch_end = _end_event("patch_apply_end", _constant("apply_patch"), _field("changes"), _patch_reading)
mcp_begin = _call_event("mcp_tool_call_begin", _mcp_name, _mcp_arguments)
mcp_end = _end_event("mcp_tool_call_end", _mcp_name, _mcp_arguments, _mcp_reading)
dynamic_begin = _call_event("dynamic_tool_call_request", _dynamic_name, _field("arguments"))
dynamic_end = _end_event("dynamic_tool_call_response", _dynamic_name, _field("arguments"), _dynamic_reading)
image_end = _end_event("image_generation_end", _constant("image_generation"), _field("revised_prompt"), image_reading)
image_view = _call_event("view_image_tool_call", _constant("view_image"), _field("path"))
