"""Goose: sessions in a database, or in files of JSON lines before 1.10 (README.md)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias

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
from msgspec import Struct, field

from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction, Rollback, Said
from agtrace_indexer.events.json_values import (
    by_name,
    compact_json,
    count,
    digest,
    fields,
    first_text,
    image_placeholder,
    items,
    milliseconds,
    text,
)
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.logs.decoding import decode, single
from agtrace_indexer.logs.discovery import Container, LogFile
from agtrace_indexer.logs.foreign_database import as_bytes, ask, tables_of
from agtrace_indexer.providers.notes import check_usage, empty_state, known, log_name, no_document, skip, unknown
from agtrace_indexer.providers.provider import LogInside, Row

# -- tokens ----------------------------------------------------------------------------------------
# Token counts: each request once, whether a message, the ledger of requests or only the session's totals have them.
# Input includes what was read from and written to the cache: Goose adds these up for all models. What a request's total
# has more than input and output are thoughts, as Gemini's API has them beside the output; of older sums nobody knows.

TOTALS = "session-usage"
"""The key of the tokens of requests that are only in a session's totals."""

_NAMES = {
    "input_tokens": "inputTokens", "output_tokens": "outputTokens",
    "cache_read_tokens": "cacheReadInputTokens", "cache_write_tokens": "cacheWriteInputTokens",
    "total_tokens": "totalTokens",
}  # fmt: skip
"""The names of figures in the ledger, and in the metadata of a message."""

_KNOWN = known(*_NAMES.values(), "elapsedMs", "timeToFirstTokenMs")


def usage_of(record: Record, named: str | None, at: int | None, step: str | None, state: LogState) -> Draft | None:
    """Return the tokens of a message's response: from the ledger, if its row is known, else from the message."""
    check_usage(fields(record.get("metadata")).get("usage"), _KNOWN, state)
    if record.get("counted") is True:  # the ledger's row came before the message
        return None
    ledger, metadata = fields(record.get("ledger")), fields(fields(record.get("metadata")).get("usage"))
    told = ledger or {name: metadata.get(other) for name, other in _NAMES.items()}
    usage = _usage(told, named, state)
    if usage is None:
        return None
    key = f"usage/l{ledger.get('row')}" if ledger else f"usage/m{named or record.get('created')}"
    return Draft(usage, at, step, key=key, identity=f"{named}/usage" if named else None)


def ledger_usage(record: Record, state: LogState) -> list[Said]:
    """Read a request in the ledger that no message has: a compaction, or the answer to a message that is gone."""
    usage = _usage(record, None, state)
    if usage is None:
        return [*skip("usage/empty", state)]
    return [Draft(usage, milliseconds(record.get("created")), key=f"usage/l{record.get('row')}")]


def totals(record: Record, state: LogState) -> list[Said]:
    """Read the tokens of requests that are in a session's totals and nowhere else; none takes back those before."""
    usage = _usage(record, None, state, sums=True)
    return [Retraction([TOTALS])] if usage is None else [Draft(usage, None, key=TOTALS)]


def _usage(told: dict[str, Any], response: str | None, state: LogState, *, sums: bool = False) -> TokenUsage | None:
    """Return figures in our terms; None if there are none, or only zeros."""
    figures = {name: count(told.get(name)) for name in _NAMES}
    if not any(figures.values()):
        return None
    sent, read, written = figures["input_tokens"], figures["cache_read_tokens"], figures["cache_write_tokens"]
    cost, output = told.get("cost"), figures["output_tokens"]
    more = max((figures["total_tokens"] or 0) - (sent or 0) - (output or 0), 0)
    return TokenUsage(
        response_id=response,
        model=text(told.get("model")) or state.sessions[""].model,
        input_tokens=None if sent is None else max(sent - (read or 0) - (written or 0), 0),
        cache_creation_5m_tokens=written,
        cache_read_tokens=read,
        output_tokens=output if sums or not more else (output or 0) + more,
        reasoning_tokens=None if sums else more or None,
        complete=not (sums and more),
        cost_usd=float(cost) if isinstance(cost, (int, float)) and 0 <= cost < 1e6 else None,
    )


# -- tool results ----------------------------------------------------------------------------------
# Results of tool executions: their outcome, and what the model was given.

_DECLINED = "The user has declined to run this tool"
_INTERRUPTED = later(r"\binterrupted by the user\b", re.IGNORECASE)
_LONGEST_NOTE = 1_000


def tool_result(block: Record) -> ToolResult:
    """Read a `toolResponse`: an execution that never began is an `error`, one that failed has `isError`."""
    result = fields(block.get("toolResult"))
    value = result.get("value")
    content = value if isinstance(value, list) else items(fields(value).get("content"))
    said = "\n".join(filter(None, map(part_text, content)))
    if not said:
        said = _plain(result.get("error") if "error" in result else None if content else value)
    outcome, source = _outcome(result, fields(value).get("isError") is True, said)
    return ToolResult(identifier(block.get("id")), said, outcome, source)


def _outcome(result: Record, failed: bool, said: str) -> tuple[Outcome, OutcomeSource | None]:
    status = result.get("status")
    if status not in ("error", "success"):
        return Outcome.UNKNOWN, None
    if said.startswith(_DECLINED):
        return Outcome.REJECTED, OutcomeSource.TEXT
    if status == "error" or failed:
        if _INTERRUPTED.search(said[:_LONGEST_NOTE]):
            return Outcome.INTERRUPTED, OutcomeSource.TEXT
        return Outcome.FAILED, OutcomeSource.STRUCTURE
    return Outcome.OK, OutcomeSource.STRUCTURE


def part_text(part: Any) -> str:
    """Read a part of a content as text; an image becomes a placeholder."""
    told = fields(part)
    if isinstance(told.get("text"), str):
        return str(told["text"])
    if told.get("type") == "image":
        return image_placeholder(told.get("mimeType"), told.get("data"))
    return _plain(part)


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value in (None, {}, []) else compact_json(value)


# -- messages --------------------------------------------------------------------------------------
# Messages, block by block, whether they are rows of the database or lines of a file.

ROLES = ("user", "assistant")

_SPOKEN = ("text", "image")
_THOUGHTS = ("thinking", "redactedThinking", "reasoning")
_CALLS = ("toolRequest", "frontendToolRequest")
_NOTICES = ("systemNotification", "conversationCompacted", "summarizationRequested")
_ASKED = ("toolConfirmationRequest", "actionRequired")
BLOCKS = frozenset({"toolResponse", *_SPOKEN, *_THOUGHTS, *_CALLS, *_NOTICES, *_ASKED})
"""The types of blocks."""

_INJECTED = ("<info-msg>", "<todo>")
_OF_AGENTS = ("sub_agent", "hidden", "scheduled")
"""The types of sessions in which no human speaks."""


def read_message(record: Record, state: LogState) -> list[Draft]:
    """Read a message: texts, thoughts, calls and results, and the tokens of the response if it has them."""
    at, named = milliseconds(record.get("created")), identifier(record.get("id"))
    content = items(record["content"])
    blocks = [block if isinstance(block, dict) else {"type": "value", "value": block} for block in content]
    step, repeated = None, False
    if record["role"] != "user":
        thought = _thought(blocks)
        repeated = bool(thought) and state.memory.get("thought") == digest(thought)
        step = _step(record, named, state, repeated=repeated)
        state.memory["thought"] = digest(thought) if thought else state.memory.get("thought")
    payloads = list(_payloads(blocks, record, state, repeated=repeated))
    copied = f"{named or record.get('created')}/{record['role']}"
    made = [Draft(payload, at, step, identity=f"{copied}/{n}") for n, payload in enumerate(payloads)]
    usage = usage_of(record, named, at, step, state)
    if not made and usage is None:
        state.skipped.append(f"{record['role']}/empty")
    return made if usage is None else [*made, usage]


def _step(record: Record, named: str | None, state: LogState, *, repeated: bool) -> str:
    """Return the response that a message belongs to.

    The second and further calls of one response are in messages of their own, after the first one's result. They
    repeat its thoughts and its time, and have no figures.
    """
    figures, at = fields(record.get("metadata")).get("usage"), record.get("created")
    before, counted, then = state.memory.get("response", (None, False, None))
    if before is not None and not figures and (repeated or (counted and then == at)):
        return str(before)
    state.memory["responses"] = state.memory.get("responses", 0) + 1
    step = f"{named or 'response'}#{state.memory['responses']}"
    state.memory["response"] = [step, bool(figures), at if isinstance(at, (int, float, str)) else None]
    return step


def _thought(blocks: list[Record]) -> str:
    return "".join(text(block.get("thinking")) or "" for block in blocks if block.get("type") in _THOUGHTS)


def _payloads(blocks: list[Record], record: Record, state: LogState, *, repeated: bool) -> Iterator[Payload]:
    """Read the blocks of a message: of the user, texts and images that follow one another are one text, of the model,
    thoughts, which come token by token.
    """
    human = record["role"] == "user"
    for joined, run in groupby(blocks, lambda block: block.get("type") in (_SPOKEN if human else _THOUGHTS)):
        if not joined:
            for block in run:
                if human or block.get("type") not in _SPOKEN:
                    yield _other(block, record["role"], state)
                elif said := part_text(block):
                    yield Message(said)
        elif human:
            if (said := "\n".join(map(part_text, run))).strip():
                yield User(said, _kind(said, record, state))
        elif repeated:
            state.skipped.append("thinking/repeated")
        else:
            yield Reasoning(_thought(list(run)))


def _kind(said: str, record: Record, state: LogState) -> UserKind:
    if fields(record.get("metadata")).get("userVisible") is False or said.lstrip().startswith(_INJECTED):
        return UserKind.INJECTED
    return UserKind.TASK if state.memory.get("session_type") in _OF_AGENTS else UserKind.HUMAN


def _other(block: Record, role: str, state: LogState) -> Payload:
    """Read a block that says the same in either role."""
    kind = block.get("type")
    if kind in _CALLS:
        return _call(block)
    if kind == "toolResponse":
        return tool_result(block)
    if kind in _NOTICES:
        return Notification(str(kind), text(block.get("msg")) or compact_json(block))
    if kind in _ASKED:
        return Notification(str(kind), compact_json(block))
    return unknown(f"{role}.{kind if isinstance(kind, str) else 'untyped'}", block, state)


def _call(block: Record) -> ToolCall:
    """Read a call; of one that the model wrote wrongly, the error takes the place of the arguments."""
    call = fields(block.get("toolCall"))
    value: dict[str, Any] = fields(call.get("value"))
    arguments = value.get("arguments") if value else call.get("error", call.get("value"))
    return ToolCall(identifier(block.get("id")), text(value.get("name")) or "unknown", arguments)


# -- sessions --------------------------------------------------------------------------------------
# The session: facts from its row in the database, or from the first line of its file.

_TITLE_RANK = 3
_UNNAMED = ("New Chat", "CLI Session", "New session")
"""What a session is called until it has a name."""


def is_head(record: Record) -> bool:
    """Whether a record is the first line of a file."""
    return isinstance(record.get("working_dir"), str) and "role" not in record and "message_count" in record


def note_session(record: Record, state: LogState) -> None:
    """Take the facts of a session. They may change at any time, and the newest count."""
    facts = state.sessions[""]
    facts.id = facts.id or identifier(record.get("id"))
    facts.cwd = facts.cwd or text(record.get("working_dir"))
    parent = identifier(record.get("parent_session_id"))
    kind = text(record.get("session_type"))
    if kind == "sub_agent" or parent is not None:
        facts.parent_id, facts.kind = parent, "subagent" if kind == "sub_agent" else "fork"
    state.memory["session_type"] = kind
    model = fields(record.get("model_config"))
    facts.model = text(model.get("model_name")) or facts.model
    title = first_text(record.get("name"), record.get("description"))
    if title and title not in _UNNAMED:
        facts.title, facts.title_rank = title, _TITLE_RANK


def read_head(record: Record, state: LogState) -> list[Said]:
    """Read the first line of a file, with the tokens of the whole session, which its messages don't have."""
    note_session(record, state)
    state.skipped.append("session")
    told = {name: record.get(f"accumulated_{name}", record.get(name)) for name in _FIGURES}
    return [said for said in totals(told, state) if isinstance(said, Draft)]


# -- database --------------------------------------------------------------------------------------
# Sessions in `sessions.db`: a row for each message, in the order of their ids, and one for each request's tokens.
# Rows are usually added. Goose may also replace a conversation (when the context is compacted), delete its end (when
# the human edits a request) or change a message's visibility in place. Then the rows that were read are no longer as
# many, or as long, as they were: the log says that it was rewritten, and all of its rows come again.
# Whatever of a session's tokens is in its messages is also in the ledger, if there is one (schema 12 and later), which
# has more: a message takes along its row of the ledger, the first with the same figures. The other rows are records of
# their own. If one comes before its message, or after it, it still counts once.

_NEEDED = {"sessions": {"id"}, "messages": {"id", "session_id", "role", "content_json"}}

_WHOSE = "Goose's sessions"

_MESSAGES = (
    "SELECT id, {message_id}, role, {created_timestamp}, substr({metadata_json}, 1, :most), "
    "substr(content_json, 1, :most), length(CAST(content_json AS BLOB)), length(CAST({metadata_json} AS BLOB)) "
    "FROM messages WHERE session_id = :session AND id > :last ORDER BY id"
)
_BEFORE = (
    "SELECT count(*), coalesce(sum(length(CAST(content_json AS BLOB))), 0), "
    "coalesce(sum(length(CAST({metadata_json} AS BLOB))), 0) FROM messages WHERE session_id = :session AND id <= :last"
)
_FIGURES = tuple(_NAMES)
_NONE = [0] * len(_FIGURES)
_CARRIED = "carried_forward"
"""The source of a row of the ledger with all that the session had spent before its first one, also by messages."""
_LEDGER_FIGURES = ("created_timestamp", "model", *_FIGURES, "cost", "cost_source")
_ABOUT = ("name", "description", "session_type", "working_dir", "parent_session_id", "model_config_json")
_FACTS = (*_ABOUT, *(f"accumulated_{name}" for name in _FIGURES))

_MOST = 64 * 1024 * 1024
_PENDING = 64

Columns: TypeAlias = dict[str, set[str]]
"""The columns of each table."""


class _Place(Struct):
    """Where reading continues."""

    last: int = 0
    """The id of the last message that was read."""
    messages: int = 0
    size: int = 0
    """Bytes of the contents that were read."""
    more: int = 0
    """Bytes of the metadata that was read."""
    ledger: int = 0
    """The id of the last row of the ledger that was read."""
    facts: str = ""
    owed: list[list[Any]] = field(default_factory=list)
    """Input and output of messages whose row of the ledger is still to come."""
    beside: list[int] = field(default_factory=list)
    """What these messages have of each figure."""
    early: list[list[Any]] = field(default_factory=list)
    """Input and output of rows of the ledger whose message may still come."""
    rest: list[int] = field(default_factory=list)
    """What was read of tokens that are only in the session's totals."""

    def at(self) -> dict[str, Any]:
        """Return the place as JSON. Its lists are never changed, only replaced."""
        return by_name(self)


def logs(container: Container) -> Iterable[LogInside]:
    """Yield a log for each session with messages. Raises `OSError` if the database isn't Goose's.

    A log counts as changed if its session's row is, or if it has more or fewer messages, or others.
    """
    columns = tables_of(container.path, _NEEDED, _WHOSE)
    ledger = ", (SELECT max(id) FROM usage_ledger WHERE session_id = m.session_id)" if "usage_ledger" in columns else ""
    of_sessions = ", ".join(_existing(("updated_at", *_FACTS), columns["sessions"]))
    sessions, told = ask(
        container.path,
        (f"SELECT session_id, count(*), min(id), max(id){ledger} FROM messages m GROUP BY session_id", ()),
        (f"SELECT id, {of_sessions} FROM sessions", ()),
    )
    stamps = {row[0]: digest(repr(row)) for row in told}
    return [LogInside(log_name(session, repr(session)), f"{stamps.get(session)}/{rest}") for session, *rest in sessions]


def rows(file: LogFile, position: Any) -> Iterator[Row]:
    """Yield what is new of a session: facts, messages with their rows of the ledger, other rows of it, and totals."""
    path, name = file.container, file.path[len(file.container) + 1 :]
    columns = tables_of(path, _NEEDED, _WHOSE)
    session = _session(path, name)
    if session is None:
        return
    place = _Place(**position) if position else _Place()
    before, messages, ledger, told, sums = _asked(path, columns, session, place)
    if list(before[0]) != [place.messages, place.size, place.more]:
        facts, rest = place.facts, place.rest
        place = _Place(facts=facts, rest=rest)
        yield _row(0, {"$goose": "rewritten"}, place)
        before, messages, ledger, told, sums = _asked(path, columns, session, place)
    yield from _facts(session, told, _odd_figures(path, columns, session), place)
    yield from _new_messages(messages, _Ledger(ledger), place)
    yield from _totals(told, sums, place)


def _session(path: str, name: str) -> Any:
    """Return the id of the session whose log has this name, which is usually its id; None if it has no messages."""
    (ids,) = ask(path, ("SELECT session_id FROM messages WHERE session_id = ? LIMIT 1", (name,)))
    if not ids:
        (ids,) = ask(path, ("SELECT DISTINCT session_id FROM messages", ()))
    return next((id for (id,) in ids if log_name(id, repr(id)) == name), None)


def _asked(path: str, columns: Columns, session: Any, place: _Place) -> list[list[tuple[Any, ...]]]:
    """Return the answers about one session: what was read of it before, what is new, its row, the ledger's sums."""
    of_messages = {name: name if name in columns["messages"] else "NULL" for name in _OPTIONAL}
    given = {"session": session, "last": place.last, "most": _MOST, "ledger": place.ledger}
    figures = ", ".join(_existing(_LEDGER_FIGURES, columns.get("usage_ledger", set())))
    no_rows = "SELECT 1 WHERE 0"
    ledger = f"SELECT id, {figures} FROM usage_ledger WHERE session_id = :session AND id > :ledger ORDER BY id"
    sums = ", ".join(f"sum({name})" for name in _existing(_FIGURES, columns.get("usage_ledger", set())))
    of_session = ", ".join(_existing(_FACTS, columns["sessions"]))
    has_ledger = "usage_ledger" in columns
    questions = [
        _BEFORE.format_map(of_messages),
        _MESSAGES.format_map(of_messages),
        ledger if has_ledger else no_rows,
        f"SELECT {of_session} FROM sessions WHERE id = :session",
        f"SELECT count(*), {sums} FROM usage_ledger WHERE session_id = :session" if has_ledger else no_rows,
    ]
    return ask(path, *((question, given) for question in questions))


_OPTIONAL = ("message_id", "created_timestamp", "metadata_json")


def _existing(names: Iterable[str], there: set[str]) -> list[str]:
    return [name if name in there else "NULL" for name in names]


def _odd_figures(path: str, columns: Columns, session: Any) -> dict[str, Any]:
    """Return the sums of figures in columns that nobody knows: what they count is in no total."""
    result: dict[str, Any] = {}
    for table, key in (("sessions", "id"), ("usage_ledger", "session_id")):
        odd = (name for name in columns.get(table, ()) if "token" in name and name.isidentifier())
        if names := [name for name in odd if name.removeprefix("accumulated_") not in _FIGURES]:
            sums = ", ".join(f"sum({name})" for name in names)
            ((values,),) = ask(path, (f"SELECT {sums} FROM {table} WHERE {key} = ?", (session,)))
            result |= dict(zip(names, values, strict=True))
    return result


def _facts(session: Any, told: list[tuple[Any, ...]], odd: dict[str, Any], place: _Place) -> Iterator[Row]:
    """Yield what the session's row says about it, if that is new; not its totals."""
    about = dict(zip(_FACTS, map(_decoded, told[0]), strict=True)) if told else {}
    known = {name: value for name, value in about.items() if not name.startswith("accumulated_")}
    known |= {"model_config": _json(known.pop("model_config_json", None)), **({"odd": odd} if odd else {})}
    if digest(repr(known)) != place.facts:
        place.facts = digest(repr(known))
        yield _row(0, {"$goose": "session", "id": _decoded(session), **known}, place)


class _Ledger(dict[int, Record]):
    """The rows of the ledger that no message has taken, by their numbers."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        names = ("row", "created", *_LEDGER_FIGURES[1:])
        super().__init__({row[0]: dict(zip(names, map(_decoded, row), strict=True)) for row in rows})
        self._with: dict[tuple[Any, ...], deque[int]] = {}
        for row, entry in self.items():
            self._with.setdefault(tuple(_of_entry(entry)), deque()).append(row)

    def take(self, figures: list[Any]) -> Record | None:
        """Take away the first row with these figures, if there is one."""
        try:
            rows = self._with.get(tuple(figures))
        except TypeError:  # a list or an object, which no row has
            return None
        return self.pop(rows.popleft()) if rows else None


def _new_messages(messages: list[tuple[Any, ...]], ledger: _Ledger, place: _Place) -> Iterator[Row]:
    """Yield messages, each with its row of the ledger, then the rows of the ledger that no message has."""
    newest = max(ledger, default=place.ledger)
    for message in messages:
        made = _message(message)
        usage = made["metadata"].get("usage")
        if isinstance(usage, dict):
            _settle([usage.get("inputTokens"), usage.get("outputTokens")], made, ledger, place)
        place.ledger = next((first - 1 for first in ledger), newest)
        place.last, place.messages = message[0], place.messages + 1
        place.size, place.more = place.size + message[6], place.more + (message[7] or 0)
        yield Row(message[0], _with_content(made, message[5]), place.at())
    for entry in ledger.values():
        place.ledger, figures = entry["row"], _of_entry(entry)
        if figures in place.owed:
            place.owed = _without(place.owed, figures)
            place.beside = [of - one for of, one in zip(place.beside or _NONE, _figures(entry), strict=True)]
        elif entry.pop("cost_source") == _CARRIED and place.beside:
            rest = [max(one - of, 0) for one, of in zip(_figures(entry), place.beside, strict=True)]
            place.owed, place.beside = [], []
            yield _row(entry["row"], {"$goose": "usage", **entry, **dict(zip(_FIGURES, rest, strict=True))}, place)
        else:
            place.early = [*place.early, figures][-_PENDING:]
            yield _row(entry["row"], {"$goose": "usage", **entry}, place)


def _message(row: tuple[Any, ...]) -> Record:
    """Return a message, apart from its content."""
    id, named, role, created, metadata = map(_decoded, row[:5])
    about = fields(_json(metadata))
    return {"$goose": "message", "row": id, "id": named, "role": role, "created": created, "metadata": about}


def _settle(figures: list[Any], made: Record, ledger: _Ledger, place: _Place) -> None:
    """Give a message its row of the ledger: the first one with its figures."""
    entry = ledger.take(figures)
    if entry is not None:
        made["ledger"] = entry
    elif figures in place.early:
        place.early = _without(place.early, figures)
        made["counted"] = True
    else:
        place.owed = [*place.owed, figures][-_PENDING:]
        told = {name: made["metadata"]["usage"].get(other) for name, other in _NAMES.items()}
        place.beside = [of + one for of, one in zip(place.beside or _NONE, _figures(told), strict=True)]


def _without(pending: list[list[Any]], figures: list[Any]) -> list[list[Any]]:
    """Return what is pending without the first of these figures."""
    at = pending.index(figures)
    return [*pending[:at], *pending[at + 1 :]]


def _totals(told: list[tuple[Any, ...]], sums: list[tuple[Any, ...]], place: _Place) -> Iterator[Row]:
    """Yield the tokens of a session that none of its requests has, if any: those before there was a ledger."""
    about = dict(zip(_FACTS, told[0], strict=True)) if told else {}
    counted = sums[0][1:] if sums and sums[0][0] else None
    if counted is None and place.owed:  # all is in the messages
        return
    totals = [count(about.get(f"accumulated_{name}")) or 0 for name in _FIGURES]
    rest = [max(total - (count(known) or 0), 0) for total, known in zip(totals, counted or _NONE, strict=True)]
    if rest != (place.rest or _NONE):
        place.rest = rest
        yield _row(0, {"$goose": "totals", **dict(zip(_FIGURES, rest, strict=True))}, place)


def _figures(record: Record) -> list[int]:
    return [count(record[name]) or 0 for name in _FIGURES]


def _of_entry(entry: Record) -> list[Any]:
    return [entry["input_tokens"], entry["output_tokens"]]


def _with_content(made: Record, content: Any) -> bytes:
    """Return a message as JSON; if its content is none, only that, to be kept as an unreadable line."""
    data = as_bytes(content)
    if len(decode(data) or ()) != 1:
        return data
    return as_bytes(compact_json(made)[:-1]) + b',"content":' + data + b"}"


def _row(number: int, record: Record, place: _Place) -> Row:
    return Row(number, as_bytes(compact_json(record)), place.at())


def _json(value: Any) -> Any:
    return single(as_bytes(value)) if isinstance(value, str) else None


def _decoded(value: Any) -> Any:
    """Return a value that JSON can hold."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


# -- parser ----------------------------------------------------------------------------------------

FORM = "$goose"
"""The key by which a record from the database says what it is."""


def recognizes(record: Record) -> bool:
    """Whether only Goose writes such a record: the first line of a file, or a message with a time in seconds."""
    if is_head(record):
        return True
    own = _is_message(record) and type(record.get("created")) is int and "type" not in record
    return own and bool(record["content"]) and record["content"][0]["type"] in BLOCKS


unroll, begin = no_document, empty_state


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next record; see `Parser.drafts`."""
    match record.get(FORM):
        case "session":
            note_session(record, state)
            check_usage(record.get("odd"), {}, state)
            return []
        case "rewritten":
            state.memory.pop("thought", None)
            state.memory.pop("response", None)
            return [Rollback(None)]
        case "usage":
            return ledger_usage(record, state)
        case "totals":
            return totals(record, state)
    if _is_message(record):
        return read_message(record, state)
    if is_head(record):
        return read_head(record, state)
    kind = text(record.get("role")) or text(record.get("type")) or next(iter(record), "empty")
    return [Draft(unknown(kind, record, state), milliseconds(record.get("created")))]


def _is_message(record: Record) -> bool:
    content = record.get("content")
    return (
        record.get("role") in ROLES
        and isinstance(content, list)
        and all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in content[:1])
    )
