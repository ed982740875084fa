"""Every type of entry, with its reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agtrace_schema.events import Notification, Payload, User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import milliseconds, text
from agtrace_indexer.providers.notes import readable_json, skip, unknown
from agtrace_indexer.providers.pi.content import joined_text
from agtrace_indexer.providers.pi.messages import read_message
from agtrace_indexer.providers.pi.sessions import begin_session, identify, note_model, note_name, note_place
from agtrace_indexer.providers.pi.tokens import usage_of
from agtrace_indexer.providers.pi.user_texts import Speakers

_ENVELOPE = {"type", "id", "parentId", "timestamp", "summary"}
"""The keys of an entry that say nothing about a compaction."""

_LEFT_OUT = frozenset(
    {
        "archive",
        "credential_pin",
        "custom",
        "label",
        "mode_change",
        "reset_boundary",
        "service_tier_change",
        "session_init",
        "thinking_level_change",
        "ttsr_injection",
    }
)
"""The types of entries that say nothing to a reader: settings, the state of extensions, marks in the tree."""


def read_entry(record: Record, state: LogState, speakers: Speakers) -> list[Draft]:
    """Read a line: the session, or an entry; `speakers` tells who speaks in a text of the user's role."""
    kind = record.get("type")
    if kind == "message":
        said = read_message(record, state, speakers)
    else:
        read = _READERS.get(kind) if isinstance(kind, str) else None
        said = _unknown(record, state) if read is None else read(record, state)
    note_place(record, state)
    identify(said, record)
    return said


def _unknown(record: Record, state: LogState) -> list[Draft]:
    return [_draft(unknown(text(record.get("type")) or "untyped", record, state, readable_json), record)]


def _left_out(record: Record, state: LogState) -> list[Draft]:
    return skip(record["type"], state)


def _session(record: Record, state: LogState) -> list[Draft]:
    begin_session(record, state)
    return skip("session", state)


def _model(record: Record, state: LogState) -> list[Draft]:
    note_model(record, state)
    return skip("model_change", state)


def _name(record: Record, state: LogState) -> list[Draft]:
    note_name(record.get("name", record.get("title")), state)
    return skip(record["type"], state)


def _compaction(record: Record, state: LogState) -> list[Draft]:
    """Read the summary that replaces the earlier context, and what else is known about it."""
    about = {key: value for key, value in record.items() if key not in _ENVELOPE}
    return [_draft(Notification("compaction", readable_json(about)), record), *_summary(record, state)]


def _summary(record: Record, state: LogState) -> list[Draft]:
    """Read a summary in the user's role, of the earlier context or of a branch that was left."""
    said = text(record.get("summary"))
    return [_draft(User(said, UserKind.COMPACTION_SUMMARY), record)] if said else skip(record["type"], state)


def _injected(record: Record, state: LogState) -> list[Draft]:
    """Read a text that an extension puts into the context."""
    said = joined_text(record.get("content"))
    return [_draft(User(said, UserKind.INJECTED), record)] if said.strip() else skip("custom_message", state)


def _usage(record: Record, state: LogState) -> list[Draft]:
    """Read the tokens of a call to the model that isn't part of the conversation."""
    usage = usage_of(record, says_something=False)
    return [_draft(usage, record)] if usage else skip("model_usage", state)


def _draft(payload: Payload, record: Record) -> Draft:
    return Draft(payload, milliseconds(record.get("timestamp")))


_READERS: dict[str, Callable[[Record, LogState], Any]] = {
    "session": _session,
    "model_change": _model,
    "session_info": _name,
    "title": _name,
    "title_change": _name,
    "compaction": _compaction,
    "branch_summary": _summary,
    "custom_message": _injected,
    "model_usage": _usage,
    **dict.fromkeys(_LEFT_OUT, _left_out),
}
