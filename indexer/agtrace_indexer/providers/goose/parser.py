"""Goose: sessions in a database, or in files of JSON lines before 1.10 (README.md).

The rules: a message is a row or a line, and its blocks become events (`messages`). A response is a step, even if its
calls are in several messages. Tokens are counted once, whichever of three places has them (`tokens`). When a
conversation was rewritten, its turns are dropped and read again (`database`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import PurePath
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

from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction, Rollback, Said
from agtrace_indexer.events.json_values import (
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
from agtrace_indexer.providers.notes import unknown
from agtrace_indexer.providers.provider import Rewrite

# -- tokens ----------------------------------------------------------------------------------------
# Token counts: each request once, whether a message, the ledger of requests or only the session's totals have them.
# Input includes what was read from and written to the cache: Goose adds these up for all models.

TOTALS = "session-usage"
"""The key of the tokens of requests that are only in a session's totals."""

_NAMES = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cacheReadInputTokens",
    "cache_write_tokens": "cacheWriteInputTokens",
}
"""The names of figures in the ledger, and in the metadata of a message."""


def usage_of(record: Record, named: str | None, at: int | None, step: str | None, state: LogState) -> Draft | None:
    """Return the tokens of a message's response: from the ledger, if its row is known, else from the message."""
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
        state.skipped.append("usage/empty")
        return []
    return [Draft(usage, milliseconds(record.get("created")), key=f"usage/l{record.get('row')}")]


def totals(record: Record, state: LogState) -> list[Said]:
    """Read the tokens of requests that are in a session's totals and nowhere else; none takes back those before."""
    usage = _usage(record, None, state)
    return [Retraction([TOTALS])] if usage is None else [Draft(usage, None, key=TOTALS)]


def _usage(told: dict[str, Any], response: str | None, state: LogState) -> TokenUsage | None:
    """Return figures in our terms; None if there are none, or only zeros."""
    figures = {name: count(told.get(name)) for name in _NAMES}
    if not any(figures.values()):
        return None
    sent, read, written = figures["input_tokens"], figures["cache_read_tokens"], figures["cache_write_tokens"]
    cost = told.get("cost")
    return TokenUsage(
        response_id=response,
        model=text(told.get("model")) or state.sessions[""].model,
        input_tokens=None if sent is None else max(sent - (read or 0) - (written or 0), 0),
        cache_creation_5m_tokens=written,
        cache_creation_1h_tokens=None,
        cache_read_tokens=read,
        output_tokens=figures["output_tokens"],
        reasoning_tokens=None,
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

_THOUGHTS = ("thinking", "redactedThinking", "reasoning")
_CALLS = ("toolRequest", "frontendToolRequest")
_NOTICES = ("systemNotification", "conversationCompacted", "summarizationRequested")
_ASKED = ("toolConfirmationRequest", "actionRequired")
BLOCKS = frozenset({"text", "image", "toolResponse", *_THOUGHTS, *_CALLS, *_NOTICES, *_ASKED})
"""The types of blocks."""

_INJECTED = ("<info-msg>", "<todo>")
_OF_AGENTS = ("sub_agent", "hidden", "scheduled")
"""The types of sessions in which no human speaks."""


def read_message(record: Record, state: LogState) -> list[Draft]:
    """Read a message: texts, thoughts, calls and results, and the tokens of the response if it has them."""
    at, named = milliseconds(record.get("created")), identifier(record.get("id"))
    content = items(record["content"])
    blocks = [block if isinstance(block, dict) else {"type": "value", "value": block} for block in content]
    step = None
    if record["role"] == "user":
        payloads = list(_of_user(blocks, record, state))
    else:
        thought = _thought(blocks)
        repeated = bool(thought) and state.memory.get("thought") == digest(thought)
        step = _step(record, named, state, repeated=repeated)
        state.memory["thought"] = digest(thought) if thought else state.memory.get("thought")
        payloads = list(_of_model(blocks, state, repeated=repeated))
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


def _of_user(blocks: list[Record], record: Record, state: LogState) -> Iterator[Payload]:
    """Read the blocks of a message in the user's role; texts and images that follow one another are one text."""
    for spoken, run in groupby(blocks, lambda block: block.get("type") in ("text", "image")):
        if spoken:
            said = "\n".join(map(part_text, run))
            if said.strip():
                yield User(said, _kind(said, record, state))
        else:
            yield from (_other(block, "user", state) for block in run)


def _kind(said: str, record: Record, state: LogState) -> UserKind:
    if fields(record.get("metadata")).get("userVisible") is False or said.lstrip().startswith(_INJECTED):
        return UserKind.INJECTED
    return UserKind.TASK if state.memory.get("session_type") in _OF_AGENTS else UserKind.HUMAN


def _of_model(blocks: list[Record], state: LogState, *, repeated: bool) -> Iterator[Payload]:
    """Read the blocks of a response. Thoughts come token by token, and those that follow one another are one."""
    for thinking, run in groupby(blocks, lambda block: block.get("type") in _THOUGHTS):
        if not thinking:
            yield from (_said(block, state) for block in run if block.get("type") != "text" or part_text(block))
        elif repeated:
            state.skipped.append("thinking/repeated")
        else:
            yield Reasoning(_thought(list(run)))


def _said(block: Record, state: LogState) -> Payload:
    if block.get("type") in ("text", "image"):
        return Message(part_text(block))
    return _other(block, "assistant", state)


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


def note_session(told: Record, state: LogState) -> None:
    """Take the facts of a session. They may change at any time, and the newest count."""
    facts = state.sessions[""]
    facts.id = facts.id or identifier(told.get("id"))
    facts.cwd = facts.cwd or text(told.get("working_dir"))
    parent = identifier(told.get("parent_session_id"))
    kind = text(told.get("session_type"))
    if kind == "sub_agent" or parent is not None:
        facts.parent_id, facts.kind = parent, "subagent" if kind == "sub_agent" else "fork"
    state.memory["session_type"] = kind
    model = fields(told.get("model_config"))
    facts.model = text(model.get("model_name")) or facts.model
    title = first_text(told.get("name"), told.get("description"))
    if title and title not in _UNNAMED:
        facts.title, facts.title_rank = title, _TITLE_RANK


def read_head(record: Record, state: LogState) -> list[Said]:
    """Read the first line of a file, with the tokens of the whole session, which its messages don't have."""
    note_session(record, state)
    state.skipped.append("session")
    told = {name: record.get(f"accumulated_{name}", record.get(name)) for name in ("input_tokens", "output_tokens")}
    return [said for said in totals(told, state) if isinstance(said, Draft)]


# -- parser ----------------------------------------------------------------------------------------

as_patch: Rewrite = None

FORM = "$goose"
"""The key by which a record from the database says what it is."""


def recognizes(record: Record) -> bool:
    """Whether only Goose writes such a record: the first line of a file, or a message with a time in seconds."""
    if is_head(record):
        return True
    own = _is_message(record) and type(record.get("created")) is int and "type" not in record
    return own and bool(record["content"]) and record["content"][0]["type"] in BLOCKS


def unroll(document: Any) -> Iterable[Record] | None:
    """Return None: no log is one document."""
    return None


def begin(path: PurePath) -> LogState:
    """Return an empty state: the first record says whose log it is."""
    return LogState()


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next record; see `Parser.drafts`."""
    match record.get(FORM):
        case "session":
            note_session(record, state)
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
