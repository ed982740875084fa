"""Whose lines stand in a Claude Code log: the session's own, a sub-agent's, or inline sidechains.

The three eras of sub-agents are those of indexer/README.md. Lines of inline sidechains (until 1.0.12x)
are told apart by `parentUuid`, for which the last few uuids of each are remembered.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from agtrace_schema.events import UserKind

from agtrace_indexer.drafts import LogState, Record, SessionFacts
from agtrace_indexer.providers.notes import remember
from agtrace_indexer.values import text

_SIDECHAINS_REMEMBERED = 16
_UUIDS_REMEMBERED = 8

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

TITLES: dict[str, tuple[str, int]] = {
    "custom-title": ("customTitle", 4),
    "ai-title": ("aiTitle", 3),
    "summary": ("summary", 2),
    "agent-name": ("agentName", 1),
}
"""Where titles stand and how good they are (indexer/README.md)."""


def named_by(path: PurePath) -> LogState:
    """Take a session's id from a name that is a uuid, a sub-agent's and its parent's from the path.

    Any other name says nothing: then the first lines tell.
    """
    name = path.name.partition(".")[0]
    if name.startswith("agent-"):
        facts = SessionFacts(id=name, kind="subagent", parent_id=_session_folder(path))
        return LogState({"": facts}, {"placed": True, "subagent": True})
    if _UUID.fullmatch(name):
        return LogState({"": SessionFacts(id=name)}, {"placed": True})
    return LogState()


def note_title(record: Record, state: LogState) -> None:
    """Take a session's title where it is no worse than what is known; among equals the last wins."""
    key, rank = TITLES[record["type"]]
    title, facts = text(record.get(key)), state.sessions[""]
    if title and rank >= facts.title_rank:
        facts.title, facts.title_rank = title, rank


def _session_folder(path: PurePath) -> str | None:
    folders = path.parts[:-1]
    if "subagents" not in folders[1:]:
        return None
    return folders[len(folders) - 2 - folders[::-1].index("subagents")]


def place(record: Record, state: LogState) -> str:
    """Note what a chain line says about its session, and give the thread it belongs to."""
    if "placed" not in state.memory:
        _place_log(record, state)
    inline = record.get("isSidechain") is True and "subagent" not in state.memory
    thread = _sidechain(record, state) if inline else ""
    facts = state.sessions[thread]
    note_session(record, facts)
    if facts.cwd is None:
        facts.cwd = text(record.get("cwd"))
    if facts.branch is None:
        facts.branch = text(record.get("gitBranch"))
    facts.version = text(record.get("version")) or facts.version
    return thread


def _place_log(record: Record, state: LogState) -> None:
    """See by its first chain line whether a log with any name is a sub-agent's."""
    state.memory["placed"] = True
    agent = text(record.get("agentId"))
    if agent and record.get("isSidechain") is True:
        state.memory["subagent"] = True
        facts = state.sessions[""]
        facts.id, facts.kind = f"agent-{agent}", "subagent"


def note_session(record: Record, facts: SessionFacts) -> None:
    """Take the ids that a line names: `sessionId` is the parent's in the lines of a sub-agent."""
    session = text(record.get("sessionId"))
    if facts.id is None:
        facts.id = session
    elif facts.kind == "subagent" and facts.parent_id is None and session != facts.id:
        facts.parent_id = session
    if facts.kind == "subagent" and facts.agent_type is None:
        facts.agent_type = text(record.get("attributionAgent"))


def _sidechain(record: Record, state: LogState) -> str:
    """Give the thread of an inline sidechain's line, and remember the line for those that follow it."""
    agent = text(record.get("agentId"))
    chains: dict[str, list[str]] = state.memory.setdefault("sidechains", {})
    uuid = text(record.get("uuid"))
    thread = f"agent-{agent}" if agent else _chain_of(record, chains)
    if thread is None:
        thread = f"sidechain-{uuid or text(record.get('parentUuid')) or 'root'}"
    uuids = chains.pop(thread, [])
    remember(chains, thread, [*uuids, uuid][-_UUIDS_REMEMBERED:] if uuid else uuids, _SIDECHAINS_REMEMBERED)
    if thread not in state.sessions:
        note_session(record, state.sessions[""])
        state.sessions[thread] = SessionFacts(id=thread, kind="subagent", parent_id=state.sessions[""].id)
    return thread


def _chain_of(record: Record, chains: dict[str, list[str]]) -> str | None:
    """The open sidechain with the line's parent, else the newest; None for a root or where none is open."""
    parent = record.get("parentUuid", "")
    if parent is None or not chains:
        return None
    newest_first = list(reversed(chains))
    return next((thread for thread in newest_first if parent in chains[thread]), newest_first[0])


def request_kind(thread: str, state: LogState) -> UserKind:
    """The kind of a plain text in the user's role: in a sub-agent the parent speaks."""
    return UserKind.TASK if thread or "subagent" in state.memory else UserKind.HUMAN
