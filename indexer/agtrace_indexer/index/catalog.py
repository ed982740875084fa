"""Opening the index, and its facts about files and roots: all that a run without changes needs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from agtrace_schema.database import TABLES, VERSION
from msgspec import Struct

from agtrace_indexer import redact
from agtrace_indexer.index import meta
from agtrace_indexer.index.opening import refuse_empty, refuse_other_tables, state_of, version_of
from agtrace_indexer.index.tombstones import hidden, place_of, stamp
from agtrace_indexer.logs.discovery import ARCHIVE, LogFile

_TUNING = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;          -- a power cut damages nothing; it may undo the newest batches, which are read again
PRAGMA cache_size=-65536;           -- 64 MB: the b-trees of a bulk load stay in it
PRAGMA wal_autocheckpoint=8192;     -- pages, 32 MB: at 4 MB a cold index of 1 GB waits 1 s longer for the disk
PRAGMA journal_size_limit=33554432; -- a WAL that grew beyond it during a long read is truncated
"""

_FILES = """
SELECT id, path, status, reason, provider, gone, stamp, size, read_to, lines, records, unreadable_lines, head,
  head_size, anchor, anchor_size FROM file
"""


_SUMS_OF_SESSIONS = """
SELECT count(*) FILTER (WHERE kind != 'warmup' AND (kind != 'subagent' OR parent_session IS NULL)),
  count(*) FILTER (WHERE kind = 'subagent' AND parent_session IS NOT NULL), coalesce(sum(event_count), 0) FROM session
"""
_SUMS_OF_FILES = """
SELECT coalesce(sum(records), 0), coalesce(sum(unreadable_lines), 0),
  count(*) FILTER (WHERE status = 'unreadable' OR (status = 'log' AND stamp = '' AND NOT gone))
FROM file
"""

_UNKNOWN = "SELECT type, sum(count) FROM record_type WHERE status = 'unknown' GROUP BY type ORDER BY type"


class Totals(Struct, frozen=True):
    """Totals over the whole index."""

    sessions: int
    sub_agents: int
    events: int
    records: int
    unreadable_lines: int
    files_unreadable: int
    """Files that can't be opened or read to their end."""
    unknown_record_types: dict[str, int]


class KnownFile(Struct, frozen=True):
    """A file as of its last reading; `agtrace_schema.database` describes the columns."""

    id: int
    path: str
    status: str
    reason: str | None
    provider: str | None
    gone: int
    stamp: str
    size: int
    read_to: int
    lines: int
    records: int
    unreadable_lines: int
    head: bytes
    """Only logs have one, as well as a provider and an anchor."""
    head_size: int
    anchor: bytes
    anchor_size: int


class FileStamp(Struct, frozen=True, gc=False):
    """The columns that show whether a file has changed."""

    stamp: str
    status: str
    gone: int


def open_database(path: Path) -> sqlite3.Connection:
    """Open the index for writing; create it first if there is none.

    The folder and the file are readable only by their owner. Raises `sqlite3.DatabaseError` for a
    file that isn't an index, `opening.NewerIndex` and `opening.OlderIndex` for one of another version.
    """
    if not path.exists():
        _create(path)
    refuse_empty(path)
    connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        refuse_other_tables(connection)
        connection.executescript(_TUNING)
        if (version := version_of(connection)) != VERSION:
            raise sqlite3.DatabaseError(f"its tables can't have version {version}")
    except BaseException:
        connection.close()
        raise
    return connection


def _create(path: Path) -> None:
    """Make an empty index next to its place and move it there complete, so that no reader sees one without tables."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # follows no link that was put there
    with closing(sqlite3.connect(fresh)) as connection:
        connection.executescript(f"BEGIN;{TABLES}PRAGMA user_version={VERSION};COMMIT;")
    fresh.replace(path)


class NotRebuilt(Exception):
    """No sound index could be made of an old one, which is unchanged; the text says why."""


def old_files(database: Path) -> list[Path]:
    """Return the files that rebuilds have kept, which still contain what the index contained then."""
    return sorted(path for path in database.parent.glob("index.damaged-*.sqlite3*") if path.is_file())


def remove_attempts(database: Path) -> None:
    """Remove the files of a rebuild next to an index, or of one that was killed. Only a writer may call this."""
    for path in database.parent.glob(f"{database.stem}.repairing.*"):
        path.unlink(missing_ok=True)


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return device and inode of what is at a path: another file may later be there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def own_files(path: Path) -> tuple[str, ...]:
    """Return the beginnings of the paths of an index's own files, which aren't logs even if they are below a root."""
    stem, rules = str(path.absolute().with_suffix("")), str(path.absolute().with_name(Path(redact.OWN_FILE).stem))
    return f"{stem}.", str(place_of(path.absolute())), f"{rules}.", str(path.absolute().with_name(ARCHIVE) / "")


class Catalog:
    """The open index: its files, roots and facts. `Store` writes the contents of the files."""

    def __init__(self, path: Path) -> None:
        self.path, self._identity = path, identity(path)
        self.connection = open_database(path)
        self.own_files = own_files(path)

    def close(self) -> None:
        """Close the connection, rolling back what isn't committed."""
        self.connection.close()

    @property
    def is_in_place(self) -> bool:
        """Whether the index at the path is still the one that was opened: a rebuild puts another one there."""
        return identity(self.path) == self._identity

    @property
    def has_archive(self) -> bool:
        """Whether there is an archive next to the index."""
        return self.path.with_name(ARCHIVE).exists()

    @property
    def size(self) -> int:
        """The size of the index in bytes, without its WAL."""
        pages, size = (self.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages * size)

    @property
    def state(self) -> int:
        """A number that commits of other connections change, as long as this catalog is open."""
        return state_of(self.connection)

    def known(self) -> dict[str, FileStamp]:
        """Return what shows whether files have changed, by path."""
        rows = self.connection.execute("SELECT path, stamp, status, gone FROM file")
        return {path: FileStamp(stamp, status, gone) for path, stamp, status, gone in rows}

    def stamps(self) -> dict[str, str]:
        """Return the stamp of each file that is there, by path, but for those that may change without it changing."""
        rows = self.connection.execute(
            "SELECT path, stamp FROM file WHERE NOT gone AND status NOT IN ('forgotten', 'unreadable')"
        )
        return dict(rows.fetchall())

    def take_stamps_away(self, secrets: Iterable[str] | None = None) -> None:
        """Have every file, or those with one of these secrets, count as changed, until it is read and has a stamp."""
        of_them = "id IN (SELECT s.file_id FROM secret x JOIN session s ON s.id = x.session_id WHERE x.value = ?)"
        for secret in (None,) if secrets is None else secrets:
            where, given = ("status != 'forgotten'", ()) if secret is None else (of_them, (secret,))
            self.connection.execute(f"UPDATE file SET stamp = '' WHERE {where}", given)

    def file(self, path: str) -> KnownFile | None:
        """Return the row of a file, without its state, even if the index only has a digest of its path."""
        return next(iter(self._files("path IN (?, ?)", path, hidden(path))), None)

    def gone_files(self) -> list[KnownFile]:
        """Return the rows of vanished files."""
        return self._files("gone")

    def logs_there(self) -> Iterator[LogFile]:
        """Yield the logs that there are, as they were last read."""
        query = "SELECT path, status, stamp, size FROM file WHERE status IN ('log', 'container') AND NOT gone"
        rows = self.connection.execute(f"{query} AND stamp != ''").fetchall()
        containers = {path for path, status, *_ in rows if status == "container"}
        for path, status, stamped, size in rows:
            container = os.path.dirname(path)
            times = stamped.rpartition("+")[2].split("/")
            if status == "log" and container in containers:
                yield LogFile(path, stamped, size, 0, container=container)
            elif status == "log":
                yield LogFile(path, stamped, size, int(times[1]))

    def note_stamp(self, file: LogFile) -> None:
        """Record the stamp of a log, which the archive has changed."""
        self.connection.execute("UPDATE file SET stamp = ? WHERE path = ?", (file.stamp, file.path))

    def _files(self, condition: str, *arguments: str) -> list[KnownFile]:
        return [KnownFile(*row) for row in self.connection.execute(f"{_FILES} WHERE {condition}", arguments)]

    def totals(self) -> Totals:
        """Return totals over all sessions and files."""
        query = self.connection.execute
        sessions, sub_agents, events = query(_SUMS_OF_SESSIONS).fetchone()
        records, lines, files = query(_SUMS_OF_FILES).fetchone()
        return Totals(sessions, sub_agents, events, records, lines, files, dict(query(_UNKNOWN).fetchall()))

    def is_unfinished(self) -> bool:
        """Whether a run ended before it determined which sessions are related, or left traces of deleted texts."""
        pending = "SELECT 1 FROM session WHERE pending LIMIT 1"
        undone = self.meta("built") == "0" or self.meta("scrub") is not None or self.has_new_tombstones
        return undone or self.connection.execute(pending).fetchone() is not None

    @property
    def has_new_tombstones(self) -> bool:
        """Whether sessions were forgotten or restored without the index having been updated."""
        return stamp(self.path) != (self.meta("forgotten") or "")

    def meta(self, key: str) -> str | None:
        """Return a fact about the index; None if it isn't recorded."""
        return meta.get(self.connection, key)

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact about the index."""
        meta.put(self.connection, key, value)

    def roots(self) -> list[str]:
        """Return the paths that are kept fresh."""
        return [row[0] for row in self.connection.execute("SELECT path FROM root ORDER BY path")]

    def add_roots(self, paths: Iterable[str]) -> None:
        """Keep these paths fresh from now on."""
        self.connection.executemany("INSERT OR IGNORE INTO root VALUES (?)", [(path,) for path in paths])

    def drop_root(self, path: str) -> None:
        """Remove a root that turned out to be a file and not a log; if it is below another root, it stays known."""
        self.connection.execute("DELETE FROM root WHERE path = ?", (path,))
        if not any(path.startswith(os.path.join(root, "")) for root in self.roots()):
            self.connection.execute("DELETE FROM file WHERE path = ?", (path,))
