"""Tool calls in response items: their ids, names and arguments."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Json, ToolCall

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import compact_json, fields, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.logs.decoding import loads
from agtrace_indexer.providers.codex.background import note_poll
from agtrace_indexer.providers.codex.doubles import fingerprint
from agtrace_indexer.providers.codex.steps import open_step
from agtrace_indexer.providers.notes import remember, skip

OPEN_CALLS = 256
"""The most calls that are remembered until their results come."""


def draft_call(call_id: str | None, name: str, arguments: Json, state: LogState, at: int | None) -> list[Draft]:
    """Return a call in the current step, and remember it for its result."""
    step = open_step(state)
    if call_id:
        remember(state.memory.setdefault("calls", {}), call_id, step, OPEN_CALLS)
        note_poll(call_id, name, arguments, state)
    return [Draft(ToolCall(call_id, name, arguments), at, step)]


def call_item(call_id: str | None, name: str, arguments: Json, state: LogState, at: int | None) -> list[Draft]:
    """Return a call from a response item: from here on, Codex's events about tool runs become no events of ours."""
    state.memory["carried"] = True
    if call_id and call_id in state.memory.get("told", {}):
        return skip("call/double", state)
    return draft_call(call_id, name, arguments, state, at)


def function_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a call whose arguments are JSON in a string."""
    return call_item(call_id_of(payload), tool_name(payload), decoded_arguments(payload.get("arguments")), state, at)


def custom_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a call with free text as its input."""
    return call_item(call_id_of(payload), tool_name(payload), payload.get("input"), state, at)


def local_shell_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a command of the built-in shell tool."""
    return call_item(
        call_id_of(payload) or identifier(payload.get("id")), "local_shell", payload.get("action"), state, at
    )


def tool_search_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a search for deferred tools."""
    return call_item(call_id_of(payload), "tool_search", decoded_arguments(payload.get("arguments")), state, at)


def web_search_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a web search: most logs lack its id, and the item never has its results."""
    state.memory["carried"] = True
    asked = payload.get("action") or payload.get("query")
    if state.memory.get("told", {}).pop(search_mark(asked), None):
        return skip("call/double", state)
    return draft_call(call_id_of(payload) or identifier(payload.get("id")), "web_search", asked, state, at)


def legacy_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read `{type: tool_call, function: {name}, arguments}`, as in some published fixtures."""
    name = text(fields(payload.get("function")).get("name")) or tool_name(payload)
    return call_item(call_id_of(payload), name, decoded_arguments(payload.get("arguments")), state, at)


def call_id_of(payload: Record) -> str | None:
    """Return the id that a call and its output share."""
    return identifier(payload.get("call_id"))


def tool_name(payload: Record) -> str:
    """Return the tool's name, with its namespace if it has one, as MCP tools do."""
    name, space = text(payload.get("name")) or "unknown", text(payload.get("namespace"))
    if space is None:
        return name
    joint = "" if space.endswith(("_", ".")) else "__" if space.startswith("mcp__") else "."
    return f"{space}{joint}{name}"


def decoded_arguments(value: Any) -> Json:
    """Decode arguments; a text that isn't a JSON object or list is returned unchanged."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]  # a value of a decoded record is JSON
    try:
        decoded = loads(value)
    except ValueError:
        return value
    return decoded if isinstance(decoded, (dict, list)) else value


def search_mark(asked: Any) -> str:
    """Return a substitute for the id of a web search, made of the query."""
    return f"search:{fingerprint(compact_json(asked))}"
