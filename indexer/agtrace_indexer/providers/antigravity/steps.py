"""The steps of a transcript, by who takes them: the user, the model with its tools, or the system."""

from __future__ import annotations

from collections.abc import Sequence

from agtrace_schema.events import Message, Notification, Payload, Reasoning, User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import items, milliseconds, text
from agtrace_indexer.providers.antigravity.places import note_place
from agtrace_indexer.providers.antigravity.tool_calls import call_of, calls_of, forget_calls
from agtrace_indexer.providers.antigravity.tool_results import tool_result
from agtrace_indexer.providers.antigravity.user_texts import note_model, user_texts
from agtrace_indexer.providers.notes import readable_json, skip, unknown

_INJECTED = ("CONVERSATION_HISTORY", "EPHEMERAL_MESSAGE", "SYSTEM_MESSAGE")
"""The types of the system's steps that the model reads as if the user had said them."""

_TOLD = {"CHECKPOINT": "checkpoint", "ERROR_MESSAGE": "error_message"}
"""The types of the system's steps that become notifications, with their kinds."""


def read_step(record: Record, state: LogState) -> list[Draft]:
    """Read a line."""
    source, kind = text(record.get("source")), text(record.get("type")) or "untyped"
    if kind == "USER_INPUT":
        return _drafts(_input(record, source == "USER_EXPLICIT", state), record) or skip(kind, state)
    if source == "MODEL" and kind == "PLANNER_RESPONSE":
        return _response(record, state)
    if source == "MODEL" and kind.isupper():
        result = tool_result(record, call_of(kind, state))
        note_place(result.text, state)
        return _drafts([result], record)
    if source == "SYSTEM" and kind in _INJECTED:
        said = _content(record)
        return _drafts([User(said, UserKind.INJECTED)], record) if said.strip() else skip(kind, state)
    if source == "SYSTEM" and kind in _TOLD:
        return _drafts([Notification(_TOLD[kind], _content(record))], record)
    return _drafts([unknown(kind, record, state, readable_json)], record)


def _input(record: Record, typed: bool, state: LogState) -> list[User]:
    """Read what the user says, and what is put around it."""
    forget_calls(state)
    said = _content(record)
    note_model(said, state)
    return user_texts(said, UserKind.HUMAN if typed else UserKind.INJECTED)


def _response(record: Record, state: LogState) -> list[Draft]:
    """Read a response of the model: a step of its own, as nothing else tells responses apart."""
    number = state.memory["responses"] = state.memory.get("responses", 0) + 1
    thought, said = text(record.get("thinking")), text(record.get("content"))
    payloads: list[Payload] = [Reasoning(thought)] if thought else []
    if said:
        payloads.append(Message(said))
    payloads += calls_of(items(record.get("tool_calls")), number, state)
    return _drafts(payloads, record, str(number)) or skip("PLANNER_RESPONSE", state)


def _content(record: Record) -> str:
    content = record.get("content")
    if isinstance(content, str):
        return content
    return "" if content is None else readable_json(content)


def _drafts(payloads: Sequence[Payload], record: Record, step: str | None = None) -> list[Draft]:
    time = milliseconds(record.get("created_at"))
    return [Draft(payload, time, step) for payload in payloads]
