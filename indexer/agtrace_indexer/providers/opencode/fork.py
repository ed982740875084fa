"""The parser of OpenCode's forks: their records are OpenCode's, and an export doesn't say which of them wrote it."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.providers.opencode.parser import as_patch, begin, drafts

__all__ = ["as_patch", "begin", "drafts", "recognizes", "unroll"]


def recognizes(record: Record) -> bool:
    """Recognize no record: they come from the fork's database or its tree of files."""
    return False


def unroll(document: Any) -> None:
    """Claim no document: an export is read as OpenCode's."""
