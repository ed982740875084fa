"""Copilot Chat in VS Code: `GitHub.copilot-chat/transcripts/<id>.jsonl`, the same records by another producer."""

from __future__ import annotations

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.providers.copilot.parser import as_patch, begin, drafts, is_event, producer, unroll

__all__ = ["as_patch", "begin", "drafts", "recognizes", "unroll"]


def recognizes(record: Record) -> bool:
    """Whether this is the first line of a log of Copilot Chat."""
    return is_event(record) and producer(record) == "copilot-chat"
