"""The lines of the conversation: texts, tool calls and results, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agtrace_schema.events import Message, Notification, Payload, Reasoning, ToolCall, ToolResult, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import fields, listed, milliseconds, text
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.claude_code.background import settlements
from agtrace_indexer.providers.claude_code.content import block_text, block_type, joined_text, readable_json
from agtrace_indexer.providers.claude_code.deeds import deeds
from agtrace_indexer.providers.claude_code.notices import unknown_line
from agtrace_indexer.providers.claude_code.sessions import place, request_kind
from agtrace_indexer.providers.claude_code.sidechains import note_calls
from agtrace_indexer.providers.claude_code.titles import note_request
from agtrace_indexer.providers.claude_code.tokens import SYNTHETIC, token_usage
from agtrace_indexer.providers.claude_code.tool_results import bare_result, spilled_output, tool_result
from agtrace_indexer.providers.claude_code.user_texts import user_texts
from agtrace_indexer.providers.notes import skip, unknown

ROLES = ("user", "assistant")


def assistant_line(record: Record, state: LogState) -> list[Draft]:
    """Read a part of a response, with the response's token usage if it is new."""
    thread = place(record, state)
    message = record.get("message")
    if not isinstance(message, dict):
        return unknown_line(record, state, "assistant", thread)
    time = milliseconds(record.get("timestamp"))
    content = message.get("content")
    if record.get("isApiErrorMessage") is True:
        said = joined_text(content) or text(record.get("error")) or ""
        return [Draft(Notification("api_error", said), time, thread=thread)]
    model, step = text(message.get("model")), None
    if model != SYNTHETIC:
        state.sessions[thread].model = model or state.sessions[thread].model
        step = first_identifier(message.get("id"), record.get("requestId"), record.get("uuid")) or _nameless(state)
    payloads = [_said(block, state) for block in listed(content)]
    if not thread:
        note_calls(payloads, state)
    made = [Draft(payload, time, step, thread) for payload in payloads]
    if content is None:
        made += unknown_line(record, state, "assistant", thread)
    usage = token_usage(record, message, state)
    if usage is not None:
        made.append(Draft(usage, time, step, thread, usage.response_id and f"usage/{usage.response_id}"))
    return made or skip("assistant", state)


def _nameless(state: LogState) -> str:
    """Return a step for a line without any id: such a line is a response of its own."""
    state.memory["nameless"] = state.memory.get("nameless", 0) + 1
    return f"nameless-{state.memory['nameless']}"


def _said(block: Any, state: LogState) -> Payload:
    """Read one block of a response, which can also be the result of a tool that the API runs."""
    kind = block_type(block)
    if kind == "text":
        return Message(block_text(block))
    if kind in ("thinking", "redacted_thinking"):
        return Reasoning(text(block.get("thinking")) or "")
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return ToolCall(identifier(block.get("id")), text(block.get("name")) or "", block.get("input"))
    if kind.endswith("tool_result"):
        return tool_result(block, {})
    return unknown(f"assistant.{kind}", block, state, readable_json)


def user_line(record: Record, state: LogState) -> Sequence[Said]:
    """Read a line in the user's role: tool results, and texts from whoever speaks in that role."""
    thread = place(record, state)
    message = record.get("message")
    if not isinstance(message, dict):
        return unknown_line(record, state, "user", thread)
    if message.get("content") is None:
        return unknown_line(record, state, "user", thread)
    payloads, spoken = _returned(listed(message["content"]), record, state)
    if spoken:
        speaker = UserKind.INJECTED if "toolUseResult" in record else request_kind(thread, state)
        payloads += user_texts(spoken, record, speaker)  # nobody types next to a result
    if not payloads:
        state.skipped.append("user")
    if not thread:
        note_calls(payloads, state)
        note_request(payloads, state)
    time = milliseconds(record.get("timestamp"))
    ends = settlements(payloads, record.get("toolUseResult"), time, thread, state)
    drafts = [Draft(payload, time, None, thread) for payload in payloads]
    for draft in drafts:
        if isinstance(draft.payload, ToolResult):
            draft.landmarks = deeds(record.get("toolUseResult"))
    return [*drafts, *ends]


def _returned(content: list[Any], record: Record, state: LogState) -> tuple[list[Payload], list[Any]]:
    """Separate tool results and unknown blocks from the blocks that somebody says."""
    payloads: list[Payload] = []
    spoken: list[Any] = []
    for block in content:
        kind = block_type(block)
        if kind == "tool_result":
            result = tool_result(block, record)
            payloads += [result, *spilled_output(result, record)]
        elif kind in ("text", "image", "document"):
            spoken.append(block)
        else:
            payloads.append(unknown(f"user.{kind}", block, state, readable_json))
    return payloads, spoken


def wrapped_message(record: Record, state: LogState) -> Sequence[Said]:
    """Read a line of either role whose type is `message`, as in early published samples."""
    role = fields(record.get("message")).get("role")
    if role not in ROLES:
        return unknown_line(record, state, "message")
    return user_line(record, state) if role == "user" else assistant_line(record, state)


def bare_result_line(record: Record, state: LogState) -> list[Draft]:
    """Read a line that is nothing but a `toolUseResult`, as in early published samples."""
    detail = record.get("toolUseResult")
    thread = place(record, state)
    if not isinstance(detail, dict):
        return unknown_line(record, state, "tool_result", thread)
    return [Draft(bare_result(detail), milliseconds(record.get("timestamp")), None, thread)]
