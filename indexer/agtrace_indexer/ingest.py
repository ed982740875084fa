"""The pipeline: found files -> changed files -> new lines -> records -> drafts -> events -> index.

Only changed files are opened and only new bytes are read. Everything of a log is kept: a line that
is no JSON becomes an event of its own, an unknown record too, and both are counted.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import PurePath
from typing import Any, BinaryIO, TypeAlias

from agtrace_schema.events import Notification, Provider

from agtrace_indexer.assemble import Supersession, Thread
from agtrace_indexer.discovery import Found
from agtrace_indexer.drafts import Draft, LogState, Record, Retraction
from agtrace_indexer.formats import (
    FORMATS,
    KEYS_REMEMBERED,
    PATCHES,
    Content,
    completed,
    crowded,
    decode,
    recognize,
    unroll,
)
from agtrace_indexer.lines import HEAD_OF_LONG_LINE, MAX_LINE, Line, Lines
from agtrace_indexer.redact import redact
from agtrace_indexer.store import Store
from agtrace_indexer.text import stored
from agtrace_indexer.values import compact_json

MAX_DOCUMENT = MAX_LINE
"""Bytes. A whole-file JSON document beyond it is not parsed."""

_BATCH = 8 * 1024 * 1024  # bytes of log between two commits
_SNIFFED_LINES = 64
_HEAD = 1024
_ANCHOR = 256
_UNREADABLE_SHOWN = 64 * 1024
_CHUNK = 1024 * 1024
_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"  # a byte order mark, blanks
_OVERHEAD_OF_A_FILE = 64 * 1024

Row: TypeAlias = sqlite3.Row
Place: TypeAlias = tuple[Content, bytes]  # content to go on with, and the bytes before it
Stored: TypeAlias = tuple[str, dict[str, Any] | None]
FindArchived: TypeAlias = Callable[[bytes], Iterable[Row]]


@dataclass(slots=True)
class Progress:
    """What a run has done so far."""

    files_total: int = 0
    files_done: int = 0
    bytes_total: int = 0
    bytes_done: int = 0
    files_opened: int = 0
    bytes_read: int = 0
    """Bytes asked of the file system, the check of the place before an append included."""
    records: int = 0
    events: int = 0
    unreadable_lines: int = 0
    unknown_record_types: dict[str, int] = field(default_factory=dict)


class _Counting:
    """A file that counts what is read from it."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file, self._progress = file, progress

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._progress.bytes_read += len(data)
        return data

    def seek(self, position: int, /) -> int:
        return self._file.seek(position)


@dataclass(slots=True)
class Log:
    """A log being read: what the row of its file says, and what its parser remembers."""

    found: Found
    file_id: int | None
    status: str = "waiting"
    reason: str | None = None
    provider: Provider | None = None
    read_to: int = 0
    lines: int = 0
    records: int = 0
    unreadable_lines: int = 0
    pending_bytes: int = 0
    head: bytes = b""
    """The digest of the first `head_size` bytes."""
    head_size: int = 0
    anchor: bytes = b""
    """The last bytes before `read_to`."""
    checksum: int = 0
    """CRC-32 of all content before `read_to`."""
    state: LogState = field(default_factory=LogState)
    threads: dict[str, Thread] = field(default_factory=dict)
    document: bool = False
    """Whether the file is one JSON document: nothing in it is left out on purpose."""
    long_tail: int | None = None
    """The event that keeps the head of a last line that is too long and has no end yet."""
    unended: bool = False
    """No newline followed the last line yet: what comes first in the next run still belongs to it."""
    session_ids: dict[str, int] = field(default_factory=dict)
    """The ids of the sessions by thread."""

    def columns(self) -> dict[str, Any]:
        """The columns of `file`."""
        return {
            "status": self.status, "reason": self.reason, "provider": self.provider, "gone": 0,
            "stamp": self.found.stamp, "size": self.found.size, "read_to": self.read_to, "lines": self.lines,
            "records": self.records, "unreadable_lines": self.unreadable_lines, "pending_bytes": self.pending_bytes,
            "head": self.head, "head_size": self.head_size, "anchor": digest(self.anchor),
            "anchor_size": len(self.anchor),
        }  # fmt: skip

    def remembered(self) -> dict[str, Any]:
        """What the next run must know to go on."""
        threads = {key: asdict(thread) for key, thread in self.threads.items()}
        place = {"checksum": self.checksum, "long_tail": self.long_tail, "unended": self.unended}
        return {"parser": self.state.to_json(), "threads": threads, **place}


def digest(data: bytes) -> bytes:
    """A short hash that identifies a piece of a file."""
    return hashlib.sha256(data).digest()[:12]


class Reader:
    """Reads one log after the other into the store, committing as it goes."""

    def __init__(
        self, store: Store, progress: Progress, report: Callable[[Progress], None], *, rebuild: bool = False
    ) -> None:
        self.store, self.progress, self._report, self._rebuild = store, progress, report, rebuild
        self._uncommitted = 0
        self._moved: set[int] = set()

    def read(self, found: Found, known: Row | None, archived: FindArchived) -> None:
        """Bring the index up to date with one changed or new file.

        `known` is the row of its path, if any. `archived` finds the rows of vanished logs that begin
        with the same bytes: such a log may have been moved, compressed or unpacked.
        """
        self.progress.files_opened += 1
        before = self.progress.bytes_done
        try:
            with _open_regular(found.path) as file:
                self._read_open(found, known, _Counting(file, self.progress), archived)
        except OSError as error:
            self.set_aside(found, known, "unreadable", f"can't be read: {error.strerror or error}")
        self.progress.files_done += 1
        self.progress.bytes_done = before + found.size
        self.commit_if_due(_OVERHEAD_OF_A_FILE)

    def set_aside(self, found: Found, known: Row | None, status: str, reason: str) -> None:
        """Remember a file that holds no readable log, so that it isn't opened again before it changes.

        What was read of it before stays: as it is while the file can't be read, archived otherwise.
        Only of a log that repeats another one nothing stays: the other one is read.
        """
        if known is not None and known["status"] == "log":
            if status in ("waiting", "unreadable"):
                self.store.note_trouble(known["id"], found.stamp, reason)
                return
            if status == "duplicate":
                self.store.forget_contents(known["id"])
            else:
                self.store.archive_generation(known["id"], found.path)
        self.store.save_file(found.path, Log(found, None, status, reason).columns(), None)

    def commit_if_due(self, more: int = 0) -> None:
        """Commit when enough has gathered; the index is then complete up to here."""
        self._uncommitted += more
        if self._uncommitted >= _BATCH:
            self.store.commit()
            self.store.begin()
            self._uncommitted = 0
        self._report(self.progress)

    def _read_open(self, found: Found, known: Row | None, file: _Counting, archived: FindArchived) -> None:
        row = known if known is not None and known["status"] == "log" else None
        place = None if row is None or self._rebuild else self._where_it_ended(found, row, file)
        if place is None and not (row is not None and self._rebuild):
            row, place = self._moved_here(found, row, file, archived)
        if row is None or place is None or self._rebuild:
            self._read_new(found, row or known, file)
        else:
            self._continue(found, row, *place)

    def _moved_here(
        self, found: Found, known: Row | None, file: _Counting, archived: FindArchived
    ) -> tuple[Row | None, Place | None]:
        """The row of a vanished log of which all that was read stands in this file; it follows it here.

        `known` is the row of the log that stood here before, if any: it is archived then.
        """
        for row in archived(_start(file, _HEAD)):
            place = None if row["id"] in self._moved else self._where_it_ended(found, row, file)
            if place is not None:
                if known is not None:
                    self.store.archive_generation(known["id"], found.path)
                self.store.move_file(row["id"], found.path)
                self._moved.add(row["id"])
                return row, place
        return known, None

    def _where_it_ended(self, found: Found, known: Row, file: _Counting) -> Place | None:
        """The content behind what was read of a log, if that still stands at its beginning; None if it doesn't.

        Of a file that only grew, the bytes before the end of what was read tell. One that was replaced,
        moved, or touched without growing is compared by the checksum of all that was read.
        """
        stored = self.store.state(known["id"])
        if stored is None:
            return None
        content = Content(file)
        if found.size > known["size"] and _inode(found.stamp) == _inode(known["stamp"]):
            content.skip_to(known["read_to"] - known["anchor_size"])
            anchor = _read_up_to(content, known["anchor_size"])
            return (content, anchor) if digest(anchor) == known["anchor"] else None
        checksum, anchor = _checksum(content, known["read_to"])
        return (content, anchor) if checksum == stored["checksum"] else None

    def _continue(self, found: Found, known: Row, content: Content, anchor: bytes) -> None:
        """Go on with a known log where its index ends."""
        log = self._known_log(found, known, anchor)
        self._read_lines(log, iter(Lines(content, log.read_to, log.lines - log.unended, log.checksum)), content)

    def _known_log(self, found: Found, known: Row, anchor: bytes) -> Log:
        stored = self.store.state(known["id"])
        assert stored is not None
        threads = {key: Thread(**thread) for key, thread in stored["threads"].items()}
        return Log(
            found, known["id"], "log", None, Provider(known["provider"]), known["read_to"], known["lines"],
            known["records"], known["unreadable_lines"], 0, known["head"], known["head_size"], anchor,
            stored["checksum"], LogState.from_json(stored["parser"]), threads, long_tail=stored["long_tail"],
            unended=stored["unended"],
        )  # fmt: skip

    def _read_new(self, found: Found, known: Row | None, file: _Counting) -> None:
        if found.size == 0:
            return self.set_aside(found, known, "empty", "an empty file")
        head = _start(file, _HEAD)
        if b"\0" in head and head.lstrip(_BEFORE_JSON + b"\0")[:1] not in (b"{", b"[", b""):
            return self.set_aside(found, known, "unrecognized", "a binary file")
        content = Content(file)
        lines = iter(Lines(content))
        first = list(_until_recognized(lines))
        provider = first[-1][1] if first else None
        read = [line for line, _ in first]
        if provider is None:
            return self._read_document(found, known, read, lines, content)
        if known is not None and known["status"] == "log":
            self._make_room(known, found)
        return self._read_lines(self._new_log(found, provider, head), chain(read, lines), content)

    def _make_room(self, known: Row, found: Found) -> None:
        """Give the path to what stands there now: what was read before is archived, or read again."""
        if self._rebuild:
            self.store.forget_contents(known["id"])
        else:
            self.store.archive_generation(known["id"], found.path)

    def _read_document(
        self, found: Found, known: Row | None, read: list[Line], lines: Iterator[Line], content: Content
    ) -> None:
        """Read a file that is one JSON document, or say why it is no log."""
        data = _rest_of_document(read, lines)
        values = None if data is None else decode(data)
        unrolled = unroll(values[0]) if values is not None and len(values) == 1 else None
        if data is None or unrolled is None:
            return self.set_aside(found, known, *_why_no_log(read, data, values, content))
        provider, records = unrolled
        log, changes = self._document(found, known, provider, records, data[:_HEAD])
        log.document = True
        whole = Line(1, 0, len(data), data, True)
        for record in changes:
            self._read_record(log, record, whole)
        log.records = len(records)
        self.store.flush()
        self.store.set_origin_length(log.session_ids.values(), len(data))
        log.read_to, log.lines = len(data), data.count(b"\n") + (not data.endswith(b"\n"))
        log.anchor, log.checksum = data[-_ANCHOR:], zlib.crc32(data)
        self._uncommitted += len(data)
        return self._save(log)

    def _document(
        self, found: Found, known: Row | None, provider: Provider, records: list[Record], head: bytes
    ) -> tuple[Log, list[Record]]:
        """The log of a document, and the records that bring it up to date: all, or what a rewrite changed."""
        if known is not None and known["status"] == "log":
            if not self._rebuild and known["provider"] == provider and provider in PATCHES:
                log = self._known_log(found, known, b"")
                log.head, log.head_size = digest(head), len(head)
                return log, PATCHES[provider](records)
            self.store.forget_contents(known["id"])
        return self._new_log(found, provider, head), records

    def _new_log(self, found: Found, provider: Provider, head: bytes) -> Log:
        log = Log(found, None, "log", None, provider, head=digest(head), head_size=len(head))
        log.state = FORMATS[provider].begin(PurePath(found.path))
        log.file_id = self.store.save_file(found.path, log.columns(), None)
        return log

    def _read_lines(self, log: Log, lines: Iterator[Line], content: Content) -> None:
        try:
            self._read_each(log, lines)
        except OSError as error:
            log.reason = f"reading stopped: {error.strerror or error}"
        log.reason = content.damage or log.reason
        self._save(log)

    def _read_each(self, log: Log, lines: Iterator[Line]) -> None:
        for line in lines:
            if not self._read_line(log, line):
                log.pending_bytes = line.length
                log.reason = log.reason or "its last line is half-written: waits for its rest"
                return
            self._advance(log, line)
            self._uncommitted += line.length
            self.progress.bytes_done += line.length
            if self._uncommitted >= _BATCH:
                self._save(log, complete=False)
                self.commit_if_due()

    def _read_line(self, log: Log, line: Line) -> bool:
        """Read one line; False if it is half-written and must wait."""
        if not line.whole or crowded(line.data):
            self._keep_head(log, line)
            return line.ended
        if not line.data.strip():
            return True
        values = decode(line.data)
        if not line.ended and (values is None or not isinstance(values[-1], dict)):
            return False
        if values is None:
            self._unreadable(log, line, "unreadable_line", line.data[:_UNREADABLE_SHOWN].decode("utf-8", "replace"))
            return True
        for value in values:
            self._read_record(log, value, line)
        return True

    def _keep_head(self, log: Log, line: Line) -> None:
        """Keep the head, the length and the origin of a line that is too long to be parsed.

        While it has no end it is read again when the file grows: what is kept then replaces what was.
        """
        head = line.data[:HEAD_OF_LONG_LINE]
        note = f"{head.decode('utf-8', 'replace')}\n... (a line of {line.length} bytes, the first {len(head)} are kept)"
        before, thread = log.long_tail, log.threads.setdefault("", Thread())
        log.long_tail = None if line.ended else thread.next_index
        self._note(log, Notification("oversized_line", note), line)
        if before is not None:
            superseded = Supersession(before, thread.next_index - 1)
            self.store.supersede(self._session(log, ""), thread.next_index, superseded)
        if line.ended:
            log.unreadable_lines += 1
            self.progress.unreadable_lines += 1
        else:
            log.reason = f"its last line has {line.length} bytes and no end yet: its head is kept"

    def _read_record(self, log: Log, value: Any, line: Line) -> None:
        """Turn one record into events and gather them."""
        try:
            drafts = list(_drafts(log, value))
            texts = [stored(draft.payload) if isinstance(draft, Draft) else None for draft in drafts]
        except Exception:  # noqa: BLE001  # formats change faster than we do: one record never costs the others
            log.state.unknown.clear()
            log.state.skipped.clear()
            shown = line.data[:_UNREADABLE_SHOWN].decode("utf-8", "replace")
            self._unreadable(log, line, "unreadable_line", shown)
            return
        self._count_types(log, line)
        self._gather(log, drafts, texts, line)
        log.records += 1
        self.progress.records += 1

    def _gather(self, log: Log, drafts: list[Draft | Retraction], texts: list[Stored | None], line: Line) -> None:
        retracted: list[tuple[str, Supersession]] = []
        for draft, text in zip(drafts, texts, strict=True):
            if isinstance(draft, Draft) and text is not None:
                self._place(log, draft, line, *text)
            elif not isinstance(draft, Draft) and draft.thread in log.threads:
                thread = log.threads[draft.thread]
                retracted += ((draft.thread, superseded) for superseded in thread.retract(draft.keys))
        for key, superseded in retracted:
            next_index = log.threads[key].next_index
            self.store.supersede(self._session(log, key), next_index, superseded._replace(by=next_index - 1))

    def _place(self, log: Log, draft: Draft, line: Line, text: str, rest: dict[str, Any] | None) -> None:
        assert log.provider is not None
        thread = log.threads.setdefault(draft.thread, Thread())
        session_id = self._session(log, draft.thread)
        event = thread.place(draft, line)
        self.store.add_event(session_id, event, text, rest)
        superseded = thread.supersede(draft, event.event_index, KEYS_REMEMBERED[log.provider])
        if superseded:
            self.store.supersede(session_id, thread.next_index, superseded)
        self.progress.events += 1

    def _session(self, log: Log, thread: str) -> int:
        if thread not in log.session_ids:
            assert log.provider is not None and log.file_id is not None
            log.session_ids[thread] = self.store.session(log.file_id, thread, log.provider)
        return log.session_ids[thread]

    def _unreadable(self, log: Log, line: Line, kind: str, text: str) -> None:
        log.unreadable_lines += 1
        self.progress.unreadable_lines += 1
        self._note(log, Notification(kind, text), line)

    def _note(self, log: Log, notification: Notification, line: Line) -> None:
        self._place(log, Draft(notification, None), line, *stored(notification))

    def _count_types(self, log: Log, line: Line) -> None:
        state = log.state
        for kind in state.unknown:
            self.progress.unknown_record_types[kind] = self.progress.unknown_record_types.get(kind, 0) + 1
        skipped = [] if log.document else state.skipped
        if state.unknown or state.skipped:
            counts: dict[tuple[str, str], list[int]] = {}
            for status, kinds in (("unknown", state.unknown), ("skipped", skipped)):
                for kind in kinds:
                    counts.setdefault((status, kind), [0, line.number])[0] += 1
            assert log.file_id is not None
            self.store.count_record_types(log.file_id, counts)
            state.unknown.clear()
            state.skipped.clear()

    def _advance(self, log: Log, line: Line) -> None:
        log.read_to = line.offset + line.length + line.ended
        log.lines, log.unended, log.checksum = line.number, not line.ended, line.checksum
        before, ending = (log.anchor, line.data[-_ANCHOR:]) if line.whole else (b"", b"")
        log.anchor = (before + ending + b"\n" * line.ended)[-_ANCHOR:]

    def _save(self, log: Log, *, complete: bool = True) -> None:
        """Write where the log stands: what its sessions are, and up to where it is read.

        An incomplete log has no stamp: should the run end here, the next one goes on with it.
        """
        for facts in log.state.sessions.values():
            facts.title = facts.title and redact(facts.title)
        columns = log.columns() if complete else {**log.columns(), "stamp": ""}
        log.file_id = self.store.save_file(log.found.path, columns, log.remembered())
        for thread in log.threads:
            facts = log.state.sessions.get(thread) or log.state.sessions[""]
            stem = PurePath(log.found.path).name.partition(".")[0]
            self.store.save_facts(self._session(log, thread), facts, facts.id or thread or stem)


def _drafts(log: Log, value: Any) -> Iterable[Draft | Retraction]:
    """The drafts of a record; JSON that is no object is a record of a type that nobody knows."""
    assert log.provider is not None
    if isinstance(value, dict):
        return FORMATS[log.provider].drafts(value, log.state)
    log.state.unknown.append("a value that is no object")
    return [Draft(Notification("unknown/value", compact_json(value)), None)]


def _open_regular(path: str) -> BinaryIO:
    """Open a file for reading, but never wait for a pipe that took its place."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)


def _start(file: _Counting, size: int) -> bytes:
    return _read_up_to(Content(file), size)


def _read_up_to(content: Content, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := content.read(size - len(data))):
        data += more
    return data


def _inode(stamp: str) -> str:
    return stamp.rpartition("/")[2]


def _checksum(content: Content, end: int) -> tuple[int | None, bytes]:
    """The checksum of the content up to a position, and the bytes before it; None where there is less."""
    checksum, anchor = 0, b""
    while end > 0:
        data = content.read(min(end, _CHUNK))
        if not data:
            return None, b""
        checksum, end = zlib.crc32(data, checksum), end - len(data)
        anchor = (anchor + data)[-_ANCHOR:]
    return checksum, anchor


def _until_recognized(lines: Iterator[Line]) -> Iterator[tuple[Line, Provider | None]]:
    """Give lines with the provider that recognises them, up to the first recognised or the sniffing limits."""
    size = 0
    for _, line in zip(range(_SNIFFED_LINES), lines, strict=False):
        provider = _recognized(line)
        yield line, provider
        size += len(line.data)
        if provider is not None or size > MAX_LINE:
            return


def _recognized(line: Line) -> Provider | None:
    """The provider of a line, told from its head where it is too long to be parsed."""
    if line.data.lstrip(_BEFORE_JSON)[:1] != b"{":
        return None
    parsable = line.whole and not crowded(line.data)
    values = decode(line.data) if parsable else [completed(line.data[:HEAD_OF_LONG_LINE])]
    return recognize(values[0]) if values and isinstance(values[0], dict) else None


def _rest_of_document(read: list[Line], lines: Iterable[Line]) -> bytes | None:
    """All bytes of a file that may be one JSON document; None if it begins otherwise or is too long."""
    if not read or read[0].data.lstrip(_BEFORE_JSON)[:1] not in (b"{", b"["):
        return None
    parts, size = [], 0
    for line in chain(read, lines):
        size += line.length + 1
        if size > MAX_DOCUMENT or not line.whole:
            return None
        parts.append(line.data + b"\n" * line.ended)
    return b"".join(parts)


def _why_no_log(read: list[Line], data: bytes | None, values: list[Any] | None, content: Content) -> tuple[str, str]:
    """The status and the reason of a file in which no provider found its format."""
    if content.damage:
        return "unreadable", content.damage
    if data is not None and b"\0" in data[:_HEAD]:
        return "unrecognized", "a binary file"
    if any(not line.whole for line in read):
        return "unreadable", f"begins with a line of more than {MAX_LINE} bytes: {_kept(read)} bytes seen"
    if data is not None and values is None and not data.rstrip().endswith((b"}", b"]")):
        return "waiting", "half-written: waits for its rest"
    return "unrecognized", "not a log format that agtrace knows"


def _kept(read: list[Line]) -> int:
    return sum(line.length for line in read)
