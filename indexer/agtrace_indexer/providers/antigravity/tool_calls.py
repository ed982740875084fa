"""Tool calls: their arguments are JSON in texts, and they have no ids, so that results are matched by order."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import ToolCall

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.json_values import fields, text
from agtrace_indexer.logs.decoding import loads
from agtrace_indexer.providers.antigravity.places import note_folder

_MOST_WAITING = 64


def calls_of(calls: list[Any], response: int, state: LogState) -> list[ToolCall]:
    """Read the calls of a response, with ids that are made up from its number; they wait for the results after it."""
    found = []
    for number, call in enumerate(map(fields, calls)):
        name, given = text(call.get("name")) or "unknown", call.get("args", {})
        arguments = {key: _decoded(value) for key, value in given.items()} if isinstance(given, dict) else given
        if name == "run_command":
            note_folder(fields(arguments).get("Cwd"), state)
        found.append(ToolCall(f"{response}.{number}", name, arguments))
    state.memory["waiting"] = [[call.call_id, call.name] for call in found[:_MOST_WAITING]]
    return found


def call_of(kind: str, state: LogState) -> str | None:
    """Return the id of the call that a result of this type answers: one of its name, or the first that waits."""
    waiting: list[list[str]] = state.memory.get("waiting", [])
    if not waiting:
        return None
    named = next((call for call in waiting if call[1].upper() == kind), waiting[0])
    waiting.remove(named)
    return named[0]


def forget_calls(state: LogState) -> None:
    """Let no later result answer the calls that still wait: the user speaks, so they have none."""
    state.memory.pop("waiting", None)


def _decoded(value: Any) -> Any:
    """Decode an argument, which is written as JSON; a text that isn't JSON is itself."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except ValueError:
        return value
