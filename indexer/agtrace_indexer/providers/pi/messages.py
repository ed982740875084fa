"""Messages, by the role in which they are in the context: the user, the model, a tool, a command, an extension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agtrace_schema.events import Message, Notification, Payload, Reasoning, ToolCall, User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import fields, items, listed, milliseconds, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.notes import readable_json, skip, unknown
from agtrace_indexer.providers.pi.content import block_text, block_type, joined_text
from agtrace_indexer.providers.pi.sessions import note_model
from agtrace_indexer.providers.pi.tokens import usage_of
from agtrace_indexer.providers.pi.tool_results import COMMAND_RAN, tool_result
from agtrace_indexer.providers.pi.user_texts import Speakers

MIRRORS = ("delivery-mirror", "gateway-injected")
"""The models of lines in the model's role that OpenClaw writes itself: no API call was made for them."""


def read_message(record: Record, state: LogState, speakers: Speakers) -> list[Draft]:
    """Read an entry with a message."""
    message = fields(record.get("message"))
    time = milliseconds(record.get("timestamp")) or milliseconds(message.get("timestamp"))
    role = message.get("role")
    if role == "assistant":
        return _response(record, message, time, state)
    if role == "user":
        payloads: list[Payload] = [*speakers(_spoken(message.get("content"), state), state)]
    else:
        read = _OF_OTHERS.get(role) if isinstance(role, str) else None
        if read is None:
            payloads = [unknown(f"message.{text(role) or 'untyped'}", record, state, readable_json)]
        else:
            payloads = read(message)
    return [Draft(payload, time) for payload in payloads] or skip(f"message.{role}", state)


def _spoken(content: Any, state: LogState) -> str:
    """Read what is said in the user's role; blocks that nobody knows there are noted."""
    for kind in map(block_type, listed(content)):
        if kind not in ("text", "image"):
            state.unknown.append(f"user.{kind}")
    return joined_text(content)


def _response(record: Record, message: Record, time: int | None, state: LogState) -> list[Draft]:
    """Read a response of the model: its blocks, its tokens, and how it failed or was stopped."""
    synthetic = message.get("model") in MIRRORS
    step = None if synthetic else identifier(record.get("id")) or _nameless(state)
    content = message.get("content")
    said = [Draft(_said(block, state), time, step) for block in listed(content) if block != ""]
    if not synthetic:
        note_model(message, state)
        usage = usage_of(message, says_something=bool(said))
        if usage is not None:
            said.append(Draft(usage, time, step))
    return [*said, *_ending(message, time)] or skip("message.assistant", state)


def _nameless(state: LogState) -> str:
    """Return a step for an entry without an id, as in the first format: it is a response of its own."""
    state.memory["nameless"] = state.memory.get("nameless", 0) + 1
    return f"nameless-{state.memory['nameless']}"


def _said(block: Any, state: LogState) -> Payload:
    kind = block_type(block)
    if kind == "text":
        return Message(block_text(block))
    if kind == "thinking":
        return Reasoning(text(block.get("thinking")) or "")
    if kind == "redactedThinking":
        return Reasoning("")
    if kind == "toolCall":
        return ToolCall(identifier(block.get("id")), text(block.get("name")) or "unknown", block.get("arguments"))
    if kind == "image":
        return Message(block_text(block))
    return unknown(f"assistant.{kind}", block, state, readable_json)


def _ending(message: Record, time: int | None) -> list[Draft]:
    """Return a notification if the response failed or was stopped: calls in it have no results then."""
    reason = message.get("stopReason")
    if reason not in ("error", "aborted"):
        return []
    told = Notification(reason, text(message.get("errorMessage")) or "")
    return [Draft(told, time, ends_turn=reason == "aborted")]


def _command(message: Record) -> list[Payload]:
    """Read a command that the user ran with `!`, and what it printed; with `!!` the model doesn't see either."""
    marks = "!!" if message.get("excludeFromContext") is True else "!"
    given = text(message.get("command")) or text(message.get("code")) or ""
    ended = "(cancelled)" if message.get("cancelled") is True else ""
    code = message.get("exitCode")
    if not ended and isinstance(code, int) and code != 0:
        ended = COMMAND_RAN.format(code)
    printed = "\n".join(filter(None, (text(message.get("output")), ended)))
    ran: list[Payload] = [User(f"{marks}{given}", UserKind.COMMAND)]
    return [*ran, User(printed, UserKind.INJECTED)] if printed else ran


def _injected(message: Record) -> list[Payload]:
    said = joined_text(message.get("content"))
    return [User(said, UserKind.INJECTED)] if said.strip() else []


def _summary(message: Record) -> list[Payload]:
    said = text(message.get("summary"))
    return [User(said, UserKind.COMPACTION_SUMMARY)] if said else []


def _mentioned(message: Record) -> list[Payload]:
    """Read the files that a user named with `@`, which are put into the context."""
    files = map(fields, items(message.get("files")))
    said = "\n\n".join(f"{text(file.get('path')) or ''}\n{joined_text(file.get('content'))}" for file in files)
    return [User(said, UserKind.INJECTED)] if said.strip() else []


_OF_OTHERS: dict[str, Callable[[Record], list[Payload]]] = {
    "toolResult": lambda message: [tool_result(message)],
    "bashExecution": _command,
    "pythonExecution": _command,
    "custom": _injected,
    "developer": _injected,
    "hookMessage": _injected,
    "system": _injected,
    "branchSummary": _summary,
    "compactionSummary": _summary,
    "fileMention": _mentioned,
}
"""The readers of messages that neither the user nor the model says, by role."""

OTHER_ROLES = frozenset(_OF_OTHERS) - {"custom", "developer", "system"}
"""The roles that only Pi knows."""
