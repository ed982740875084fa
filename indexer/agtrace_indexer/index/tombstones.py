"""Tombstones, which keep forgotten sessions forgotten: digests of session ids in a small file next to the index.

The file outlives an index that is damaged or deleted. A line is a kind, the SHA-256 of provider and id, and a time:
`forgotten` keeps a session out for good, `aged` (`AGTRACE_KEEP_DAYS`) until its log is written to again. The file only
ever grows by whole lines, which reach the disk before anything is deleted. To get a session back, remove its line and
run `agtrace index`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from agtrace_schema.patterns import later

from agtrace_indexer.index.opening import reach_disk

FORGOTTEN = "forgotten"
AGED = "aged"

_LINE = later(rf"({FORGOTTEN}|{AGED}) ([0-9a-f]{{64}}) (\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d)Z")
_LONGEST = 256
"""In bytes; longer than any line."""

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
"""The form of most session ids."""


class UnreadableTombstones(OSError):
    """The list of forgotten sessions can't be used: nothing is indexed then, or they might come back."""


def digest_of(provider: str, known_as: str) -> str:
    """Return a session's digest for a tombstone (`belonging.known_as`): 64 hexadecimal digits."""
    return sha256(f"{provider}\0{known_as}".encode("utf-8", "replace")).hexdigest()


def hidden(path: str) -> str:
    """Return the name of a forgotten log's file in the index: a digest instead of its path."""
    return f"{FORGOTTEN}:{sha256(path.encode('utf-8', 'replace')).hexdigest()}"


def place_of(database: Path) -> Path:
    """Return the path of an index's tombstones."""
    return database.with_name("forgotten")


def stamp(database: Path) -> str:
    """Return a stamp of the tombstones, from a stat alone, that changes when they do; empty if there are none."""
    try:
        status = place_of(database).stat()
    except FileNotFoundError:
        return ""
    return f"{status.st_size}/{status.st_mtime_ns}"


class Tombstones:
    """The forgotten sessions; false if there are none."""

    def __init__(self, lines: Iterable[tuple[str, str, float]] = ()) -> None:
        self._for_good: set[str] = set()
        self._until: dict[str, float] = {}
        for kind, digest, time in lines:
            if kind == FORGOTTEN:
                self._for_good.add(digest)
            else:
                self._until[digest] = max(time, self._until.get(digest, 0))

    @classmethod
    def of(cls, database: Path) -> Tombstones:
        """Read the tombstones next to an index. Raise `UnreadableTombstones`."""
        return cls(_read(place_of(database)))

    def __bool__(self) -> bool:
        return bool(self._for_good or self._until)

    def __contains__(self, digest: str) -> bool:
        """Whether the session with this digest is forgotten, for good or until its log is written to."""
        return digest in self._for_good or digest in self._until

    def has(self, digest: str) -> bool:
        """Whether the session with this digest is forgotten for good."""
        return digest in self._for_good

    def keep_out(self, provider: str, known_as: str, written: float | None = None) -> bool:
        """Whether a session is forgotten, given when its log was last written to (seconds since 1970).

        Without a time, only sessions that are forgotten for good count.
        """
        digest = digest_of(provider, known_as)
        return self.has(digest) or (written is not None and written <= self._until.get(digest, 0))


def add(database: Path, kind: str, digests: Iterable[str], now: float) -> None:
    """Append tombstones and wait until they are on the disk. Raise `OSError`."""
    path = place_of(database)
    time = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = "".join(f"{kind} {digest} {time}\n" for digest in digests).encode()
    ways = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, ways, 0o600)
    try:
        data = _end_last_line(descriptor) + data
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    reach_disk(path.parent)


def _end_last_line(descriptor: int) -> bytes:
    """Seek to the end and return what the last line needs to end. Drop a cut-off one: nothing was deleted for it."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    start = os.lseek(descriptor, max(size - _LONGEST, 0), os.SEEK_SET)
    tail = os.read(descriptor, _LONGEST)
    rest = tail[tail.rfind(b"\n") + 1 :]
    if not rest or _LINE.fullmatch(rest.decode("ascii", "replace")):
        os.lseek(descriptor, 0, os.SEEK_END)
        return b"\n" if rest else b""
    os.ftruncate(descriptor, start + len(tail) - len(rest))
    os.lseek(descriptor, 0, os.SEEK_END)
    return b""


def _read(path: Path) -> Iterator[tuple[str, str, float]]:
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnreadableTombstones(
            f"{path}, the list of forgotten sessions, can't be read ({error.strerror}): check its permissions"
        ) from error
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is not None:
            yield match[1], match[2], datetime.fromisoformat(f"{match[3]}+00:00").timestamp()
        elif line and number < len(lines):  # a last line without a newline was cut off by a crash
            raise UnreadableTombstones(
                f"line {number} of {path}, the list of forgotten sessions, can't be read: delete that line, but not "
                "the file, or all forgotten logs are read again"
            )
