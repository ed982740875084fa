"""Lines of the system, by their subtype: telemetry, compressions, commands, titles, rewinds, and much bookkeeping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agtrace_schema.events import Notification, Payload, User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import fields, milliseconds, text
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.notes import readable_json, skip, unknown
from agtrace_indexer.providers.qwen.messages import first_text
from agtrace_indexer.providers.qwen.sessions import note_title
from agtrace_indexer.providers.qwen.tokens import usage_of_call
from agtrace_indexer.providers.qwen.tool_results import note_execution
from agtrace_indexer.providers.qwen.turns import rolled_back

_BOOKKEEPING = frozenset(
    {
        "agent_bootstrap",
        "agent_retry",
        "agent_session_ready",
        "at_command",
        "attribution_snapshot",
        "branch_checkpoint",
        "file_history_snapshot",
        "goal_runtime",
        "goal_state",
        "goal_turn_end",
        "omni_recall",
        "session_approval_mode",
        "session_artifact_event",
        "session_artifact_snapshot",
        "session_execution_engine",
        "session_model",
        "session_notes",
        "session_source",
        "session_sources_snapshot",
        "turn_result",
        "user_text_elements",
    }
)
"""The subtypes that repeat other lines, or say nothing to a reader."""


def read_system(record: Record, state: LogState) -> list[Said]:
    """Read a line of the system."""
    subtype, payload = text(record.get("subtype")) or "untyped", fields(record.get("systemPayload"))
    read = _READERS.get(subtype)
    if read is not None:
        return read(record, payload, state)
    if subtype in _BOOKKEEPING:
        return [*skip(f"system/{subtype}", state)]
    return [_draft(unknown(f"system.{subtype}", record, state, readable_json), record)]


def _telemetry(record: Record, payload: dict[str, Any], state: LogState) -> list[Said]:
    event = fields(payload.get("uiEvent"))
    name = (text(event.get("event.name")) or "").rpartition(".")[2]
    if name == "api_response":
        return [_call(event, record, state)]
    if name == "api_error":
        said = text(event.get("error_message")) or text(event.get("error")) or readable_json(event)
        return [_draft(Notification("api_error", said), record)]
    if name == "tool_call":
        note_execution(event, state)
    return [*skip("system/ui_telemetry", state)]


def _call(event: dict[str, Any], record: Record, state: LogState) -> Draft:
    """Read the tokens of a call to the API; the response of a call for the conversation follows in the same step."""
    state.memory["telemetry"] = True
    draft = _draft(usage_of_call(event, state), record)
    if not _is_internal(event):
        draft.step = state.memory["pending"] = first_identifier(record.get("uuid"), event.get("response_id")) or "call"
    return draft


def _is_internal(event: dict[str, Any]) -> bool:
    """Whether a call was made for an agent of the CLI's own: its prompt's id is `<session>#<agent>#<number>`."""
    if text(event.get("subagent_name")):
        return True
    prompt = text(event.get("prompt_id")) or ""
    return bool(prompt.partition("#")[2].strip("#0123456789"))


def _compression(record: Record, payload: dict[str, Any], state: LogState) -> list[Said]:
    told = Notification("system/chat_compression", readable_json(fields(payload.get("info"))))
    summary = first_text(payload.get("compressedHistory"))
    spoken = [_draft(User(summary, UserKind.COMPACTION_SUMMARY), record)] if summary else []
    return [_draft(told, record), *spoken]


def _command(record: Record, payload: dict[str, Any], state: LogState) -> list[Said]:
    typed = text(payload.get("rawCommand"))
    if payload.get("phase") == "invocation" and typed:
        return [_draft(User(typed, UserKind.COMMAND), record)]
    return [*skip("system/slash_command", state)]


def _title(record: Record, payload: dict[str, Any], state: LogState) -> list[Said]:
    note_title(payload, state)
    return [*skip("system/custom_title", state)]


def _rewind(record: Record, payload: dict[str, Any], state: LogState) -> list[Said]:
    return [*rolled_back(record, state), _draft(Notification("system/rewind", readable_json(payload)), record)]


def _parent(record: Record, payload: dict[str, Any], state: LogState) -> list[Said]:
    facts = state.sessions[""]
    facts.parent_id = facts.parent_id or identifier(payload.get("parentSessionId"))
    return [*skip("system/parent_session", state)]


def _notice(record: Record, payload: dict[str, Any], state: LogState) -> list[Said]:
    """Read a notification of the CLI's that other versions write in the user's role."""
    said = text(payload.get("displayText")) or readable_json(payload)
    return [_draft(User(said, UserKind.NOTIFICATION), record)]


def _draft(payload: Payload, record: Record) -> Draft:
    return Draft(payload, milliseconds(record.get("timestamp")))


_READERS: dict[str, Callable[[Record, dict[str, Any], LogState], list[Said]]] = {
    "ui_telemetry": _telemetry,
    "chat_compression": _compression,
    "slash_command": _command,
    "custom_title": _title,
    "rewind": _rewind,
    "parent_session": _parent,
    "notification": _notice,
    "background_task_completed": _notice,
}
