"""OpenCode: rows of its database, small files, exports (indexer/README.md).

All of these have the same JSON, so their sources return the same records: `{"session": ...}`, `{"info": ...,
"parts": [...], "followed": ...}` for each message, as in an export, `{"removed": [...]}` for messages that were
deleted, and `{"row": ..., "table": ...}` for what another version wrote elsewhere. A message is one step; what it says
comes again whenever it changed, and only the differences become events (`changes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import LogState, Record, Said
from agtrace_indexer.events.json_values import fields, items, text
from agtrace_indexer.providers.notes import skip
from agtrace_indexer.providers.opencode.changes import forget, replace
from agtrace_indexer.providers.opencode.messages import parts_of, unknown_parts
from agtrace_indexer.providers.opencode.order import followed
from agtrace_indexer.providers.opencode.sessions import note_session
from agtrace_indexer.providers.provider import Rewrite

as_patch: Rewrite = None


def recognizes(record: Record) -> bool:
    """Recognize no record: no log of OpenCode's consists of lines."""
    return False


def unroll(document: Any) -> Iterable[Record] | None:
    """Return the session of an export and its messages; None for any other document."""
    info = fields(fields(document).get("info"))
    told = fields(document).get("messages")
    if not (isinstance(info.get("id"), str) and info["id"].startswith("ses_") and isinstance(told, list)):
        return None
    messages = [_message(value, number) for number, value in enumerate(told)]
    names = [message["info"]["id"] for message in messages]
    for number, message in enumerate(messages):
        if names.index(message["info"]["id"]) < number:  # ids that were blacked out are all the same
            message["info"]["id"] += f"-{number}"
    later = followed(message["info"].get("role") == "assistant" for message in messages)
    return [{"session": info}, *({**message, "followed": past} for message, past in zip(messages, later, strict=True))]


def _message(value: Any, number: int) -> Record:
    told = fields(value)
    info = told.get("info")
    if not isinstance(info, dict):
        return {"info": {"id": f"message-{number}", "value": value}, "parts": []}
    return {"info": {**info, "id": text(info.get("id")) or f"message-{number}"}, "parts": told.get("parts")}


def begin(path: PurePath) -> LogState:
    """Return an empty state: the first record says whose log it is."""
    return LogState()


def drafts(record: Record, state: LogState) -> Iterable[Said]:
    """Return what the next record changes."""
    if isinstance(record.get("session"), dict):
        note_session(record["session"], state.sessions[""])
        return skip("session", state)
    if isinstance(record.get("removed"), list):
        return forget([name for name in record["removed"] if isinstance(name, str)], state)
    info = record.get("info")
    if isinstance(info, dict) and isinstance(info.get("id"), str):
        parts = parts_of(info, items(record.get("parts")), state, followed=record.get("followed") is True)
        return replace(info["id"], parts, state)
    return replace(*unknown_parts(record, state), state)
