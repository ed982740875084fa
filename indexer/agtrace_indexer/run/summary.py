"""The summary of a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct, field

from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.reader.plan import Plan

if TYPE_CHECKING:
    from agtrace_indexer.logs.files import Progress


class Summary(Struct, frozen=True):
    """The results of a run; sessions, events, records and the like are those of the whole index."""

    files_seen: int
    files_changed: int
    files_opened: int
    bytes_read: int
    sessions: int
    events: int
    records: int
    unreadable_lines: int
    unknown_record_types: dict[str, int]
    seconds: float
    files_behind: int = 0
    """Changed files that the run had no time for."""
    bytes_behind: int = 0
    files_unreadable: int = 0
    """Files that can't be opened, or not be read to their end."""
    index_bytes: int = 0
    """The size of the index."""
    no_logs: dict[str, str] = field(default_factory=dict)
    """The files that were named but aren't logs, with the reasons; they aren't kept fresh."""


def summary_of(
    catalog: Catalog, plan: Plan, progress: Progress | None, no_logs: dict[str, str], started: float
) -> Summary:
    """Return the summary of a run that started at this time; `progress` is None if there was nothing to do."""
    totals = catalog.totals()
    opened = progress.files_opened if progress else 0
    return Summary(
        files_seen=plan.seen,
        files_changed=opened,
        files_opened=opened,
        bytes_read=progress.bytes_read if progress else 0,
        sessions=totals.sessions,
        events=totals.events,
        records=totals.records,
        unreadable_lines=totals.unreadable_lines,
        unknown_record_types=totals.unknown_record_types,
        seconds=round(time.monotonic() - started, 3),
        files_behind=len(plan.changed) if progress else 0,
        bytes_behind=plan.bytes_behind if progress else 0,
        files_unreadable=totals.unreadable_files,
        index_bytes=catalog.size,
        no_logs=no_logs,
    )
