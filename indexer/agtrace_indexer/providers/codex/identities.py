"""The identity of an item in a log and in its replays: the id of a call, or the text itself."""

from __future__ import annotations

from agtrace_schema.events import Message, Payload, Reasoning, ToolCall, ToolResult, User

from agtrace_indexer.events.json_values import compact_json, digest

_SPEAKERS: dict[type[Payload], str] = {User: "user", Message: "message", Reasoning: "reasoning"}
"""The speaker of a text. The kind of a user's text is left out: a parent's requests are of another kind in a
sub-agent."""


def identity_of(payload: Payload) -> str | None:
    """Return the identity of what was said or done; None for token usage and notifications, which aren't compared."""
    match payload:
        case ToolCall(call_id=call_id):
            return f"call/{call_id or digest(compact_json([payload.name, payload.arguments]))}"
        case ToolResult(call_id=call_id, text=said):
            return f"result/{call_id or digest(said)}"
        case User(text=said) | Message(text=said) | Reasoning(text=said):
            return f"{_SPEAKERS[type(payload)]}/{digest(said)}"
        case _:
            return None
