"""Messages, block by block, whether they are rows of the database or lines of a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from agtrace_schema.events import Message, Notification, Payload, Reasoning, ToolCall, User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import compact_json, digest, fields, items, milliseconds, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.goose.tokens import usage_of
from agtrace_indexer.providers.goose.tool_results import part_text, tool_result
from agtrace_indexer.providers.notes import unknown

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
