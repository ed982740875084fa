"""Messages and reasoning of the model, without doubles (`doubles`)."""

from __future__ import annotations

from agtrace_schema.events import Message, Reasoning

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import text
from agtrace_indexer.providers.codex.content import content_text, texts
from agtrace_indexer.providers.codex.doubles import is_double
from agtrace_indexer.providers.codex.steps import open_step
from agtrace_indexer.providers.notes import skip


def _assistant_text(said: str, stream: str, state: LogState, at: int | None) -> list[Draft]:
    if not said:
        return skip("message/empty", state)
    if is_double(said, "assistant", stream, state):
        return skip("agent_message/double", state)
    return [Draft(Message(said), at, open_step(state))]


def assistant_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a message of the assistant, on the model's side."""
    return _assistant_text(content_text(payload.get("content")), "item", state, at)


def assistant_event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read an `agent_message`: the same, on the screen's side."""
    return _assistant_text(text(payload.get("message")) or "", "event", state, at)


def assistant_turn_item(item: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read an `AgentMessage`, which a paginated thread has instead of `agent_message`."""
    return _assistant_text(content_text(item.get("content")), "event", state, at)


def _reasoning_text(parts: list[str], stream: str, state: LogState, at: int | None) -> list[Draft]:
    """Return drafts of the parts that the other stream hasn't said."""
    new = [part for part in parts if not is_double(part, "reasoning", stream, state)]
    if not new:
        return skip("reasoning/double" if parts else "reasoning/empty", state)
    return [Draft(Reasoning("\n\n".join(new)), at, open_step(state))]


def reasoning_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the summary and any readable content; an item without readable text still begins a response."""
    parts = texts(payload.get("summary")) + texts(payload.get("content")) + texts(payload.get("text"))
    if not parts:
        open_step(state)
        return skip("reasoning/encrypted" if payload.get("encrypted_content") else "reasoning/empty", state)
    return _reasoning_text(parts, "item", state, at)


def reasoning_event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read an `agent_reasoning`: one part of a summary, or of the raw thoughts."""
    return _reasoning_text(texts(payload.get("text")), "event", state, at)


def reasoning_turn_item(item: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a `Reasoning` of a paginated thread, with all its parts."""
    return _reasoning_text(texts(item.get("summary_text")) + texts(item.get("raw_content")), "event", state, at)
