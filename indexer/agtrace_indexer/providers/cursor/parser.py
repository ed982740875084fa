"""Cursor: transcripts of its agent, JSON lines of a role and a message (README.md).

They have no times, no ids, no model, no tokens and no results of tools: all of that is unknown. A line of the model is
a step. The session's id is the name of its file, and a sub-agent's file is in `subagents` below its parent's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

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
from agtrace_indexer.events.json_values import fields, items, milliseconds, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.notes import (
    block_text,
    block_type,
    joined_text,
    no_document,
    numbered,
    requester,
    skip,
    unknown,
)

# -- user texts ------------------------------------------------------------------------------------
# Texts in the user's role: what the user typed, in `<user_query>`, and what Cursor put around it.

_QUERY = later(r"<user_query>\n?(.*?)\n?(?:</user_query>|\Z)", re.DOTALL)
_TAGGED = "<user_query>"
_TIME = later(r"<timestamp>([^<]{1,64})</timestamp>")
_FOLDER = later(r"(?m)^Workspace Path: (\S[^\n]{0,4000})$")


def user_texts(said: str, state: LogState) -> list[User]:
    """Separate what was typed from what was injected, in the order of the text.

    A text without the tag is injected, unless nothing in the log had it so far: in a sub-agent's log, and in the
    transcripts of some versions, requests have none. What begins with another tag is injected anyway.
    """
    facts = state.sessions[""]
    if facts.cwd is None and (folder := _FOLDER.search(said)):
        facts.cwd = folder[1].strip()
    if _TAGGED not in said:
        typed = not state.memory.get("tagged") and not said.lstrip().startswith("<")
        return [User(said, requester(state) if typed else UserKind.INJECTED)] if said.strip() else []
    state.memory["tagged"] = True
    found: list[User] = []
    end = 0
    for query in _QUERY.finditer(said):
        found += _injected(said[end : query.start()])
        found += [User(query[1], requester(state))] if query[1].strip() else []
        end = query.end()
    return [*found, *_injected(said[end:])]


def time_in(blocks: Iterable[Any]) -> int | None:
    """Return the time that some versions put into a request, in milliseconds since 1970 UTC; None if there is none."""
    texts = (text(fields(block).get("text")) or "" for block in blocks)
    return next((milliseconds(match[1].strip()) for said in texts if (match := _TIME.search(said))), None)


def _injected(said: str) -> list[User]:
    return [User(said.strip(), UserKind.INJECTED)] if said.strip() else []


# -- parser ----------------------------------------------------------------------------------------

ROLES = ("user", "assistant")

_KEYS = {"role", "message", "metadata"}
_NEVER = ("id", "model", "usage", "timestamp")
_CALLS = ("tool_use", "tool_call", "tool-call")
_RESULTS = ("tool_result", "tool-result")
_HIDDEN = "[REDACTED]"
"""What stands for reasoning that isn't shown."""


def recognizes(record: Record) -> bool:
    """Whether a record may be Cursor's: a role and a message of typed blocks, and hardly anything else.

    Two such records are needed (`Agent.records_to_recognize`), as others may write one.
    """
    message = record.get("message")
    if record.get("role") not in ROLES or not record.keys() <= _KEYS or not isinstance(message, dict):
        return False
    content = message.get("content")
    typed = isinstance(content, list) and bool(content) and all(text(fields(block).get("type")) for block in content)
    return typed and not any(key in message for key in _NEVER)


unroll = no_document


def begin(path: PurePath) -> LogState:
    """Return the state before the first line: the path says whose log it is."""
    facts = SessionFacts(id=identifier(path.name.partition(".")[0]))
    if path.parent.name == "subagents":
        parent = path.parent.parent.name
        facts.kind, facts.parent_id = "subagent", identifier(parent)
    return LogState({"": facts})


def drafts(record: Record, state: LogState) -> Sequence[Draft]:
    """Return the events of the next line; see `Parser.drafts`."""
    role, message = record.get("role"), record.get("message")
    if role not in ROLES or not isinstance(message, dict):
        kind = text(record.get("type")) or text(role) or next(iter(record), "empty")
        return skip(kind, state) if kind == "turn_ended" else [Draft(unknown(kind, record, state), None)]
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
    if role == "user":
        payloads, step, at = _of_user(blocks, state), None, time_in(blocks)
    else:
        payloads, at = [payload for block in blocks if (payload := _said(block, state)) is not None], None
        step = numbered("response", state)
    return [Draft(payload, at, step) for payload in payloads] or skip(f"{role}/empty", state)


def _of_user(blocks: list[Any], state: LogState) -> list[Payload]:
    payloads: list[Payload] = []
    for block in blocks:
        told = fields(block)
        kind = told.get("type")
        if kind == "text" and isinstance(told.get("text"), str):
            payloads += user_texts(told["text"], state)
        elif kind in _RESULTS:
            payloads.append(_result(told))
        elif kind == "image":
            payloads.append(Notification("image", block_text(told)))
        else:
            payloads.append(unknown(f"user.{block_type(block)}", block, state))
    return payloads


def _said(block: Any, state: LogState) -> Payload | None:
    told = fields(block)
    kind = told.get("type")
    if kind == "text" and isinstance(told.get("text"), str):
        return Message(told["text"]) if told["text"].strip() not in ("", _HIDDEN) else None
    if kind in ("thinking", "reasoning", "redacted_thinking"):
        return Reasoning(text(told.get("thinking")) or text(told.get("text")) or "")
    if kind in _CALLS:
        arguments = told.get("input", told.get("args", {}))
        name = text(told.get("name")) or text(told.get("toolName")) or "unknown"
        return ToolCall(identifier(told.get("id", told.get("toolCallId"))), name, arguments)
    if kind in _RESULTS:
        return _result(told)
    return unknown(f"assistant.{block_type(block)}", block, state)


def _result(block: Record) -> ToolResult:
    """Read a result, which only fixtures have: it says how it ended only if it says that it failed."""
    content = block.get("content", block.get("result"))
    said = joined_text(content if isinstance(content, (str, list)) else None)
    failed = block.get("is_error", block.get("isError"))
    outcome = {True: Outcome.FAILED, False: Outcome.OK}.get(failed) if isinstance(failed, bool) else None
    call = identifier(block.get("tool_use_id", block.get("toolCallId")))
    return ToolResult(call, said, outcome or Outcome.UNKNOWN, OutcomeSource.STRUCTURE if outcome else None)
