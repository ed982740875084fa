"""Kiro: JSONL sessions, and the conversations of Amazon Q and Kiro CLI 1 (README.md)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from agtrace_schema.events import (
    Message,
    Notification,
    Outcome,
    OutcomeSource,
    Payload,
    Reasoning,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record, SessionFacts
from agtrace_indexer.events.json_values import (
    compact_json,
    digest,
    fields,
    first_text,
    image_placeholder,
    items,
    milliseconds,
    text,
)
from agtrace_indexer.events.strings import identifier, masked
from agtrace_indexer.logs.decoding import single
from agtrace_indexer.logs.discovery import Container, LogFile
from agtrace_indexer.logs.foreign_database import Question, as_bytes, ask, columns_of
from agtrace_indexer.providers.beside import object_beside
from agtrace_indexer.providers.kiro import OF_EVENTS
from agtrace_indexer.providers.notes import identify, log_name, numbered, plain_text, requester, skip, unknown
from agtrace_indexer.providers.provider import LogInside, Row

# -- tool results ----------------------------------------------------------------------------------
# Results of tool executions: their outcome, and what the model was given. A command that fails is a `success` whose
# `exit_status` isn't 0.

_CANCELLED = "Tool use was cancelled by the user"
"""What the agent writes as the results of calls that the user didn't let run."""

_EXIT = later(r"(?:exit (?:status|code): )?(-?[0-9]{1,10})")
_STOPPED = "signal: 2 (SIGINT)"
_OF_A_COMMAND = ("stdout", "stderr")


class Part(NamedTuple):
    """A part of what a tool returned: a text, or a JSON value."""

    kind: str
    data: Any


def parts_of(content: Any) -> list[Part]:
    """Return the parts of a result, which name their kind (`{"kind": "text", "data": ...}`) or are named by it."""
    result = []
    for item in items(content):
        told = fields(item)
        named = next(((key.lower(), told[key]) for key in ("Text", "Json", "Image") if key in told), ("json", item))
        result.append(Part(told["kind"], told.get("data")) if isinstance(told.get("kind"), str) else Part(*named))
    return result


def result_of(call_id: Any, status: Any, parts: list[Part]) -> ToolResult:
    """Read a result, by its status and by the exit status of a command in it."""
    said = "\n".join(filter(None, map(_written, parts)))
    status_text = next(filter(None, map(_exit_status, parts)), None)
    found = _EXIT.fullmatch(status_text) if status_text else None
    exit_code = int(found[1]) if found else None
    outcome, source = _outcome(str(status).lower(), said, status_text, exit_code)
    return ToolResult(identifier(call_id), said, outcome, source, exit_code)


def _outcome(status: str, said: str, ended: str | None, code: int | None) -> tuple[Outcome, OutcomeSource | None]:
    if status == "error":
        if said.startswith(_CANCELLED):
            return Outcome.REJECTED, OutcomeSource.TEXT
        return Outcome.FAILED, OutcomeSource.STRUCTURE
    if status != "success":
        return Outcome.UNKNOWN, None
    if ended == _STOPPED:
        return Outcome.INTERRUPTED, OutcomeSource.STRUCTURE
    return (Outcome.OK if ended is None or code == 0 else Outcome.FAILED), OutcomeSource.STRUCTURE


def _exit_status(part: Part) -> str | None:
    """Return how a command ended, if this is the output of one: `exit status: 1`, or `1` before 2.0."""
    ended = fields(part.data).get("exit_status") if part.kind == "json" else None
    return ended if isinstance(ended, str) else None


def _written(part: Part) -> str:
    if part.kind == "image":
        return picture(part.data)
    if isinstance(part.data, str):
        return part.data
    ended = _exit_status(part)
    if ended is None or not all(isinstance(part.data.get(name), str) for name in _OF_A_COMMAND):
        return "" if part.data is None else compact_json(part.data)
    rest = {key: value for key, value in part.data.items() if key not in (*_OF_A_COMMAND, "exit_status")}
    printed = (part.data[name].removesuffix("\n") for name in _OF_A_COMMAND)
    return "\n".join(filter(None, [*printed, ended, compact_json(rest) if rest else ""]))


def picture(data: Any) -> str:
    """Return the placeholder of an image."""
    told = fields(data)
    source = told.get("source")
    content = next(iter(source.values()), None) if isinstance(source, dict) else source
    kind = told.get("format")
    return image_placeholder(f"image/{kind}" if isinstance(kind, str) else None, content)


# -- conversations ---------------------------------------------------------------------------------
# A conversation as Amazon Q and Kiro CLI 1 kept it: one JSON object with a history of exchanges. `transcript` repeats
# the history as text, and `additional_context` is what hooks added to a request: neither is read.

ABOUT, EXCHANGE = "$conversation", "$exchange"
"""The keys of the records that are made of a conversation: facts, and a request with its response."""

FOLDER = "$folder"
"""Where the first of them has the folder, which is beside the conversation in a database."""

_REPEATED = ("history", "transcript")


def is_conversation(document: Any) -> bool:
    """Whether this is a conversation."""
    told = fields(document)
    entries = told.get("history")
    return (
        isinstance(told.get("conversation_id"), str)
        and isinstance(entries, list)
        and all(fields(entry).keys() >= {"user", "assistant"} for entry in entries)
    )


def records_of(conversation: Record, folder: str | None = None) -> list[Record]:
    """Return a conversation as records: what it says about itself, and one for each exchange."""
    about = {key: value for key, value in conversation.items() if key not in _REPEATED}
    return [{ABOUT: {**about, FOLDER: folder}}, *({EXCHANGE: entry} for entry in conversation["history"])]


def summary_of(conversation: Record) -> str | None:
    """Return the summary that took the place of earlier exchanges: the first of `latest_summary`, or all of it."""
    found = conversation.get("latest_summary")
    return text(found[0] if isinstance(found, list) and found else found)


def read_about(about: Record, state: LogState) -> list[Draft]:
    """Take the facts of a conversation; a new summary means that what it sums up is gone."""
    facts, model = state.sessions[""], fields(about.get("model_info"))
    facts.id = facts.id or identifier(about.get("conversation_id"))
    facts.cwd = facts.cwd or text(about.get(FOLDER))
    facts.model = facts.model or first_text(model.get("model_id"), model.get("model_name"), about.get("model"))
    summary = summary_of(about)
    if summary is None or state.memory.get("summary") == digest(summary):
        return skip("conversation", state)
    state.memory["summary"] = digest(summary)
    compaction = Draft(Notification("compaction", ""), None)
    return [compaction, Draft(User(summary, UserKind.COMPACTION_SUMMARY), None)]


def read_exchange(entry: Record, state: LogState) -> list[Draft]:
    """Read a request, or the results that were sent in place of one, and the response to it."""
    user, told = fields(entry.get("user")), fields(entry.get("request_metadata"))
    place = fields(fields(user.get("env_context")).get("env_state")).get("current_working_directory")
    facts = state.sessions[""]
    facts.cwd = facts.cwd or text(place)
    facts.model = text(told.get("model_id")) or facts.model
    said = [Draft(payload, milliseconds(user.get("timestamp"))) for payload in _asked(user.get("content"), state)]
    kind, answer = _variant(entry.get("assistant"))
    named = identifier(answer.get("message_id")) or identifier(told.get("message_id"))
    at = milliseconds(told.get("stream_end_timestamp_ms"))
    step = named or numbered("exchange", state)
    said += [Draft(payload, at, step) for payload in _answered(kind, answer, entry, state)]
    identify(said, named)
    return said or skip("exchange/empty", state)


def _variant(value: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the content of `{"Name": {...}}`."""
    told = fields(value)
    name = next(iter(told), "")
    return name, fields(told.get(name))


def _asked(content: Any, state: LogState) -> list[Payload]:
    if content is None:  # cut out of published copies
        return []
    kind, told = _variant(content)
    if kind not in ("Prompt", "ToolUseResults", "CancelledToolUses"):
        return [unknown(f"user.{kind or 'content'}", content, state)]
    results = map(fields, items(told.get("tool_use_results")))
    made: list[Payload] = [
        result_of(one.get("tool_use_id"), one.get("status"), parts_of(one.get("content"))) for one in results
    ]
    prompt = told.get("prompt")
    if isinstance(prompt, str) and prompt.strip():
        made.append(User(prompt, UserKind.HUMAN))
    return made


def _answered(kind: str, answer: dict[str, Any], entry: Record, state: LogState) -> list[Payload]:
    if kind not in ("Response", "ToolUse"):
        return [] if entry.get("assistant") is None else [unknown(f"assistant.{kind}", entry["assistant"], state)]
    said = answer.get("content")
    made: list[Payload] = [Message(said if isinstance(said, str) else compact_json(said))] if said else []
    for call in map(fields, items(answer.get("tool_uses"))):
        name = text(call.get("name")) or text(call.get("orig_name")) or "unknown"
        made.append(ToolCall(identifier(call.get("id")), name, call.get("args", call.get("orig_args"))))
    return made


# -- sidecars --------------------------------------------------------------------------------------
# The `<id>.json` next to a log: folder, title, parent and model of its session, and how its turns ended. The agent
# writes it again after every turn. Only the JSONL has what was said, so it is the log; the sidecar yields facts, and a
# notification after the lines of a turn that ended otherwise than usual. As such a notification belongs in the middle
# of a log, one that comes when its turn has been read already makes the log be read again.

_LARGEST = 16 * 1024 * 1024
_USUAL = (None, "UserTurnEnd")
_ENDS_REMEMBERED = 1_000
_LONGEST_REASON = 2_000


def is_description(document: Any) -> bool:
    """Whether a document is such a file."""
    told = fields(document)
    if isinstance(told.get("workspacePaths"), list):
        return isinstance(told.get("id"), str)
    return all(isinstance(told.get(key), str) for key in ("session_id", "cwd")) and "session_state" in told


def begin(path: PurePath) -> LogState:
    """Return the state of a log before its first line, by the file next to it."""
    if path.name == EVENTS:
        beside = object_beside(path.with_name("session"), ".json", _LARGEST)
        facts = SessionFacts(id=identifier(beside.get("id")) or identifier(path.parent.name))
        facts.cwd, facts.title = text(next(iter(items(beside.get("workspacePaths"))), None)), text(beside.get("title"))
        facts.model = text(beside.get("modelId"))
        return LogState({"": facts}, {"described": True} if beside else {})
    beside = object_beside(path, ".json", _LARGEST)
    if not identifier(beside.get("session_id")):
        return LogState()
    session = fields(beside.get("session_state"))
    facts, ends = _facts(beside, session), _ends(session)
    return LogState({"": facts}, {"described": True} | ({"ends": ends} if ends else {}))


def refresh(state: LogState, begun: LogState) -> bool:
    """Take what the file next to a log says now; False if the log has to be read again (`Sidecar`)."""
    if "described" not in begun.memory:  # gone, or half-written: what is known stays
        return True
    before, now = state.sessions[""], begun.sessions[""]
    alike = before.kind == now.kind and state.memory.get("ends") == begun.memory.get("ends")
    state.sessions[""], state.memory["described"] = now, True
    return alike


def end_of_turn(message_id: str | None, state: LogState) -> list[Draft]:
    """Return a note on how a message's turn ended, if not as usual; the turn's next message replaces it."""
    said = state.memory.get("ends", {}).get(message_id)
    if said is None:
        return []
    kind, reason, at, turn = said
    return [Draft(Notification(kind, reason), at, key=f"end/{turn}", ends_turn=True)]


def _facts(beside: dict[str, Any], session: dict[str, Any]) -> SessionFacts:
    model = fields(fields(session.get("rts_model_state")).get("model_info"))
    parent = identifier(beside.get("parent_session_id"))
    facts = SessionFacts(id=identifier(beside.get("session_id")), parent_id=parent)
    facts.cwd, facts.title = text(beside.get("cwd")), text(beside.get("title"))
    facts.model = first_text(model.get("model_id"), model.get("model_name"))
    if parent is not None:  # the reason alone says `subagent` of others as well
        facts.kind = "subagent" if beside.get("session_created_reason") == "subagent" else "fork"
        facts.agent_type = text(session.get("agent_name")) if facts.kind == "subagent" else None
    return facts


def _ends(session: dict[str, Any]) -> dict[str, list[Any]]:
    """Return kind, text, time and number of the unusual ends of turns by the ids of the turns' messages."""
    turns = items(fields(session.get("conversation_metadata")).get("user_turn_metadatas"))
    found: dict[str, list[Any]] = {}
    for number, turn in enumerate(map(fields, turns)):
        kind, reason, result = "turn_end", turn.get("end_reason"), turn.get("result")
        if isinstance(result, dict) and "Err" in result:
            kind, reason = "turn_error", result["Err"]
        elif reason in _USUAL:
            continue
        said = [kind, masked(plain_text(reason), _LONGEST_REASON), milliseconds(turn.get("end_timestamp")), number]
        found |= dict.fromkeys(filter(None, map(identifier, items(turn.get("message_ids")))), said)
    return dict(list(found.items())[-_ENDS_REMEMBERED:])


# -- messages --------------------------------------------------------------------------------------
# The lines of a JSONL session: prompts, responses, results of tools.

KINDS = ("Prompt", "AssistantMessage", "ToolResults")


def read_line(record: Record, state: LogState) -> list[Draft]:
    """Read a line of a known kind. Only prompts have a time, in seconds."""
    kind, data = record["kind"], fields(record.get("data"))
    at = milliseconds(fields(data.get("meta")).get("timestamp"))
    named = identifier(data.get("message_id"))
    parts = parts_of(data.get("content"))
    step = (named or numbered("response", state)) if kind == "AssistantMessage" else None
    if kind == "Prompt":
        payloads = _prompt(parts, state)
    elif kind == "AssistantMessage":
        payloads = [payload for part in parts if (payload := _said(part, state))]
    else:
        payloads = [*(_returned(part, state) for part in parts), *_elsewhere(data, parts)]
    made = [Draft(payload, at, step) for payload in payloads]
    identify(made, named)
    return [*(made or skip(f"{kind}/empty", state)), *end_of_turn(named, state)]


def _prompt(parts: list[Part], state: LogState) -> list[Payload]:
    """Read a prompt: texts and images together are one, parts of other kinds are kept for themselves."""
    spoken = [part for part in parts if part.kind in ("text", "image")]
    others = [part for part in parts if part.kind not in ("text", "image")]
    said = "\n".join(picture(part.data) if part.kind == "image" else plain_text(part.data) for part in spoken)
    users: list[Payload] = [User(said, requester(state))] if said.strip() else []
    return [*users, *(unknown(f"Prompt.{part.kind}", part.data, state) for part in others)]


def _said(part: Part, state: LogState) -> Payload | None:
    """Read a part of a response; a text is often empty before a call."""
    data = fields(part.data)
    if part.kind == "text":
        return Message(plain_text(part.data)) if part.data else None
    if part.kind in ("thinking", "reasoning"):
        return Reasoning(plain_text(data.get("text", data.get("thinking")) if data else part.data))
    if part.kind == "toolUse":
        return ToolCall(identifier(data.get("toolUseId")), text(data.get("name")) or "unknown", data.get("input"))
    return unknown(f"AssistantMessage.{part.kind}", part.data, state)


def _returned(part: Part, state: LogState) -> Payload:
    data = fields(part.data)
    if part.kind != "toolResult":
        return unknown(f"ToolResults.{part.kind}", part.data, state)
    return result_of(data.get("toolUseId"), data.get("status"), parts_of(data.get("content")))


def _elsewhere(data: Record, parts: list[Part]) -> Iterator[Payload]:
    """Return results that are only in `results`, which otherwise repeats the content with the calls' arguments.

    They are `{"Success": {"items": [...]}}`, or a value under another name.
    """
    told = {fields(part.data).get("toolUseId") for part in parts if isinstance(fields(part.data).get("toolUseId"), str)}
    for call_id, given in fields(data.get("results")).items():
        if call_id not in told:
            status, value = next(iter(fields(fields(given).get("result")).items()), ("", None))
            yield result_of(call_id, status, parts_of(items(fields(value).get("items")) or [value]))


# -- events ----------------------------------------------------------------------------------------
# Lines of Kiro CLI 3 and of the editor, `sessions/<folder>/sess_<id>/messages.jsonl`: an id, a time and one event each.
# What the model says and calls until a result or the next request is one response. Figures are in credits, not tokens.
# No vendor's source is public: the format is that which several readers of such logs agree on (codeburn, PokeTokenBar).

EVENTS = "messages.jsonl"

_SAID_ASIDE = frozenset({"session_start", "turn_start", "session_metadata", "usage_summary"})
_USUAL_ENDS = (None, "end_turn")
_EXITED = later(r"(?:\A|\n)Exit Code: (-?[0-9]{1,9})\s*\Z")
_TAIL = 200


def is_event(record: Record) -> bool:
    """Whether a record is a line of such a log."""
    kind = fields(record.get("payload")).get("type")
    return isinstance(record.get("id"), str) and isinstance(kind, str) and "type" not in record


def read_event(record: Record, state: LogState) -> list[Draft]:
    """Read a line; the state of a call may be written again."""
    event, at, named = record["payload"], milliseconds(record.get("timestamp")), identifier(record["id"])
    kind, call_id = event["type"], identifier(event.get("toolCallId"))
    if kind in ("assistant", "tool_call"):
        step = state.memory.setdefault("step", named)
    else:
        step = None
        state.memory.pop("step", None)
    key = None
    match kind:
        case "user":
            pictures = map(picture, items(event.get("images")))
            said = "\n".join(filter(None, [plain_text(event.get("content")), *pictures]))
            payload: Payload = User(said, requester(state))
        case "assistant":
            said = plain_text(event.get("content"))
            payload = Reasoning(said) if event.get("operationType") == "Reasoning" else Message(said)
        case "tool_call":
            payload = ToolCall(call_id, text(event.get("toolName")) or "unknown", event.get("args", {}))
            key = f"call/{call_id}"
        case "tool_result":
            payload, key = _event_result(event, call_id), f"result/{call_id}"
        case "turn_end" if event.get("stopReason") not in _USUAL_ENDS:
            said = plain_text(event["stopReason"])
            return [Draft(Notification("turn_end", said), at, identity=named, ends_turn=True)]
        case _ if kind in _SAID_ASIDE or kind == "turn_end":
            return skip(kind, state)
        case _:
            payload, said = unknown(kind, record, state), kind
    if kind in ("user", "assistant") and not said.strip():
        return skip(f"{kind}/empty", state)
    return [Draft(payload, at, step, key=key if call_id else None, identity=named)]


def _event_result(event: Record, call_id: str | None) -> ToolResult:
    said, succeeded = plain_text(event.get("content")), event.get("success")
    ended = _EXITED.search(said[-_TAIL:])
    code = int(ended[1]) if ended else None
    if not isinstance(succeeded, bool):
        return ToolResult(call_id, said, Outcome.UNKNOWN, None, code)
    if succeeded and code:
        return ToolResult(call_id, said, Outcome.FAILED, OutcomeSource.TEXT, code)
    return ToolResult(call_id, said, Outcome.OK if succeeded else Outcome.FAILED, OutcomeSource.STRUCTURE, code)


# -- database --------------------------------------------------------------------------------------
# Conversations in `data.sqlite3`: a row for each, which is rewritten after every exchange.
# Amazon Q kept one row for each folder, with `key` as its path (`conversations`); Kiro CLI 1 keeps several
# (`conversations_v2`). When the context is compacted, the history of a conversation begins again: what was read before
# stays, and what follows is read as its continuation. The source of the format is Amazon Q's code; no real database was
# seen.

_LARGEST_ROW = 256 * 1024 * 1024


class _Kept(NamedTuple):
    """A row with a conversation."""

    folder: Any
    stamp: str
    size: int
    value: Question
    """Returns the conversation."""


def logs(container: Container) -> Iterable[LogInside]:
    """Yield a log for each conversation. Raises `OSError` if the database has none of the tables."""
    return [LogInside(name, kept.stamp, kept.size) for name, kept in _kept(container.path).items()]


def rows(file: LogFile, position: Any) -> Iterator[Row]:
    """Yield what a conversation says about itself, if that is new, and its exchanges after the last one that was read.

    A row that isn't a conversation is returned as it is, and read as an unreadable line.
    """
    kept = _kept(file.container).get(file.path[len(file.container) + 1 :])
    values = [] if kept is None else ask(file.container, kept.value)[0]
    if kept is None or not values:
        return
    data = as_bytes(values[0][0])
    conversation = _conversation(data)
    if conversation is not None:
        yield from _new(conversation, str(kept.folder), position if isinstance(position, dict) else None)
    elif position != [kept.stamp]:
        yield Row(1, data, [kept.stamp])


def _kept(path: str) -> dict[str, _Kept]:
    """Return the rows with conversations by the names of their logs."""
    columns, found = columns_of(path), dict[str, _Kept]()
    if not columns["conversations"] and not columns["conversations_v2"]:
        raise OSError(0, "it has no table of conversations")
    if columns["conversations"]:  # only the conversation itself says its id
        sql = "SELECT key, value, length(value) FROM conversations WHERE length(value) <= ?"
        for folder, value, size in ask(path, (sql, (_LARGEST_ROW,)))[0]:
            data = as_bytes(value)
            name = log_name((_conversation(data) or {}).get("conversation_id"), str(folder))
            question = ("SELECT value FROM conversations WHERE key IS ?", (folder,))
            found[name] = _Kept(folder, f"{zlib.crc32(data)}/{size}", size, question)
    if columns["conversations_v2"]:
        sql = "SELECT key, conversation_id, updated_at, length(value) FROM conversations_v2 WHERE length(value) <= ?"
        for folder, id, changed, size in ask(path, (sql, (_LARGEST_ROW,)))[0]:
            one = ("SELECT value FROM conversations_v2 WHERE key IS ? AND conversation_id IS ?", (folder, id))
            found[log_name(id, f"{folder}/{id}")] = _Kept(folder, f"{changed}/{size}", size, one)
    return found


def _new(conversation: Record, folder: str, position: dict[str, Any] | None) -> Iterator[Row]:
    about, *exchanges = records_of(conversation, folder)
    digests = [digest(compact_json(exchange)) for exchange in exchanges]
    summary = digest(summary_of(conversation) or "")
    begin = 0 if position is None else _continuation(digests, position)
    place = {"read": begin, "last": digests[begin - 1] if begin else "", "summary": summary}
    if position is None or position["summary"] != summary:
        yield Row(1, as_bytes(compact_json(about)), place)
    for number, exchange in enumerate(exchanges[begin:], begin + 1):
        place = {"read": number, "last": digests[number - 1], "summary": summary}
        yield Row(number, as_bytes(compact_json(exchange)), place)


def _continuation(digests: list[str], position: dict[str, Any]) -> int:
    """Return the number of exchanges that were read: fewer than before if the oldest are gone."""
    read, last = position["read"], position["last"]
    if not read or digests[read - 1 : read] == [last]:
        return int(read)
    return next((n for n in range(len(digests), 0, -1) if digests[n - 1] == last), 0)


def _conversation(data: bytes) -> Record | None:
    found = single(data)
    return found if isinstance(found, dict) and is_conversation(found) else None


# -- parser ----------------------------------------------------------------------------------------


def recognizes(record: Record) -> bool:
    """Whether only Kiro writes such a record: version, kind and data of a line, or an event of a known type."""
    data = record.get("data")
    if is_event(record):
        return record["payload"]["type"] in ("session_start", *OF_EVENTS) and isinstance(record.get("timestamp"), str)
    return (
        isinstance(record.get("version"), str)
        and record.get("kind") in KINDS
        and isinstance(data, dict)
        and isinstance(data.get("content"), list)
    )


def unroll(document: Any) -> Iterable[Record] | None:
    """Return the records of a conversation that was exported (`/chat save`); none of the file next to a log."""
    if is_description(document):
        return []
    return records_of(document) if is_conversation(document) else None


def drafts(record: Record, state: LogState) -> Sequence[Draft]:
    """Return the events of the next record; see `Parser.drafts`."""
    if isinstance(record.get(ABOUT), dict):
        return read_about(record[ABOUT], state)
    if isinstance(record.get(EXCHANGE), dict):
        return read_exchange(record[EXCHANGE], state)
    if record.get("kind") in KINDS and isinstance(record.get("data"), dict):
        return read_line(record, state)
    if is_event(record):
        return read_event(record, state)
    if record.get("kind") == "Clear":  # of the context
        return skip("Clear", state)
    return [Draft(unknown(text(record.get("kind")) or next(iter(record), "empty"), record, state), None)]
