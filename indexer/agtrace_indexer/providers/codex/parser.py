"""OpenAI Codex: rollout files of three eras (README.md).

A: one JSON object {session, items}. B: bare JSON lines, no envelope. C: lines {timestamp, type, payload}.
All three use the same tables: `record_types` names the reader of every type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import methodcaller
from typing import Any

from agtrace_schema.events import (
    Message,
    Notification,
    Payload,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from agtrace_schema.patterns import later

from agtrace_indexer.events.assembly import REQUESTS
from agtrace_indexer.events.clues import remote
from agtrace_indexer.events.drafts import Draft, LogState, Record, Rollback, Said, SessionFacts
from agtrace_indexer.events.json_values import (
    compact_json,
    count,
    digest,
    fields,
    first_text,
    items,
    milliseconds,
    text,
)
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.codex import tools
from agtrace_indexer.providers.notes import element_before, empty_state, skip
from agtrace_indexer.providers.setup import Setup

# -- identities ------------------------------------------------------------------------------------
# The identity of an item in a log and in its replays: the id of a call, or the text itself.


def identity_of(payload: Payload) -> str | None:
    """Return the identity of what was said or done; None for token usage and notifications, which aren't compared.

    The kind of a user's text is left out: a parent's requests are of another kind in a sub-agent.
    """
    match payload:
        case ToolCall(call_id=call_id):
            return f"call/{call_id or digest(compact_json([payload.name, payload.arguments]))}"
        case ToolResult(call_id=call_id, text=said):
            return f"result/{call_id or digest(said)}"
        case User(text=said) | Message(text=said) | Reasoning(text=said):
            return f"{type(payload).__name__.lower()}/{digest(said)}"
        case _:
            return None


# -- model texts -----------------------------------------------------------------------------------
# Messages and reasoning of the model, without doubles (`doubles`).


def saying(stream: str, key: str) -> tools.Handler:
    """Make a handler for what the assistant says, on the model's side or on the screen's."""

    def say(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        said = tools.content_text(payload.get(key))
        if said and tools.is_double(said, "assistant", stream, state):
            return skip("agent_message/double", state)
        return [Draft(Message(said), at, tools.open_step(state))] if said else skip("message/empty", state)

    return say


def _reasoning_text(parts: list[str], stream: str, state: LogState, at: int | None) -> list[Draft]:
    """Return drafts of the parts that the other stream hasn't said."""
    new = [part for part in parts if not tools.is_double(part, "reasoning", stream, state)]
    if not new:
        return skip("reasoning/double" if parts else "reasoning/empty", state)
    return [Draft(Reasoning("\n\n".join(new)), at, tools.open_step(state))]


def reasoning_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the summary and any readable content; an item without readable text still begins a response."""
    parts = tools.texts(payload.get("summary")) + tools.texts(payload.get("content")) + tools.texts(payload.get("text"))
    if not parts:
        tools.open_step(state)
        return skip("reasoning/encrypted" if payload.get("encrypted_content") else "reasoning/empty", state)
    return _reasoning_text(parts, "item", state, at)


def reasoning_event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read what the screen shows of it: one part of a summary or of the raw thoughts, or a `Reasoning` with all."""
    parts = [part for key in ("text", "summary_text", "raw_content") for part in tools.texts(payload.get(key))]
    return _reasoning_text(parts, "event", state, at)


# -- replay ----------------------------------------------------------------------------------------
# The replayed history at the beginning of a fork's or a sub-agent's log, and its end. Such a log may begin with its
# parent's records, written again. The log itself shows how far they go; the first of three signs that is available
# decides: 1. The number of a line (`ordinal`): `subagent_history_start_ordinal` of the first meta is the session's
# first own. 2. The time in a turn's id, a UUIDv7 (from 0.105): a turn that is older than the session is the parent's,
# and so is what follows it, up to a turn that isn't older. For other kinds of ids, `task_started` has `started_at`. 3.
# The time of a line, as long as neither of these is known, and only if the beginning names another log as its origin
# (`forked_from_id`, or a second meta with another id right after the first): lines written within a second of the
# first line, or claiming to be older, were written by the fork. A meta alone is no sign of a replay. The first record
# that is the session's own ends the replay for good.

_CLUSTER_MS = 1000
_UUID7 = later(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_TURN_STARTS = ("task_started", "turn_started")


def open_head(meta: Record, state: LogState, at: int | None) -> None:
    """Note when the session began, and that it may begin with a replay if another session started it."""
    facts, forked = state.sessions[""], identifier(meta.get("forked_from_id"))
    born = _uuid_time(meta.get("id")) or milliseconds(meta.get("timestamp")) or at
    state.memory["birth"] = {"born": born, "logged": at, "start": count(meta.get("subagent_history_start_ordinal"))}
    if facts.kind != "main" and not meta.get("history_base"):
        _suspect(state, told=forked not in (None, facts.id))


def _suspect(state: LogState, *, told: bool) -> None:
    """Note that the log may begin with a replay, or is told to."""
    state.memory["replay"] = {**state.memory["birth"], "older": False, "clustered": False, "seen": False}
    state.sessions[""].replays = told


def is_replaying(state: LogState) -> bool:
    """Whether the current record is the parent's: its directory or name isn't the session's."""
    head = state.memory.get("replay", {})
    return bool(head.get("older") or head.get("clustered"))


def is_replayed(record: Record, state: LogState, at: int | None) -> tuple[bool, bool]:
    """Whether the next record is part of the replay according to the log, and whether only its time says so.

    The session's first own record ends it: nothing in what follows doubles or continues what was replayed.
    """
    head, facts = state.memory.get("replay"), state.sessions[""]
    if head is None:
        return False, False
    own = _tells_own(record, head, facts.id)
    if own is not None:
        facts.replays = facts.replays and own and head["seen"]
    if own:
        for key in ("replay", "waiting", "searches"):
            state.memory.pop(key, None)
        tools.close_step(state)
        state.memory["foreign"] = state.memory.get("step")
        return False, False
    head["older"] = head["older"] or own is False
    in_time = at is not None and head["logged"] is not None and at < head["logged"] + _CLUSTER_MS
    head["clustered"] = facts.replays and in_time and record.get("type") != "session_meta"
    head["seen"] = head["seen"] or head["clustered"]
    return bool(head["older"]), bool(head["clustered"])


def _tells_own(record: Record, head: dict[str, Any], own: str | None) -> bool | None:
    """Whether the record shows that it is the session's own (by its id), or that it isn't; None if it shows neither."""
    number = count(record.get("ordinal"))
    if head["start"] is not None and number is not None:
        return number >= int(head["start"])
    payload, born = fields(record.get("payload")), head["born"]
    if record.get("type") == "token_usage_record" and identifier(payload.get("thread_id")) not in (None, own):
        return False
    carried = fields(payload.get("internal_chat_message_metadata_passthrough"))
    made = _uuid_time(first_text(payload.get("turn_id"), carried.get("turn_id")))
    if made is None and payload.get("type") in _TURN_STARTS and (seconds := count(payload.get("started_at"))):
        made = seconds * 1000 + 999
    return None if made is None or born is None else made >= born


def _uuid_time(value: Any) -> int | None:
    """Return the milliseconds since 1970 UTC in a UUIDv7; None for anything else."""
    found = _UUID7.fullmatch(value) if isinstance(value, str) else None
    return int(found[1] + found[2], 16) if found else None


# -- sessions --------------------------------------------------------------------------------------
# The session: facts from its metas, turn contexts and settings, and events such as reviews and rollbacks. A replayed
# parent's directory, branch and name aren't the session's; its model and speed are those of the replayed requests, and
# the session's own turns name theirs.

_TURNS_KEPT = 250
_META_LEFT_OUT = {"base_instructions", "instructions", "dynamic_tools", "user_instructions"}


def session_meta(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read a meta: the first is the session's, one with another id is the replayed parent's (README.md).

    One with a `history_base` begins a rollout that goes on from what the thread had up to an ordinal: what followed
    was reverted.
    """
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
    base = fields(payload.get("history_base"))
    memory["goes_on"] = bool(base)
    kept = count(base.get("end_ordinal_exclusive")) if own == facts.id else None
    reverted = [ordinal for ordinal in memory.get("turns", ()) if kept is not None and ordinal >= kept]
    memory["turns"] = [ordinal for ordinal in memory.get("turns", ()) if ordinal not in reverted]
    told = {key: value for key, value in payload.items() if key not in _META_LEFT_OUT}
    at = at or milliseconds(payload.get("timestamp"))
    clues = remote(fields(payload.get("git")).get("repository_url")) if own == facts.id else ()
    noted = Draft(Notification("session_meta", compact_json(told)), at, clues=clues)
    return [*([Rollback(len(reverted))] if reverted else []), noted]


def _origin(payload: Record, facts: SessionFacts, memory: dict[str, Any]) -> None:
    """Note who started this session, from `source`, `thread_source`, `parent_thread_id` and `forked_from_id`."""
    source = fields(payload.get("source"))
    subagent = source.get("subagent") or source.get("internal")
    spawn = fields(fields(subagent).get("thread_spawn"))
    forked = identifier(payload.get("forked_from_id"))
    if subagent or payload.get("thread_source") in ("subagent", "memory_consolidation"):
        facts.kind = "subagent"
        roles = (payload.get("agent_role"), spawn.get("agent_role"), payload.get("agent_nickname"))
        facts.agent_type = first_text(*roles, spawn.get("agent_nickname"), subagent, fields(subagent).get("other"))
        memory["path"] = first_identifier(payload.get("agent_path"), spawn.get("agent_path"))
    elif forked:
        facts.kind = "fork"
    root = identifier(payload.get("session_id")) if facts.kind == "subagent" else None
    named = (payload.get("parent_thread_id"), spawn.get("parent_thread_id"), forked, root if root != facts.id else None)
    facts.parent_id = first_identifier(*named)


def _come_from(other: str, facts: SessionFacts, state: LogState) -> None:
    """Make this session a fork of another, whose meta follows right after the first, unless it has a kind already."""
    if facts.kind == "main":
        facts.kind = "fork"
    facts.parent_id = facts.parent_id or other
    _suspect(state, told=True)


def _place(payload: Record, facts: SessionFacts) -> None:
    facts.cwd = facts.cwd or text(payload.get("cwd"))
    facts.branch = facts.branch or text(fields(payload.get("git")).get("branch"))


def turn_context(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the settings of a turn: facts about the session, but no event."""
    note_context(payload, state)
    _begin_turn(state)
    if "service_tier" in payload:
        tools.set_speed(payload["service_tier"], state)
    return skip("turn_context", state)


def note_context(payload: Record, state: LogState) -> None:
    """Take the directory, the branch and the model from a turn context or an odd published item."""
    facts, context = state.sessions[""], fields(payload.get("turn_context")) or payload
    if not is_replaying(state):
        _place(context, facts)
    facts.model = text(context.get("model")) or facts.model


def turn_started(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the start of a turn: from now on, settings made since the last one are in effect."""
    _begin_turn(state)
    return skip("task_started", state)


def settings_applied(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read new settings of the thread: they take effect at the next turn, including the speed, which has a price."""
    settings = fields(payload.get("thread_settings"))
    if "service_tier" in settings:
        state.memory["tier"] = settings["service_tier"]
    return skip("thread_settings_applied", state)


def _begin_turn(state: LogState) -> None:
    if "tier" in state.memory:
        tools.set_speed(state.memory.pop("tier"), state)


def thread_name(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a name given to this thread, unless it is a replayed parent's."""
    facts, name = state.sessions[""], text(payload.get("thread_name"))
    thread = payload.get("thread_id")
    if name and (identifier(thread) == facts.id or (thread is None and not is_replaying(state))):
        facts.title, facts.title_rank = name, 3
    return [Draft(Notification("thread_name_updated", name or ""), at)]


def rolled_back(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read a `thread_rolled_back`: the last turns are dropped, but their tokens were spent."""
    if turns := count(payload.get("num_turns")):
        state.memory["turns"] = state.memory.get("turns", [])[:-turns]
    noted = tools.notifying("thread_rolled_back")(payload, state, at)
    return [*([Rollback(turns)] if turns else []), *noted]


def review_mode(kind: str, *, entered: bool) -> tools.Handler:
    """Make a handler for a review's begin or end; in between, the thread repeats the reviewer's prompt (`doubles`)."""
    notify = tools.notifying(kind)

    def change(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
        tools.note_review(state, entered=entered)
        return notify(payload, state, at)

    return change


def compacted(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a compaction: its message and how much it replaced. The history itself repeats what was logged before."""
    counted = [] if is_replaying(state) else tools.compaction_usage(payload, state, at)
    replaced = len(items(payload.get("replacement_history")))
    message = text(payload.get("message"))
    told = f"[{replaced} items of history replaced]"
    return [*counted, Draft(Notification("compacted", f"{message}\n{told}" if message else told), at)]


def turn_aborted(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read the end of a turn that was interrupted or replaced."""
    if state.memory.get("review"):
        tools.note_review(state, entered=False)
    return tools.notifying("turn_aborted", "reason", ends_turn=True)(payload, state, at)


def error(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read an error that was shown to the user."""
    message = first_text(payload.get("message"), fields(payload.get("error")).get("message"))
    return [Draft(Notification("error", message or compact_json(payload)), at)]


def task_complete(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the end of a turn, which repeats the last message; only its error is new."""
    if state.memory.get("review"):
        tools.note_review(state, entered=False)
    if isinstance(payload.get("error"), dict):
        return error(payload, state, at)
    return skip("task_complete", state)


# -- user texts ------------------------------------------------------------------------------------
# Texts in the user's role: who speaks in them, without doubles (`doubles`).

_KINDS = (
    (later(r"<turn_aborted>"), UserKind.INTERRUPTION),
    (later(r"<subagent_notification>"), UserKind.NOTIFICATION),
    (later(r"<user_(?:shell_command|action)>"), UserKind.COMMAND),
    (later(r"Another language model started to solve this problem"), UserKind.COMPACTION_SUMMARY),
    (
        later(
            r"# AGENTS\.md instructions|<(?:environment_context|INSTRUCTIONS|recommended_plugins|skill|personality_spec"
            r"|(?:user|skills|apps|plugins)_instructions|permissions instructions|model_switch|collaboration_mode)>"
        ),
        UserKind.INJECTED,
    ),
)
"""The beginnings of texts that Codex itself writes in the user's role, with their kinds (README.md)."""

_IMAGE_TAG = later(r"\s*</?image\b[^>]*>\s*")
_DELEGATION = later(
    r"\s*<codex_delegation>(?:\s*<source_thread_id>\s*([^<\s]+)\s*</source_thread_id>)?\s*<input>\s*(.*?)\s*</input>",
    re.DOTALL,
)
_CWD = later(r"<cwd>([^<]+)</cwd>|Current working directory: ([^\n]+)")


def _kind_of(said: str) -> UserKind:
    start = said.lstrip()
    known = next((kind for begins, kind in _KINDS if begins.match(start)), None)
    found = element_before(said) if known is None and start[:1] == "<" else None
    return known or (found[0] if found and not found[2] else UserKind.HUMAN)


def _user_text(shown: str, typed: str, stream: str, state: LogState, at: int | None) -> list[Draft]:
    """Return a text in the user's role unless the other stream had it; `typed` is the part that both streams have."""
    if not shown:
        return skip("message/empty", state)
    kind = _kind_of(typed)
    if tools.is_double(typed, "user", stream, state):
        return skip("user_message/double", state)
    if match := _DELEGATION.match(typed):  # another thread speaks
        facts, shown, source = state.sessions[""], match[2], identifier(match[1])
        if "asked" not in state.memory and not is_replaying(state):  # the thread was made for it
            facts.kind, facts.parent_id = "subagent", facts.parent_id or (source if source != facts.id else None)
        kind = UserKind.TASK if facts.kind == "subagent" else UserKind.NOTIFICATION
    if kind is UserKind.INJECTED:
        facts, found = state.sessions[""], _CWD.search(typed) if "<environment_context>" in typed else None
        if found and facts.cwd is None and not is_replaying(state):  # bare logs name it nowhere else
            facts.cwd = (found[1] or found[2]).strip()
    elif kind is UserKind.HUMAN and (
        state.memory.get("review") or (state.sessions[""].kind == "subagent" and not is_replaying(state))
    ):
        kind = UserKind.TASK
    tools.close_step(state)
    return [Draft(User(shown, kind), at)]


def user_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a user message, separating injected parts from the user's own."""
    shown: dict[UserKind, list[str]] = {}
    typed: dict[UserKind, list[str]] = {}
    content = payload.get("content")
    for part in [content] if isinstance(content, str) else items(content):
        words = part if isinstance(part, str) else fields(part).get("text")
        if not isinstance(words, str):
            _append(shown, UserKind.HUMAN, tools.image(fields(part)))
            continue
        _append(shown, _kind_of(words), words)
        _append(typed, _kind_of(words), None if _IMAGE_TAG.fullmatch(words) else words)
    found: list[Draft] = []
    for kind, parts in shown.items():
        found += _user_text("\n".join(parts), "\n".join(typed.get(kind, [])), "item", state, at)
    return found if shown else skip("message/empty", state)


def _append(groups: dict[UserKind, list[str]], kind: UserKind, part: str | None) -> None:
    if part is not None:
        groups.setdefault(kind, []).append(part)


def user_event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a `user_message`: the typed text, and its images."""
    typed = text(payload.get("message")) or ""
    pictures = [
        tools.image_of(url) for url in items(payload.get("images")) + items(payload.get("local_images")) if text(url)
    ]
    return _user_text("\n".join([typed, *pictures] if typed else pictures), typed, "event", state, at)


def user_turn_item(item: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a `UserMessage`, which a paginated thread has instead of `user_message`."""
    parts = [fields(part) for part in items(item.get("content"))]
    typed = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    addresses = [part.get("image_url") or part.get("url") or part.get("path") for part in parts if "text" not in part]
    return user_event({"message": typed, "images": addresses}, state, at)


def developer_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a message in the role of the developer or the system, in which Codex itself speaks."""
    said = tools.content_text(payload.get("content"))
    return [Draft(User(said, UserKind.INJECTED), at)] if said else skip("message/empty", state)


def agent_mail(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a message between agents (from 0.145): a parent's message to a sub-agent is its task."""
    said = tools.content_text(payload.get("content"))
    if not said:
        return skip("agent_message/encrypted", state)
    path = state.memory.get("path")
    if path and identifier(payload.get("author")) == path:
        return [Draft(Notification("agent_message", said), at)]
    elsewhere = path and identifier(payload.get("recipient")) not in (None, path)
    addressed = state.sessions[""].kind == "subagent" and not elsewhere
    tools.close_step(state)
    return [Draft(User(said, UserKind.TASK if addressed else UserKind.NOTIFICATION), at)]


# -- record types ----------------------------------------------------------------------------------
# Every type of record that Codex writes, with its reader: lines, response items, events, and TurnItems.


def _read_as(
    handlers: dict[str, tools.Handler], where: str, kind: Any, payload: Record, state: LogState, at: int | None
) -> Sequence[Said]:
    """Read a payload by its type; one of a type that isn't known is kept under that name."""
    handler = handlers.get(kind) if isinstance(kind, str) else None
    return handler(payload, state, at) if handler else tools.unknown_record(f"{where}{kind}", payload, state, at)


def response_item(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read an item of the model's side. In odd published logs each has cwd and model."""
    if "cwd" in payload or "model" in payload:
        note_context(payload, state)
    return _read_as(ITEMS, "response_item/", item_kind(payload) or "untyped", payload, state, at)


def item_kind(payload: Record) -> str | None:
    """Return the item's type, or the type that its fields show if it is missing."""
    if "type" in payload:
        return text(payload["type"])
    if "role" in payload and "content" in payload:
        return "message"
    if "call_id" not in payload:
        return None
    return "function_call_output" if "output" in payload else "function_call" if "name" in payload else None


def message(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read a message, by its role."""
    return _read_as(_ROLES, "response_item/message/", text(payload.get("role")), payload, state, at)


def event(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read an event of the screen's side, by its type."""
    return _read_as(EVENTS, "event_msg/", text(payload.get("type")) or "untyped", payload, state, at)


def item_completed(payload: Record, state: LogState, at: int | None) -> Sequence[Said]:
    """Read a TurnItem of a paginated thread (from 0.144), which replaces the older events."""
    item = fields(payload.get("item"))
    return _read_as(TURN_ITEMS, "event_msg/item_completed/", text(item.get("type")) or "untyped", item, state, at)


_ROLES: dict[str, tools.Handler] = {
    "user": user_item,
    "assistant": saying("item", "content"),
    "developer": developer_item,
    "system": developer_item,
}

ITEMS: dict[str, tools.Handler] = {
    "message": message,
    "reasoning": reasoning_item,
    "function_call": tools.calling(tools.tool_name, tools.arguments_of),
    "custom_tool_call": tools.calling(tools.tool_name, methodcaller("get", "input")),
    "local_shell_call": tools.calling(lambda _: "local_shell", methodcaller("get", "action")),
    "web_search_call": tools.web_search_call,
    "tool_search_call": tools.calling(lambda _: "tool_search", tools.arguments_of),
    "image_generation_call": tools.image_call,
    **{f"{of}_call_output": tools.output_item for of in ("function", "custom_tool", "local_shell", "mcp_tool")},
    "tool_search_output": tools.tool_search_output,
    "agent_message": agent_mail,
    "token_count": tools.bare_token_count,
    "tool_call": tools.calling(tools.tool_name, tools.arguments_of),
    "tool_result": tools.legacy_result,
    **{kind: tools.skipping(kind) for kind in ("ghost_snapshot", "additional_tools", "compaction_trigger")},
    **dict.fromkeys(("compaction", "compaction_summary", "context_compaction"), tools.skipping("compaction/encrypted")),
}
"""Response items by type, with the names in published logs and fixtures."""

_ADDING_NOTHING = """
    context_compacted item_started web_search_begin image_generation_begin exec_command_output_delta
    agent_reasoning_section_break turn_diff plan_update undo_started mcp_startup_update mcp_startup_complete
    shutdown_complete collab_agent_spawn_begin collab_agent_interaction_begin collab_agent_interaction_end
    collab_waiting_begin collab_waiting_end collab_close_begin collab_close_end collab_resume_begin collab_resume_end
    exec_command_begin patch_apply_begin mcp_tool_call_begin dynamic_tool_call_request hook_started hook_completed
    account/rateLimits/updated codex/event/raw_item
""".split()  # noqa: SIM905

EVENTS: dict[str, tools.Handler] = {
    "user_message": user_event,
    "agent_message": saying("event", "message"),
    "agent_reasoning": reasoning_event,
    "agent_reasoning_raw_content": reasoning_event,
    "item_completed": item_completed,
    "token_count": tools.token_count,
    "exec_command_end": tools.exec_end,
    "patch_apply_end": tools.patch_end,
    "mcp_tool_call_end": tools.mcp_end,
    "dynamic_tool_call_response": tools.dynamic_end,
    "image_generation_end": tools.image_end,
    "view_image_tool_call": tools.image_view,
    "web_search_end": tools.web_search_end,
    "thread_name_updated": thread_name,
    "task_complete": task_complete,
    "turn_complete": task_complete,
    "error": error,
    "turn_aborted": turn_aborted,
    "thread_rolled_back": rolled_back,
    "entered_review_mode": review_mode("entered_review_mode", entered=True),
    "exited_review_mode": review_mode("exited_review_mode", entered=False),
    "sub_agent_activity": tools.starting(tools.notifying("sub_agent_activity")),
    "collab_agent_spawn_end": tools.starting(tools.skipping("collab_agent_spawn_end")),
    "thread_settings_applied": settings_applied,
    "task_started": turn_started,
    "turn_started": turn_started,
    **{kind: tools.notifying(kind) for kind in ("guardian_assessment", "thread_goal_updated", "turn.completed")},
    **{kind: tools.notifying(kind, "message") for kind in ("stream_error", "warning", "background_event")},
    **{kind: tools.notifying(kind, "message") for kind in ("undo_completed", "deprecation_notice", "model_reroute")},
    **{kind: tools.skipping(kind) for kind in _ADDING_NOTHING},
}
"""Events by type: doubles of items, events for the screen only, and events that add nothing to the items."""

TURN_ITEMS: dict[str, tools.Handler] = {
    "UserMessage": user_turn_item,
    "AgentMessage": saying("event", "content"),
    "Reasoning": reasoning_event,
    "Plan": tools.notifying("plan", "text"),
    "CommandExecution": tools.exec_end,
    "FileChange": tools.patch_end,
    "McpToolCall": tools.mcp_end,
    "DynamicToolCall": tools.dynamic_end,
    "ImageGeneration": tools.image_end,
    "ImageView": tools.image_view,
    "WebSearch": tools.web_search_end,
    "Extension": tools.web_search_end,
    "CollabAgentToolCall": tools.starting(tools.skipping("collab_agent_tool_call")),
    "SubAgentActivity": tools.starting(tools.notifying("sub_agent_activity")),
    "ContextCompaction": tools.skipping("context_compacted"),
    "HookPrompt": tools.skipping("hook_prompt"),
    "Sleep": tools.notifying("sleep"),
    "EnteredReviewMode": review_mode("entered_review_mode", entered=True),
    "ExitedReviewMode": review_mode("exited_review_mode", entered=False),
}
"""The items of `item_completed` by type."""

LINES: dict[str, tools.Handler] = {
    "session_meta": session_meta,
    "response_item": response_item,
    "event_msg": event,
    "turn_context": turn_context,
    "compacted": compacted,
    **{kind: tools.skipping(kind) for kind in ("realtime_item", "retained_context", "security_risk_score")},
    **{kind: tools.skipping(kind) for kind in ("world_state", "inter_agent_communication_metadata")},
    "inter_agent_communication": tools.notifying("inter_agent_communication"),
    "token_usage_record": tools.token_usage_record,
}
"""Lines of an enveloped log by type."""


# -- parser ----------------------------------------------------------------------------------------

begin = empty_state

_LINE_TYPES = {"session_meta", "response_item", "event_msg", "turn_context"}
_META_KEYS = {"id", "timestamp", "instructions", "git"}


def recognizes(record: Record) -> bool:
    """Whether only Codex writes such a record: an enveloped line, a bare log's first line or its state line.

    Bare response items don't count, as they are OpenAI's general format.
    """
    kind, payload = text(record.get("type")), record.get("payload")
    if isinstance(payload, dict):
        return kind in _LINE_TYPES and bool(payload)
    if kind is None and record.get("record_type") == "state":
        return True
    return _is_bare_meta(record) and "instructions" in record and "timestamp" in record


def unroll(document: Any) -> Iterable[Record] | None:
    """Return the session line and the items of a TypeScript CLI rollout `{session, items}` (2025-04 to 06)."""
    if not isinstance(document, dict):
        return None
    session, entries = document.get("session"), document.get("items")
    if not isinstance(session, dict) or not isinstance(entries, list) or not text(session.get("id")):
        return None
    return [session, *(entry for entry in entries if isinstance(entry, dict))]


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next record, enveloped or bare; see `Parser.drafts`."""
    state.memory["n"] = state.memory.get("n", 0) + 1
    at, payload = milliseconds(record.get("timestamp")), fields(record.get("payload"))
    if at is None and record.get("type") != "session_meta":  # whose own is that of its session
        at = milliseconds(payload.get("timestamp"))
    replayed, clustered = is_replayed(record, state, at)
    result = _read(record, state, at)
    for said in result:
        if isinstance(said, Draft):
            said.identity = identity_of(said.payload)
            if isinstance(said.payload, TokenUsage) and not (replayed or clustered):
                said.identity = _usage_identity(payload, state)
            said.replayed, said.clustered = replayed, clustered
            if isinstance(said.payload, User) and said.payload.kind in REQUESTS:
                state.memory["asked"] = True
            if isinstance(said.payload, User) and said.payload.kind in REQUESTS and "ordinal" in record:
                state.memory["turns"] = [*state.memory.get("turns", ())[-_TURNS_KEPT:], count(record["ordinal"]) or 0]
    return result


def _usage_identity(payload: Record, state: LogState) -> str | None:
    """Return the identity of a response's usage, or of a review's token count, which other logs may repeat."""
    facts, (thread, response) = state.sessions[""], (identifier(payload.get(of)) for of in ("thread_id", "response_id"))
    if thread and response:
        return f"usage/{thread}/{response}"
    if not state.memory.get("review") and (facts.kind, facts.agent_type) != ("subagent", "review"):
        return None
    return f"review/{facts.cwd}/{digest(compact_json(payload.get('info') or payload.get('response_id')))}"


def _read(record: Record, state: LogState, at: int | None) -> Sequence[Said]:
    kind, payload = text(record.get("type")), record.get("payload")
    if isinstance(payload, dict):
        known = kind in LINES
        return _read_as(LINES, "", kind or "untyped", payload if known else record, state, at)
    if kind is None and record.get("record_type") == "state":
        return skip("state", state)
    if _is_bare_meta(record):
        return session_meta(record, state, at)
    if item_kind(record) in ITEMS:
        return response_item(record, state, at)
    return tools.unknown_record(kind or "untyped", record, state, at)


def _is_bare_meta(record: Record) -> bool:
    """Whether this is the first line of a bare log: {id, timestamp, instructions, git} and no type."""
    return text(record.get("id")) is not None and {"id"} < record.keys() <= _META_KEYS


SETUP = Setup(
    title="Codex CLI",
    executable="codex",
    home_variable="CODEX_HOME",
    config_file=".codex/config.toml",
    moved_config_file="config.toml",
    scope=(),
    toml=True,
)
"""The Codex CLI as a client of our server."""
