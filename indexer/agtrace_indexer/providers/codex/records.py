"""OpenAI Codex: rollout files of three eras (formats.md 2.2).

A: one JSON object {session, items}. B: bare JSON lines, no envelope. C: lines {timestamp, type, payload}.
All three end in the same tables here: a table of line types, of response items, of events and of
`item_completed` TurnItems, each naming the function that makes drafts of it.

Doubled streams
---------------
Codex writes what is said twice, as a `response_item` (the model's side) and as an `event_msg` (the
screen's side; in paginated threads as `item_completed`), one to three lines apart in either order.
A log is read while it grows, so nothing may depend on what comes later. The rule: **the first of
the two is the event, and a text of the other stream that equals a recent, not yet paired one is its
double and left out.** Each text pairs once, so that a sentence said twice in one stream is two
events; a text waits for its double for `_REACH` lines and at most `_WAITING` texts wait. Texts are
compared without white space and, behind an IDE's preface, only the request itself. A reasoning item
is compared by its summary parts, each of which has an event of its own.

Tool runs follow a rule of the same kind: as soon as a response item has carried a call, events
about tool runs add no events; `*_end` events that come before the output of their call give it
their exit code, status and duration. Before that (and so in logs that have only events) they are
calls and results themselves, and a response item that then repeats such a call is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import PurePath
from typing import Any, TypeAlias

from agtrace_schema.events import (
    Json,
    Message,
    Notification,
    Outcome,
    OutcomeSource,
    Payload,
    Provider,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)

from agtrace_indexer.drafts import Draft, LogState, Record, SessionFacts
from agtrace_indexer.providers.codex_output import (
    Reading,
    content_text,
    duration,
    image,
    image_of,
    mcp_result,
    of_status,
    of_success,
    read_output,
    whole,
)
from agtrace_indexer.values import compact_json, count, fields, image_placeholder, items, milliseconds, text

PROVIDER = Provider.CODEX
PARSER_VERSION = 1

Handler: TypeAlias = Callable[[Record, LogState, "int | None"], "list[Draft]"]
"""Makes drafts of a payload; the number is the time of its line."""

_REACH = 60  # lines that a text waits for its double; the real logs have it within three
_WAITING = 32
_OPEN_CALLS = 256
_ENDS = 64
_LINE_TYPES = {"session_meta", "response_item", "event_msg", "turn_context"}
_META_KEYS = {"id", "timestamp", "instructions", "git"}


# --- the four functions of a LogFormat ---


def recognizes(record: Record) -> bool:
    """Whether only Codex writes such a record: an enveloped line, a bare log's first line or its state line.

    Bare response items are OpenAI's general format and therefore don't count.
    """
    kind, payload = text(record.get("type")), record.get("payload")
    if isinstance(payload, dict):
        return kind in _LINE_TYPES and bool(payload)
    if kind is None and record.get("record_type") == "state":
        return True
    return _is_bare_meta(record) and "instructions" in record and "timestamp" in record


def unroll(document: Any) -> Iterable[Record] | None:
    """The session line and the items of a TypeScript CLI rollout `{session, items}` (2025-04 to 06)."""
    if not isinstance(document, dict):
        return None
    session, entries = document.get("session"), document.get("items")
    if not isinstance(session, dict) or not isinstance(entries, list) or not text(session.get("id")):
        return None
    return [session, *(entry for entry in entries if isinstance(entry, dict))]


def begin(path: PurePath) -> LogState:
    """Nothing: the first line of a rollout says more than its name."""
    return LogState()


def drafts(record: Record, state: LogState) -> list[Draft]:
    """Make the drafts of the next record: enveloped, bare, or the session line of either."""
    state.memory["n"] = state.memory.get("n", 0) + 1
    kind, payload = text(record.get("type")), record.get("payload")
    if isinstance(payload, dict):
        at = milliseconds(record.get("timestamp"))
        if at is None and "timestamp" in payload and kind != "session_meta":
            at = milliseconds(payload["timestamp"])
        handler = _LINES.get(kind) if kind else None
        return handler(payload, state, at) if handler else _unknown(kind or "untyped", record, state, at)
    at = milliseconds(record.get("timestamp"))
    if kind is None and record.get("record_type") == "state":
        return _skip("state", state)
    if _is_bare_meta(record):
        return _session_meta(record, state, at)
    if _item_kind(record) in _ITEMS:
        return _response_item(record, state, at)
    return _unknown(kind or "untyped", record, state, at)


def _is_bare_meta(record: Record) -> bool:
    """The first line of a bare log: {id, timestamp, instructions, git} and no type."""
    return text(record.get("id")) is not None and {"id"} < record.keys() <= _META_KEYS


# --- small words ---


def _said(payload: Payload, at: int | None, step: str | None = None) -> list[Draft]:
    return [Draft(payload, at, step)]


def _skip(kind: str, state: LogState) -> list[Draft]:
    state.skipped.append(kind)
    return []


def _skipping(kind: str) -> Handler:
    return lambda payload, state, at: _skip(kind, state)


def _unknown(kind: str, record: Record, state: LogState, at: int | None) -> list[Draft]:
    state.unknown.append(kind)
    return _said(Notification(f"unknown/{kind}", compact_json(_readable(record))), at)


def _readable(value: Any) -> Any:
    """A value without what nobody can read: encrypted contents."""
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items() if key != "encrypted_content"}
    return [_readable(inner) for inner in value] if isinstance(value, list) else value


def _notifying(kind: str, *keys: str) -> Handler:
    """A notification of the first of these fields that is a text, else of the whole payload."""

    def notify(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        found = next((payload[key] for key in keys if text(payload.get(key))), None)
        rest = {key: value for key, value in payload.items() if key != "type"}
        return _said(Notification(kind, found or (compact_json(_readable(rest)) if rest else "")), at)

    return notify


def _facts(state: LogState) -> SessionFacts:
    return state.sessions[""]


def _keep(table: dict[str, Any], key: str, value: Any, limit: int) -> None:
    """Note a value, and forget the oldest ones above the limit."""
    table[key] = value
    while len(table) > limit:
        del table[next(iter(table))]


# --- steps: one response of the model (Codex logs no id of it) ---


def _step(state: LogState) -> str:
    """The step of the response at hand: a run of items up to a tool output, a token count or a user's text."""
    memory = state.memory
    if not memory.get("open"):
        memory["step"] = memory.get("step", 0) + 1
        memory["open"] = True
    return f"s{memory['step']}"


def _last_step(state: LogState) -> str | None:
    step = state.memory.get("step")
    return f"s{step}" if step else None


def _close_step(state: LogState) -> None:
    state.memory["open"] = False


# --- doubled texts ---


_REQUEST = "## My request for Codex:"
_IDE_PREFACES = ("# Context from my IDE setup:", "# Files mentioned by the user")


def _fingerprint(said: str) -> str:
    """What of a text both streams agree on: no white space, and of an IDE's text the request only."""
    if said.lstrip().startswith(_IDE_PREFACES):
        said = said.rpartition(_REQUEST)[2]
    return blake2b("".join(said.split()).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _is_double(said: str, role: str, stream: str, state: LogState) -> bool:
    """Whether the other stream has said this lately (it is then paired); if not, the text now waits for its double."""
    waiting: list[list[Any]] = state.memory.setdefault("waiting", [])
    mark, line = _fingerprint(said), state.memory["n"]
    for place, (other_role, other_stream, other_mark, other_line) in enumerate(waiting):
        if other_mark == mark and other_role == role and other_stream != stream and line - other_line <= _REACH:
            del waiting[place]
            return True
    waiting.append([role, stream, mark, line])
    del waiting[:-_WAITING]
    return False


# --- the session ---


_META_LEFT_OUT = {"base_instructions", "instructions", "dynamic_tools", "user_instructions"}


def _session_meta(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """The first meta is the session's; one with another id belongs to the replayed parent (formats.md 2.2)."""
    facts, memory, own = _facts(state), state.memory, text(payload.get("id"))
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
    return _said(Notification("session_meta", compact_json(told)), at if at else milliseconds(payload.get("timestamp")))


def _origin(payload: Record, facts: SessionFacts, memory: dict[str, Any]) -> None:
    """Who started this session: `source`, `thread_source`, `parent_thread_id` and `forked_from_id`."""
    subagent = fields(payload.get("source")).get("subagent")
    spawn = fields(fields(subagent).get("thread_spawn"))
    forked = text(payload.get("forked_from_id"))
    if subagent or payload.get("thread_source") == "subagent":
        facts.kind = "subagent"
        roles = (payload.get("agent_role"), spawn.get("agent_role"), payload.get("agent_nickname"))
        facts.agent_type = _first(*roles, spawn.get("agent_nickname"), subagent, fields(subagent).get("other"))
        memory["path"] = _first(payload.get("agent_path"), spawn.get("agent_path"))
    elif forked:
        facts.kind = "fork"
    facts.parent_id = _first(payload.get("parent_thread_id"), spawn.get("parent_thread_id"), forked)


def _first(*values: Any) -> str | None:
    return next((value for value in values if text(value)), None)


def _replay(other: str, facts: SessionFacts, memory: dict[str, Any]) -> None:
    """Note whose history is replayed; right behind the first meta, that is where this session comes from."""
    memory["replay"] = other
    if memory["n"] - memory.get("meta", 0) == 1 and facts.kind == "main":
        facts.kind, facts.parent_id = "fork", facts.parent_id or other


def _place(payload: Record, facts: SessionFacts) -> None:
    facts.cwd = facts.cwd or text(payload.get("cwd"))
    facts.branch = facts.branch or text(fields(payload.get("git")).get("branch"))


def _turn_context(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    inner = payload.get("turn_context")
    _place(fields(inner) or payload, _facts(state))
    _facts(state).model = text((fields(inner) or payload).get("model")) or _facts(state).model
    return _skip("turn_context", state)


def _thread_name(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A name given to this thread: a replayed parent's name stays the parent's."""
    facts, name = _facts(state), text(payload.get("thread_name"))
    if name and payload.get("thread_id") in (None, facts.id):
        facts.title, facts.title_rank = name, 3
    return _said(Notification("thread_name_updated", name or ""), at)


def _compacted(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A compaction: its message and how much it replaced. The history itself repeats what was logged before."""
    replaced = len(items(payload.get("replacement_history")))
    message = text(payload.get("message"))
    told = f"[{replaced} items of history replaced]"
    return _said(Notification("compacted", f"{message}\n{told}" if message else told), at)


def _error(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    message = _first(payload.get("message"), fields(payload.get("error")).get("message"))
    return _said(Notification("error", message or compact_json(payload)), at)


def _task_complete(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """The end of a turn repeats the last message; only its error is new."""
    if isinstance(payload.get("error"), dict):
        return _error(payload, state, at)
    return _skip("task_complete", state)


# --- texts in the user's role ---


_KINDS: list[tuple[str, UserKind]] = [
    ("<turn_aborted>", UserKind.INTERRUPTION),
    ("<subagent_notification>", UserKind.NOTIFICATION),
    ("<user_shell_command>", UserKind.COMMAND),
    ("<user_action>", UserKind.COMMAND),
    ("Another language model started to solve this problem", UserKind.COMPACTION_SUMMARY),
    *(
        (prefix, UserKind.INJECTED)
        for prefix in (
            "<environment_context>",
            "<user_instructions>",
            "# AGENTS.md instructions",
            "<INSTRUCTIONS>",
            "<recommended_plugins>",
            "<skill>",
            "<skills_instructions>",
            "<apps_instructions>",
            "<plugins_instructions>",
            "<permissions instructions>",
            "<collaboration_mode>",
            "<model_switch>",
            "<personality_spec>",
        )
    ),
]
"""How the texts begin that Codex itself puts in the user's role (formats.md 2.2, "Messages")."""

_IMAGE_TAG = re.compile(r"\s*</?image\b[^>]*>\s*")
_CWD = re.compile(r"<cwd>([^<]+)</cwd>|Current working directory: ([^\n]+)")


def _kind_of(said: str) -> UserKind:
    start = said.lstrip()
    return next((kind for prefix, kind in _KINDS if start.startswith(prefix)), UserKind.HUMAN)


def _user_text(shown: str, typed: str, stream: str, state: LogState, at: int | None) -> list[Draft]:
    """A text in the user's role, unless the other stream has it; `typed` is what both streams have of it."""
    if not shown:
        return _skip("message/empty", state)
    kind = _kind_of(typed)
    if _is_double(typed, "user", stream, state):
        return _skip("user_message/double", state)
    if kind is UserKind.INJECTED:
        _learn_cwd(typed, state)
    elif kind is UserKind.HUMAN and _facts(state).kind == "subagent":
        kind = UserKind.TASK
    _close_step(state)
    return _said(User(shown, kind), at)


def _learn_cwd(said: str, state: LogState) -> None:
    """Bare logs name their directory nowhere else (formats.md 2.2, era B)."""
    if _facts(state).cwd is None and "<environment_context>" in said and (found := _CWD.search(said)):
        _facts(state).cwd = (found[1] or found[2]).strip()


def _user_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A user message: its injected parts and its own parts are told apart."""
    shown: dict[UserKind, list[str]] = {}
    typed: dict[UserKind, list[str]] = {}
    content = payload.get("content")
    for part in [content] if isinstance(content, str) else items(content):
        words = part if isinstance(part, str) else fields(part).get("text")
        if not isinstance(words, str):
            _append(shown, UserKind.HUMAN, image(fields(part)))
            continue
        _append(shown, _kind_of(words), words)
        _append(typed, _kind_of(words), None if _IMAGE_TAG.fullmatch(words) else words)
    found: list[Draft] = []
    for kind, texts in shown.items():
        found += _user_text("\n".join(texts), "\n".join(typed.get(kind, [])), "item", state, at)
    return found if shown else _skip("message/empty", state)


def _append(groups: dict[UserKind, list[str]], kind: UserKind, part: str | None) -> None:
    if part is not None:
        groups.setdefault(kind, []).append(part)


def _user_event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """`user_message`: what was typed, and its images."""
    typed = text(payload.get("message")) or ""
    pictures = [image_of(url) for url in items(payload.get("images")) + items(payload.get("local_images")) if text(url)]
    return _user_text("\n".join([typed, *pictures] if typed else pictures), typed, "event", state, at)


def _user_turn_item(item: Record, state: LogState, at: int | None) -> list[Draft]:
    parts = [fields(part) for part in items(item.get("content"))]
    typed = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    addresses = [part.get("image_url") or part.get("url") or part.get("path") for part in parts if "text" not in part]
    return _user_event({"message": typed, "images": addresses}, state, at)


def _developer_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    said = content_text(payload.get("content"))
    return _said(User(said, UserKind.INJECTED), at) if said else _skip("message/empty", state)


def _agent_mail(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A message between agents (0.145 on): the parent's words to a sub-agent are its task."""
    said = content_text(payload.get("content"))
    if not said:
        return _skip("agent_message/encrypted", state)
    path = state.memory.get("path")
    if path and payload.get("author") == path:
        return _said(Notification("agent_message", said), at)
    elsewhere = path and payload.get("recipient") not in (None, path)
    addressed = _facts(state).kind == "subagent" and not elsewhere
    _close_step(state)
    return _said(User(said, UserKind.TASK if addressed else UserKind.NOTIFICATION), at)


# --- texts of the model ---


def _assistant_text(said: str, stream: str, state: LogState, at: int | None) -> list[Draft]:
    if not said:
        return _skip("message/empty", state)
    if _is_double(said, "assistant", stream, state):
        return _skip("agent_message/double", state)
    return _said(Message(said), at, _step(state))


def _assistant_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    return _assistant_text(content_text(payload.get("content")), "item", state, at)


def _assistant_event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    return _assistant_text(text(payload.get("message")) or "", "event", state, at)


def _assistant_turn_item(item: Record, state: LogState, at: int | None) -> list[Draft]:
    return _assistant_text(content_text(item.get("content")), "event", state, at)


def _reasoning_text(parts: list[str], stream: str, state: LogState, at: int | None) -> list[Draft]:
    """The parts that the other stream has not said."""
    new = [part for part in parts if not _is_double(part, "reasoning", stream, state)]
    if not new:
        return _skip("reasoning/double" if parts else "reasoning/empty", state)
    return _said(Reasoning("\n\n".join(new)), at, _step(state))


def _texts(value: Any) -> list[str]:
    """The non-empty texts of a list of texts or text parts, or of one text."""
    parts = [value] if isinstance(value, str) else items(value)
    found = [part if isinstance(part, str) else fields(part).get("text") for part in parts]
    return [words for words in found if isinstance(words, str) and words]


def _reasoning_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """The summary and any readable content; an item without a readable text still begins a response."""
    parts = _texts(payload.get("summary")) + _texts(payload.get("content")) + _texts(payload.get("text"))
    if not parts:
        _step(state)
        return _skip("reasoning/encrypted" if payload.get("encrypted_content") else "reasoning/empty", state)
    return _reasoning_text(parts, "item", state, at)


def _reasoning_event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    return _reasoning_text(_texts(payload.get("text")), "event", state, at)


def _reasoning_turn_item(item: Record, state: LogState, at: int | None) -> list[Draft]:
    return _reasoning_text(_texts(item.get("summary_text")) + _texts(item.get("raw_content")), "event", state, at)


# --- tool calls and their outputs, as response items ---


def _call(call_id: str | None, name: str, arguments: Json, state: LogState, at: int | None) -> list[Draft]:
    step = _step(state)
    if call_id:
        _keep(state.memory.setdefault("calls", {}), call_id, step, _OPEN_CALLS)
    return _said(ToolCall(call_id, name, arguments), at, step)


def _call_item(call_id: str | None, name: str, arguments: Json, state: LogState, at: int | None) -> list[Draft]:
    """A call carried by a response item: from here on, events about tool runs add no events."""
    state.memory["carried"] = True
    if call_id and call_id in state.memory.get("told", {}):
        return _skip("call/double", state)
    return _call(call_id, name, arguments, state, at)


def _function_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    return _call_item(_id(payload), _name(payload), _arguments(payload.get("arguments")), state, at)


def _custom_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    return _call_item(_id(payload), _name(payload), payload.get("input"), state, at)


def _local_shell_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    return _call_item(_id(payload) or text(payload.get("id")), "local_shell", payload.get("action"), state, at)


def _tool_search_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    return _call_item(_id(payload), "tool_search", _arguments(payload.get("arguments")), state, at)


def _web_search_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A search: its id is missing in most logs and its results are never in the item."""
    state.memory["carried"] = True
    asked = payload.get("action") or payload.get("query")
    if state.memory.get("told", {}).pop(_search_mark(asked), None):
        return _skip("call/double", state)
    return _call(_id(payload) or text(payload.get("id")), "web_search", asked, state, at)


def _image_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A generated picture: call and result in one item."""
    call_id = _id(payload) or text(payload.get("id"))
    found = _call_item(call_id, "image_generation", payload.get("revised_prompt"), state, at)
    return found + _result(call_id, _image_reading(payload), state, at) if found else found


def _image_reading(payload: Record) -> Reading:
    shown = image_placeholder("image/png", payload["result"]) if text(payload.get("result")) else ""
    return _by_status(Reading(shown), payload.get("status"))


def _legacy_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """`{type: tool_call, function: {name}, arguments}`, as some published fixtures have it."""
    name = text(fields(payload.get("function")).get("name")) or _name(payload)
    return _call_item(_id(payload), name, _arguments(payload.get("arguments")), state, at)


def _id(payload: Record) -> str | None:
    return text(payload.get("call_id"))


def _name(payload: Record) -> str:
    name, space = text(payload.get("name")) or "unknown", text(payload.get("namespace"))
    if space is None:
        return name
    joint = "" if space.endswith(("_", ".")) else "__" if space.startswith("mcp__") else "."
    return f"{space}{joint}{name}"


def _arguments(value: Any) -> Json:
    """The decoded arguments; a text that is no JSON object or list stays what it is."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]  # a value of a decoded record is JSON
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return decoded if isinstance(decoded, (dict, list)) else value


def _result(call_id: str | None, reading: Reading, state: LogState, at: int | None) -> list[Draft]:
    """A result in the step of its call; it ends the response at hand."""
    step = state.memory.get("calls", {}).pop(call_id, None) if call_id else None
    _close_step(state)
    shown, outcome, source, exit_code, duration_ms = reading
    return _said(ToolResult(call_id, shown, outcome, source, exit_code, duration_ms, _agent_id(shown)), at, step)


def _agent_id(shown: str) -> str | None:
    """The sub-agent that `spawn_agent` started: its output is {agent_id, nickname}."""
    if len(shown) > 500 or not shown.startswith('{"agent_id"'):
        return None
    return text(fields(_arguments(shown)).get("agent_id"))


def _output_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """The output of a call, with what an earlier event told about its end."""
    call_id = _id(payload)
    if call_id and state.memory.get("told", {}).get(call_id) == "ended":
        return _skip("output/double", state)
    reading = _by_status(read_output(payload.get("output")), payload.get("status"))
    end = state.memory.get("ends", {}).pop(call_id, None) if call_id else None
    found = _result(call_id, _with_end(reading, end) if end else reading, state, at)
    return found + _odd_usage(payload, state, at)


def _with_end(reading: Reading, end: list[Any]) -> Reading:
    """An output completed by its `*_end` event; what the output itself says of a still running process holds."""
    outcome, exit_code, duration_ms = end
    if reading.outcome is Outcome.RUNNING:
        return reading
    if outcome:
        reading = reading._replace(outcome=Outcome(outcome), source=OutcomeSource.STRUCTURE)
    return reading._replace(
        exit_code=exit_code if reading.exit_code is None else reading.exit_code,
        duration_ms=reading.duration_ms if duration_ms is None else duration_ms,
    )


def _by_status(reading: Reading, status: Any) -> Reading:
    """A reading whose text shows nothing, decided by the record's status."""
    outcome = of_status(status)
    if reading.outcome is not Outcome.UNKNOWN or outcome is None:
        return reading
    return reading._replace(outcome=outcome, source=OutcomeSource.STRUCTURE)


def _tool_search_output(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    reading = _by_status(Reading(compact_json(payload.get("tools"))), payload.get("status"))
    return _result(_id(payload), reading, state, at)


def _legacy_result(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """`{type: tool_result, name, result: {stdout, stderr, exitCode}}`, as some published fixtures have it."""
    result = payload.get("result")
    exit_code = whole(fields(result).get("exitCode"))
    if exit_code is None:
        return _result(_id(payload), read_output(result), state, at)
    shown = "\n".join(_texts([fields(result).get("stdout"), fields(result).get("stderr")]))
    outcome = Outcome.FAILED if exit_code else Outcome.OK
    return _result(_id(payload), Reading(shown, outcome, OutcomeSource.STRUCTURE, exit_code), state, at)


# --- tool runs, as events ---


def _call_event(kind: str, name: Callable[[Record], str], arguments: Callable[[Record], Json]) -> Handler:
    """A `*_begin` event: a call where no response item carries the calls."""

    def begin_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        call_id = _event_id(payload)
        if not call_id or state.memory.get("carried") or payload.get("source") == "user_shell":
            return _skip(kind, state)
        return _told_call(call_id, name(payload), arguments(payload), "begun", state, at)

    return begin_call


def _end_event(
    kind: str,
    name: Callable[[Record], str],
    arguments: Callable[[Record], Json],
    read: Callable[[Record], Reading],
) -> Handler:
    """An `*_end` event: a hint for the output to come, or the whole run where no item carries the calls."""

    def end_call(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        call_id, memory = _event_id(payload), state.memory
        told = memory.get("told", {}).get(call_id) if call_id else None
        if not call_id or told == "ended" or payload.get("source") == "user_shell":
            return _skip(kind, state)
        if told is None and memory.get("carried"):
            if call_id in memory.get("calls", {}):
                _note_end(call_id, read(payload), memory)
            return _skip(kind, state)
        begun = [] if told else _told_call(call_id, name(payload), arguments(payload), "ended", state, at)
        memory["told"][call_id] = "ended"
        return begun + _result(call_id, read(payload), state, at)

    return end_call


def _note_end(call_id: str, reading: Reading, memory: dict[str, Any]) -> None:
    outcome = None if reading.outcome is Outcome.UNKNOWN else str(reading.outcome)
    _keep(memory.setdefault("ends", {}), call_id, [outcome, reading.exit_code, reading.duration_ms], _ENDS)


def _told_call(call_id: str, name: str, arguments: Json, how: str, state: LogState, at: int | None) -> list[Draft]:
    """A call that an event tells first; a later response item of it is a double."""
    _keep(state.memory.setdefault("told", {}), call_id, how, _OPEN_CALLS)
    return _call(call_id, name, arguments, state, at)


def _event_id(payload: Record) -> str | None:
    return _first(payload.get("call_id"), payload.get("callId"), payload.get("id"))


def _exec_arguments(payload: Record) -> Json:
    return {key: payload[key] for key in ("command", "cwd") if key in payload}


def _exec_reading(payload: Record) -> Reading:
    shown = _first(payload.get("aggregated_output"), payload.get("stdout"), payload.get("formatted_output"))
    exit_code = whole(payload.get("exit_code"))
    outcome = of_status(payload.get("status"))
    if outcome is None and exit_code is not None:
        outcome = Outcome.FAILED if exit_code else Outcome.OK
    return _event_reading(shown or text(payload.get("stderr")) or "", outcome, payload, exit_code)


def _patch_reading(payload: Record) -> Reading:
    shown = _first(payload.get("stdout"), payload.get("stderr")) or ""
    outcome = of_success(payload.get("success")) or of_status(payload.get("status"))
    return _event_reading(shown, outcome, payload)


def _event_reading(shown: str, outcome: Outcome | None, payload: Record, exit_code: int | None = None) -> Reading:
    source = OutcomeSource.STRUCTURE if outcome else None
    return Reading(shown, outcome or Outcome.UNKNOWN, source, exit_code, duration(payload.get("duration")))


def _mcp_reading(payload: Record) -> Reading:
    reading = mcp_result(payload.get("result"))
    return _by_status(reading, payload.get("status"))._replace(duration_ms=duration(payload.get("duration")))


def _mcp_name(payload: Record) -> str:
    asked = fields(payload.get("invocation")) or payload
    return "__".join(_texts([asked.get("server"), asked.get("tool")])) or "unknown"


def _mcp_arguments(payload: Record) -> Json:
    return (fields(payload.get("invocation")) or payload).get("arguments")


def _dynamic_name(payload: Record) -> str:
    return _name({"name": payload.get("tool"), "namespace": payload.get("namespace")})


def _dynamic_reading(payload: Record) -> Reading:
    shown = content_text(payload.get("content_items")) or content_text(payload.get("error"))
    return _event_reading(shown, of_success(payload.get("success")), payload)


def _search_mark(asked: Any) -> str:
    return f"search:{_fingerprint(compact_json(asked))}"


def _search_event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """`web_search_end` comes before its item, whose id it may not share: they meet by what was asked."""
    asked, call_id = payload.get("action") or payload.get("query"), _event_id(payload)
    if state.memory.get("carried") or not call_id or not asked:
        return _skip("web_search_end", state)
    _keep(state.memory.setdefault("told", {}), _search_mark(asked), "begun", _OPEN_CALLS)
    return _told_call(call_id, "web_search", asked, "ended", state, at)


def _constant(name: str) -> Callable[[Record], str]:
    return lambda payload: name


def _field(key: str) -> Callable[[Record], Json]:
    return lambda payload: payload.get(key)


# --- tokens ---


_TOTALS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


def _token_count(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """One request's tokens: the growth of the session's total (formats.md 2.2 "Tokens" 1-5, known-bugs 10-13)."""
    if payload.get("info") is None:
        return _skip("token_count/rate_limits", state)
    info = fields(payload["info"])
    last, total = _counts(info.get("last_token_usage")), _counts(info.get("total_token_usage"))
    if not last and not total:
        return _said(Notification("token_count", compact_json(payload["info"])), at)
    used = _growth(total, last, state) if total else last
    if not any(used.values()):
        return _skip("token_count/repeated", state)
    return _usage(used, count(info.get("model_context_window")), state, at)


def _counts(value: Any) -> dict[str, int]:
    """The known figures of a usage, by name."""
    usage = fields(value)
    return {key: number for key in _TOTALS if (number := count(usage.get(key))) is not None}


def _growth(total: dict[str, int], last: dict[str, int], state: LogState) -> dict[str, int]:
    """What the total grew by. Where it starts again, or begins with a parent's total: the last request."""
    before: dict[str, int] | None = state.memory.get("total")
    state.memory["total"] = total
    if before is None:
        return last if last and _facts(state).kind != "main" else total
    grown = {key: number - before.get(key, 0) for key, number in total.items()}
    if grown.get("input_tokens", 0) < 0 or grown.get("output_tokens", 0) < 0:
        return last if any(last.values()) else total
    return {key: max(number, 0) for key, number in grown.items()}


def _usage(used: dict[str, int], window: int | None, state: LogState, at: int | None) -> list[Draft]:
    """Codex's figures in agtrace's meaning: its input includes what was cached or written to the cache."""
    fresh, cached, written = used.get("input_tokens"), used.get("cached_input_tokens"), used.get(_TOTALS[2])
    if fresh is not None:
        fresh = max(fresh - (cached or 0) - (written or 0), 0)
    usage = TokenUsage(
        response_id=None,
        model=_facts(state).model,
        input_tokens=fresh,
        cache_creation_5m_tokens=written,
        cache_creation_1h_tokens=None,
        cache_read_tokens=cached,
        output_tokens=used.get("output_tokens"),
        reasoning_tokens=used.get("reasoning_output_tokens"),
        context_window=window or None,
    )
    _close_step(state)
    return _said(usage, at, _last_step(state))


def _odd_usage(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A usage on an item itself: `info.last_token_usage` or bare figures, as some published fixtures have it."""
    used = _counts(fields(payload.get("info")).get("last_token_usage"))
    return _usage(used, None, state, at) if any(used.values()) else []


def _bare_token_count(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    used = _counts(payload)
    return _usage(used, None, state, at) if any(used.values()) else _token_count(payload, state, at)


# --- the tables ---


def _response_item(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """An item of the model's side. Odd published logs put cwd and model on each."""
    kind = _item_kind(payload)
    if "cwd" in payload or "model" in payload:
        _turn_context(payload, state, at)
        state.skipped.pop()
    handler = _ITEMS.get(kind) if kind else None
    return (
        handler(payload, state, at) if handler else _unknown(f"response_item/{kind or 'untyped'}", payload, state, at)
    )


def _item_kind(payload: Record) -> str | None:
    """The item's type, or what its fields show where the type is missing."""
    if "type" in payload:
        return text(payload["type"])
    if "role" in payload and "content" in payload:
        return "message"
    if "call_id" not in payload:
        return None
    return "function_call_output" if "output" in payload else "function_call" if "name" in payload else None


def _message(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    role = text(payload.get("role"))
    handler = _ROLES.get(role) if role else None
    return handler(payload, state, at) if handler else _unknown(f"response_item/message/{role}", payload, state, at)


def _event(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    kind = text(payload.get("type"))
    handler = _EVENTS.get(kind) if kind else None
    return handler(payload, state, at) if handler else _unknown(f"event_msg/{kind or 'untyped'}", payload, state, at)


def _item_completed(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """A TurnItem of a paginated thread (0.144 on), which replaces the older events."""
    item = fields(payload.get("item"))
    kind = text(item.get("type"))
    handler = _TURN_ITEMS.get(kind) if kind else None
    return (
        handler(item, state, at)
        if handler
        else _unknown(f"event_msg/item_completed/{kind or 'untyped'}", payload, state, at)
    )


_ROLES: dict[str, Handler] = {
    "user": _user_item,
    "assistant": _assistant_item,
    "developer": _developer_item,
    "system": _developer_item,
}

_ITEMS: dict[str, Handler] = {
    "message": _message,
    "reasoning": _reasoning_item,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
    "local_shell_call": _local_shell_call,
    "web_search_call": _web_search_call,
    "tool_search_call": _tool_search_call,
    "image_generation_call": _image_call,
    "function_call_output": _output_item,
    "custom_tool_call_output": _output_item,
    "local_shell_call_output": _output_item,
    "mcp_tool_call_output": _output_item,
    "tool_search_output": _tool_search_output,
    "agent_message": _agent_mail,
    "token_count": _bare_token_count,
    "tool_call": _legacy_call,
    "tool_result": _legacy_result,
    "ghost_snapshot": _skipping("ghost_snapshot"),
    "compaction": _skipping("compaction/encrypted"),
    "compaction_summary": _skipping("compaction/encrypted"),
    "context_compaction": _skipping("compaction/encrypted"),
}
"""Response items by type: the names are those of formats.md 2.2 and of the published fixtures."""

_exec_end = _end_event("exec_command_end", _constant("exec_command"), _exec_arguments, _exec_reading)
_patch_end = _end_event("patch_apply_end", _constant("apply_patch"), _field("changes"), _patch_reading)
_mcp_end = _end_event("mcp_tool_call_end", _mcp_name, _mcp_arguments, _mcp_reading)
_image_end = _end_event("image_generation_end", _constant("image_generation"), _field("revised_prompt"), _image_reading)
_dynamic_end = _end_event("dynamic_tool_call_response", _dynamic_name, _field("arguments"), _dynamic_reading)

_EVENTS: dict[str, Handler] = {
    "user_message": _user_event,
    "agent_message": _assistant_event,
    "agent_reasoning": _reasoning_event,
    "agent_reasoning_raw_content": _reasoning_event,
    "item_completed": _item_completed,
    "token_count": _token_count,
    "exec_command_begin": _call_event("exec_command_begin", _constant("exec_command"), _exec_arguments),
    "exec_command_end": _exec_end,
    "patch_apply_begin": _call_event("patch_apply_begin", _constant("apply_patch"), _field("changes")),
    "patch_apply_end": _patch_end,
    "mcp_tool_call_begin": _call_event("mcp_tool_call_begin", _mcp_name, _mcp_arguments),
    "mcp_tool_call_end": _mcp_end,
    "dynamic_tool_call_request": _call_event("dynamic_tool_call_request", _dynamic_name, _field("arguments")),
    "dynamic_tool_call_response": _dynamic_end,
    "image_generation_end": _image_end,
    "view_image_tool_call": _call_event("view_image_tool_call", _constant("view_image"), _field("path")),
    "web_search_end": _search_event,
    "thread_name_updated": _thread_name,
    "task_complete": _task_complete,
    "turn_complete": _task_complete,
    "error": _error,
    "turn_aborted": _notifying("turn_aborted", "reason"),
    **{kind: _notifying(kind) for kind in ("thread_rolled_back", "entered_review_mode", "exited_review_mode")},
    **{kind: _notifying(kind) for kind in ("guardian_assessment", "thread_goal_updated", "sub_agent_activity")},
    **{kind: _notifying(kind, "message") for kind in ("stream_error", "warning", "background_event")},
    **{kind: _notifying(kind, "message") for kind in ("undo_completed", "deprecation_notice", "model_reroute")},
    "turn.completed": _notifying("turn.completed"),
    **{
        kind: _skipping(kind)
        for kind in (
            "task_started",
            "turn_started",
            "context_compacted",
            "thread_settings_applied",
            "item_started",
            "web_search_begin",
            "image_generation_begin",
            "exec_command_output_delta",
            "agent_reasoning_section_break",
            "turn_diff",
            "plan_update",
            "undo_started",
            "mcp_startup_update",
            "mcp_startup_complete",
            "shutdown_complete",
            "collab_agent_spawn_begin",
            "collab_agent_spawn_end",
            "collab_agent_interaction_begin",
            "collab_agent_interaction_end",
            "collab_waiting_begin",
            "collab_waiting_end",
            "collab_close_begin",
            "collab_close_end",
            "account/rateLimits/updated",
            "codex/event/raw_item",
        )
    },
}
"""Events by type: doubles of items, what only the screen was told, and what adds nothing to the items."""

_TURN_ITEMS: dict[str, Handler] = {
    "UserMessage": _user_turn_item,
    "AgentMessage": _assistant_turn_item,
    "Reasoning": _reasoning_turn_item,
    "Plan": _notifying("plan", "text"),
    "CommandExecution": _exec_end,
    "FileChange": _patch_end,
    "McpToolCall": _mcp_end,
    "DynamicToolCall": _dynamic_end,
    "ImageGeneration": _image_end,
    "ImageView": _call_event("view_image_tool_call", _constant("view_image"), _field("path")),
    "WebSearch": _search_event,
    "Extension": _search_event,
    "CollabAgentToolCall": _skipping("collab_agent_tool_call"),
    "ContextCompaction": _skipping("context_compacted"),
    "EnteredReviewMode": _notifying("entered_review_mode"),
    "ExitedReviewMode": _notifying("exited_review_mode"),
}
"""The items of `item_completed` by type."""

_LINES: dict[str, Handler] = {
    "session_meta": _session_meta,
    "response_item": _response_item,
    "event_msg": _event,
    "turn_context": _turn_context,
    "compacted": _compacted,
    "world_state": _skipping("world_state"),
    "inter_agent_communication": _notifying("inter_agent_communication"),
    "inter_agent_communication_metadata": _skipping("inter_agent_communication_metadata"),
}
"""Lines of an enveloped log by type."""
