"""Antigravity: `brain/<conversation>/.system_generated/logs/transcript_full.jsonl` (indexer/README.md).

The rules: a line is a step of the agent's own, in file order; its index is neither sorted nor unique. Who speaks is its
source (`steps`). Calls and results have no ids, so that ids are made up, and a result answers the first call of the
response before it that waits, or the one of its own name (`tool_calls`). The text of a result says how a command ended,
as the status of a line is always `DONE` (`tool_results`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record, SessionFacts
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.antigravity.steps import read_step
from agtrace_indexer.providers.provider import Rewrite

as_patch: Rewrite = None

_TEXTS = ("source", "type", "status", "created_at")


def recognizes(record: Record) -> bool:
    """Whether only Antigravity writes such a record: the index, source, type, status and time of a step."""
    index, kind = record.get("step_index"), record.get("type")
    if not isinstance(index, int) or not all(isinstance(record.get(key), str) for key in _TEXTS):
        return False
    return isinstance(kind, str) and kind.isupper()


def unroll(_document: Any) -> None:
    """Return nothing: no log of Antigravity is one JSON document."""


def begin(path: PurePath) -> LogState:
    """Return the state before the first line: only the folder of a conversation has its id."""
    if path.parts[-3:-1] != (".system_generated", "logs") or len(path.parts) < 4:
        return LogState()
    return LogState({"": SessionFacts(id=identifier(path.parts[-4]))})


def drafts(record: Record, state: LogState) -> Sequence[Draft]:
    """Return the events of the next line; see `Parser.drafts`."""
    return read_step(record, state)
