"""The sub-agent that a call started: the thread is named by the call's output, or by an event before it.

Outputs of `spawn_agent` are `{agent_id, nickname}`, and from 0.145 `{task_name, nickname}` without an id; then
`sub_agent_activity`, `collab_agent_spawn_end` or a TurnItem of these names the call and the thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from agtrace_indexer.events.drafts import LogState, Record, Said
from agtrace_indexer.events.json_values import fields, items
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.codex.handlers import Handler
from agtrace_indexer.providers.codex.tool_calls import decoded_arguments
from agtrace_indexer.providers.notes import remember

_LONGEST_OUTPUT = 500
_STARTS = 64


def note_start(event: Record, state: LogState) -> None:
    """Note the thread that a call started, from any form of event."""
    call_id = first_identifier(event.get("event_id"), event.get("call_id"), event.get("id"))
    receivers = items(event.get("receiver_thread_ids")) + items(event.get("receiverThreadIds"))
    threads = (event.get("new_thread_id"), event.get("agent_thread_id"), event.get("agentThreadId"), *receivers)
    thread = first_identifier(*threads)
    started = event.get("kind") in (None, "started") and event.get("tool") in (None, "spawnAgent", "spawn_agent")
    if call_id and thread and started and len(call_id) + len(thread) <= 400:
        remember(state.memory.setdefault("started", {}), call_id, thread, _STARTS)


def starting(handler: Handler) -> Handler:
    """Make a handler that also notes the thread that an event reports as started."""

    def start(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
        note_start(payload, state)
        return handler(payload, state, at)

    return start


def started_by(call_id: str | None, shown: str, state: LogState) -> str | None:
    """Return the thread that a call started; None if it started none."""
    noted: str | None = state.memory.get("started", {}).pop(call_id, None) if call_id else None
    return noted or _named(shown)


def _named(shown: str) -> str | None:
    if len(shown) > _LONGEST_OUTPUT or not shown.startswith("{") or '"agent_id"' not in shown:
        return None
    return identifier(fields(decoded_arguments(shown)).get("agent_id"))
