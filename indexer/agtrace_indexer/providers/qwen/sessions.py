"""The session that a line belongs to, and the identity of lines that a branch copies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said, SessionFacts
from agtrace_indexer.events.json_values import fields, text
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.claude_code.sidecars import description_beside

_TITLE_RANKS = {"manual": 4, "auto": 3}


def named_by(path: PurePath) -> LogState:
    """Take a sub-agent's id and its parent's from the path of its log, `subagents/<parent>/agent-<id>.jsonl`.

    A file next to it says what it is: its role, its task, and the sub-agent that started it if one did.
    """
    if not path.name.startswith("agent-") or path.parent.parent.name != "subagents":
        return LogState()
    beside = description_beside(path)
    starter = identifier(beside.get("parentAgentId"))
    return LogState(
        {
            "": SessionFacts(
                id=identifier(path.name.partition(".")[0]),
                parent_id=f"agent-{starter}" if starter else identifier(path.parent.name),
                kind="subagent",
                agent_type=text(beside.get("agentType")),
                description=text(beside.get("description")),
            )
        }
    )


def note_line(record: Record, state: LogState) -> None:
    """Take the facts that every line has."""
    facts = state.sessions[""]
    if facts.id is None:
        _note_ids(record, facts)
    if facts.cwd is None:
        facts.cwd = text(record.get("cwd"))
    if facts.branch is None:
        facts.branch = text(record.get("gitBranch"))
    facts.version = text(record.get("version")) or facts.version
    origin = identifier(fields(record.get("forkedFrom")).get("sessionId"))
    if origin is not None and facts.kind == "main" and origin != facts.id:
        facts.kind, facts.parent_id = "fork", origin


def _note_ids(record: Record, facts: SessionFacts) -> None:
    """Take the session's id; the lines of a sub-agent have that of its parent."""
    session, agent = identifier(record.get("sessionId")), identifier(record.get("agentId"))
    if record.get("isSidechain") is True and agent:
        facts.id, facts.kind, facts.parent_id = f"agent-{agent}", "subagent", session
        facts.agent_type = facts.agent_type or text(record.get("agentName"))
    else:
        facts.id = session


def note_title(payload: dict[str, Any], state: LogState) -> None:
    """Take a title; one that the user gave is better than one that was made up."""
    facts, title = state.sessions[""], text(payload.get("customTitle"))
    rank = _TITLE_RANKS.get(text(payload.get("titleSource")) or "manual", _TITLE_RANKS["auto"])
    if title and rank >= facts.title_rank:
        facts.title, facts.title_rank = title, rank


def identify(said: Iterable[Said], record: Record) -> None:
    """Give the events of a line their identities: the id that it had where it was first written, and their place."""
    origin = fields(record.get("forkedFrom")).get("messageUuid")
    uuid = first_identifier(origin, record.get("uuid"))
    if uuid is None:
        return
    for number, draft in enumerate(said):
        if isinstance(draft, Draft):
            draft.identity = f"{uuid}#{number}" if number else uuid
