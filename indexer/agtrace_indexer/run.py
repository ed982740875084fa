"""One indexing run: discover, compare, read what changed, archive what vanished.

The no-op run is the common one: it imports no parser and opens no log.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agtrace_indexer import redact
from agtrace_indexer.events import strings
from agtrace_indexer.index.catalog import Catalog, KnownFile, remove_attempts
from agtrace_indexer.index.lock import WriteLock
from agtrace_indexer.index.opening import NewerIndex
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.reader.plan import Archived, Plan, make_plan

if TYPE_CHECKING:
    from agtrace_indexer.index.store import Store
    from agtrace_indexer.logs.progress import Progress
    from agtrace_indexer.reader.reader import Reader


READING_VERSION = 6
"""Raised whenever the same logs would now give other rows: logs that are still there are then read
again, archived rows stay as they are. 1 (2026-11-21). 2 (2026-11-21): families, requests, paths, durations.
3 (2026-11-21): lengths of lines without a carriage return. 4 (2026-11-21): calls to agtrace itself.
5 (2026-11-21): new rules for secrets. 6 (2026-11-22): ids of sessions are plain names, all names are masked."""


_NO_LOG = frozenset({"unrecognized", "unreadable", "skipped"})
"""The status of a file that is no log; one that is empty, or waits for its rest, may become one."""

_PATIENCE = 0.1
"""Seconds that a run waits for readers before it leaves the WAL, with texts that were deleted, to the next one."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run found and did; sessions, events, records and the like count the whole index."""

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
    """Files that can't be opened or read to their end."""
    index_bytes: int = 0
    """The size of the index."""
    no_logs: dict[str, str] = field(default_factory=dict)
    """The files that were named and hold no log, each with why: they are not kept fresh."""


def index(
    database: Path,
    roots: Iterable[str],
    *,
    otherwise: Iterable[str] = (),
    report: Callable[[Progress], None] | None = None,
    seconds: float | None = None,
    rebuild: bool = False,
    patience: float = 0,
    keep_days: int | None = None,
) -> Summary:
    """Bring the index up to date with everything below its roots and these new ones.

    `otherwise` are the roots of an index that has none. `report` is called with the progress as it
    grows; `seconds` bounds the run, which then ends between two files; one is read
    however late it is, so that such runs, one after the other, get there. Where something has to be
    written and another process is writing, it waits `patience` seconds and raises `lock.Busy` then. A run that
    writes forgets the sessions whose last event is older than `keep_days`. Raises `redact.UnusableRules` where the
    user's rules for secrets can't be read: nothing is stored that they might have masked; and `opening.NewerIndex`
    where a newer agtrace made the index or read its logs.
    """
    started = time.monotonic()
    roots, otherwise = list(roots), list(otherwise)
    redact.use(database.parent)
    strings.start()

    def work_of(catalog: Catalog) -> _Work:
        new_roots, plan, all_of_it = _compare(catalog, roots, otherwise, rebuild=rebuild)
        return _Work(catalog, new_roots, plan, all_of_it, started + seconds if seconds else None, keep_days)

    if not database.exists():
        with WriteLock(database, patience), closing(Catalog(database)) as catalog:
            remove_attempts(database)
            _honour_tombstones(catalog)
            return _summary(catalog, work := work_of(catalog), work.carry_out(report), started)
    with closing(Catalog(database)) as catalog:
        state, work = catalog.state, work_of(catalog)
        if not work.needed:
            return _summary(catalog, work, None, started)
        with WriteLock(database, patience):
            if catalog.is_in_place:
                remove_attempts(database)
                if _honour_tombstones(catalog) or catalog.state != state:  # another process has indexed meanwhile
                    work = work_of(catalog)
                return _summary(catalog, work, work.carry_out(report) if work.needed else None, started)
    return index(  # a repair has put another file there meanwhile
        database, roots, otherwise=otherwise, report=report, seconds=seconds, rebuild=rebuild, patience=patience,
        keep_days=keep_days,
    )  # fmt: skip


def refuse_newer_reading(reading: str | None) -> None:
    """Raise `NewerIndex` where a newer agtrace read the logs, by the fact 'reading' of an index.

    What it stored can be read, but not written: the logs would be read anew by each of the two in turn.
    """
    if reading is not None and reading.isdecimal() and int(reading) > READING_VERSION:
        raise NewerIndex("reading", int(reading), READING_VERSION)


def _honour_tombstones(catalog: Catalog) -> bool:
    """Delete what was forgotten since the index was last written, before anything is read; whether there was any."""
    if not catalog.has_new_tombstones:
        return False
    from agtrace_indexer.forget import finish

    finish(catalog, time.time())
    return True


def _compare(catalog: Catalog, roots: list[str], otherwise: list[str], *, rebuild: bool) -> tuple[set[str], Plan, bool]:
    """What there is to do: for which new roots, for which files, and whether everything is read again."""
    refuse_newer_reading(catalog.meta("reading"))
    known_roots = set(catalog.roots())
    wanted = roots or ([] if known_roots or catalog.meta("root_forgotten") else otherwise)
    new_roots = set(map(os.path.abspath, wanted)) - known_roots
    rebuild = rebuild or catalog.meta("reading") not in (None, str(READING_VERSION)) or _masked_otherwise(catalog)
    plan = make_plan(catalog, sorted(known_roots | new_roots), rebuild=rebuild)
    return new_roots, plan, rebuild


def _masked_otherwise(catalog: Catalog) -> bool:
    """Whether the rules for secrets changed since the index was masked."""
    return catalog.meta("built") is not None and catalog.meta("redaction") != redact.digest()


@dataclass(slots=True)
class _Work:
    """The part of a run that writes."""

    catalog: Catalog
    new_roots: set[str]
    plan: Plan
    rebuild: bool
    deadline: float | None
    keep_days: int | None
    no_logs: dict[str, str] = field(default_factory=dict)

    @property
    def needed(self) -> bool:
        """Whether there is anything to write."""
        due = bool(self.new_roots) or self.rebuild or not self.plan.empty or self.catalog.is_unfinished()
        return due or (self.keep_days is not None and self.catalog.meta("kept_days") != str(self.keep_days))

    def carry_out(self, report: Callable[[Progress], None] | None) -> Progress:
        """Read what changed, and commit."""
        from agtrace_indexer.index.store import Store
        from agtrace_indexer.index.tombstones import Tombstones
        from agtrace_indexer.index.word_index import cover_if_due
        from agtrace_indexer.logs.progress import Progress
        from agtrace_indexer.reader.reader import Reader

        catalog, changed = self.catalog, self.plan.changed
        store = Store(catalog.connection)
        progress = Progress(files_total=len(changed), bytes_total=sum(found.size for found, _ in changed))
        store.begin()
        self._note_beginning()
        self._mask_again_if_due(store)
        forgotten = Tombstones.of(catalog.path)
        reader = Reader(store, progress, report or (lambda _: None), rebuild=self.rebuild, forgotten=forgotten)
        self._read(reader)
        store.flush()
        cover_if_due(catalog.connection)
        store.commit()
        self._clear_away(progress)
        return progress

    def _note_beginning(self) -> None:
        from agtrace_indexer.index.roots import bring_back

        catalog = self.catalog
        catalog.add_roots(self.new_roots)
        bring_back(catalog, self.new_roots)
        if catalog.meta("built") is None:
            catalog.set_meta("built", "0")
            catalog.set_meta("reading", str(READING_VERSION))
            catalog.set_meta("redaction", redact.digest())

    def _read(self, reader: Reader) -> None:
        """Read what changed, as far as there is time; what was read to its end is joined with the rest."""
        archived = Archived(self.catalog, self.plan)
        behind = len(self.plan.changed)
        self._read_by_workers(reader, archived)
        changed = deque(self.plan.changed)
        while changed and (len(changed) == behind or not self._late):  # the shortest run reads one log
            reader.read(*changed.popleft(), archived.beginning_with)
        self.plan.changed = list(changed)
        if not changed:
            self._finish(reader)

    def _clear_away(self, progress: Progress) -> None:
        """Forget what belongs to forgotten sessions after all, and what is too old; leave no trace of it."""
        from agtrace_indexer.index.maintenance import scrub

        catalog, now = self.catalog, time.time()
        if progress.kept_out:
            from agtrace_indexer.forget import keep_out

            keep_out(catalog, progress.kept_out, now)
        if self.keep_days is not None:
            from agtrace_indexer.forget import expire

            expire(catalog.connection, catalog.path, self.keep_days, now)
        scrub(catalog.connection, patience=_PATIENCE)

    def _mask_again_if_due(self, store: Store) -> None:
        """Mask what is there where the rules changed, before anything else is shown; then all logs are read again."""
        if not _masked_otherwise(self.catalog):
            return
        from agtrace_indexer.index.remasking import mask_again

        mask_again(self.catalog.connection)
        self.catalog.set_meta("redaction", redact.digest())
        self.catalog.set_meta("reading", "0")  # until all of them are
        store.commit()
        store.begin()

    @property
    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _read_by_workers(self, reader: Reader, archived: Archived) -> None:
        """Let new logs be read on all cores, where they are many; what is left is read one by one."""
        from agtrace_indexer.parallel import pool

        if pool.cores() < 2 or sum(found.size for found, _ in self.plan.changed) < pool.LEAST:
            return
        new = [
            found
            for found, row in self.plan.changed
            if pool.is_for_workers(found) and self._is_new(found, row, archived)
        ]
        if sum(found.size for found in new) >= pool.LEAST:
            reader.store.commit()
            done = pool.read_all(new, reader.store, self.catalog.path, reader.progress, reader.report, self.deadline)
            reader.store.begin()
            self.plan.changed = [change for change in self.plan.changed if change[0].path not in done]

    def _is_new(self, found: Found, row: KnownFile | None, archived: Archived) -> bool:
        """Whether a log is read from its beginning, whatever is known of others."""
        if row is not None:
            return self.rebuild and bool(row.status == "log")
        return not archived.may_have(found)

    def _finish(self, reader: Reader) -> None:
        """Archive what vanished and note what can't be read, once every changed log is read."""
        from agtrace_indexer.families.id_suffixes import tell_apart
        from agtrace_indexer.families.joining import join_families
        from agtrace_indexer.index.archive import sum_up_archive

        reader.store.mark_gone(row.id for row in self.plan.gone if self.catalog.file(row.path) is not None)
        for found, _ in self.plan.odd:
            reader.set_aside(found, self.catalog.file(found.path), found.status, found.oddity or "")
        self._drop_no_logs()
        reader.store.flush()
        if self.rebuild:
            sum_up_archive(self.catalog.connection)
        join_families(self.catalog.connection)
        tell_apart(self.catalog.connection)  # by their times, which leave copies out
        self.catalog.set_meta("built", "1")
        self.catalog.set_meta("reading", str(READING_VERSION))

    def _drop_no_logs(self) -> None:
        """Keep no file fresh that was named now and holds no log."""
        for path in self.new_roots:
            row = self.catalog.file(path)
            if row is not None and row.status in _NO_LOG and not os.path.isdir(path):
                self.no_logs[path] = row.reason or ""
                self.catalog.drop_root(path)


def _summary(catalog: Catalog, work: _Work, progress: Progress | None, started: float) -> Summary:
    plan = work.plan
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
        no_logs=work.no_logs,
    )
