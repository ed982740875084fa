"""Claude Code: `projects/<folder>/<sessionId>.jsonl` and the logs of its sub-agents.

The format is described in formats.md 2.1. Every line is read by itself and in file order: parent
chains are never needed to decide what to keep (known-bugs 25). Beside this module:
`claude_code_sessions` tells whose line it is, `claude_code_text` who speaks in it,
`claude_code_results` how a tool execution ended, `claude_code_tokens` what a response cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agtrace_schema.events import (
    Message,
    Notification,
    Payload,
    Provider,
    Reasoning,
    ToolCall,
)

from agtrace_indexer.drafts import Draft, LogState, Record
from agtrace_indexer.providers.claude_code_results import bare_result, tool_result
from agtrace_indexer.providers.claude_code_sessions import TITLES, begin, note_session, note_title, place, request_kind
from agtrace_indexer.providers.claude_code_text import (
    block_text,
    block_type,
    blocks,
    joined_text,
    readable_json,
    user_texts,
)
from agtrace_indexer.providers.claude_code_tokens import SYNTHETIC, token_usage
from agtrace_indexer.values import fields, milliseconds, text

PROVIDER: Provider = Provider.CLAUDE_CODE
PARSER_VERSION: int = 1

__all__ = ["PARSER_VERSION", "PROVIDER", "begin", "drafts", "recognizes", "unroll"]

_ROLES = ("user", "assistant")

_SIDE_LINES: dict[str, tuple[str, ...]] = {
    "summary": ("leafUuid",),
    "file-history-snapshot": ("messageId", "snapshot"),
    "file-history-delta": ("messageId",),
    "queue-operation": ("sessionId", "operation"),
    "last-prompt": ("sessionId",),
    "custom-title": ("sessionId", "customTitle"),
    "ai-title": ("sessionId", "aiTitle"),
    "agent-name": ("sessionId", "agentName"),
    "mode": ("sessionId", "mode"),
    "permission-mode": ("sessionId", "permissionMode"),
    "pr-link": ("sessionId", "prUrl"),
    "frame-link": ("sessionId", "frameUrl"),
    "relocated": ("sessionId", "relocatedCwd"),
    "bridge-session": ("sessionId", "bridgeSessionId"),
    "worktree-state": ("sessionId", "worktreeSession"),
    "atis-latch": ("sessionId", "atis"),
}
"""Lines outside the chain, by the keys that make them Claude Code's."""

_BOOKKEEPING = (
    "agent-name",
    "ai-title",
    "atis-latch",
    "bridge-session",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "worktree-state",
)

_POINTERS: dict[str, tuple[str, ...]] = {
    "pr-link": ("prUrl", "prNumber"),
    "frame-link": ("frameUrl", "title"),
    "relocated": ("relocatedCwd",),
}
"""Lines that are worth a notification, with what to say of them."""

_ENVELOPE = frozenset(
    {
        *("type", "subtype", "level", "timestamp", "uuid", "parentUuid", "logicalParentUuid", "toolUseID"),
        *("sessionId", "session_id", "sessionKind", "slug", "agentId", "isSidechain", "isMeta"),
        *("cwd", "gitBranch", "version", "entrypoint", "userType"),
    }
)
"""What a system line has besides its own matter."""

_NOTHING: tuple[Any, ...] = (None, "", [])


def recognizes(record: Record) -> bool:
    """Whether this record can only come from Claude Code: a chain line, or a side line with its keys."""
    kind = record.get("type")
    if not isinstance(kind, str):
        return False
    if kind in _SIDE_LINES:
        return all(key in record for key in _SIDE_LINES[kind])
    recognizer = _CHAIN_LINES.get(kind)
    return recognizer is not None and recognizer(record)


def unroll(document: Any) -> list[Record] | None:
    """The lines of a session that was downloaded as one document, `{"loglines": [...]}`."""
    lines = [line for line in blocks(fields(document).get("loglines")) if isinstance(line, dict)]
    return lines if any(map(recognizes, lines)) else None


def drafts(record: Record, state: LogState) -> list[Draft]:
    """The events of the next line; see `LogFormat.drafts`."""
    kind = record.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    return _unknown(record, state, text(kind) or "untyped") if read is None else read(record, state)


def _has_identity(record: Record) -> bool:
    return any(isinstance(record.get(key), str) for key in ("timestamp", "sessionId", "uuid"))


def _is_spoken(record: Record) -> bool:
    message = record.get("message")
    if not isinstance(message, dict) or message.get("role", record["type"]) not in _ROLES:
        return False
    return isinstance(message.get("content"), (str, list)) and "parts" not in message and _has_identity(record)


def _is_wrapped_message(record: Record) -> bool:
    message = fields(record.get("message"))
    known = isinstance(record.get("uuid"), str) and isinstance(record.get("sessionId"), str)
    return known and message.get("role") in _ROLES and "content" in message


def _is_system(record: Record) -> bool:
    return "isSidechain" in record and isinstance(record.get("uuid"), str) and "systemPayload" not in record


_CHAIN_LINES: dict[str, Callable[[Record], bool]] = {
    "user": _is_spoken,
    "assistant": _is_spoken,
    "message": _is_wrapped_message,
    "tool_result": lambda record: isinstance(record.get("toolUseResult"), dict) and "uuid" in record,
    "system": _is_system,
    "attachment": lambda record: bool(text(fields(record.get("attachment")).get("type"))) and _has_identity(record),
    "progress": lambda record: "parentToolUseID" in record and isinstance(record.get("data"), dict),
}


def _assistant(record: Record, state: LogState) -> list[Draft]:
    thread = place(record, state)
    message = record.get("message")
    if not isinstance(message, dict):
        return _unknown(record, state, "assistant", thread)
    time = milliseconds(record.get("timestamp"))
    content = message.get("content")
    if record.get("isApiErrorMessage") is True:
        said = joined_text(content) or text(record.get("error")) or ""
        return [Draft(Notification("api_error", said), time, thread=thread)]
    model = text(message.get("model"))
    if model and model != SYNTHETIC:
        state.sessions[thread].model = model
    step = text(message.get("id")) or text(record.get("requestId")) or text(record.get("uuid"))
    made = [Draft(_said(block, state), time, step, thread) for block in blocks(content)]
    usage = token_usage(record, message, state)
    if usage is not None:
        made.append(Draft(usage, time, step, thread, usage.response_id and f"usage/{usage.response_id}"))
    return made


def _said(block: Any, state: LogState) -> Payload:
    """What one block of a response is. Results of tools that run at the API stand there, too."""
    kind = block_type(block)
    if kind == "text":
        return Message(block_text(block))
    if kind in ("thinking", "redacted_thinking"):
        return Reasoning(text(block.get("thinking")) or "")
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return ToolCall(text(block.get("id")), text(block.get("name")) or "", block.get("input"))
    if kind.endswith("tool_result"):
        return tool_result(block, {})
    return _unknown_payload(block, state, f"assistant.{kind}")


def _user(record: Record, state: LogState) -> list[Draft]:
    thread = place(record, state)
    message = record.get("message")
    if not isinstance(message, dict):
        return _unknown(record, state, "user", thread)
    payloads, spoken = _returned(blocks(message.get("content")), record, state)
    if spoken:
        payloads += user_texts(spoken, record, request_kind(thread, state))
    if not payloads:
        state.skipped.append("user")
    time = milliseconds(record.get("timestamp"))
    return [Draft(payload, time, None, thread) for payload in payloads]


def _returned(content: list[Any], record: Record, state: LogState) -> tuple[list[Payload], list[Any]]:
    """Part what tools gave back (and what is unknown) from the blocks that somebody says."""
    payloads: list[Payload] = []
    spoken: list[Any] = []
    for block in content:
        kind = block_type(block)
        if kind == "tool_result":
            payloads.append(tool_result(block, record))
        elif kind in ("text", "image", "document"):
            spoken.append(block)
        else:
            payloads.append(_unknown_payload(block, state, f"user.{kind}"))
    return payloads, spoken


def _wrapped_message(record: Record, state: LogState) -> list[Draft]:
    role = fields(record.get("message")).get("role")
    if role not in _ROLES:
        return _unknown(record, state, "message")
    return _user(record, state) if role == "user" else _assistant(record, state)


def _bare_result(record: Record, state: LogState) -> list[Draft]:
    detail = record.get("toolUseResult")
    thread = place(record, state)
    if not isinstance(detail, dict):
        return _unknown(record, state, "tool_result", thread)
    return [Draft(bare_result(detail), milliseconds(record.get("timestamp")), None, thread)]


def _system(record: Record, state: LogState) -> list[Draft]:
    thread = place(record, state)
    subtype = text(record.get("subtype"))
    said = text(record.get("content"))
    if said is None:
        rest = {key: record[key] for key in record if key not in _ENVELOPE and record[key] not in _NOTHING}
        said = readable_json(rest)
    elif "compactMetadata" in record:
        said = f"{said}\n{readable_json(record['compactMetadata'])}"
    payload = Notification(f"system/{subtype}" if subtype else "system", said)
    return [Draft(payload, milliseconds(record.get("timestamp")), None, thread)]


def _attachment(record: Record, state: LogState) -> list[Draft]:
    thread = place(record, state)
    attachment = record.get("attachment")
    if not isinstance(attachment, dict):
        return _unknown(record, state, "attachment", thread)
    payloads: list[Payload] = []
    kind = text(attachment.get("type")) or "untyped"
    if kind == "queued_command":
        payloads += user_texts(blocks(attachment.get("prompt")), attachment, request_kind(thread, state))
    if not payloads:
        rest = {key: value for key, value in attachment.items() if key != "type"}
        payloads.append(Notification(f"attachment/{kind}", readable_json(rest)))
    time = milliseconds(record.get("timestamp"))
    return [Draft(payload, time, None, thread) for payload in payloads]


def _progress(record: Record, state: LogState) -> list[Draft]:
    """Leave out progress: what an agent said on the way stands in its own log (formats.md 2.1, "Sub-agents")."""
    state.skipped.append(f"progress/{text(fields(record.get('data')).get('type')) or 'untyped'}")
    return []


def _side_line(record: Record, state: LogState, kind: str, said: str) -> list[Draft]:
    note_session(record, state.sessions[""])
    return [Draft(Notification(kind, said), milliseconds(record.get("timestamp")))]


def _bookkeeping(record: Record, state: LogState) -> list[Draft]:
    note_session(record, state.sessions[""])
    if record["type"] in TITLES:
        note_title(record, state)
    state.skipped.append(record["type"])
    return []


def _summary(record: Record, state: LogState) -> list[Draft]:
    note_title(record, state)
    message = fields(record.get("message"))  # in the place of `summary` where a tool rewrote the log
    said = next(filter(None, map(text, (record.get("summary"), record.get("text"), message.get("content")))), None)
    return _side_line(record, state, "summary", readable_json(record) if said is None else said)


def _queue_operation(record: Record, state: LogState) -> list[Draft]:
    """Keep what was queued: it comes again as a user line or an attachment, but only if it was sent."""
    operation = text(record.get("operation"))
    kind = f"queue-operation/{operation}" if operation else "queue-operation"
    said = joined_text(record.get("content"))
    if said:
        return _side_line(record, state, kind, said)
    note_session(record, state.sessions[""])
    state.skipped.append(kind)
    return []


def _pointer(record: Record, state: LogState) -> list[Draft]:
    named = (record.get(key) for key in _POINTERS[record["type"]])
    said = " ".join(value if isinstance(value, str) else readable_json(value) for value in named if value is not None)
    return _side_line(record, state, record["type"], said)


def _unknown(record: Record, state: LogState, kind: str, thread: str = "") -> list[Draft]:
    return [Draft(_unknown_payload(record, state, kind), milliseconds(record.get("timestamp")), None, thread)]


def _unknown_payload(value: Any, state: LogState, kind: str) -> Notification:
    state.unknown.append(kind)
    return Notification(f"unknown/{kind}", readable_json(value))


_READERS: dict[str, Callable[[Record, LogState], list[Draft]]] = {
    "assistant": _assistant,
    "attachment": _attachment,
    "message": _wrapped_message,
    "progress": _progress,
    "queue-operation": _queue_operation,
    "summary": _summary,
    "system": _system,
    "tool_result": _bare_result,
    "user": _user,
    **dict.fromkeys(_BOOKKEEPING, _bookkeeping),
    **dict.fromkeys(_POINTERS, _pointer),
}
