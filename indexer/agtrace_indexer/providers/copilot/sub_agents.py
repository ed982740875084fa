"""Sub-agents: their lines are among those of the session, with the id of the call that started them.

From about 1.0.6x it is in `agentId` of the envelope, before that in `parentToolCallId` of the data; lines of one
sub-agent may have both.
"""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Json

from agtrace_indexer.events.drafts import LogState, Record, Said, SessionFacts
from agtrace_indexer.events.json_values import fields, text
from agtrace_indexer.events.strings import identifier, masked
from agtrace_indexer.providers.copilot import AGENT_TOOL
from agtrace_indexer.providers.copilot.envelope import Entry, notice, readable
from agtrace_indexer.providers.notes import remember

_OF_THE_PARENT = frozenset({"subagent.started", "subagent.completed", "subagent.failed"})
"""They have the sub-agent's id, but tell its parent."""

_TASKS_REMEMBERED = 64
_LONGEST_DESCRIPTION = 500


def thread_of(kind: str, agent: Any, data: Record, state: LogState) -> str:
    """Return the thread of a line, which is new if it is a sub-agent's first one."""
    if kind in _OF_THE_PARENT:
        return ""
    thread = identifier(agent) or identifier(data.get("parentToolCallId")) or ""
    if thread and thread not in state.sessions:
        state.sessions[thread] = _begun(thread, state)
    return thread


def note_task(call_id: str | None, name: str, arguments: Json, state: LogState) -> None:
    """Remember what a sub-agent is started for, until its first line."""
    if call_id and name == AGENT_TOOL:
        given = fields(arguments)
        noted = [_shown(given.get("description")), _shown(given.get("agent_type"))]
        remember(state.memory.setdefault("tasks", {}), call_id, noted, _TASKS_REMEMBERED)


def started(entry: Entry, state: LogState) -> list[Said]:
    """Read that a sub-agent starts; one that says nothing leaves no session."""
    call_id = identifier(entry.data.get("toolCallId"))
    if call_id:
        facts = state.sessions.get(call_id) or _begun(call_id, state)
        facts.agent_type = text(entry.data.get("agentName")) or facts.agent_type
        facts.model = text(entry.data.get("model")) or facts.model
        state.sessions[call_id] = facts
    return [notice(entry, _named(entry.data))]


def ended(entry: Entry, state: LogState) -> list[Said]:
    """Read that a sub-agent ended; why, if it failed."""
    told = {key: value for key, value in entry.data.items() if key in ("durationMs", "totalTokens", "totalToolCalls")}
    error = entry.data.get("error")
    failure = error if isinstance(error, str) else readable(error)
    return [notice(entry, ": ".join(filter(None, (_named(entry.data), failure or readable(told)))))]


def session_of(call_id: str | None, state: LogState) -> str | None:
    """Return the id of the sub-agent that a call started; None if it started none."""
    facts = state.sessions.get(call_id) if call_id else None
    return None if facts is None else facts.id


def _begun(thread: str, state: LogState) -> SessionFacts:
    main = state.sessions[""]
    facts = SessionFacts(id=thread, kind="subagent", parent_id=main.id, started_call=thread)
    facts.cwd, facts.branch, facts.version = main.cwd, main.branch, main.version
    facts.description, facts.agent_type = state.memory.get("tasks", {}).pop(thread, (None, None))
    return facts


def _named(data: Record) -> str:
    return text(data.get("agentDisplayName")) or text(data.get("agentName")) or ""


def _shown(value: Any) -> str | None:
    return masked(value)[:_LONGEST_DESCRIPTION] if isinstance(value, str) and value else None
