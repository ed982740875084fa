"""Tool calls of a response: in `toolCalls`, with their results, or in an API turn."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import ToolCall

from agtrace_indexer.events.drafts import Draft, Record
from agtrace_indexer.events.json_values import fields, items, milliseconds, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.gemini.content import bodies
from agtrace_indexer.providers.gemini.tool_results import result_of


def calls_and_results(record: Record, when: int | None) -> tuple[dict[str, Draft], dict[str, Draft]]:
    """Return the calls of a response and their results, at the times of completion, by the names of their parts."""
    calls: dict[str, Draft] = {}
    results: dict[str, Draft] = {}
    for n, tool in enumerate(map(fields, items(record.get("toolCalls")))):
        call_id = identifier(tool.get("id")) or f"{record['id']}.{n}"
        name = call_id if f"call.{call_id}" not in calls else f"{call_id}#{n}"
        call = ToolCall(call_id, text(tool.get("name")) or "unknown", tool.get("args", {}))
        calls[f"call.{name}"] = Draft(call, when, record["id"])
        result = result_of(tool, call_id)
        if result:
            results[f"result.{name}"] = Draft(result, milliseconds(tool.get("timestamp")) or when, record["id"])
    return calls, results


def history_calls(message_id: str, content: list[Any], when: int | None) -> dict[str, Draft]:
    """Return the calls of an API turn. Next to `toolCalls` they are repetitions, often without an id."""
    found: dict[str, Draft] = {}
    for n, call in enumerate(bodies(content, "functionCall")):
        call_id = identifier(call.get("id"))
        payload = ToolCall(call_id, text(call.get("name")) or "unknown", call.get("args", {}))
        found[f"call.{call_id or n}"] = Draft(payload, when, message_id)
    return found
