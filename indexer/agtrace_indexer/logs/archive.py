"""The archive: logs as their agents wrote them, from which everything can be read again once an agent has deleted them.

Below `archive/` in the data folder, which only its owner can enter, a log has the path that it has on the machine, in
one of these folders: `logs` has each log as it is now, as a hard link, which takes no room and grows with the log (once
nothing else links to it, or where there are no links, it is a compressed copy); `rows` what a database said of a
session; `until-<day>` a log as it was before it was rewritten, until that day; `replaced-<n>` one in whose place there
is another one now.

A link shares its file with the agent: what is overwritten or cut off in place is gone from both, as nothing short of a
copy of every log would keep it. A log into whose place its agent moves a new file stays as it was.

A name is given only to what is complete, so a process may be killed at any moment: it leaves at most a file `new-...`,
which `Archive.tend` removes. No file here is ever written to, as it may be the agent's own.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, dropwhile, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, unquote

import orjson
import zstandard
from msgspec.structs import replace

from agtrace_indexer.logs.content import ALWAYS_GIVEN, MOST_FOLD, ZSTD_MAGIC
from agtrace_indexer.logs.discovery import ARCHIVE, REPLACED, LogFile, beside
from agtrace_indexer.logs.files import inode, restamped

_EARLIER = timedelta(days=7)
"""How long a log is kept as it was before it was rewritten."""

_STILL_SECONDS = 24 * 3600
"""A log is copied or compressed when it hasn't changed for this long."""

_LOGS, _ROWS, _UNTIL, _REPLACED, _NEW = "logs", "rows", "until-", "replaced-", "new-"

_DESCRIBES = ((".jsonl", ".meta.json"), ("/events.jsonl", "/workspace.yaml"))
"""How the path of a log ends, and how that of a small file ends that says more about its session."""
_KIRO = "/cli/"
"""A part of the paths of logs beside which such a file ends with `.json`: elsewhere, that is a log of its own."""

_LEVEL = 9
_CHUNK = _SMALL = 1024 * 1024
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_LINK: dict[str, Any] = {"follow_symlinks": False} if os.link in os.supports_follow_symlinks else {}


class Size(NamedTuple):
    """What the archive has."""

    logs: int
    deleted: int
    """Those that only the archive has."""
    bytes: int
    """The room that the archive takes; a link to a log that its agent still has takes none."""


class Rows:
    """What a database says of a session, in memory as compressed lines: the stamp, then each record after its size."""

    def __init__(self, file: LogFile) -> None:
        self.found, self.count = file, 0
        self._packer = zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compressobj()
        self._packed = [self._packer.compress(orjson.dumps(file.stamp) + b"\n")]

    def add(self, number: int, data: bytes) -> None:
        """Add a record, which has this number."""
        self._packed.append(self._packer.compress(orjson.dumps([number, len(data)]) + b"\n" + data + b"\n"))
        self.count += 1

    def packed(self) -> bytes:
        """Return all of it; nothing can be added then."""
        return b"".join([*self._packed, self._packer.flush()])


class Archive:
    """The archive next to an index. What can't be archived now (a full disk, no permission) is left to `tend`.

    One that isn't enabled keeps nothing.
    """

    def __init__(self, database: Path, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.folder = os.path.join(os.path.abspath(database.parent), ARCHIVE)
        self._new = os.path.join(self.folder, f"{_NEW}{os.getpid()}")

    # -- logs get in -------------------------------------------------------------------------------

    def keep(self, file: LogFile, *, grown: bool = False) -> LogFile:
        """Link to a log before it is read, and copy what describes it; return the log with its stamp as it is then.

        What the log was before stays for a while, unless it just grew.
        """
        if not self.enabled or _describes(file.path):
            return file
        if file.pieces:
            return restamped(replace(file, pieces=tuple(self.keep(piece, grown=grown) for piece in file.pieces)))
        with suppress(OSError):
            self._link(file, grown=grown)
            self._copy_beside(file.path)
        return restamped(file)

    def _link(self, file: LogFile, *, grown: bool) -> None:
        place = self._place(_LOGS, file.path)
        try:
            self._into_folder(place, lambda: os.link(file.path, place, **_LINK))
        except FileExistsError:
            if _is_link(place, file):
                return
            _unlink(self._new)
            os.link(file.path, self._new, **_LINK)
            if _is_link(self._new, file):
                if not grown:
                    self._set_aside(place, file.path)
                os.replace(self._new, place)
            else:
                os.unlink(self._new)
        else:
            if not _is_link(place, file):  # replaced meanwhile: the next run reads that one
                os.unlink(place)

    def _copy_beside(self, log: str) -> None:
        """Copy what describes a log, as it is now: a link would change the stamp of a file that others look at."""
        for path in _beside(log):
            with suppress(OSError):
                status, place = os.lstat(path), self._place(_LOGS, path)
                if stat.S_ISREG(status.st_mode) and status.st_size <= _SMALL and _mtime(place) != status.st_mtime_ns:
                    with open(os.open(path, _HOW), "rb") as source:
                        self._write(place, status.st_mtime_ns, source, sync=False)

    def _set_aside(self, place: str, path: str) -> None:
        aside = self._place(f"{_UNTIL}{datetime.now(UTC).date() + _EARLIER}", path)
        _unlink(aside)
        try:
            self._into_folder(aside, lambda: os.link(place, aside, **_LINK))  # its own name stays until it is replaced
        except OSError:
            os.replace(place, aside)

    def write(self, rows: Rows) -> None:
        """Write what a database says of a session, in place of what it said before."""
        with suppress(OSError):
            if rows.count:
                self._write(self._place(_ROWS, rows.found.path), rows.found.mtime_ns, io.BytesIO(rows.packed()))

    def move(self, before: str, now: str) -> None:
        """Have a log's name follow the log."""
        for path, other in zip((before, *_beside(before)), (now, *_beside(now)), strict=False):
            place, to = self._place(_LOGS, path), self._place(_LOGS, other)
            with suppress(OSError):
                if os.path.lexists(place):
                    self._into_folder(to, partial(os.replace, place, to))

    def replaced(self, file: LogFile) -> LogFile | None:
        """Return a log that was at the path of a file before; None if that is the log, or nothing is here."""
        place = self._place(_LOGS, file.path)
        if file.pieces or not os.path.isfile(place) or _is_link(place, file) or _describes(place):
            return None
        return self._found(_LOGS, place)

    def next_generation(self, path: str) -> int:
        """Return the first number under which no log is kept that was at a path before."""
        return next(n for n in count(1) if not os.path.lexists(self._place(f"{_REPLACED}{n}", path)))

    def move_aside(self, file: LogFile, generation: int) -> LogFile | None:
        """Keep the log that was at a path as this generation, and return it: another one is there now."""
        folder = f"{_REPLACED}{generation}"
        place, aside = self._place(_LOGS, file.path), self._place(folder, file.path)
        with suppress(OSError):
            if not _is_link(place, file):
                self._into_folder(aside, lambda: os.replace(place, aside))
                return self._found(folder, aside)
        return None

    # -- logs are read again -----------------------------------------------------------------------

    def logs(self) -> Iterator[LogFile]:
        """Yield all logs as they were last, each by the path at which it was."""
        for folder in self._folders():
            if not folder.startswith(_UNTIL):
                for place in _files(os.path.join(self.folder, folder)):
                    if not _describes(place):
                        yield self._found(folder, place)

    def before(self, file: LogFile) -> LogFile | None:
        """Return a log as it was before it became what can't be read; None if there is nothing earlier of it."""
        earlier = self.kept(file.path)
        if file.archived:
            return next(islice(dropwhile(lambda one: one.archived != file.archived, earlier), 1, None), None)
        return next((one for one in earlier if not one.container and not _is_link(one.archived, file)), None)

    def kept(self, path: str) -> Iterator[LogFile]:
        """Yield a log at a path as it was last, then as it was before, the newest first."""
        for folder, name in self._names(path):
            with suppress(OSError):
                yield self._found(folder, self._place(folder, name))

    def _found(self, folder: str, place: str) -> LogFile:
        status = os.lstat(place)
        path = os.path.relpath(place, os.path.join(self.folder, folder))
        if os.name == "nt":
            drive, _, path = path.partition(os.sep)
            path = f"{unquote(drive)}{os.sep}{path}"
        else:
            path = os.sep + path
        container = os.path.dirname(path) if folder == _ROWS else ""
        if folder.startswith(_REPLACED):
            path = REPLACED.format(path, folder.removeprefix(_REPLACED))
        stamp = f"{status.st_size}/{status.st_mtime_ns}/{status.st_ctime_ns}/{status.st_ino}"
        return LogFile(path, stamp, status.st_size, status.st_mtime_ns, container=container, archived=place)

    # -- what is here ------------------------------------------------------------------------------

    def has(self, file: LogFile) -> bool:
        """Whether a log is here as it is now."""
        place = self._place(_ROWS if file.container else _LOGS, file.path)
        try:
            if file.container:
                with _reading(place) as lines:
                    return bool(orjson.loads(lines.readline()) == file.stamp)
            return _is_link(place, file) or _mtime(place) == os.lstat(file.path).st_mtime_ns
        except (OSError, ValueError, zstandard.ZstdError):
            return False

    def size(self) -> Size:
        """Return what is here, by a look at each file."""
        logs = deleted = size = 0
        for folder in self._folders():
            for place in _files(os.path.join(self.folder, folder)):
                alone = os.lstat(place).st_nlink == 1
                size += os.lstat(place).st_size if alone else 0
                if not folder.startswith(_UNTIL) and not _describes(place):
                    found = self._found(folder, place)
                    logs += 1
                    deleted += not os.path.lexists(found.container or found.path)
        return Size(logs, deleted, size)

    # -- once a day --------------------------------------------------------------------------------

    def tend(self, logs: Iterable[LogFile], rows_of: Callable[[LogFile], Rows], now: float) -> Iterator[LogFile]:
        """Keep what isn't here as it is now of the logs that there are, and compress what only the archive has.

        Yield the logs whose stamps this changes. Called by the writer while nobody else reads logs. `now` is in seconds
        since 1970.
        """
        still = (now - _STILL_SECONDS) * 1e9
        for name in os.listdir(self.folder) if os.path.isdir(self.folder) else ():
            if name.startswith(_NEW):
                _unlink(os.path.join(self.folder, name))
            elif name.startswith(_UNTIL) and name < f"{_UNTIL}{datetime.fromtimestamp(now, UTC).date()}":
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)
        for found in logs:
            if self.has(found) or _describes(found.path):
                continue
            if found.container:
                with suppress(OSError):
                    self.write(rows_of(found))
                continue
            yield self.keep(found)
            if found.mtime_ns < still and not self.has(found):
                self._copy(found.path, self._place(_LOGS, found.path), found.path)
                self._copy_beside(found.path)
        for folder in (_LOGS, *(name for name in self._folders() if name.startswith(_REPLACED))):
            for place in _files(os.path.join(self.folder, folder)):
                status = os.lstat(place)
                if status.st_nlink == 1 and status.st_mtime_ns < still and not _describes(place):
                    self._copy(place, place, None)

    def _copy(self, path: str, place: str, replaces: str | None) -> None:
        """Put a compressed copy of a log in its place, unless it is compressed; keep what was there before."""
        with suppress(OSError), open(os.open(path, _HOW), "rb") as source:
            status, packed = os.fstat(source.fileno()), source.read(len(ZSTD_MAGIC)) == ZSTD_MAGIC
            if not stat.S_ISREG(status.st_mode) or (path == place and packed):
                return
            source.seek(0)
            if replaces is not None and os.path.lexists(place):
                self._set_aside(place, replaces)
            self._write(place, status.st_mtime_ns, source, compress=not packed, size=status.st_size)

    def _write(
        self,
        place: str,
        mtime_ns: int,
        source: BinaryIO,
        *,
        compress: bool = False,
        size: int = 0,
        sync: bool = True,
    ) -> None:
        """Give a file its place once it is complete and on the disk, unless nobody would expand it that far."""
        _unlink(self._new)
        how = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
        try:
            with open(self._into_folder(self._new, lambda: os.open(self._new, how, 0o600)), "wb") as file:
                if compress:
                    zstandard.ZstdCompressor(_LEVEL, write_checksum=True).copy_stream(source, file)
                else:
                    shutil.copyfileobj(source, file, _CHUNK)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
                written = os.fstat(file.fileno()).st_size
            os.utime(self._new, ns=(mtime_ns, mtime_ns))
            if size <= max(written * MOST_FOLD, ALWAYS_GIVEN):
                self._into_folder(place, lambda: os.replace(self._new, place))
        finally:
            _unlink(self._new)

    # -- logs get out ------------------------------------------------------------------------------

    def remove(self, path: str) -> None:
        """Remove a log for good, as it is and as it was, with what describes it. Raise `OSError`."""
        for folder, name in self._names(path):
            for each in (name, *_beside(name)):
                place = self._place(folder, each)
                _unlink(place)
                with suppress(OSError):  # a folder that isn't empty
                    while len(place := os.path.dirname(place)) > len(self.folder):
                        os.rmdir(place)

    def older(self) -> list[str]:
        """Return the paths of the logs that are here as they were before they were rewritten."""
        folders = [name for name in self._folders() if name.startswith(_UNTIL)]
        return [self._found(name, place).path for name in folders for place in _files(os.path.join(self.folder, name))]

    def remove_older(self) -> None:
        """Remove what logs were before they were rewritten. Raise `OSError`."""
        for folder in self._folders():
            if folder.startswith(_UNTIL):
                shutil.rmtree(os.path.join(self.folder, folder))

    def clear(self) -> None:
        """Remove everything. Raise `OSError`."""
        if os.path.isdir(self.folder):
            shutil.rmtree(self.folder)

    # -- inside ------------------------------------------------------------------------------------

    def _names(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield the folders in which a log may be, each with its name there."""
        origin, replaced, number = path.rpartition(REPLACED.format("", ""))
        for folder in self._folders():
            if not folder.startswith(_REPLACED):
                yield folder, path
            elif replaced and folder == f"{_REPLACED}{number}":
                yield folder, origin

    def _into_folder(self, place: str, step: Callable[[], Any]) -> Any:
        """Take a step that gives a file its place, and if that fails for want of its folder, once more."""
        try:
            return step()
        except FileNotFoundError:
            _make_folder(os.path.dirname(place))
            return step()

    def _place(self, folder: str, path: str) -> str:
        drive, rest = os.path.splitdrive(path)
        return os.path.join(self.folder, folder, quote(drive, safe=""), rest.lstrip(os.sep))

    def _folders(self) -> list[str]:
        """Return the folders, last those with what logs were before, of which the newest comes first."""
        names = sorted(os.listdir(self.folder)) if os.path.isdir(self.folder) else []
        until = [name for name in names if name.startswith(_UNTIL)]
        return [name for name in names if not name.startswith((_UNTIL, _NEW))] + until[::-1]


def records_in(file: LogFile) -> Iterator[tuple[int, bytes]]:
    """Yield what a database said of a session when it was archived: the number and the data of each record."""
    with _reading(file.archived) as lines:
        lines.readline()
        while line := lines.readline():
            number, size = orjson.loads(line)
            yield number, lines.read(size + 1)[:size]


def _reading(place: str) -> io.BufferedReader:
    file = open(place, "rb")  # noqa: SIM115  # its reader closes it
    stream: Any = zstandard.ZstdDecompressor().stream_reader(file, closefd=True)
    return io.BufferedReader(stream)


def _is_link(place: str, file: LogFile) -> bool:
    """Whether a file here is a link to a log as it was found. Raise `OSError`.

    Nothing else on the same device gets the inode of a file as long as that is here.
    """
    status = os.lstat(place)
    if status.st_nlink == 1 or str(status.st_ino) != inode(file.stamp):
        return False
    if (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns):
        return True
    with suppress(OSError):  # it is gone by now
        return status.st_dev == os.lstat(file.path).st_dev
    return True


def _mtime(place: str) -> int | None:
    try:
        return os.lstat(place).st_mtime_ns
    except FileNotFoundError:
        return None


def _endings(path: str) -> tuple[tuple[str, str], ...]:
    return (*_DESCRIBES, (".jsonl", ".json")) if _KIRO in path.replace(os.sep, "/") else _DESCRIBES


def _beside(log: str) -> list[str]:
    """Return the paths of the files that may say more about a log."""
    return beside(log, _endings(log))


def _describes(place: str) -> bool:
    """Whether a file says more about a log next to it."""
    return any(
        place.endswith(ends) and os.path.lexists(place.removesuffix(ends) + log) for log, ends in _endings(place)
    )


def _make_folder(path: str) -> None:
    """Make a folder that only its owner can enter, as are those above it that aren't there yet."""
    with suppress(FileExistsError):
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            _make_folder(os.path.dirname(path))
            os.mkdir(path, 0o700)


def _files(folder: str) -> Iterator[str]:
    for path, _, names in os.walk(folder):
        yield from (os.path.join(path, name) for name in sorted(names))


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)
