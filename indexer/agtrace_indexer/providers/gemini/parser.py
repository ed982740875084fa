"""Gemini CLI: whole-file JSON sessions, JSONL sessions since 0.39.0, and `/chat save` checkpoints (indexer/README.md).

The rules: a JSONL session is a log of *changes*, so events have keys and only changed ones are returned again
(`changes`). A message is one step: thoughts, text, calls, tokens and the results of the calls (`messages`). The
status of a call is its outcome, but the exit code of a shell command takes precedence (`tool_results`). A document
is read as if it were the lines of a session (`documents`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction, SessionFacts
from agtrace_indexer.events.json_values import fields, milliseconds
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.gemini.changes import patch, replace, rewind
from agtrace_indexer.providers.gemini.documents import (
    REWRITTEN,
    as_patch,
    history_messages,
    identified,
    is_history,
    message_id,
    without,
)
from agtrace_indexer.providers.gemini.messages import NOTICES, unknown_record
from agtrace_indexer.providers.gemini.sessions import METADATA_KEYS, is_metadata

__all__ = ["as_patch", "begin", "drafts", "recognizes", "unroll"]

_COMMON_KEYS = {"id", "timestamp", "type", "content", "displayContent"}


def recognizes(record: Record) -> bool:
    """Whether only Gemini CLI writes such a record: its metadata, its messages, `$set` or `$rewindTo`.

    The keys of user and notice messages are common ones (id, timestamp, type, content), so they must have exactly
    these; a `gemini` message is recognised by its type.
    """
    if is_metadata(record):
        return True
    if record.keys() == {"$set"}:
        return bool(fields(record["$set"]).keys() & METADATA_KEYS)
    if record.keys() == {"$rewindTo"}:
        return isinstance(record["$rewindTo"], str)
    return _is_own_message(record)


def unroll(document: Any) -> Iterable[Record] | None:
    """Return a JSON session as metadata and messages, or a checkpoint (`/chat save`) as if it were one.

    None for anything else, such as `logs.json` (prompts only) and recordings of the Gemini API.
    """
    if not isinstance(document, dict):
        return None
    if is_metadata(document) and isinstance(document.get("messages"), list):
        return [without(document, "messages"), *identified(document["messages"])]
    if is_history(document.get("history")):
        return [{"$set": without(document, "history")}, *history_messages(document["history"])]
    return None


def begin(path: PurePath) -> LogState:
    """Return the state before the first record; a sub-agent's log is in `chats/<parent's session id>/` since 0.37."""
    if path.parent.name != "chats" and path.parent.parent.name == "chats":
        return LogState({"": SessionFacts(parent_id=identifier(path.parent.name), kind="subagent")})
    return LogState()


def drafts(record: Record, state: LogState) -> Iterable[Draft | Retraction]:
    """Return what the next record changes; the checks are in the order of gemini-cli's own loader."""
    if isinstance(record.get("$rewindTo"), str):
        return rewind(message_id(record["$rewindTo"]), state)
    if isinstance(record.get("id"), str):
        return replace({**record, "id": message_id(record["id"])}, state)
    if isinstance(record.get("$set"), dict):
        return patch(record["$set"], "$set", state, rewritten=REWRITTEN in record)
    if is_metadata(record):
        return patch(record, "metadata", state)
    return [Draft(unknown_record(record, state), milliseconds(record.get("timestamp")))]


def _is_own_message(record: Record) -> bool:
    stamped = isinstance(record.get("id"), str) and isinstance(record.get("timestamp"), str)
    if not stamped or "content" not in record:
        return False
    if record.get("type") == "gemini":
        return True
    return record.get("type") in ("user", *NOTICES) and record.keys() <= _COMMON_KEYS
