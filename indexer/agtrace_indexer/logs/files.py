"""The bytes of a log file: opened safely, counted as the progress of a run, compared with what the index knows."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Generator
from typing import Any, BinaryIO, Self

from msgspec import Struct, field
from msgspec.structs import replace

from agtrace_indexer.logs.content import Content, Seekable
from agtrace_indexer.logs.discovery import LogFile, stem

ANCHOR = 256
"""Bytes before the end of what was read that distinguish an append from a rewrite."""

_CHUNK = 1024 * 1024
_SLASHES = 3
"""In the stamp of a file."""
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


class Progress(Struct):
    """The work that a run has done so far."""

    files_total: int = 0
    files_done: int = 0
    bytes_total: int = 0
    bytes_done: int = 0
    files_opened: int = 0
    bytes_read: int = 0
    """Bytes requested from the file system, including those checked before an append."""
    records: int = 0
    events: int = 0
    unreadable_lines: int = 0
    unknown_record_types: dict[str, int] = field(default_factory=dict)
    kept_out: list[str] = field(default_factory=list)
    """Digests of sub-agents that were left unread because the session that started them is forgotten."""

    def add(self, read: dict[str, Any]) -> None:
        """Add what another process has read: its progress, except for the files and bytes that are done."""
        for name in ("files_opened", "bytes_read", "records", "events", "unreadable_lines"):
            setattr(self, name, getattr(self, name) + read[name])
        self.kept_out += read["kept_out"]
        for kind, count in read["unknown_record_types"].items():
            self.unknown_record_types[kind] = self.unknown_record_types.get(kind, 0) + count


class Pieces:
    """The files of a log that goes on in further ones, read as one: decompressed, each ending with a line break."""

    def __init__(self, pieces: tuple[LogFile, ...]) -> None:
        self._pieces, self._start, self.damage = pieces, 0, ""
        self.starts: list[tuple[str, int]] = []
        """The names and positions of the pieces that were opened."""
        self.seek(0)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the piece that is open."""
        self._stream.close()

    def begin_with(self, name: str, start: int, end: int) -> bool:
        """Begin with the piece of this name, or if it is gone, at its end with the one after it; return which."""
        self._pieces = tuple(piece for piece in self._pieces if stem(piece.path) >= name)
        there = bool(self._pieces) and stem(self._pieces[0].path) == name
        self._start = start if there else end
        return there

    def seek(self, position: int, /) -> int:
        """Go to a position in the piece that it begins with."""
        self._stream, self._rest = self._bytes(max(position - self._start, 0)), b""
        return position

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""
        data = self._rest or next(self._stream, b"")
        self._rest = data[size:]
        return data[:size]

    def _bytes(self, skipped: int) -> Generator[bytes]:
        position = self._start
        self.starts.clear()
        for piece in self._pieces:
            self.starts.append((stem(piece.path), position))
            with open_regular(piece) as file:
                content, last = Content(file), b"\n"
                if skipped:
                    content.skip_to(skipped - 1)
                    last = content.read(1)
                position, skipped = position + skipped, 0
                while data := content.read(_CHUNK):
                    yield data
                    position, last = position + len(data), data[-1:]
            self.damage = self.damage or content.damage or ""
            if last != b"\n":
                yield b"\n"
                position += 1


class CountedFile:
    """A file that counts what is read from it."""

    def __init__(self, file: Seekable, progress: Progress) -> None:
        self._file, self._progress = file, progress
        self.pieces = file if isinstance(file, Pieces) else None

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes; none at the end."""
        data = self._file.read(size) or b""  # None if reading would block, as with the kernel's messages
        self._progress.bytes_read += len(data)
        return data

    def seek(self, position: int, /) -> int:
        """Go to a position."""
        return self._file.seek(position)


def open_regular(file: LogFile) -> BinaryIO | Pieces:
    """Open a file for reading without waiting for a pipe that took its place or following a link below its root.

    The listing contained no links, so if the file or a folder on the way to it has become one since, it is refused.
    Raise `OSError`.
    """
    if file.pieces:
        return Pieces(file.pieces)
    if file.archived:
        descriptor = os.open(file.archived, _HOW | _NO_LINK)
    else:
        descriptor = _opened(file.path[: file.below], file.path[file.below :])
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)


def _opened(root: str, rest: str) -> int:
    folders = [name for name in rest.split(os.sep) if name]
    if not folders or os.open not in os.supports_dir_fd:
        return os.open(root + rest, _HOW | (_NO_LINK if folders else 0))
    folder = os.open(root or os.sep, _FOLDER)
    try:
        for name in folders[:-1]:
            deeper = os.open(name, _FOLDER | _NO_LINK, dir_fd=folder)
            os.close(folder)
            folder = deeper
        return os.open(folders[-1], _HOW | _NO_LINK, dir_fd=folder)
    finally:
        os.close(folder)


def start_of(file: CountedFile, size: int) -> bytes:
    """Return the first bytes of a file's content, at most `size`."""
    return read_up_to(Content(file), size)


def head_of(found: LogFile, size: int) -> bytes:
    """Return the first bytes of a file's content, at most `size`. Raise `OSError`."""
    with open_regular(found) as file:
        return start_of(CountedFile(file, Progress()), size)


def read_up_to(content: Content, size: int) -> bytes:
    """Return the next `size` bytes of content, or all that are left."""
    data = b""
    while len(data) < size and (more := content.read(size - len(data))):
        data += more
    return data


def inode(stamp: str) -> str:
    """Return the inode in a file's stamp."""
    return stamp.rpartition("/")[2]


def restamped(file: LogFile) -> LogFile:
    """Return a file with its ctime as links to it have changed it; as it is if more has changed."""
    if file.pieces:
        pieces = tuple(map(restamped, file.pieces))
        return replace(file, pieces=pieces, stamp="+".join(piece.stamp for piece in pieces))
    above, plus, own = file.stamp.rpartition("+")
    size, changed, *_, number = own.split("/") if own.count("/") == _SLASHES else ("", "", "")
    try:
        status = os.lstat(file.path)
    except OSError:
        return file
    if (size, changed, number) != (str(status.st_size), str(status.st_mtime_ns), str(status.st_ino)):
        return file
    return replace(file, stamp=f"{above}{plus}{size}/{changed}/{status.st_ctime_ns}/{number}")


def checksum_to(content: Content, end: int) -> tuple[int | None, bytes]:
    """Return the checksum of the content up to a position, and the bytes before it; None if the content is shorter."""
    checksum, anchor = 0, b""
    while end > 0:
        data = content.read(min(end, _CHUNK))
        if not data:
            return None, b""
        checksum, end = zlib.crc32(data, checksum), end - len(data)
        anchor = (anchor + data)[-ANCHOR:]
    return checksum, anchor
