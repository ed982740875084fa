"""The session: facts from its metas, turn contexts and settings, and events such as reviews and rollbacks.

A replayed parent's directory, branch and name aren't the session's; its model and speed are those of the replayed
requests, and the session's own turns name theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agtrace_schema.events import Notification

from agtrace_indexer.events.clues import remote
from agtrace_indexer.events.drafts import Draft, LogState, Record, Rollback, Said, SessionFacts
from agtrace_indexer.events.json_values import compact_json, count, fields, first_text, items, milliseconds, text
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.codex.doubles import note_review
from agtrace_indexer.providers.codex.handlers import Handler, notifying
from agtrace_indexer.providers.codex.replay import is_replaying, note_second_meta, open_head
from agtrace_indexer.providers.notes import skip

_META_LEFT_OUT = {"base_instructions", "instructions", "dynamic_tools", "user_instructions"}
_FAST = ("priority", "fast")


def session_meta(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a meta: the first is the session's, one with another id is the replayed parent's (indexer/README.md)."""
    facts, memory, own = state.sessions[""], state.memory, identifier(payload.get("id"))
    if facts.id is None and "meta" not in memory:
        memory["meta"] = memory["n"]
        facts.id = own
        _origin(payload, facts, memory)
        open_head(payload, state, at)
    elif own is not None and own != facts.id and memory["n"] - memory.get("meta", 0) == 1:
        _come_from(own, facts, state)
    if own == facts.id:
        _place(payload, facts)
        facts.version = text(payload.get("cli_version")) or facts.version
    told = {key: value for key, value in payload.items() if key not in _META_LEFT_OUT}
    at = at or milliseconds(payload.get("timestamp"))
    clues = remote(fields(payload.get("git")).get("repository_url")) if own == facts.id else ()
    return [Draft(Notification("session_meta", compact_json(told)), at, clues=clues)]


def _origin(payload: Record, facts: SessionFacts, memory: dict[str, Any]) -> None:
    """Note who started this session, from `source`, `thread_source`, `parent_thread_id` and `forked_from_id`."""
    subagent = fields(payload.get("source")).get("subagent")
    spawn = fields(fields(subagent).get("thread_spawn"))
    forked = identifier(payload.get("forked_from_id"))
    if subagent or payload.get("thread_source") == "subagent":
        facts.kind = "subagent"
        roles = (payload.get("agent_role"), spawn.get("agent_role"), payload.get("agent_nickname"))
        facts.agent_type = first_text(*roles, spawn.get("agent_nickname"), subagent, fields(subagent).get("other"))
        memory["path"] = first_identifier(payload.get("agent_path"), spawn.get("agent_path"))
    elif forked:
        facts.kind = "fork"
    facts.parent_id = first_identifier(payload.get("parent_thread_id"), spawn.get("parent_thread_id"), forked)


def _come_from(other: str, facts: SessionFacts, state: LogState) -> None:
    """Make this session a fork of another, whose meta follows right after the first, unless it has a kind already."""
    if facts.kind == "main":
        facts.kind = "fork"
    facts.parent_id = facts.parent_id or other
    note_second_meta(state)


def _place(payload: Record, facts: SessionFacts) -> None:
    facts.cwd = facts.cwd or text(payload.get("cwd"))
    facts.branch = facts.branch or text(fields(payload.get("git")).get("branch"))


def turn_context(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the settings of a turn: facts about the session, but no event."""
    note_context(payload, state)
    _begin_turn(state)
    if "service_tier" in payload:
        _set_speed(payload["service_tier"], state)
    return skip("turn_context", state)


def note_context(payload: Record, state: LogState) -> None:
    """Take the directory, the branch and the model from a turn context or an odd published item."""
    facts, context = state.sessions[""], fields(payload.get("turn_context")) or payload
    if not is_replaying(state):
        _place(context, facts)
    facts.model = text(context.get("model")) or facts.model


def turn_started(kind: str) -> Handler:
    """Make a handler for the start of a turn: from now on, settings made since the last one are in effect."""

    def start(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        _begin_turn(state)
        return skip(kind, state)

    return start


def settings_applied(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read new settings of the thread: they take effect at the next turn, including the speed, which has a price."""
    settings = fields(payload.get("thread_settings"))
    if "service_tier" in settings:
        state.memory["tier"] = settings["service_tier"] if settings["service_tier"] in _FAST else None
    return skip("thread_settings_applied", state)


def _begin_turn(state: LogState) -> None:
    if "tier" in state.memory:
        _set_speed(state.memory.pop("tier"), state)


def _set_speed(tier: Any, state: LogState) -> None:
    state.memory["speed"] = "fast" if tier in _FAST else None


def thread_name(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a name given to this thread, unless it is a replayed parent's."""
    facts, name = state.sessions[""], text(payload.get("thread_name"))
    thread = payload.get("thread_id")
    if name and (identifier(thread) == facts.id or (thread is None and not is_replaying(state))):
        facts.title, facts.title_rank = name, 3
    return [Draft(Notification("thread_name_updated", name or ""), at)]


def rolled_back(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read a `thread_rolled_back`: the last turns are dropped, but their tokens were spent."""
    turns = count(payload.get("num_turns"))
    noted = notifying("thread_rolled_back")(payload, state, at)
    return [*([Rollback(turns)] if turns else []), *noted]


def review_mode(kind: str, *, entered: bool) -> Handler:
    """Make a handler for a review's begin or end; in between, the thread repeats the reviewer's prompt (`doubles`)."""
    notify = notifying(kind)

    def change(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
        note_review(state, entered=entered)
        return notify(payload, state, at)

    return change


def compacted(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a compaction: its message and how much it replaced. The history itself repeats what was logged before."""
    replaced = len(items(payload.get("replacement_history")))
    message = text(payload.get("message"))
    told = f"[{replaced} items of history replaced]"
    return [Draft(Notification("compacted", f"{message}\n{told}" if message else told), at)]


def turn_aborted(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read the end of a turn that was interrupted or replaced."""
    if state.memory.get("review"):
        note_review(state, entered=False)
    return notifying("turn_aborted", "reason", ends_turn=True)(payload, state, at)


def error(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read an error that was shown to the user."""
    message = first_text(payload.get("message"), fields(payload.get("error")).get("message"))
    return [Draft(Notification("error", message or compact_json(payload)), at)]


def task_complete(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the end of a turn, which repeats the last message; only its error is new."""
    if state.memory.get("review"):
        note_review(state, entered=False)
    if isinstance(payload.get("error"), dict):
        return error(payload, state, at)
    return skip("task_complete", state)
