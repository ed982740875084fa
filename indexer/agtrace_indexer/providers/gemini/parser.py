"""Gemini CLI: whole-file JSON sessions, JSONL sessions since 0.39.0, and `/chat save` checkpoints (README.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path, PurePath
from typing import Any

from agtrace_schema.events import (
    Message,
    Notification,
    Outcome,
    OutcomeSource,
    Payload,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record, SessionFacts
from agtrace_indexer.events.json_values import (
    as_list,
    compact_json,
    count,
    fields,
    first_text,
    image_placeholder,
    items,
    milliseconds,
    text,
)
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.beside import runs_agtrace, settings_in
from agtrace_indexer.providers.gemini import GEMINI
from agtrace_indexer.providers.notes import (
    Change,
    Parts,
    check_usage,
    forget_messages,
    known,
    known_as,
    live_parts,
    part_known_as,
    plain_text,
    replace_message,
    requester,
    unknown,
)
from agtrace_indexer.providers.provider import Retention
from agtrace_indexer.providers.setup import Setup

# -- content ---------------------------------------------------------------------------------------
# The parts of a content: their text, and the calls, answers and thoughts among them.


def joined_text(content: list[Any]) -> str:
    """Read a content as one text, with a line break between parts."""
    return "\n".join(filter(None, map(part_text, content)))


def part_text(part: Any) -> str:
    """Read a part as text: images become placeholders; calls, answers and thoughts have events of their own."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return compact_json(part)
    if is_thought(part) or any(isinstance(part.get(key), dict) for key in ("functionCall", "functionResponse")):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part.get("inlineData"), dict):
        return image_placeholder(part["inlineData"].get("mimeType"), part["inlineData"].get("data"))
    return compact_json(part) if part else ""


def bodies(content: list[Any], key: str) -> list[dict[str, Any]]:
    """Return the values of this key (`functionCall`, `functionResponse`) in the parts of a content."""
    return [part[key] for part in content if isinstance(fields(part).get(key), dict)]


def is_thought(part: Any) -> bool:
    """Whether a part is a thought, which checkpoints keep in the content."""
    return fields(part).get("thought") is True


# -- tokens ----------------------------------------------------------------------------------------
# Token counts of a response (README.md). The CLI writes the API's counts for one request (`promptTokenCount`
# and so on): the figures of a message are its own, not a running total. In published logs `input` also falls within
# sessions (13,629, then 6,219).


_KNOWN = known("input", "cached", "output", "thoughts", "tool", "total")


def usage_of(record: Record, state: LogState, *, says_something: bool) -> TokenUsage | None:
    """Read `tokens`, in which input includes cached tokens, and output excludes thoughts.

    `tool` (prompt tokens of built-in tools) is counted separately from `input` in their total, so it is added to our
    input. If figures are missing or all zero, they are unknown; a message that says nothing, or that the CLI wrote
    back from its history, isn't a response.
    """
    check_usage(record.get("tokens"), _KNOWN, state)
    tokens = {key: count(value) for key, value in fields(record.get("tokens")).items()}
    model = text(record.get("model"))
    if not any(tokens.values()):
        written_back = isinstance(record.get("content"), list) and not record.keys() & {"model", "tokens"}
        unknown = TokenUsage(record["id"], model, complete=False)
        return unknown if says_something and not written_back else None
    sent, cached = tokens.get("input"), tokens.get("cached")
    answered, thoughts = tokens.get("output"), tokens.get("thoughts")
    return TokenUsage(
        response_id=record["id"],
        model=model,
        input_tokens=None if sent is None else max(sent - (cached or 0), 0) + (tokens.get("tool") or 0),
        cache_read_tokens=cached,
        output_tokens=None if answered is None else answered + (thoughts or 0),
        reasoning_tokens=thoughts,
    )


# -- tool results ----------------------------------------------------------------------------------
# Results of tool executions: their outcome, and what the model was given.

_UNFINISHED = ("validating", "scheduled", "executing", "awaiting_approval")
_FINISHED = ("success", "error", "cancelled")


def result_of(tool: Record, call_id: str | None) -> ToolResult:
    """Read the result in one of the `toolCalls` of a response."""
    given = as_list(tool.get("result"))
    said = "\n".join(map(response_text, given)) if given else plain_text(tool.get("resultDisplay"))
    shell = tool.get("name") == "run_shell_command"
    exit_code = exit_code_of(said, tool.get("resultDisplay")) if shell else None
    outcome, source = outcome_of(tool.get("status"), said, exit_code, shell)
    return ToolResult(call_id, said, outcome, source, exit_code, agent_id=identifier(tool.get("agentId")))


def response_text(part: Any) -> str:
    """Read what the model was given: the output or the error of a functionResponse, or another part next to it."""
    response = fields(part).get("functionResponse")
    if not isinstance(response, dict):
        return part_text(part)
    given = fields(response.get("response"))
    return plain_text(given.get("output", given.get("error", response.get("response"))))


def history_result(response: Record) -> ToolResult:
    """Read an answer without a status, in which an error is recognised by its key."""
    given = fields(response.get("response"))
    status = "success" if "output" in given else "error" if "error" in given else "unknown"
    if status == "error" and response_text({"functionResponse": response}).startswith("[Operation Cancelled]"):
        status = "cancelled"
    return answer_of(response, status)


def answer_of(response: Record, status: Any, display: Any = None) -> ToolResult:
    """Read an answer of the API with a status of its execution."""
    told = {"name": response.get("name"), "status": status, "resultDisplay": display}
    return result_of({**told, "result": {"functionResponse": response}}, identifier(response.get("id")))


_BY_USER = later(
    r"user (?:cancel|decline|denied|reject|did not allow)|(?:cancell?ed|declined|rejected) by (?:the )?user", re.I
)
_SHELL_STOPPED = ("Command was cancelled by user", "Command was automatically cancelled")


def outcome_of(status: Any, said: str, exit_code: int | None, shell: bool) -> tuple[Outcome, OutcomeSource | None]:
    """Determine the outcome by the status, or by a shell command's exit code, as its status is always `success`."""
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
_EXIT_CODE = later(
    rf"{_LINE}Exit Code: (-?\d{{1,10}})"
    rf"(?:{_LINE}Signal: [^\n\\]{{0,40}})?(?:{_LINE}Background PIDs: [^\n\\]{{0,400}})?"
    rf"(?:{_LINE}Process Group PGID: [^\n\\]{{0,20}})?\s*\Z"
)
_TRAILER = 1000  # more than the longest trailer


def exit_code_of(said: str, display: Any) -> int | None:
    """Read the exit code that the shell tool writes after the output, followed only by its own lines (`shell.ts`).

    Newer versions leave it out if it is 0; a last line `Exit Code: 3` printed by the command itself would then be
    taken for it, so the command's output, which is also in `resultDisplay`, is cut off first.
    """
    if not said.startswith(("Command: ", "Output: ")):
        return None
    output = f"Output: {display}" if isinstance(display, str) and display else ""
    trailer = said[len(output) :] if output and said.startswith(output) else said
    match = _EXIT_CODE.search(trailer[-_TRAILER:])
    return int(match[1]) if match else None


# -- tool calls ------------------------------------------------------------------------------------
# Tool calls of a response: in `toolCalls`, with their results, or in an API turn.


def calls_and_results(record: Record, when: int | None) -> tuple[dict[str, Draft], dict[str, Draft]]:
    """Return the calls of a response and their results, at the times of completion, by the names of their parts."""
    calls: dict[str, Draft] = {}
    results: dict[str, Draft] = {}
    for n, tool in enumerate(map(fields, items(record.get("toolCalls")))):
        call_id = identifier(tool.get("id")) or f"{record['id']}.{n}"
        name = call_id if f"call.{call_id}" not in calls else f"{call_id}#{n}"
        call = ToolCall(call_id, text(tool.get("name")) or "unknown", tool.get("args", {}))
        calls[f"call.{name}"] = Draft(call, when, record["id"])
        status = tool.get("status")
        if status in _FINISHED or (status not in _UNFINISHED and as_list(tool.get("result"))):
            at = milliseconds(tool.get("timestamp")) or when
            results[f"result.{name}"] = Draft(result_of(tool, call_id), at, record["id"])
    return calls, results


def history_calls(message_id: str, content: list[Any], when: int | None) -> dict[str, Draft]:
    """Return the calls of an API turn. Next to `toolCalls` they are repetitions, often without an id."""
    result: dict[str, Draft] = {}
    for n, call in enumerate(bodies(content, "functionCall")):
        call_id = identifier(call.get("id"))
        payload = ToolCall(call_id, text(call.get("name")) or "unknown", call.get("args", {}))
        result[f"call.{call_id or n}"] = Draft(payload, when, message_id)
    return result


# -- user texts ------------------------------------------------------------------------------------
# Texts in the user's role: who speaks in them.

INJECTED = (
    "<session_context>", "<hook_context>", "System: Please continue.",
    "This is the Gemini CLI. We are setting up the context for our chat.",
)  # fmt: skip
"""The beginnings of texts that the CLI writes itself."""


def user_kind(said: str, state: LogState) -> UserKind:
    """Distinguish requests from the rest by the CLI's own `isIgnoredUserContent` and two texts that it sends itself.

    `System: Please continue.` retries an empty response (seen in logs); the set-up text begins old checkpoints.
    """
    if said.startswith(("/", "?")):
        return UserKind.COMMAND
    if said.startswith("<state_snapshot>"):
        return UserKind.COMPACTION_SUMMARY
    if said.startswith(INJECTED):
        return UserKind.INJECTED
    return requester(state)


# -- messages --------------------------------------------------------------------------------------
# One version of a message, divided into its drafts: what the user, the model and the CLI say.

FIGURES = "usage"
"""The part of a message with its token usage."""

NOTICES = ("info", "error", "warning")
MODEL_TYPES = ("gemini", "model")  # "model" occurs in published fixtures of the first era
_MESSAGE_TYPES = ("user", *MODEL_TYPES, *NOTICES)


def unknown_record(record: Record, state: LogState) -> Notification:
    """Keep a message or a record of an unknown type; without a type, its first key stands for it."""
    return unknown(text(record.get("type")) or next(iter(record), "empty"), record, state)


def parts_of(record: Record, state: LogState) -> Parts:
    """Divide one version of a message into its parts."""
    kind, when = record.get("type"), milliseconds(record.get("timestamp"))
    if kind not in _MESSAGE_TYPES:
        return {"info": Draft(unknown_record(record, state), when)}
    content = as_list(record.get("content", record.get("parts")))  # `parts` in the fixtures with type `model`
    if kind in NOTICES:
        return {"info": Draft(Notification(kind, joined_text(content)), when)}
    if kind == "user":
        said = joined_text(content)
        spoken = {"text": Draft(User(said, user_kind(said.strip(), state)), when)} if said.strip() else Parts()
        return spoken | _answers(record["id"], content, when, state)
    state.sessions[""].model = text(record.get("model")) or state.sessions[""].model
    return _model_parts(record, content, when, state)


def _answers(message_id: str, content: list[Any], when: int | None, state: LogState) -> Parts:
    """Return the results in a user message, as in the history of the API.

    After a compression the CLI writes that history as messages: an answer is then both in the `toolCalls` of an earlier
    message and in a user message of its own (`updateMessagesFromHistory`).
    """
    id = known_as(message_id)
    before = [parts for _, parts in takewhile(lambda entry: entry[0] != id, live_parts(state).items())]
    found: Parts = {}
    for n, response in enumerate(bodies(content, "functionResponse")):
        result = history_result(response)
        part = f"result.{result.call_id or n}"
        if result.call_id is None or not any(part_known_as(part) in parts for parts in before):
            found[part] = Draft(result, when)
    return found


def _model_parts(record: Record, content: list[Any], when: int | None, state: LogState) -> Parts:
    """Divide a response into thoughts, text, calls, tokens and the results of the calls."""
    found = _reasoning(record, content, when)
    said = joined_text(content)
    if said.strip():
        found["text"] = Draft(Message(said), when, record["id"])
    calls, results = calls_and_results(record, when)
    found |= calls if items(record.get("toolCalls")) else history_calls(record["id"], content, when)
    usage = usage_of(record, state, says_something=bool(found))
    if usage:
        found[FIGURES] = Draft(usage, when, record["id"])
    return found | results


def _reasoning(record: Record, content: list[Any], when: int | None) -> Parts:
    """Return the thoughts with their own times, then those that a checkpoint keeps in the content."""
    told = [(_thought(t), milliseconds(fields(t).get("timestamp"))) for t in items(record.get("thoughts"))]
    told += [(text(part.get("text")) or "", None) for part in content if is_thought(part)]
    return {
        f"thought.{n}": Draft(Reasoning(said), own_time or when, record["id"])
        for n, (said, own_time) in enumerate(told)
        if said
    }


def _thought(thought: Any) -> str:
    if isinstance(thought, str):
        return thought
    said = (text(fields(thought).get(key)) for key in ("subject", "description"))
    return "\n".join(filter(None, said))


# -- documents -------------------------------------------------------------------------------------
# Whole-file documents as the lines of a session: JSON sessions, and the histories of `/chat save` checkpoints.

REWRITTEN = "$rewritten"
"""Marks the patch of a rewritten document: its earlier contents can't be read any more, so they mustn't count."""

_MADE_UP = later(r"(?:message|history)-[0-9]+")
"""An id of a message that is only its position in a document, which means nothing outside it."""


def without(record: Record, key: str) -> Record:
    """Return a record without one of its keys."""
    return {k: v for k, v in record.items() if k != key}


def identified(messages: list[Any]) -> list[Record]:
    """Give every message an id (its position if the log has none), and wrap anything that isn't an object."""
    records = (m if isinstance(m, dict) else {"type": "unreadable", "value": m} for m in messages)
    return [
        {**record, "id": (identifier(record["id"]) or "") if isinstance(record.get("id"), str) else f"message-{n}"}
        for n, record in enumerate(records)
    ]


def as_patch(records: list[Record]) -> list[Record]:
    """Return the records of a rewritten document as a single patch of its previous session."""
    head, *messages = records
    return [{"$set": {**fields(head.get("$set", head)), "messages": messages}, REWRITTEN: True}]


def is_history(history: Any) -> bool:
    """Whether this is a history of API turns: roles and lists of parts."""
    return bool(items(history)) and all(
        fields(turn).get("role") in ("user", *MODEL_TYPES) and isinstance(turn.get("parts"), list) for turn in history
    )


def history_messages(history: list[Record]) -> Iterator[Record]:
    """Turn API turns into messages. Calls without an id get one, and answers get the same in the order of the calls."""
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


# -- sessions --------------------------------------------------------------------------------------
# The session: facts from a log's metadata, wherever they are.

METADATA_KEYS = {
    "activeExtensionName", "directories", "kind", "lastUpdated", "memoryScratchpad", "messages", "projectHash",
    "sessionId", "startTime", "summary",
}  # fmt: skip
"""The keys that a `$set` can change."""

_SUMMARY_RANK = 3
"""Above 2, the rank of a title from another log."""


def is_metadata(record: Record) -> bool:
    """Whether a record or a document has the keys with which a session begins."""
    return isinstance(record.get("sessionId"), str) and isinstance(record.get("projectHash"), str)


def note_metadata(metadata: Record, state: LogState) -> None:
    """Take the facts about the session from metadata, or from a `$set` of some of them."""
    facts = state.sessions[""]
    facts.id = facts.id or identifier(metadata.get("sessionId"))
    facts.project_hash = identifier(metadata.get("projectHash")) or facts.project_hash
    facts.cwd = facts.cwd or first_text(*items(metadata.get("directories")))
    if metadata.get("kind") == "subagent":
        facts.kind = "subagent"
    title = text(metadata.get("summary"))
    if title and facts.title_rank <= _SUMMARY_RANK:
        facts.title, facts.title_rank = title, _SUMMARY_RANK


# -- changes ---------------------------------------------------------------------------------------
# A log of changes: each record adds, replaces or retracts something. A message whose id has occurred replaces the
# earlier version, `$set.messages` replaces the whole list, `$rewindTo` drops its end (`chatRecordingService.ts` of
# gemini-cli). The tokens of a dropped message were spent, so its token usage stays. Only a rewritten document retracts
# it as well, as reading that document for the first time wouldn't find it either.


def replace(record: Record, state: LogState) -> list[Change]:
    """Read a message that is new or replaces its earlier version."""
    parts = parts_of(record, state)
    for name, draft in parts.items() if not _MADE_UP.fullmatch(record["id"]) else ():
        draft.identity = f"{record['id']}/{name}"
    return replace_message(record["id"], parts, state)


def patch(changed: Record, kind: str, state: LogState, *, rewritten: bool = False) -> list[Change]:
    """Read metadata; a list of messages in it replaces all messages."""
    note_metadata(changed, state)
    state.skipped.append(kind)
    if not isinstance(changed.get("messages"), list):
        return []
    messages = identified(changed["messages"])
    ids = [known_as(message["id"]) for message in messages]
    before = live_parts(state)
    result = forget_messages([id for id in before if id not in ids], state, "" if rewritten else FIGURES)
    live = state.memory["messages"] = {}
    for id, message in zip(ids, messages, strict=True):  # of two with the same id, the later one counts
        live.setdefault(id, before.get(id, {}))
        result += replace(message, state)
    return result


def rewind(message_id: str, state: LogState) -> list[Change]:
    """Drop a message and all after it, or all messages if it is unknown (README.md)."""
    id, ids = known_as(message_id), list(live_parts(state))
    dropped = ids[ids.index(id) :] if id in ids else ids
    gone = forget_messages(dropped, state, FIGURES, rolled_back=True)
    return [*gone, Draft(Notification("rewind", message_id), None)]


# -- parser ----------------------------------------------------------------------------------------

_COMMON_KEYS = {"id", "timestamp", "type", "content", "displayContent"}


def recognizes(record: Record) -> bool:
    """Whether only Gemini CLI writes such a record: its metadata, its messages, `$set` or `$rewindTo`.

    The keys of user and notice messages are common ones (id, timestamp, type, content), so they must have exactly
    these; a `gemini` message is recognised by its type.
    """
    if is_metadata(record):
        return True
    if record.keys() == {"$set"}:
        return bool(fields(record["$set"]).keys() & METADATA_KEYS)
    if record.keys() == {"$rewindTo"}:
        return isinstance(record["$rewindTo"], str)
    return _is_own_message(record)


def unroll(document: Any) -> Iterable[Record] | None:
    """Return a JSON session as metadata and messages, or a checkpoint (`/chat save`) as if it were one.

    None for anything else, such as `logs.json` (prompts only) and recordings of the Gemini API.
    """
    if not isinstance(document, dict):
        return None
    if is_metadata(document) and isinstance(document.get("messages"), list):
        return [without(document, "messages"), *identified(document["messages"])]
    if is_history(document.get("history")):
        return [{"$set": without(document, "history")}, *history_messages(document["history"])]
    return None


def begin(path: PurePath) -> LogState:
    """Return the state before the first record; a sub-agent's log is in `chats/<parent's session id>/` since 0.37."""
    if path.parent.name != "chats" and path.parent.parent.name == "chats":
        return LogState({"": SessionFacts(parent_id=identifier(path.parent.name), kind="subagent")})
    return LogState({"": SessionFacts(kind="warmup")})


def drafts(record: Record, state: LogState) -> Iterable[Change]:
    """Return what the next record changes.

    A session in which nobody has spoken is a mere start: each `--resume` leaves a log of it with the context alone, and
    goes on in the first one.
    """
    said, facts = _changes(record, state), state.sessions[""]
    if facts.kind == "warmup" and any(isinstance(one, Draft) and _is_spoken(one.payload) for one in said):
        facts.kind = "main"
    return said


def _is_spoken(payload: Payload) -> bool:
    injected = isinstance(payload, User) and payload.kind is UserKind.INJECTED
    return not (injected or isinstance(payload, Notification))


def _changes(record: Record, state: LogState) -> list[Change]:
    """Return what a record changes; the checks are in the order of gemini-cli's own loader."""
    if isinstance(record.get("$rewindTo"), str):
        return rewind(identifier(record["$rewindTo"]) or "", state)
    if isinstance(record.get("id"), str):
        result = replace({**record, "id": identifier(record["id"]) or ""}, state)
        if not any(isinstance(one, Draft) for one in result):
            state.skipped.append(str(record.get("type")))
        return result
    if isinstance(record.get("$set"), dict):
        return patch(record["$set"], "$set", state, rewritten=REWRITTEN in record)
    if is_metadata(record):
        return patch(record, "metadata", state)
    return [Draft(unknown_record(record, state), milliseconds(record.get("timestamp")))]


def _is_own_message(record: Record) -> bool:
    stamped = isinstance(record.get("id"), str) and isinstance(record.get("timestamp"), str)
    if not stamped or "content" not in record:
        return False
    if record.get("type") == "gemini":
        return True
    return record.get("type") in ("user", *NOTICES) and record.keys() <= _COMMON_KEYS


# -- retention -------------------------------------------------------------------------------------
# How long Gemini CLI keeps its logs: `general.sessionRetention`, with `enabled` and `maxAge` (its settings reference).
# Since March 2026 it deletes sessions after 30 days unless that is switched off; before, it kept all unless it was
# switched on. The version isn't known here, so without the setting neither is certain.

_SETTING, _DAYS = "general.sessionRetention", 30.0
_TO_KEEP = f"set {_SETTING}.enabled to false"
_AGE = later(r"([0-9]{1,6})([hdwm])")
_UNITS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0}
"""Days; the CLI counts a month as 30."""


def retention(environment: Mapping[str, str], home: Path) -> list[Retention]:
    """Return how long it keeps its logs."""
    return [_of(root.parent / "settings.json") for root in GEMINI.home.roots(environment, home)]


def _of(file: Path) -> Retention:
    settings = settings_in(file)
    found = fields(settings.get("general")).get("sessionRetention")
    enabled, age = fields(found).get("enabled"), _AGE.fullmatch(str(fields(found).get("maxAge")))
    days = None if enabled is False else int(age[1]) * _UNITS[age[2]] if age else _DAYS
    told = isinstance(enabled, bool), _SETTING, str(file), found is not None, _TO_KEEP
    return Retention(days, *told, runs_agtrace(settings))


SETUP = Setup(
    title="Gemini CLI",
    executable="gemini",
    home_variable="GEMINI_CLI_HOME",
    config_file=".gemini/settings.json",
    moved_config_file=".gemini/settings.json",
    name_last=True,
)
"""Gemini CLI as a client of our server."""
