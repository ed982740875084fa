"""The lines of a JSONL session: prompts, responses, results of tools."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Message, Payload, Reasoning, ToolCall, User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import compact_json, fields, items, milliseconds, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.kiro.sidecars import end_of_turn
from agtrace_indexer.providers.kiro.tool_results import Part, parts_of, picture, result_of
from agtrace_indexer.providers.notes import skip, unknown

KINDS = ("Prompt", "AssistantMessage", "ToolResults")


def read_line(record: Record, state: LogState) -> list[Draft]:
    """Read a line of a known kind. Only prompts have a time, in seconds."""
    kind, data = record["kind"], fields(record.get("data"))
    at = milliseconds(fields(data.get("meta")).get("timestamp"))
    named = identifier(data.get("message_id"))
    parts = parts_of(data.get("content"))
    if kind == "Prompt":
        payloads, step = _prompt(parts, state), None
    elif kind == "AssistantMessage":
        payloads, step = [payload for part in parts if (payload := _said(part, state))], named or _nameless(state)
    else:
        payloads, step = [*(_returned(part, state) for part in parts), *_elsewhere(data, parts)], None
    made = [Draft(payload, at, step, identity=f"{named}/{n}" if named else None) for n, payload in enumerate(payloads)]
    return [*(made or skip(f"{kind}/empty", state)), *end_of_turn(named, state)]


def speaker(state: LogState) -> UserKind:
    """Return who writes prompts: in a sub-agent, its parent."""
    return UserKind.TASK if state.sessions[""].kind == "subagent" else UserKind.HUMAN


def _nameless(state: LogState) -> str:
    """Return a step for a response without an id."""
    state.memory["nameless"] = state.memory.get("nameless", 0) + 1
    return f"nameless-{state.memory['nameless']}"


def _prompt(parts: list[Part], state: LogState) -> list[Payload]:
    """Read a prompt: texts and images together are one, parts of other kinds are kept for themselves."""
    spoken = [part for part in parts if part.kind in ("text", "image")]
    others = [part for part in parts if part.kind not in ("text", "image")]
    said = "\n".join(picture(part.data) if part.kind == "image" else _text(part.data) for part in spoken)
    users: list[Payload] = [User(said, speaker(state))] if said.strip() else []
    return [*users, *(unknown(f"Prompt.{part.kind}", part.data, state) for part in others)]


def _said(part: Part, state: LogState) -> Payload | None:
    """Read a part of a response; a text is often empty before a call."""
    data = fields(part.data)
    if part.kind == "text":
        return Message(_text(part.data)) if part.data else None
    if part.kind in ("thinking", "reasoning"):
        return Reasoning(_text(data.get("text", data.get("thinking")) if data else part.data))
    if part.kind == "toolUse":
        return ToolCall(identifier(data.get("toolUseId")), text(data.get("name")) or "unknown", data.get("input"))
    return unknown(f"AssistantMessage.{part.kind}", part.data, state)


def _returned(part: Part, state: LogState) -> Payload:
    data = fields(part.data)
    if part.kind != "toolResult":
        return unknown(f"ToolResults.{part.kind}", part.data, state)
    return result_of(data.get("toolUseId"), data.get("status"), parts_of(data.get("content")))


def _elsewhere(data: Record, parts: list[Part]) -> list[Payload]:
    """Return results that are only in `results`, which otherwise repeats the content with the calls' arguments."""
    told = {fields(part.data).get("toolUseId") for part in parts if isinstance(fields(part.data).get("toolUseId"), str)}
    found = ((call_id, fields(value)) for call_id, value in fields(data.get("results")).items() if call_id not in told)
    return [_bare_result(call_id, value.get("result")) for call_id, value in found]


def _bare_result(call_id: str, result: Any) -> Payload:
    """Read `{"Success": {"items": [...]}}`, or a result under another name."""
    status = next(iter(fields(result)), "")
    value = fields(result).get(status)
    content = items(fields(value).get("items")) or [value]
    return result_of(call_id, status, parts_of(content))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else compact_json(value)
