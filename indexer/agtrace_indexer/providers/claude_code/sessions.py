"""The owners of the lines in a Claude Code log: the session itself, a sub-agent, or inline sidechains.

indexer/README.md describes the three eras of sub-agents.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from agtrace_schema.events import ToolCall, User, UserKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said, SessionFacts
from agtrace_indexer.events.json_values import text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.claude_code.origins import note_origin
from agtrace_indexer.providers.claude_code.short_texts import shown
from agtrace_indexer.providers.claude_code.sidecars import description_beside
from agtrace_indexer.providers.claude_code.sidechains import begun_by, chain_of

_UUID = later(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


_OF_AGENTS = ("subagent", "warmup")


def named_by(path: PurePath) -> LogState:
    """Take a session's id from a name that is a uuid; for a sub-agent, take its id and its parent's from the path.

    Any other name says nothing: the ids are then in the first lines.
    """
    name = identifier(path.name.partition(".")[0]) or ""
    if name.startswith("agent-"):
        beside = description_beside(path)
        facts = SessionFacts(id=name, kind="warmup", parent_id=_session_folder(path))
        facts.agent_type, facts.description = shown(beside.get("agentType")), shown(beside.get("description"))
        return LogState({"": facts}, {"placed": True, "subagent": True})
    if _UUID.fullmatch(name):
        return LogState({"": SessionFacts(id=name)}, {"placed": True})
    return LogState()


def _session_folder(path: PurePath) -> str | None:
    folders = path.parts[:-1]
    if "subagents" not in folders[1:]:
        return None
    return identifier(folders[len(folders) - 2 - folders[::-1].index("subagents")])


def place(record: Record, state: LogState) -> str:
    """Note what a chain line says about its session, and return the thread it belongs to."""
    if "placed" not in state.memory:
        _place_log(record, state)
    thread = ""
    if is_inline(record, state):
        thread = chain_of(record, state)
        if thread not in state.sessions:
            note_session(record, state.sessions[""])
            state.sessions[thread] = begun_by(record, thread, state)
    else:
        note_origin(record, state)
    _note_place(record, state.sessions[thread])
    return thread


def is_inline(record: Record, state: LogState) -> bool:
    """Whether a line belongs to a sub-agent whose lines are among those of its session."""
    return record.get("isSidechain") is True and "subagent" not in state.memory


def _note_place(record: Record, facts: SessionFacts) -> None:
    note_session(record, facts)
    if facts.cwd is None:
        facts.cwd = text(record.get("cwd"))
    if facts.branch is None:
        facts.branch = text(record.get("gitBranch"))
    version = record.get("version")
    if version != facts.version:
        facts.version = text(version) or facts.version


def _place_log(record: Record, state: LogState) -> None:
    """Find out by its first chain line whether a log, whatever its name, is a sub-agent's."""
    state.memory["placed"] = True
    agent = identifier(record.get("agentId"))
    if agent and record.get("isSidechain") is True:
        state.memory["subagent"] = True
        facts = state.sessions[""]
        facts.id, facts.kind = f"agent-{agent}", "warmup"


def note_session(record: Record, facts: SessionFacts) -> None:
    """Take the ids that a line names: `sessionId` is the parent's in the lines of a sub-agent."""
    if facts.id is None:
        facts.id = identifier(record.get("sessionId"))
    elif facts.kind in _OF_AGENTS and facts.parent_id is None:
        named = identifier(record.get("sessionId"))
        facts.parent_id = None if named == facts.id else named
    if facts.kind in _OF_AGENTS and facts.agent_type is None:
        facts.agent_type = text(record.get("attributionAgent"))


def note_work(said: Iterable[Said], state: LogState) -> None:
    """Stop regarding a sub-agent's log as a warm-up once there is a user's text or a tool call."""
    facts = state.sessions[""]
    if facts.kind == "warmup" and any(
        isinstance(draft, Draft) and not draft.thread and isinstance(draft.payload, (User, ToolCall)) for draft in said
    ):
        facts.kind = "subagent"


def request_kind(thread: str, state: LogState) -> UserKind:
    """Return the kind of a plain text in the user's role: in a sub-agent, the parent speaks."""
    return UserKind.TASK if thread or "subagent" in state.memory else UserKind.HUMAN
