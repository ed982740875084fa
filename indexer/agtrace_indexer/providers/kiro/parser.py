"""Kiro CLI: JSONL sessions, and the conversations of Amazon Q and Kiro CLI 1 (indexer/README.md).

The rules: a line is a prompt, a response, which is a step, or the results of its calls (`messages`). A command's exit
status decides over the status of its result (`tool_results`). Folder, title, parent, model and the end of a turn are
only in the file next to a log (`sidecars`). A conversation is a row of a database or an exported document, and is read
as a first record with facts and one for each exchange (`conversations`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import text
from agtrace_indexer.providers.kiro.conversations import (
    ABOUT,
    EXCHANGE,
    is_conversation,
    read_about,
    read_exchange,
    records_of,
)
from agtrace_indexer.providers.kiro.messages import KINDS, read_line
from agtrace_indexer.providers.kiro.sidecars import described, is_description
from agtrace_indexer.providers.notes import unknown
from agtrace_indexer.providers.provider import Rewrite

as_patch: Rewrite = None


def recognizes(record: Record) -> bool:
    """Whether only Kiro CLI writes such a record: version, kind and data of a line."""
    data = record.get("data")
    return (
        isinstance(record.get("version"), str)
        and record.get("kind") in KINDS
        and isinstance(data, dict)
        and isinstance(data.get("content"), list)
    )


def unroll(document: Any) -> Iterable[Record] | None:
    """Return the records of a conversation that was exported (`/chat save`); none of the file next to a log."""
    if is_description(document):
        return []
    return records_of(document) if is_conversation(document) else None


def begin(path: PurePath) -> LogState:
    """Return the state before the first line, with what the file next to the log says."""
    return described(path)


def drafts(record: Record, state: LogState) -> Sequence[Draft]:
    """Return the events of the next record; see `Parser.drafts`."""
    if isinstance(record.get(ABOUT), dict):
        return read_about(record[ABOUT], state)
    if isinstance(record.get(EXCHANGE), dict):
        return read_exchange(record[EXCHANGE], state)
    if record.get("kind") in KINDS and isinstance(record.get("data"), dict):
        return read_line(record, state)
    return [Draft(unknown(text(record.get("kind")) or next(iter(record), "empty"), record, state), None)]
