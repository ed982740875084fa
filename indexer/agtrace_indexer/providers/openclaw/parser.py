"""OpenClaw: Pi's format, with schedules, heartbeats and messages in the user's role (indexer/README.md)."""

from __future__ import annotations

from collections.abc import Sequence

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.providers.openclaw.user_texts import speakers
from agtrace_indexer.providers.pi.entries import read_entry
from agtrace_indexer.providers.pi.parser import as_patch, begin, unroll

__all__ = ["as_patch", "begin", "drafts", "recognizes", "unroll"]


def recognizes(_record: Record) -> bool:
    """Return False: a record is always Pi's, and the place of a log shows that OpenClaw wrote it."""
    return False


def drafts(record: Record, state: LogState) -> Sequence[Draft]:
    """Return the events of the next record; see `Parser.drafts`."""
    return read_entry(record, state, speakers)
