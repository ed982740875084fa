"""Goose: sessions in a database, or in files of JSON lines before 1.10 (indexer/README.md).

The rules: a message is a row or a line, and its blocks become events (`messages`). A response is a step, even if its
calls are in several messages. Tokens are counted once, whichever of three places has them (`tokens`). When a
conversation was rewritten, its turns are dropped and read again (`database`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record, Rollback, Said
from agtrace_indexer.events.json_values import milliseconds, text
from agtrace_indexer.providers.goose.messages import BLOCKS, ROLES, read_message
from agtrace_indexer.providers.goose.sessions import is_head, note_session, read_head
from agtrace_indexer.providers.goose.tokens import ledger_usage, totals
from agtrace_indexer.providers.notes import unknown
from agtrace_indexer.providers.provider import Rewrite

as_patch: Rewrite = None

FORM = "$goose"
"""The key by which a record from the database says what it is."""


def recognizes(record: Record) -> bool:
    """Whether only Goose writes such a record: the first line of a file, or a message with a time in seconds."""
    if is_head(record):
        return True
    own = _is_message(record) and type(record.get("created")) is int and "type" not in record
    return own and bool(record["content"]) and record["content"][0]["type"] in BLOCKS


def unroll(document: Any) -> Iterable[Record] | None:
    """Return None: no log is one document."""
    return None


def begin(path: PurePath) -> LogState:
    """Return an empty state: the first record says whose log it is."""
    return LogState()


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next record; see `Parser.drafts`."""
    match record.get(FORM):
        case "session":
            note_session(record, state)
            return []
        case "rewritten":
            state.memory.pop("thought", None)
            state.memory.pop("response", None)
            return [Rollback(None)]
        case "usage":
            return ledger_usage(record, state)
        case "totals":
            return totals(record, state)
    if _is_message(record):
        return read_message(record, state)
    if is_head(record):
        return read_head(record, state)
    kind = text(record.get("role")) or text(record.get("type")) or next(iter(record), "empty")
    return [Draft(unknown(kind, record, state), milliseconds(record.get("created")))]


def _is_message(record: Record) -> bool:
    content = record.get("content")
    return (
        record.get("role") in ROLES
        and isinstance(content, list)
        and all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in content[:1])
    )
