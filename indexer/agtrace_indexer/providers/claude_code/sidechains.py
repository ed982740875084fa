"""Inline sidechains (until 1.0.12x): the lines of sub-agents among those of their session.

A line belongs to the chain that has its parent uuid, so the last few uuids of each chain are remembered.
A chain was started by the call whose prompt its first line repeats: the oldest such call without a result.
"""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Payload, ToolCall, ToolResult

from agtrace_indexer.events.drafts import LogState, Record, SessionFacts
from agtrace_indexer.events.json_values import digest, fields, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.claude_code import AGENT_TOOLS
from agtrace_indexer.providers.claude_code.content import joined_text
from agtrace_indexer.providers.claude_code.short_texts import shown
from agtrace_indexer.providers.notes import remember

_SIDECHAINS_REMEMBERED = 16
_UUIDS_REMEMBERED = 8
_CALLS_REMEMBERED = 32


def chain_of(record: Record, state: LogState) -> str:
    """Return the thread of a sidechain's line, and remember the line for those that follow it."""
    agent, uuid = identifier(record.get("agentId")), identifier(record.get("uuid"))
    chains: dict[str, list[str]] = state.memory.setdefault("sidechains", {})
    thread = f"agent-{agent}" if agent else _chain_of_parent(record, chains)
    if thread is None:
        thread = f"sidechain-{uuid or identifier(record.get('parentUuid')) or 'root'}"
    uuids = chains.pop(thread, [])
    remember(chains, thread, [*uuids, uuid][-_UUIDS_REMEMBERED:] if uuid else uuids, _SIDECHAINS_REMEMBERED)
    return thread


def begun_by(record: Record, thread: str, state: LogState) -> SessionFacts:
    """Return the facts of a chain that begins with this line, including those of the call that started it."""
    facts = SessionFacts(id=thread, kind="subagent", parent_id=state.sessions[""].id)
    prompt = _prompt_digest(joined_text(fields(record.get("message")).get("content")))
    calls = _calls(state)
    found = next((call for call, noted in calls.items() if noted[0] == prompt), None)
    if found is not None:
        _, facts.agent_type, facts.description = calls.pop(found)
        facts.started_call = found
    return facts


def note_calls(payloads: list[Payload], state: LogState) -> None:
    """Remember the calls that start sub-agents, until they have a result."""
    for payload in payloads:
        if isinstance(payload, ToolResult) and payload.call_id:
            _calls(state).pop(payload.call_id, None)
        elif isinstance(payload, ToolCall) and payload.call_id and payload.name in AGENT_TOOLS:
            given = fields(payload.arguments)
            prompt = text(given.get("prompt"))
            if prompt:
                noted = [_prompt_digest(prompt), shown(given.get("subagent_type")), shown(given.get("description"))]
                remember(_calls(state), payload.call_id, noted, _CALLS_REMEMBERED)


def _calls(state: LogState) -> dict[str, list[Any]]:
    """Return call id -> digest of the prompt, role, description; JSON keeps the order."""
    calls: dict[str, list[Any]] = state.memory.setdefault("agent_calls", {})
    return calls


def _prompt_digest(prompt: str) -> str:
    return digest(prompt.strip())


def _chain_of_parent(record: Record, chains: dict[str, list[str]]) -> str | None:
    """Return the open sidechain with the line's parent, or else the newest; None for a root or if none is open."""
    if record.get("parentUuid", "") is None or not chains:
        return None
    parent = identifier(record.get("parentUuid"))
    newest_first = list(reversed(chains))
    return next((thread for thread in newest_first if parent in chains[thread]), newest_first[0])
