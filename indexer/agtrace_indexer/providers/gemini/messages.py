"""Gemini CLI: whole-file JSON sessions, JSONL sessions since 0.39.0, and `/chat save` checkpoints.

A JSONL session is a log of *changes*: the same message id again replaces the message, `$set.messages`
replaces the list, `$rewindTo` drops the end of it. Drafts therefore carry `<message id>/<part>` as
their key, and the state holds a short hash per key, so that only what changed is said again
(`chatRecordingService.ts` of gemini-cli; formats.md 2.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import takewhile
from pathlib import PurePath
from typing import Any, TypeAlias

from agtrace_schema.events import (
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

from ..drafts import Draft, LogState, Record, Retraction, SessionFacts
from ..values import compact_json, count, fields, image_placeholder, items, milliseconds, text

PROVIDER = Provider.GEMINI
PARSER_VERSION = 1

Parts: TypeAlias = dict[str, Draft]
"""The drafts of one message by the name of their part, in the order of reading."""

Hashes: TypeAlias = dict[str, dict[str, str]]
"""What is live: message id -> part -> hash of the payload, in the order of the messages."""

_NOTICES = ("info", "error", "warning")
_MODEL_TYPES = ("gemini", "model")  # "model" stands in published fixtures of the first era
_MESSAGE_TYPES = ("user", *_MODEL_TYPES, *_NOTICES)
_COMMON_KEYS = {"id", "timestamp", "type", "content", "displayContent"}
_METADATA_KEYS = {
    "activeExtensionName",
    "directories",
    "kind",
    "lastUpdated",
    "memoryScratchpad",
    "messages",
    "projectHash",
    "sessionId",
    "startTime",
    "summary",
}
_SUMMARY_RANK = 2


# --- whose log it is ---------------------------------------------------------------------------


def recognizes(record: Record) -> bool:
    """Whether only Gemini CLI writes such a record: its metadata, its messages, `$set` or `$rewindTo`.

    User and notice messages have common names (id, timestamp, type, content), so they must have
    exactly these and nothing else; a `gemini` message is told by its type.
    """
    if _is_metadata(record):
        return True
    if record.keys() == {"$set"}:
        return bool(fields(record["$set"]).keys() & _METADATA_KEYS)
    if record.keys() == {"$rewindTo"}:
        return isinstance(record["$rewindTo"], str)
    return _is_own_message(record)


def _is_metadata(record: Record) -> bool:
    return isinstance(record.get("sessionId"), str) and isinstance(record.get("projectHash"), str)


def _is_own_message(record: Record) -> bool:
    stamped = isinstance(record.get("id"), str) and isinstance(record.get("timestamp"), str)
    if not stamped or "content" not in record:
        return False
    if record.get("type") == "gemini":
        return True
    return record.get("type") in ("user", *_NOTICES) and record.keys() <= _COMMON_KEYS


def unroll(document: Any) -> Iterable[Record] | None:
    """Give a JSON session as metadata and messages, or a checkpoint (`/chat save`) as if it were one.

    None for anything else, such as `logs.json` (prompts only) and recordings of the Gemini API.
    """
    if not isinstance(document, dict):
        return None
    if _is_metadata(document) and isinstance(document.get("messages"), list):
        return [_without(document, "messages"), *_identified(document["messages"])]
    if _is_history(document.get("history")):
        return [{"$set": _without(document, "history")}, *_history_messages(document["history"])]
    return None


def begin(path: PurePath) -> LogState:
    """Start a log; a sub-agent's lies in `chats/<session id of the parent>/` since 0.37."""
    state = LogState()
    if path.parent.name != "chats" and path.parent.parent.name == "chats":
        state.sessions[""] = SessionFacts(parent_id=path.parent.name, kind="subagent")
    return state


def _without(record: Record, key: str) -> Record:
    return {k: v for k, v in record.items() if k != key}


def _identified(messages: list[Any]) -> list[Record]:
    """Give every message an id (its position where the log has none) and wrap what is no object."""
    records = (m if isinstance(m, dict) else {"type": "unreadable", "value": m} for m in messages)
    return [r if isinstance(r.get("id"), str) else {**r, "id": f"message-{n}"} for n, r in enumerate(records)]


def _is_history(history: Any) -> bool:
    return bool(items(history)) and all(
        fields(turn).get("role") in ("user", *_MODEL_TYPES) and isinstance(turn.get("parts"), list) for turn in history
    )


def _history_messages(history: list[Record]) -> Iterator[Record]:
    """Make messages of API turns. Calls without an id get one, and answers take it in the order of the calls."""
    open_calls: list[str] = []
    for n, turn in enumerate(history):
        parts = [_with_call_id(part, f"history-{n}.{k}", open_calls) for k, part in enumerate(turn["parts"])]
        kind = "user" if turn["role"] == "user" else "gemini"
        yield {"id": f"history-{n}", "type": kind, "timestamp": turn.get("ts"), "content": parts}


def _with_call_id(part: Any, new_id: str, open_calls: list[str]) -> Any:
    for key in ("functionCall", "functionResponse"):
        body = fields(part).get(key)
        if isinstance(body, dict) and not text(body.get("id")):
            if key == "functionCall":
                open_calls.append(new_id)
            elif open_calls:
                new_id = open_calls.pop(0)
            return {**part, key: {**body, "id": new_id}}
    return part


# --- folding -----------------------------------------------------------------------------------


def drafts(record: Record, state: LogState) -> Iterable[Draft | Retraction]:
    """Give what the next record changes; the order of the questions is that of gemini-cli's own loader."""
    if isinstance(record.get("$rewindTo"), str):
        return _rewind(record["$rewindTo"], state)
    if isinstance(record.get("id"), str):
        return _replace(record, state)
    if isinstance(record.get("$set"), dict):
        return _patch(record["$set"], "$set", state)
    if _is_metadata(record):
        return _patch(record, "metadata", state)
    return [Draft(_unknown(record, state), milliseconds(record.get("timestamp")))]


def _live(state: LogState) -> Hashes:
    live: Hashes = state.memory.setdefault("messages", {})
    return live


def _replace(record: Record, state: LogState) -> list[Draft | Retraction]:
    """Take a message that is new, or that replaces its earlier version."""
    live = _live(state)
    changes = _fold(record, live, live, state)
    if not changes:
        state.skipped.append(str(record.get("type")))
    return changes


def _patch(changed: Record, kind: str, state: LogState) -> list[Draft | Retraction]:
    """Take metadata; a list of messages in it replaces all of them."""
    _note_facts(changed, state)
    state.skipped.append(kind)
    if not isinstance(changed.get("messages"), list):
        return []
    before, after = _live(state), Hashes()
    newest = {message["id"]: message for message in _identified(changed["messages"])}
    gone = _retraction({key: parts for key, parts in before.items() if key not in newest})
    state.memory["messages"] = after
    return gone + [change for message in newest.values() for change in _fold(message, before, after, state)]


def _rewind(message_id: str, state: LogState) -> list[Draft | Retraction]:
    """Drop a message and all after it; all messages where it isn't known (formats.md 2.3)."""
    live = _live(state)
    ids = list(live)
    dropped = ids[ids.index(message_id) :] if message_id in live else ids
    gone = _retraction({key: live.pop(key) for key in dropped})
    return [*gone, Draft(Notification("rewind", message_id), None)]


def _fold(record: Record, before: Hashes, after: Hashes, state: LogState) -> list[Draft | Retraction]:
    """Say what differs between this version of a message and the one before."""
    message_id = record["id"]
    parts = _parts(record, after, state)
    old, new = before.get(message_id, {}), {part: _hash(draft.payload) for part, draft in parts.items()}
    after[message_id] = new
    gone = _retraction({message_id: {part: old[part] for part in old if part not in new}})
    changed = (part for part in parts if old.get(part) != new[part])
    return [*gone, *(parts[part]._replace(key=_key(message_id, part)) for part in changed)]


def _retraction(dropped: Hashes) -> list[Draft | Retraction]:
    keys = [_key(message_id, part) for message_id, parts in dropped.items() for part in parts]
    return [Retraction(keys)] if keys else []


def _key(message_id: str, part: str) -> str:
    return f"{message_id}/{part}"


def _hash(payload: Payload) -> str:
    return blake2b(repr(payload).encode(), digest_size=8).hexdigest()


def _is_answered(part: str, message_id: str, live: Hashes) -> bool:
    """Whether a message before this one holds the result of a call already.

    After a compression the CLI writes the API history as messages: the answer then stands both in
    `toolCalls` and in a user message of its own (`updateMessagesFromHistory`).
    """
    earlier = takewhile(lambda entry: entry[0] != message_id, live.items())
    return any(part in parts for _, parts in earlier)


def _note_facts(metadata: Record, state: LogState) -> None:
    facts = state.sessions[""]
    facts.id = facts.id or text(metadata.get("sessionId"))
    facts.project_hash = text(metadata.get("projectHash")) or facts.project_hash
    facts.cwd = facts.cwd or next(filter(None, map(text, items(metadata.get("directories")))), None)
    if metadata.get("kind") == "subagent":
        facts.kind = "subagent"
    title = text(metadata.get("summary"))
    if title and facts.title_rank <= _SUMMARY_RANK:
        facts.title, facts.title_rank = title, _SUMMARY_RANK


def _unknown(record: Record, state: LogState) -> Notification:
    kind = text(record.get("type")) or next(iter(record), "empty")
    state.unknown.append(kind)
    return Notification(f"unknown/{kind}", compact_json(record))


# --- messages ----------------------------------------------------------------------------------


def _parts(record: Record, live: Hashes, state: LogState) -> Parts:
    """Take one version of a message apart."""
    kind, when = record.get("type"), milliseconds(record.get("timestamp"))
    if kind not in _MESSAGE_TYPES:
        return {"info": Draft(_unknown(record, state), when)}
    content = _content_parts(record)
    if kind in _NOTICES:
        return {"info": Draft(Notification(kind, _joined_text(content)), when)}
    if kind == "user":
        return _user_parts(content, when, state.sessions[""]) | _answers(record["id"], content, when, live)
    state.sessions[""].model = text(record.get("model")) or state.sessions[""].model
    return _model_parts(record, content, when)


def _content_parts(record: Record) -> list[Any]:
    """Read content as a list: a string, a part or a list of them; `parts` in the fixtures with type `model`."""
    content = record.get("content", record.get("parts"))
    if content is None:
        return []
    return content if isinstance(content, list) else [content]


def _user_parts(content: list[Any], when: int | None, facts: SessionFacts) -> Parts:
    said = _joined_text(content)
    return {"text": Draft(User(said, _user_kind(said.strip(), facts)), when)} if said.strip() else {}


def _answers(message_id: str, content: list[Any], when: int | None, live: Hashes) -> Parts:
    """Give the results that stand in a user message, as in the history of the API."""
    found: Parts = {}
    for n, response in enumerate(_bodies(content, "functionResponse")):
        result = _history_result(response)
        part = f"result.{result.call_id or n}"
        if result.call_id is None or not _is_answered(part, message_id, live):
            found[part] = Draft(result, when)
    return found


_INJECTED = (
    "<session_context>",
    "<hook_context>",
    "System: Please continue.",
    "This is the Gemini CLI. We are setting up the context for our chat.",
)


def _user_kind(said: str, facts: SessionFacts) -> UserKind:
    """Tell turns from the rest by the CLI's own `isIgnoredUserContent`, and by the two texts it sends itself.

    `System: Please continue.` retries an empty response [data]; the set-up text opens old checkpoints.
    """
    if said.startswith(("/", "?")):
        return UserKind.COMMAND
    if said.startswith(_INJECTED):
        return UserKind.INJECTED
    return UserKind.TASK if facts.kind == "subagent" else UserKind.HUMAN


def _model_parts(record: Record, content: list[Any], when: int | None) -> Parts:
    """Take apart a response: thinking, text, calls, tokens, and what came back from the calls."""
    found = _reasoning(record, content, when)
    said = _joined_text(content)
    if said.strip():
        found["text"] = Draft(Message(said), when, record["id"])
    results = _tools(record, found, when)
    if not items(record.get("toolCalls")):
        found |= _history_calls(record["id"], content, when)
    usage = _usage(record)
    if usage:
        found["usage"] = Draft(usage, when, record["id"])
    return found | results


def _history_calls(message_id: str, content: list[Any], when: int | None) -> Parts:
    """Give the calls of an API turn. Beside `toolCalls` they say the same again, often without an id."""
    found: Parts = {}
    for n, call in enumerate(_bodies(content, "functionCall")):
        call_id = text(call.get("id"))
        payload = ToolCall(call_id, text(call.get("name")) or "unknown", call.get("args", {}))
        found[f"call.{call_id or n}"] = Draft(payload, when, message_id)
    return found


def _reasoning(record: Record, content: list[Any], when: int | None) -> Parts:
    """Give the thoughts with their own times, then those that a checkpoint keeps among the content."""
    told = [(_thought(t), milliseconds(fields(t).get("timestamp"))) for t in items(record.get("thoughts"))]
    told += [(text(part.get("text")) or "", None) for part in content if _is_thought(part)]
    return {
        f"thought.{n}": Draft(Reasoning(said), own_time or when, record["id"])
        for n, (said, own_time) in enumerate(told)
        if said
    }


def _is_thought(part: Any) -> bool:
    return fields(part).get("thought") is True


def _thought(thought: Any) -> str:
    if isinstance(thought, str):
        return thought
    said = (text(fields(thought).get(key)) for key in ("subject", "description"))
    return "\n".join(filter(None, said))


def _joined_text(content: list[Any]) -> str:
    return "\n".join(filter(None, map(_part_text, content)))


def _part_text(part: Any) -> str:
    """Read a part as text: images become placeholders; calls, answers and thoughts have events of their own."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return compact_json(part)
    if _is_thought(part) or any(isinstance(part.get(key), dict) for key in ("functionCall", "functionResponse")):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part.get("inlineData"), dict):
        return image_placeholder(part["inlineData"].get("mimeType"), part["inlineData"].get("data"))
    return compact_json(part) if part else ""


def _bodies(content: list[Any], key: str) -> list[dict[str, Any]]:
    return [part[key] for part in content if isinstance(fields(part).get(key), dict)]


def _usage(record: Record) -> TokenUsage | None:
    """Read `tokens`: theirs of input include the cached, theirs of output exclude the thoughts.

    `tool` (prompt tokens of built-in tools) is counted beside `input` in their total, so it is added
    to our input. All zero means that the CLI was given no figures (known-bugs 19): none here.
    """
    tokens = {key: count(value) for key, value in fields(record.get("tokens")).items()}
    if not any(tokens.values()):
        return None
    sent, cached = tokens.get("input"), tokens.get("cached")
    answered, thoughts = tokens.get("output"), tokens.get("thoughts")
    return TokenUsage(
        response_id=record["id"],
        model=text(record.get("model")),
        input_tokens=None if sent is None else max(sent - (cached or 0), 0) + (tokens.get("tool") or 0),
        cache_creation_5m_tokens=None,
        cache_creation_1h_tokens=None,
        cache_read_tokens=cached,
        output_tokens=None if answered is None else answered + (thoughts or 0),
        reasoning_tokens=thoughts,
    )


# --- tools -------------------------------------------------------------------------------------


def _tools(record: Record, found: Parts, when: int | None) -> Parts:
    """Put the calls of a response into `found`; give back their results, at the times of their completion."""
    results: Parts = {}
    for n, tool in enumerate(map(fields, items(record.get("toolCalls")))):
        call_id = text(tool.get("id")) or f"{record['id']}.{n}"
        name = call_id if f"call.{call_id}" not in found else f"{call_id}#{n}"
        call = ToolCall(call_id, text(tool.get("name")) or "unknown", tool.get("args", {}))
        found[f"call.{name}"] = Draft(call, when, record["id"])
        result = _result(tool, call_id)
        if result:
            results[f"result.{name}"] = Draft(result, milliseconds(tool.get("timestamp")) or when, record["id"])
    return results


_UNFINISHED = ("validating", "scheduled", "executing", "awaiting_approval")
_FINISHED = ("success", "error", "cancelled")


def _result(tool: Record, call_id: str) -> ToolResult | None:
    status, given = tool.get("status"), _result_items(tool)
    if status in _UNFINISHED or (status not in _FINISHED and not given):
        return None
    said = "\n".join(map(_response_text, given)) if given else _display_text(tool.get("resultDisplay"))
    shell = tool.get("name") == "run_shell_command"
    exit_code = _exit_code(said, tool.get("resultDisplay")) if shell else None
    outcome, source = _outcome(status, said, exit_code, shell)
    return ToolResult(call_id, said, outcome, source, exit_code, agent_id=text(tool.get("agentId")))


def _result_items(tool: Record) -> list[Any]:
    result = tool.get("result")
    if result is None:
        return []
    return result if isinstance(result, list) else [result]


def _response_text(part: Any) -> str:
    """Read what the model got: the output or the error of a functionResponse, or a part beside it."""
    response = fields(part).get("functionResponse")
    if not isinstance(response, dict):
        return _part_text(part)
    given = fields(response.get("response"))
    said = given.get("output", given.get("error", response.get("response")))
    return _display_text(said)


def _display_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else compact_json(value)


def _history_result(response: Record) -> ToolResult:
    """Read an answer that has no status around it: an error is told by its key."""
    said = _response_text({"functionResponse": response})
    given = fields(response.get("response"))
    shell = response.get("name") == "run_shell_command"
    exit_code = _exit_code(said, None) if shell else None
    status = "success" if "output" in given else "error" if "error" in given else None
    if status == "error" and said.startswith("[Operation Cancelled]"):
        status = "cancelled"
    outcome, source = _outcome(status, said, exit_code, shell)
    return ToolResult(text(response.get("id")), said, outcome, source, exit_code)


_BY_USER = re.compile(
    r"user (?:cancel|decline|denied|reject|did not allow)|(?:cancell?ed|declined|rejected) by (?:the )?user", re.I
)
_SHELL_STOPPED = ("Command was cancelled by user", "Command was automatically cancelled")


def _outcome(status: Any, said: str, exit_code: int | None, shell: bool) -> tuple[Outcome, OutcomeSource | None]:
    """Judge by the status; a shell command that fails is still `success`, so its exit code overrules it."""
    if status == "error":
        return Outcome.FAILED, OutcomeSource.STRUCTURE
    if status == "cancelled":
        return Outcome.REJECTED if _BY_USER.search(said) else Outcome.INTERRUPTED, OutcomeSource.STRUCTURE
    if status != "success":
        return Outcome.UNKNOWN, None
    if exit_code:
        return Outcome.FAILED, OutcomeSource.TEXT
    if shell and said.startswith(_SHELL_STOPPED):
        return Outcome.INTERRUPTED, OutcomeSource.TEXT
    return Outcome.OK, OutcomeSource.STRUCTURE


_LINE = r"(?:\n|\\n)"  # one published fixture has its line ends escaped twice
_EXIT_CODE = re.compile(
    rf"{_LINE}Exit Code: (-?\d{{1,10}})"
    rf"(?:{_LINE}Signal: [^\n\\]{{0,40}})?(?:{_LINE}Background PIDs: [^\n\\]{{0,400}})?"
    rf"(?:{_LINE}Process Group PGID: [^\n\\]{{0,20}})?\s*\Z"
)
_TRAILER = 1000  # more than the longest trailer


def _exit_code(said: str, display: Any) -> int | None:
    """Read the exit code that the shell tool writes after the output, followed only by its own lines (`shell.ts`).

    Newer versions leave it out when it is 0; a command that prints `Exit Code: 3` last would then be
    taken for it, so the output itself, which is also `resultDisplay`, is cut off first.
    """
    if not said.startswith(("Command: ", "Output: ")):
        return None
    output = f"Output: {display}" if isinstance(display, str) and display else ""
    trailer = said[len(output) :] if output and said.startswith(output) else said
    found = _EXIT_CODE.search(trailer[-_TRAILER:])
    return int(found[1]) if found else None
