"""The index as the readers see it: kept fresh before every answer, read through read-only connections."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agtrace_indexer import redact
from agtrace_indexer.index.lock import Busy, wait_for_writer
from agtrace_indexer.index.opening import Reading, open_read_only, refuse_newer
from agtrace_indexer.index.questions import state
from agtrace_indexer.providers.registry import homes
from agtrace_indexer.run import index

from agtrace.index.freshness import Freshness
from agtrace.index.soundness import Soundness
from agtrace.index.trouble import as_sentence
from agtrace.problems import IndexUnavailable
from agtrace.settings import Settings

if TYPE_CHECKING:
    from agtrace_indexer.logs.progress import Progress


Kept = TypeVar("Kept")

_PATIENCE = 0.02
"""Seconds that a question waits for another process that is writing: enough for a tail, too short to be felt."""

_PAUSE = 0.02

_GLANCE = 0.3
"""Seconds that an answer waits to know whether an index that can't be written is damaged."""


def home_roots(settings: Settings) -> list[str]:
    """The folders of the known agents on this machine."""
    return [str(path) for path in homes(settings.environment, Path(settings.environment.get("HOME") or Path.home()))]


class Index:
    """The index of some settings. Safe to use from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.soundness = Soundness(settings.database)
        self._beginning = threading.Lock()
        self._run: _Run | None = None
        self._readers: list[Reader] = []
        """Those that nobody uses."""
        self._unusable: str | None = None
        """Why the user's rules for secrets can't be used; then nothing is read by which they could be passed over."""

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """A reader for oneself alone: the one that was given back last, so that who asks alone always has the same.

        After an error of SQLite it keeps nothing, and opens the index anew.
        """
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = Reader(self._settings)
        try:
            yield reader
        except sqlite3.Error:
            reader.close()
            raise
        finally:
            self._readers.append(reader)

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
        run = self._run_that_knows_all(seconds)
        run.join(max(end - time.monotonic(), 0))
        while isinstance(run.trouble, Busy) and not self._settings.database.exists() and time.monotonic() < end:
            time.sleep(_PAUSE)  # another process is making the index
        if run.trouble is None and not run.is_alive():
            return Freshness("ready")
        state: Literal["catching_up", "building"] = "catching_up" if self._built() else "building"
        progress = run.progress
        if run.trouble is not None and not isinstance(run.trouble, Busy):
            if not self._settings.database.exists():
                raise IndexUnavailable(f"the index can't be made: {run.trouble}", "Set AGTRACE_DATA_DIR to a folder.")
            return Freshness(state, problem=f"the logs can't be indexed: {self._told(run.trouble)}")
        if progress is None:
            return Freshness(state)
        files, size = progress.files_total - progress.files_done, progress.bytes_total - progress.bytes_done
        return Freshness(state, max(files, 0), max(size, 0))

    def _run_that_knows_all(self, seconds: float) -> _Run:
        """A run that was begun just now, for this question or for one that came meanwhile.

        The one before it, where that takes longer than so many seconds: it knows nothing of what was written since.
        """
        before = self._run
        if before is not None:
            before.join(seconds)
        with self._beginning:
            if self._run is None or (self._run is before and not before.is_alive()):
                begun = _Run(self._settings)
                begun.start()
                self._run = begun  # only now can it be waited for
            return self._run

    def check_masks(self, connection: sqlite3.Connection) -> None:
        """Raise `IndexUnavailable` while the index isn't masked by rules for secrets that a user has just changed.

        Otherwise a search could tell what they mask. While the rules can't be used, those before them still hold.
        """
        if self._unusable is None:
            masked_by = state.masked_by(connection)
            if masked_by is not None and not redact.same_own_rules(masked_by):
                raise IndexUnavailable(
                    "the rules for secrets have changed, and the index isn't masked by them yet",
                    "Ask again in a moment.",
                )

    def _built(self) -> bool:
        try:
            with self.reader() as reader:
                return state.is_built(reader.connection)
        except (IndexUnavailable, sqlite3.Error):
            return False

    def _told(self, trouble: Exception) -> str:
        """Why indexing failed, with the next step where the index itself is why."""
        if not isinstance(trouble, sqlite3.Error):
            return str(trouble)
        return as_sentence(self.soundness.unusable(trouble, seconds=_GLANCE))


class _Run(threading.Thread):
    """A thread that brings the index up to date; whoever asks meanwhile looks at how far it is."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(daemon=True)
        self._settings = settings
        self.progress: Progress | None = None
        self.trouble: Exception | None = None

    def run(self) -> None:
        """Index what the logs gained."""
        try:
            wait_for_writer(self._settings.database, _PATIENCE)
            index(
                self._settings.database, (), otherwise=home_roots(self._settings), report=self._note,
                patience=_PATIENCE, keep_days=self._settings.keep_days,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001  # a thread's boundary: told in every answer until it is over
            self.trouble = error

    def _note(self, progress: Progress) -> None:
        self.progress = progress


class Reader:
    """A reader of the index that lies there, with what it remembers. For one thread at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: Reading | None = None
        self._opened: tuple[int, int] | None = None
        self._size = 0
        self._kept: dict[type, Any] = {}

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

    def kept(self, kind: type[Kept]) -> Kept:
        """What its users keep between two questions, one of a kind: made when it is first asked for."""
        found: Kept = self._kept.setdefault(kind, kind())
        return found

    def close(self) -> None:
        """Keep nothing of what was read: what is asked next opens the index anew."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._kept = None, {}

    def _open(self) -> Reading:
        path = self._settings.database
        if not path.exists():
            raise IndexUnavailable("there is no index yet: it is being made, or run `agtrace index`", "Try again.")
        return open_read_only(path)


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
