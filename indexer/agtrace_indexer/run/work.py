"""The part of a run that writes: it reads what has changed and joins it with what the index has.

What it needs for that is imported only when there is something to write.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from agtrace_indexer import redact
from agtrace_indexer.index.catalog import Catalog, KnownFile
from agtrace_indexer.logs.discovery import LogFile
from agtrace_indexer.reader.plan import KNOWN_AGENTS, Archived, Plan
from agtrace_indexer.run import versions

if TYPE_CHECKING:
    from agtrace_indexer.logs.archive import Archive
    from agtrace_indexer.logs.files import Progress
    from agtrace_indexer.reader.reader import Reader

_NO_LOG = frozenset({"unrecognized", "unreadable", "skipped"})
"""The statuses of files that aren't logs; one that is empty, or waits for its rest, may become one."""

_DAY = 24 * 3600

_PATIENCE = 0.1
"""Seconds that a run waits for readers before it leaves the WAL, with deleted texts in it, to the next run."""


class Work(Struct):
    """The work of a run: what there is to do, and how it is done."""

    catalog: Catalog
    new_roots: set[str]
    plan: Plan
    rebuild: bool
    more_agents: bool = False
    """Whether agents are known that weren't when the index was last complete."""
    rereading: bool = False
    """Whether this run is the first to read everything again because it would be read otherwise now."""
    deadline: float = math.inf
    """The time of the monotonic clock after which no further file is started."""
    keep_days: int | None = None
    archive: bool = True
    """Whether logs are kept in the archive; without it, those that are gone leave the index."""
    tidy: bool = False
    """Whether the run may also compact an index that has much free space, which takes a while."""
    no_logs: dict[str, str] = field(default_factory=dict)

    @property
    def needed(self) -> bool:
        """Whether there is anything to write."""
        due = bool(self.new_roots) or self.rebuild or self.more_agents or not self.plan.empty
        due = due or self.catalog.is_unfinished() or self._archive_is_in_the_way
        return due or (self.keep_days is not None and self.catalog.meta("kept_days") != str(self.keep_days))

    def carry_out(self, report: Callable[[Progress], None] | None) -> Progress:
        """Read what changed, and commit."""
        from agtrace_indexer.index import repositories
        from agtrace_indexer.index.roots import bring_back
        from agtrace_indexer.index.store import Store
        from agtrace_indexer.index.tombstones import Tombstones
        from agtrace_indexer.index.word_index import cover_if_due
        from agtrace_indexer.logs.archive import Archive
        from agtrace_indexer.logs.files import Progress
        from agtrace_indexer.reader.reader import Reader

        catalog, changed = self.catalog, self.plan.changed
        store = Store(catalog.connection)
        progress = Progress(files_total=len(changed), bytes_total=sum(found.size for found, _ in changed))
        store.begin()
        catalog.add_roots(self.new_roots)
        bring_back(catalog, self.new_roots)
        if catalog.meta("built") is None:
            catalog.set_meta("built", "0")
            catalog.set_meta("reading", str(versions.READING_VERSION))
            catalog.set_meta("redaction", redact.digest())
        elif self.rereading:
            versions.note_going_on(catalog)
        forgotten, archive = Tombstones.of(catalog.path), Archive(catalog.path, enabled=self.archive)
        if self._archive_is_in_the_way:
            archive.clear()
        reader = Reader(
            store, progress, report or (lambda _: None), rebuild=self.rebuild,
            mask_anew=versions.masked_otherwise(catalog), forgotten=forgotten, archive=archive,
        )  # fmt: skip
        self._read(reader)
        store.flush()
        repositories.join(catalog.connection, anew=store.named_relatively)
        cover_if_due(catalog.connection)  # the last one, since it commits along the way
        store.commit()
        self._clear_away(progress)
        if self.archive:
            self._tend(archive)
        return progress

    def _read(self, reader: Reader) -> None:
        """Read what changed while there is time; once everything has been read, finish the run."""
        archived = Archived(self.catalog, self.plan)
        behind = len(self.plan.changed)
        self._read_by_workers(reader, archived)
        changed = deque(self.plan.changed)
        while changed and (len(changed) == behind or time.monotonic() < self.deadline):  # the shortest run reads one
            reader.read(*changed.popleft(), archived.beginning_with)
        self.plan.changed = list(changed)
        if not changed:
            self._finish(reader)

    def _clear_away(self, progress: Progress) -> None:
        """Forget what turned out to belong to forgotten sessions, and what is too old, without leaving traces."""
        from agtrace_indexer.index.maintenance import compact_if_swollen, scrub

        catalog, now = self.catalog, time.time()
        if progress.kept_out or self.keep_days is not None:
            from agtrace_indexer.forget import expire, keep_out

            if progress.kept_out:
                keep_out(catalog, progress.kept_out, now)
            if self.keep_days is not None:
                expire(catalog.connection, catalog.path, self.keep_days, now)
        scrub(catalog.connection, patience=_PATIENCE)
        if self.tidy and not self.plan.changed:
            compact_if_swollen(catalog.connection)

    def _tend(self, archive: Archive) -> None:
        """Once a day, have the archive keep what isn't in it yet."""
        now = time.time()
        today = str(int(now // _DAY))
        if self.plan.changed or self.catalog.meta("tended") == today:
            return
        from agtrace_indexer.reader.plan import all_rows

        for found in archive.tend(self.catalog.logs_there(), all_rows, now):
            self.catalog.note_stamp(found)
        self.catalog.set_meta("tended", today)

    @property
    def _archive_is_in_the_way(self) -> bool:
        return not self.archive and self.catalog.has_archive

    def _read_by_workers(self, reader: Reader, archived: Archived) -> None:
        """If there are many new logs, read them on all cores; what is left is read one by one."""
        from agtrace_indexer.parallel import pool

        if pool.cores() < 2 or sum(found.size for found, _ in self.plan.changed) < pool.LEAST:
            return
        changed = self.plan.changed
        new = [found for found, row in changed if pool.is_for_workers(found) and self._is_new(found, row, archived)]
        if sum(found.size for found in new) >= pool.LEAST:
            reader.store.commit()
            done = pool.read_all(
                new, reader.store, self.catalog.path, reader.progress, reader.report, self.deadline,
                archive=self.archive,
            )  # fmt: skip
            reader.store.begin()
            self.plan.changed = [change for change in changed if change[0].path not in done]

    def _is_new(self, file: LogFile, row: KnownFile | None, archived: Archived) -> bool:
        """Whether a log is read from its beginning, whatever is known about it and others."""
        if row is not None:
            return self.rebuild and row.status == "log" and not file.cut_off
        return not archived.may_have(file)

    def _finish(self, reader: Reader) -> None:
        """Archive what vanished and note what can't be read, once every changed log has been read."""
        from agtrace_indexer.families.joining import assign_unique_ids, join_families

        reader.store.mark_gone(row.id for row in self.plan.gone if self.catalog.file(row.path) is not None)
        for found, _ in self.plan.odd:
            reader.set_aside(found, self.catalog.file(found.path), found.status, found.oddity or "")
        self._drop_no_logs()
        gone = [] if self.archive else [row for row in self.catalog.gone_files() if not os.path.lexists(row.path)]
        if gone or versions.masked_otherwise(self.catalog):
            reader.store.drop([row.id for row in gone], unread=versions.masked_otherwise(self.catalog))
        reader.store.flush()
        join_families(self.catalog.connection)
        assign_unique_ids(self.catalog.connection)
        self.catalog.set_meta("built", "1")
        versions.note_current(self.catalog)
        self.catalog.set_meta("agents", ",".join(sorted(KNOWN_AGENTS | versions.noted_agents(self.catalog))))

    def _drop_no_logs(self) -> None:
        """Stop keeping files fresh that were named in this run and aren't logs."""
        for path in self.new_roots:
            row = self.catalog.file(path)
            if row is not None and row.status in _NO_LOG and not os.path.isdir(path):
                self.no_logs[path] = row.reason or ""
                self.catalog.drop_root(path)
