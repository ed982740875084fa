"""The pipeline: found files -> changed files -> new lines -> records -> drafts -> events -> index.

Only changed files are opened and only new bytes are read. This module decides whether a file continues
a known log, was moved, replaces another, or is new.
"""

from __future__ import annotations

import errno
import sqlite3
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import TypeAlias

from agtrace_schema.events import Provider
from msgspec.structs import replace

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.families.belonging import lies_beside
from agtrace_indexer.index.catalog import KnownFile
from agtrace_indexer.index.opening import is_damage
from agtrace_indexer.index.store import Store
from agtrace_indexer.index.tombstones import Tombstones
from agtrace_indexer.logs.archive import Archive, Rows
from agtrace_indexer.logs.content import Content
from agtrace_indexer.logs.decoding import decode
from agtrace_indexer.logs.discovery import LogFile
from agtrace_indexer.logs.files import ANCHOR, CountedFile, Progress, head_of, open_regular, restamped, start_of
from agtrace_indexer.logs.lines import HEAD_OF_LONG_LINE, MAX_LINE, Line, value_of, values_in
from agtrace_indexer.providers.provider import Row
from agtrace_indexer.providers.registry import AGENTS, parser_of, source_of, unroll
from agtrace_indexer.reader.log import Log, digest
from agtrace_indexer.reader.plan import rows_of
from agtrace_indexer.reader.recognition import (
    BLANK,
    HEAD,
    KeptOut,
    begin,
    document_in,
    kept_out,
    kept_out_inside,
    kept_out_so_far,
    why_no_log,
)
from agtrace_indexer.reader.resumption import (
    Place,
    begins_alike,
    is_rewritten,
    known_log,
    note_position,
    refreshed,
    remaining_lines,
    session_in,
    where_it_ended,
)
from agtrace_indexer.reader.transcript import Transcript, session_of

BATCH = 8 * 1024 * 1024
"""Bytes of logs between two commits."""

_LASTING = frozenset({errno.EACCES, errno.EPERM, errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EISDIR})
"""Errors that prevent a file from being opened until it changes. Others, such as too many open files, may be temporary:
the file then has no stamp, and the next run tries again."""

_STILL = 60 * 10**9
"""Nanoseconds after which an agent won't end a string that it began on a line that has ended."""

_FOR_NOW = frozenset({"waiting", "unreadable", "empty"})
"""The statuses of files that may become readable: until then, what they were counts."""

_OVERHEAD_OF_A_LINE = 256
_OVERHEAD_OF_A_FILE = 64 * 1024

FindArchived: TypeAlias = Callable[[bytes], Iterable[KnownFile]]


class Defect(ResourceWarning):
    """That a log can't be read because of a defect of ours: nobody sees it but tests, where it is an error."""


class Reader:
    """Reads one log after another into the store, committing as it goes."""

    def __init__(
        self,
        store: Store,
        progress: Progress,
        report: Callable[[Progress], None],
        *,
        rebuild: bool = False,
        batch: int = BATCH,
        mask_anew: bool = False,
        forgotten: Tombstones | None = None,
        archive: Archive,
    ) -> None:
        self.store, self.progress, self.report, self._rebuild = store, progress, report, rebuild
        self._uncommitted, self._batch, self._mask_anew = 0, batch, mask_anew
        self._settled: set[int] = set()
        """The rows of logs that were read or moved: what was known of them before no longer holds."""
        self._forgotten, self._archive = forgotten or Tombstones(), archive

    def read(self, found: LogFile, known: KnownFile | None, archived: FindArchived) -> None:
        """Bring the index up to date with one changed or new file.

        `known` is the row of its path, if any. `archived` finds the rows of vanished logs with the
        same beginning: such a log may have been moved, compressed or decompressed.
        """
        if found.archived and known is not None and known.id in self._settled:
            return
        self.progress.files_opened += 1
        known = None if known is not None and known.id in self._settled else known
        before = self.progress.bytes_done
        try:
            if found.container:
                self._read_inside(found, known)
            else:
                with open_regular(found) as file:
                    self._read_open(found, known, CountedFile(file, self.progress), archived)
        except OSError as error:
            why = f"can't be read: {error.strerror or error}"
            self.set_aside(found if error.errno in _LASTING else replace(found, stamp=""), known, "unreadable", why)
        except KeptOut as why:
            self._hide(found, why)
        except Exception as error:  # whatever it is, the other logs are read nevertheless
            of_system = isinstance(error, (sqlite3.Error, MemoryError))
            if known is not None and not self._rebuild and (not of_system or is_damage(error)):
                self._read_anew(found, known, archived)
                return
            if of_system:
                raise
            self._give_up(found, error)
        if known is not None:
            self._settled.add(known.id)
        self.progress.files_done += 1
        self.progress.bytes_done = before + found.size
        self.commit_if_due(_OVERHEAD_OF_A_FILE)

    def _read_anew(self, file: LogFile, row: KnownFile, archived: FindArchived) -> None:
        """Read a log that can't be continued from its beginning, in place of what the index has of it."""
        self.progress.files_opened -= 1
        self._rebuild = True
        try:
            self.read(file, row, archived)
        finally:
            self._rebuild = False

    def _give_up(self, file: LogFile, error: Exception) -> None:
        """Set a log aside that can't be read because of a defect of ours, with what there is of it."""
        warnings.warn(type(error).__name__, Defect, stacklevel=1)
        if (begun := self.store.log_at(file.path, "")) is not None:
            self.store.forget_contents(begun)
        self.set_aside(file, None, "unreadable", f"can't be read: {type(error).__name__}")

    def set_aside(self, file: LogFile, row: KnownFile | None, status: str, reason: str) -> None:
        """Remember a file that isn't a readable log, so that it isn't opened again until it changes.

        What was read before is kept: unchanged while the file can't be read or is empty, as a log that is gone if it is
        none any more. It is deleted only for a log that repeats another one, which is read instead. For a file that is
        or was the log of a forgotten session, not even the name is kept.
        """
        for_now = status in _FOR_NOW
        anew = file.archived or (for_now and (row is None or self._rebuild))
        if (anew and self._read_earlier(file, row, reason)) or file.archived:
            return
        if self._is_hidden(file, row, status, reason):
            self.store.hide(file.path, file.stamp)
            return
        if row is not None and row.status == "log":
            if for_now:  # without a stamp, what is masked by earlier rules doesn't stay
                self.store.note_trouble(row.id, file.path, "" if self._rebuild else file.stamp, reason)
                return
            if status == "duplicate":
                self.store.forget_contents(row.id)
            else:
                self._move_aside(row, file)
        elif status != "duplicate":
            self._read_replaced(file)
        self.store.save_file(file.path, Log(file, None, status, reason).columns(), None)

    def _read_replaced(self, file: LogFile, is_same: Callable[[LogFile], bool] = lambda earlier: False) -> None:
        """Read the log that the archive has of a path where there is something else now, unless that is the same."""
        earlier = None if file.archived else self._archive.replaced(file)
        if earlier is None or is_same(earlier):
            return
        aside = self._archive.move_aside(file, self._archive.next_generation(file.path))
        if aside is not None:
            self.progress.files_done -= 1  # it was at the same path
            self.read(aside, None, lambda head: [])

    def _read_earlier(self, file: LogFile, row: KnownFile | None, reason: str) -> bool:
        """Read a log that can't be read now as it was before; return whether there was anything to read."""
        earlier = None if file.pieces else self._archive.before(file)
        if earlier is None:
            return False
        self.read(earlier, row, lambda head: [])
        self.progress.files_done -= 1  # it is the same log
        read = self.store.log_at(file.path, earlier.stamp)
        if read is not None and not file.archived:
            self.store.note_trouble(read, file.path, file.stamp, reason)
        return read is not None

    def _is_hidden(self, file: LogFile, row: KnownFile | None, status: str, reason: str) -> bool:
        if not self._forgotten:
            return False
        if row is not None and row.status == "log":
            return False
        if row is not None and row.status == "forgotten":
            return True
        return lies_beside(file.path, self._forgotten) or (status == "duplicate" and self.store.hides(reason))

    def commit_if_due(self, more: int = 0) -> None:
        """Commit if enough has accumulated; the index is then complete up to here."""
        self._uncommitted += more
        if self._uncommitted >= self._batch:
            self.store.commit()
            self.store.begin()
            self._uncommitted = 0
        self.report(self.progress)

    def _read_open(self, found: LogFile, known: KnownFile | None, file: CountedFile, archived: FindArchived) -> None:
        row = known if known is not None and known.status == "log" else None
        rebuild = self._rebuild and (self._mask_anew or not found.cut_off)
        place = None if row is None or rebuild else where_it_ended(self.store, found, row, file)
        if place is None and not found.archived and not (row is not None and rebuild):
            moved, place = self._moved_here(found, file, archived)
            if moved is not None:
                row, known = self._follow(found, row, moved, place), None
        if row is None or place is None or rebuild:
            self._read_new(found, row or known, file)
            return
        self._continue(found, row, file, *place)

    def _moved_here(
        self, found: LogFile, file: CountedFile, archived: FindArchived
    ) -> tuple[KnownFile | None, Place | None]:
        """Return the row of a vanished log whose indexed content is all in this file, and where to continue.

        A name can say whose log it is. If the new name says something else, a log that vanished just now is read
        again (there is no place to continue then), and one that vanished earlier counts as another log.
        """
        for row in archived(start_of(file, HEAD)):
            place = None if row.id in self._settled else where_it_ended(self.store, found, row, file)
            if place is None:
                continue
            if begins_alike(row, found.path):
                return row, place
            if not row.gone:
                return row, None
        return None, None

    def _follow(
        self, file: LogFile, before: KnownFile | None, moved: KnownFile, place: Place | None
    ) -> KnownFile | None:
        """Move the row of a log to its new path, where another log was before; without a place, empty it."""
        if before is not None:
            self._move_aside(before, file)
        self._archive.move(moved.path, file.path)
        if place is None:
            self.store.forget_contents(moved.id)
        self.store.move_file(moved.id, file.path)
        self._settled.add(moved.id)
        return None if place is None else moved

    def _continue(self, found: LogFile, row: KnownFile, file: CountedFile, content: Content, anchor: bytes) -> None:
        """Continue a known log where the index ends, unless what describes it now says otherwise what it is."""
        if row.gone:
            self.store.rejoin(row.id)
        log = known_log(self.store, self._keep(found, grown=True), row, anchor)
        log.pieces = file.pieces
        if not refreshed(log):
            self.store.forget_contents(row.id)
            return self._read_new(found, None, file)
        return self._read_lines(log, remaining_lines(log, content), content)

    def _read_new(self, found: LogFile, row: KnownFile | None, file: CountedFile) -> None:
        if found.size == 0:
            return self.set_aside(found, row, "empty", "an empty file")
        if self._forgotten and (why := kept_out(found, file, self._forgotten)):
            return self._pass_over(found, row, why)
        if row is not None and row.status == "forgotten":
            self.store.show(found.path)
        head = start_of(file, HEAD)
        if b"\0" in head and head.lstrip(BLANK)[:1] not in (b"{", b"[", b""):
            return self.set_aside(found, row, "unrecognized", "a binary file")
        before = row if row is not None and row.status == "log" else None
        provider, read, lines, content = begin(file, found.path)
        if provider is None:
            return self._read_document(found, row, read, file)
        if before is not None:
            if self._rebuild or is_rewritten(self.store, found, before, head):
                self.store.forget_contents(before.id)
            else:
                self._move_aside(before, found)
        if before is None or self._rebuild:
            named = partial(session_in, provider)
            self._read_replaced(found, lambda earlier: named(earlier, head_of(earlier, HEAD)) == named(found, head))
        log = self._new_log(found, provider, head)
        log.pieces = file.pieces
        return self._read_lines(log, chain(read, lines), content)

    def _pass_over(self, file: LogFile, row: KnownFile | None, why: KeptOut) -> None:
        """Leave a forgotten log unread, and archive the log that was at its path before."""
        if row is not None and row.status == "log":
            self._move_aside(row, file)
        self._hide(file, why)

    def _hide(self, file: LogFile, why: KeptOut) -> None:
        """Keep only a digest of a path; a sub-agent is checked again until it has a tombstone of its own."""
        if why.sub_agent is not None:
            self.progress.kept_out.append(why.sub_agent)
        for piece in file.pieces or (file,):
            self._archive.remove(piece.path)
        if not file.archived:
            self.store.hide(file.path, restamped(file).stamp if why.sub_agent is None else "")

    def _keep(self, file: LogFile, *, grown: bool = False) -> LogFile:
        """Have the archive keep a log that is about to be read."""
        here = file.archived or file.container or not file.stamp
        return file if here else self._archive.keep(file, grown=grown)

    def _move_aside(self, row: KnownFile, file: LogFile) -> None:
        """Keep the log that was at a path, where there is another file now, as one that is gone."""
        first = self._archive.next_generation(file.path)
        self._archive.move_aside(file, self.store.archive_generation(row.id, file.path, first))

    def _read_document(self, found: LogFile, row: KnownFile | None, read: list[Line], file: CountedFile) -> None:
        """Read a file that is one JSON document, or note why it isn't a log."""
        data, content = document_in(file, read)
        values = None if data is None else decode(data)
        unrolled = unroll(values[0]) if values is not None and len(values) == 1 else None
        if data is None or unrolled is None:
            return self.set_aside(found, row, *why_no_log(read, data, values, content))
        provider, records = unrolled
        log, changes = self._document(found, row, provider, records, data[:HEAD])
        log.document = True
        whole = Line(1, 0, len(data), data, True)
        transcript = Transcript(self.store, self.progress, log)
        for record in changes:
            transcript.read_record(record, whole)
        transcript.settle()
        log.records = len(records)
        self.store.flush()
        self.store.set_origin_length(log.session_ids.values(), len(data))
        log.read_to, log.lines = len(data), data.count(b"\n") + (not data.endswith(b"\n"))
        log.anchor, log.checksum = data[-ANCHOR:], zlib.crc32(data)
        self._uncommitted += len(data)
        return self._save(log)

    def _document(
        self, file: LogFile, row: KnownFile | None, provider: Provider, records: list[Record], head: bytes
    ) -> tuple[Log, list[Record]]:
        """Return the log of a document, and the records to read: all, or a patch if it was rewritten."""
        if row is not None and row.status == "log":
            as_patch = AGENTS[provider].as_patch
            if not self._rebuild and row.provider == provider and as_patch is not None:
                log = known_log(self.store, self._keep(file), row, b"")
                log.head, log.head_size = digest(head), len(head)
                return log, as_patch()(records)
            self.store.forget_contents(row.id)
        return self._new_log(file, provider, head), records

    def _read_inside(self, file: LogFile, row: KnownFile | None) -> None:
        """Read a log in a container: all of it, or what is new according to its source."""
        provider, _ = source_of(file.container)
        if self._forgotten:
            lines = map(_line_of, rows_of(file, None))
            if why := kept_out_inside(file, provider, lines, self._forgotten):
                return self._pass_over(file, row, why)
        if row is not None and row.status == "forgotten":
            self.store.show(file.path)
        log = self._log_inside(file, row, provider)
        try:
            self._read_rows(log, rows_of(file, log.position))
        except OSError as error:
            _stop(log, error)
        log.read_to = file.size
        return self._save(log)

    def _log_inside(self, file: LogFile, row: KnownFile | None, provider: Provider) -> Log:
        """Return the log as the last run left it, or a new one."""
        if row is not None and row.status == "log":
            if row.provider == provider and not self._rebuild:
                log = known_log(self.store, file, row, b"")
                if log.position is not None:  # else it was read from the archive
                    if row.gone:
                        self.store.rejoin(row.id)
                    return log
            self.store.forget_contents(row.id)
        return self._new_log(file, provider, b"")

    def _read_rows(self, log: Log, rows: Iterable[Row]) -> None:
        """Read rows; if they are all of a log, the archive keeps them."""
        whole = self._archive.enabled and log.position is None and not log.found.archived
        gathered = Rows(log.found) if whole else None
        self._read_each_row(log, rows, gathered)
        if gathered is not None:
            self._archive.write(gathered)

    def _read_each_row(self, log: Log, rows: Iterable[Row], gathered: Rows | None) -> None:
        transcript = Transcript(self.store, self.progress, log)
        try:
            for row in rows:
                if gathered is not None:
                    gathered.add(row.number, row.data)
                line = _line_of(row)
                transcript.read_line(line, value_of(line))
                log.lines, log.position = max(log.lines, row.number), row.position
                self.progress.bytes_read += len(row.data)
                self._uncommitted += len(row.data) + _OVERHEAD_OF_A_LINE
                if self._uncommitted >= self._batch:
                    self._save_so_far(transcript, log)
        finally:
            transcript.settle()

    def _new_log(self, file: LogFile, provider: Provider, head: bytes) -> Log:
        log = Log(self._keep(file), None, "log", None, provider, head=digest(head), head_size=len(head))
        log.state = parser_of(provider).begin(PurePath(file.place))
        log.file_id = self.store.begin_log(file.path)
        return log

    def _read_lines(self, log: Log, lines: Iterator[Line], content: Content) -> None:
        try:
            self._read_each(log, lines)
        except OSError as error:
            _stop(log, error)
        log.reason = content.damage or (log.pieces and log.pieces.damage) or log.reason
        self._save(log)

    def _read_each(self, log: Log, lines: Iterator[Line]) -> None:
        transcript = Transcript(self.store, self.progress, log)
        try:
            for line, value in values_in(lines, final=time.time_ns() - log.found.mtime_ns > _STILL):
                if not transcript.read_line(line, value):
                    log.pending_bytes = line.length
                    if line.breaks:
                        log.found = replace(log.found, stamp="")  # it is looked at until it is whole or given up
                    if line.data.strip(BLANK):
                        log.reason = log.reason or "its last line is incomplete: waiting for the rest"
                    return
                note_position(log, line)
                self.progress.bytes_done += line.length
                self._uncommitted += line.length + _OVERHEAD_OF_A_LINE
                if self._uncommitted >= self._batch:
                    self._save_so_far(transcript, log)
        finally:
            transcript.settle()

    def _save_so_far(self, transcript: Transcript, log: Log) -> None:
        """Commit in the middle of a log."""
        transcript.settle()
        self._save(log, complete=False)
        self.commit_if_due()

    def _save(self, log: Log, *, complete: bool = True) -> None:
        """Save the facts about the log's sessions, and the position up to which it was read.

        An incomplete log has no stamp: if the run ends here, the next one continues it.
        """
        if self._forgotten and (why := kept_out_so_far(self._forgotten, log.found, log.provider, log.state)):
            raise why
        for facts in log.state.sessions.values():
            facts.mask()
        columns = log.columns() if complete else {**log.columns(), "stamp": ""}
        log.file_id = self.store.save_file(log.found.path, columns, log.remembered())
        self.store.count_record_types(log.file_id, log.record_types)
        log.record_types.clear()
        stem = PurePath(log.found.path).name.partition(".")[0]
        for key, thread in log.threads.items():
            facts = log.state.sessions.get(key) or log.state.sessions[""]
            session_id = session_of(self.store, log, key)
            self.store.save_facts(session_id, facts, facts.id or key or stem, thread, complete=complete)


def _line_of(row: Row) -> Line:
    """Return a row as a line, which its events name; of a row that is too long, only the beginning."""
    size = len(row.data)
    return Line(row.number, 0, size, row.data if size <= MAX_LINE else row.data[:HEAD_OF_LONG_LINE], ended=True)


def _stop(log: Log, error: OSError) -> None:
    """Note why reading a log stopped; without a stamp, the next run tries again."""
    log.reason = f"reading stopped: {error.strerror or error}"
    log.found = replace(log.found, stamp="")
