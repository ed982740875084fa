"""What identifies an item in a log and in the replays of that log: the id of a call, or the text itself."""

from __future__ import annotations

from agtrace_schema.events import Message, Payload, Reasoning, ToolCall, ToolResult, User

from agtrace_indexer.events.json_values import compact_json, digest

_SPEAKERS: dict[type[Payload], str] = {User: "user", Message: "message", Reasoning: "reasoning"}
"""Who says a text. The kind of a user's text is left out: a sub-agent sees its parent's requests with other eyes."""


def identity_of(payload: Payload) -> str | None:
    """The identity of what was said or done; None for figures and notifications, which are not compared."""
    match payload:
        case ToolCall(call_id=call_id):
            return f"call/{call_id or digest(compact_json([payload.name, payload.arguments]))}"
        case ToolResult(call_id=call_id, text=said):
            return f"result/{call_id or digest(said)}"
        case User(text=said) | Message(text=said) | Reasoning(text=said):
            return f"{_SPEAKERS[type(payload)]}/{digest(said)}"
        case _:
            return None
