"""The index as the readers see it: kept fresh before every answer, read through read-only connections."""

from __future__ import annotations

import sqlite3
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agtrace_indexer import redact
from agtrace_indexer.discovery import homes
from agtrace_indexer.lock import Busy, wait_for_writer
from agtrace_indexer.opening import open_to_read, refuse_newer
from agtrace_indexer.run import index

from agtrace.problems import IndexUnavailable
from agtrace.settings import Settings

if TYPE_CHECKING:
    from agtrace_indexer.progress import Progress


_PATIENCE = 0.02
"""Seconds that a question waits for another process that is writing: enough for a tail, too short to be felt."""

_PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class Freshness:
    """Whether the index holds everything that the logs hold; None is unknown."""

    state: Literal["ready", "catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed at the moment; what is answered is what was indexed before."""


def home_roots(settings: Settings) -> list[str]:
    """The folders of the known agents on this machine."""
    return [str(path) for path in homes(settings.environment, Path(settings.environment.get("HOME") or Path.home()))]


class Index:
    """One reader of the index. Safe to use from several threads, one at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: Reading | None = None
        self._opened: tuple[int, int] | None = None
        self._size = 0
        self._run: threading.Thread | None = None
        self._progress: Progress | None = None
        self._trouble: Exception | None = None
        self._unusable: str | None = None
        """Why the user's rules for secrets can't be used; then nothing is read by which they could be passed over."""

    def refresh(self, seconds: float) -> Freshness:
        """Find changed logs and index what they gained, for at most this long; the rest goes on beside.

        When the index can't be written, the answer comes from what it holds, and says so. Raises
        `IndexUnavailable` when there is nothing to answer from.
        """
        end = time.monotonic() + seconds
        self._unusable = _rules_in_use(self._settings)
        if self._unusable:
            if not self._settings.database.exists():
                raise IndexUnavailable(self._unusable, "Mend or remove the file.")
            return Freshness("catching_up" if self._built() else "building", problem=self._unusable)
        if self._run is not None:
            self._run.join(seconds)  # begun for an earlier question: it knows nothing of what was written since
        if self._run is None or not self._run.is_alive():
            self._trouble = self._progress = None
            self._run = threading.Thread(target=self._bring_up_to_date, daemon=True)
            self._run.start()
            self._run.join(max(end - time.monotonic(), 0))
        while isinstance(self._trouble, Busy) and not self._settings.database.exists() and time.monotonic() < end:
            time.sleep(_PAUSE)  # another process is making the index
        if self._trouble is None and not self._run.is_alive():
            return Freshness("ready")
        state: Literal["catching_up", "building"] = "catching_up" if self._built() else "building"
        progress = self._progress
        if self._trouble is not None and not isinstance(self._trouble, Busy):
            if not self._settings.database.exists():
                raise IndexUnavailable(f"the index can't be made: {self._trouble}", "Set AGTRACE_DATA_DIR to a folder.")
            return Freshness(state, problem=f"the logs can't be indexed: {_told(self._trouble)}")
        if progress is None:
            return Freshness(state)
        files, size = progress.files_total - progress.files_done, progress.bytes_total - progress.bytes_done
        return Freshness(state, max(files, 0), max(size, 0))

    @property
    def connection(self) -> sqlite3.Connection:
        """A read-only connection to the index that lies there now.

        Raises `IndexUnavailable` where there is none, `NewerIndex` where a newer agtrace has made it meanwhile.
        """
        lies, size = _identity(self._settings.database)
        known = self._connection
        if known is None or known.is_still or self._opened != lies or size < self._size:  # beyond the end a map kills
            known = self._connection = self._open()
            self._opened, size = _identity(self._settings.database)
        self._size = size
        refuse_newer(known)
        return known

    def check_masks(self, connection: sqlite3.Connection) -> None:
        """Raise `IndexUnavailable` while the index isn't masked by rules for secrets that a user has just changed.

        Otherwise a search could tell what they mask. While the rules can't be used, those before them still hold.
        """
        if self._unusable is None:
            row = connection.execute("SELECT value FROM meta WHERE key = 'redaction'").fetchone()
            if row is not None and not redact.same_own_rules(row[0]):
                raise IndexUnavailable(
                    "the rules for secrets have changed, and the index isn't masked by them yet",
                    "Ask again in a moment.",
                )

    def _bring_up_to_date(self) -> None:
        try:
            wait_for_writer(self._settings.database, _PATIENCE)
            index(
                self._settings.database, (), otherwise=home_roots(self._settings), report=self._note,
                patience=_PATIENCE, keep_days=self._settings.keep_days,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001  # a thread's boundary: told in every answer until it is over
            self._trouble = error

    def _note(self, progress: Progress) -> None:
        self._progress = progress

    def _open(self) -> Reading:
        path = self._settings.database
        if not path.exists():
            raise IndexUnavailable("there is no index yet: it is being made, or run `agtrace index`", "Try again.")
        return open_read_only(path)

    def _built(self) -> bool:
        try:
            row = self.connection.execute("SELECT value FROM meta WHERE key = 'built'").fetchone()
        except (IndexUnavailable, sqlite3.Error):
            return False
        return row is not None and row[0] == "1"


class Reading(sqlite3.Connection):
    """A connection that reads an index."""

    seal: str | None = None
    """The seal of the word index that was looked at last."""
    whole: bool | None = None
    """Whether the word index was what its seal says; None before it was looked at."""
    is_still: bool = False
    """Whether the index is taken for a file that nobody writes, so that later changes go unnoticed."""


def open_read_only(path: Path) -> Reading:
    """A connection that reads an index, for any thread; rows have names. Raises `sqlite3.Error`.

    An index of a newer agtrace is refused as `NewerIndex`.
    """
    connection, still = open_to_read(path, check_same_thread=False, factory=Reading)
    assert isinstance(connection, Reading)
    connection.is_still = still
    connection.row_factory = sqlite3.Row
    refuse_newer(connection)
    connection.executescript("PRAGMA query_only=1; PRAGMA cache_size=-65536; PRAGMA mmap_size=2147418112;")
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    return connection


def _rules_in_use(settings: Settings) -> str | None:
    """Take the rules for secrets that lie beside the index; give why those can't be used."""
    try:
        redact.use(settings.data_dir)
    except redact.UnusableRules as error:
        return str(error)
    return None


def _identity(path: Path) -> tuple[tuple[int, int] | None, int]:
    """Which file lies at a path, and its size: another one after the index was moved away and made anew."""
    try:
        status = path.stat()
    except OSError:
        return None, 0
    return (status.st_dev, status.st_ino), status.st_size


def _told(trouble: Exception) -> str:
    """Why indexing failed, with the next step where the index itself is why."""
    if not isinstance(trouble, sqlite3.Error):
        return str(trouble)
    from agtrace.unusable import as_sentence, unusable

    return as_sentence(unusable(trouble))
