"""Tool calls carried by response items: their ids, names and arguments."""

from __future__ import annotations

import json
from typing import Any

from agtrace_schema.events import Json, ToolCall

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import compact_json, fields, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.codex.background import note_poll
from agtrace_indexer.providers.codex.doubles import fingerprint
from agtrace_indexer.providers.codex.steps import open_step
from agtrace_indexer.providers.notes import remember, skip

OPEN_CALLS = 256
"""How many calls are remembered while they wait for their results."""


def draft_call(call_id: str | None, name: str, arguments: Json, state: LogState, at: int | None) -> list[Draft]:
    """A call in the step at hand, which is remembered for its result."""
    step = open_step(state)
    if call_id:
        remember(state.memory.setdefault("calls", {}), call_id, step, OPEN_CALLS)
        note_poll(call_id, name, arguments, state)
    return [Draft(ToolCall(call_id, name, arguments), at, step)]


def call_item(call_id: str | None, name: str, arguments: Json, state: LogState, at: int | None) -> list[Draft]:
    """A call carried by a response item: from here on, events about tool runs add no events."""
    state.memory["carried"] = True
    if call_id and call_id in state.memory.get("told", {}):
        return skip("call/double", state)
    return draft_call(call_id, name, arguments, state, at)


def function_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A call with arguments in JSON, written as a text."""
    return call_item(call_id_of(payload), tool_name(payload), decoded_arguments(payload.get("arguments")), state, at)


def custom_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A call with free text as its input."""
    return call_item(call_id_of(payload), tool_name(payload), payload.get("input"), state, at)


def local_shell_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A command of the built-in shell tool."""
    return call_item(
        call_id_of(payload) or identifier(payload.get("id")), "local_shell", payload.get("action"), state, at
    )


def tool_search_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A search for deferred tools."""
    return call_item(call_id_of(payload), "tool_search", decoded_arguments(payload.get("arguments")), state, at)


def web_search_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A search: its id is missing in most logs and its results are never in the item."""
    state.memory["carried"] = True
    asked = payload.get("action") or payload.get("query")
    if state.memory.get("told", {}).pop(search_mark(asked), None):
        return skip("call/double", state)
    return draft_call(call_id_of(payload) or identifier(payload.get("id")), "web_search", asked, state, at)


def legacy_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """`{type: tool_call, function: {name}, arguments}`, as some published fixtures have it."""
    name = text(fields(payload.get("function")).get("name")) or tool_name(payload)
    return call_item(call_id_of(payload), name, decoded_arguments(payload.get("arguments")), state, at)


def call_id_of(payload: Record) -> str | None:
    """The id that a call and its output share."""
    return identifier(payload.get("call_id"))


def tool_name(payload: Record) -> str:
    """The tool's name with its namespace, as MCP tools have one."""
    name, space = text(payload.get("name")) or "unknown", text(payload.get("namespace"))
    if space is None:
        return name
    joint = "" if space.endswith(("_", ".")) else "__" if space.startswith("mcp__") else "."
    return f"{space}{joint}{name}"


def decoded_arguments(value: Any) -> Json:
    """The decoded arguments; a text that is no JSON object or list stays what it is."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]  # a value of a decoded record is JSON
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return decoded if isinstance(decoded, (dict, list)) else value


def search_mark(asked: Any) -> str:
    """What stands for the id of a web search: what was asked."""
    return f"search:{fingerprint(compact_json(asked))}"
