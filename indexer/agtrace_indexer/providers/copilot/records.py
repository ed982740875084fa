"""The reader of every type of event, and what is the same for all of them: the thread, the identities."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import milliseconds, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.copilot import messages, notices, sessions, sub_agents, tokens, tool_calls, tool_results
from agtrace_indexer.providers.copilot.envelope import Entry, Reader, notifying, readable, skipped
from agtrace_indexer.providers.notes import skip, unknown

READERS: dict[str, Reader] = {
    "session.start": sessions.started,
    "session.resume": sessions.resumed,
    "session.context_changed": sessions.context_changed,
    "session.model_change": sessions.model_changed,
    "session.auto_mode_resolved": sessions.model_chosen,
    "session.title_changed": sessions.title_changed,
    "session.shutdown": tokens.shutdown,
    "session.usage_checkpoint": skipped,
    "session.compaction_start": notifying("trigger"),
    "session.compaction_complete": notices.compacted,
    "session.error": notices.failed,
    "session.warning": notifying("message"),
    "session.info": notifying("message"),
    "session.task_complete": notifying("summary"),
    "session.handoff": notifying("summary"),
    "session.truncation": notifying(),
    "session.context_cleared": notifying(),
    "session.plan_changed": notifying("operation"),
    "session.mode_changed": notifying("newMode"),
    "session.permissions_changed": notifying(),
    "session.binary_asset": skipped,
    "abort": notifying("reason", ends_turn=True),
    "user.message": messages.user_message,
    "system.message": skipped,
    "system.notification": notices.told,
    "assistant.turn_start": skipped,
    "assistant.turn_end": skipped,
    "assistant.message": messages.assistant_message,
    "assistant.reasoning": messages.reasoning,
    "tool.execution_start": tool_calls.begun,
    "tool.execution_complete": tool_results.completed,
    "tool.user_requested": tool_calls.requested_by_user,
    "permission.requested": skipped,
    "permission.completed": tool_results.decided,
    "subagent.started": sub_agents.started,
    "subagent.completed": sub_agents.ended,
    "subagent.failed": sub_agents.ended,
    "subagent.selected": notifying("agentDisplayName", "agentName"),
    "subagent.deselected": notifying("agentDisplayName", "agentName"),
    "skill.invoked": notifying("name"),
    "hook.start": skipped,
    "hook.end": skipped,
}
"""The vendor's own schema describes each of them (`session-events.ts` of github/copilot-sdk, August 2026)."""

_is_unique = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch


def read(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of one record, whatever it contains."""
    kind, data = record.get("type"), record.get("data")
    if not isinstance(kind, str) or not isinstance(data, dict):
        return [Draft(unknown(text(kind) or "untyped", record, state, readable), milliseconds(record.get("timestamp")))]
    if record.get("ephemeral") is True:
        return skip(f"{kind} (ephemeral)", state)
    sessions.place(kind, state)
    entry = _entry(kind, data, record, state)
    reader = READERS.get(kind)
    if reader is None:
        return [Draft(unknown(kind, record, state, readable), entry.at, thread=entry.thread)]
    said = reader(entry, state)
    _identify(said, entry.id)
    return said


def _entry(kind: str, data: Record, record: Record, state: LogState) -> Entry:
    thread = sub_agents.thread_of(kind, record.get("agentId"), data, state)
    return Entry(kind, data, milliseconds(record.get("timestamp")), thread, _unique(record.get("id")))


def _unique(id: Any) -> str | None:
    """Return the id of a line, unless it is a number or a placeholder, which other logs have as well."""
    return identifier(id) if isinstance(id, str) and _is_unique(id) else None


def _identify(said: Sequence[Said], line: str | None) -> None:
    """Give the events of a line their identities, the same wherever the line is copied to: its id and their place."""
    if line is None:
        return
    for number, draft in enumerate(said):
        if isinstance(draft, Draft):
            draft.identity = f"{line}#{number}" if number else line
