"""The session: what its metas and turn contexts say of it, and what befalls it: compactions, errors, ends of turns."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Notification

from agtrace_indexer.drafts import Draft, LogState, Record, SessionFacts
from agtrace_indexer.providers.notes import skip
from agtrace_indexer.values import compact_json, fields, first_text, items, milliseconds, text

_META_LEFT_OUT = {"base_instructions", "instructions", "dynamic_tools", "user_instructions"}


def session_meta(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """The first meta is the session's; one with another id belongs to the replayed parent (indexer/README.md)."""
    facts, memory, own = state.sessions[""], state.memory, text(payload.get("id"))
    if facts.id is None and "meta" not in memory:
        memory["meta"] = memory["n"]
        facts.id = own
        _origin(payload, facts, memory)
    elif own is not None and own != facts.id:
        _replay(own, facts, memory)
    if own == facts.id:
        _place(payload, facts)
        facts.version = text(payload.get("cli_version")) or facts.version
    told = {key: value for key, value in payload.items() if key not in _META_LEFT_OUT}
    at = at or milliseconds(payload.get("timestamp"))
    return [Draft(Notification("session_meta", compact_json(told)), at)]


def _origin(payload: Record, facts: SessionFacts, memory: dict[str, Any]) -> None:
    """Who started this session: `source`, `thread_source`, `parent_thread_id` and `forked_from_id`."""
    subagent = fields(payload.get("source")).get("subagent")
    spawn = fields(fields(subagent).get("thread_spawn"))
    forked = text(payload.get("forked_from_id"))
    if subagent or payload.get("thread_source") == "subagent":
        facts.kind = "subagent"
        roles = (payload.get("agent_role"), spawn.get("agent_role"), payload.get("agent_nickname"))
        facts.agent_type = first_text(*roles, spawn.get("agent_nickname"), subagent, fields(subagent).get("other"))
        memory["path"] = first_text(payload.get("agent_path"), spawn.get("agent_path"))
    elif forked:
        facts.kind = "fork"
    facts.parent_id = first_text(payload.get("parent_thread_id"), spawn.get("parent_thread_id"), forked)


def _replay(other: str, facts: SessionFacts, memory: dict[str, Any]) -> None:
    """Note whose history is replayed; right behind the first meta, that is where this session comes from."""
    memory["replay"] = other
    if memory["n"] - memory.get("meta", 0) == 1 and facts.kind == "main":
        facts.kind, facts.parent_id = "fork", facts.parent_id or other


def _place(payload: Record, facts: SessionFacts) -> None:
    facts.cwd = facts.cwd or text(payload.get("cwd"))
    facts.branch = facts.branch or text(fields(payload.get("git")).get("branch"))


def turn_context(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """The settings of a turn: facts of the session, and no event."""
    note_context(payload, state)
    return skip("turn_context", state)


def note_context(payload: Record, state: LogState) -> None:
    """Take the directory, the branch and the model that a turn context, or an odd published item, names."""
    facts, context = state.sessions[""], fields(payload.get("turn_context")) or payload
    _place(context, facts)
    facts.model = text(context.get("model")) or facts.model


def thread_name(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A name given to this thread: a replayed parent's name stays the parent's."""
    facts, name = state.sessions[""], text(payload.get("thread_name"))
    if name and payload.get("thread_id") in (None, facts.id):
        facts.title, facts.title_rank = name, 3
    return [Draft(Notification("thread_name_updated", name or ""), at)]


def compacted(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A compaction: its message and how much it replaced. The history itself repeats what was logged before."""
    replaced = len(items(payload.get("replacement_history")))
    message = text(payload.get("message"))
    told = f"[{replaced} items of history replaced]"
    return [Draft(Notification("compacted", f"{message}\n{told}" if message else told), at)]


def error(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """An error that the user was shown."""
    message = first_text(payload.get("message"), fields(payload.get("error")).get("message"))
    return [Draft(Notification("error", message or compact_json(payload)), at)]


def task_complete(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """The end of a turn repeats the last message; only its error is new."""
    if isinstance(payload.get("error"), dict):
        return error(payload, state, at)
    return skip("task_complete", state)
