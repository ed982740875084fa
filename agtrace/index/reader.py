"""The index as readers see it: refreshed before every answer, read through read-only connections.

It is one's own, or that of a team if the setting `index` names one.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from agtrace_indexer import redact
from agtrace_indexer.index import meta
from agtrace_indexer.index.opening import Busy, Reading, open_read_only, refuse_newer, write_lock
from agtrace_indexer.index.opening import bytes_on_disk as database_bytes
from agtrace_indexer.providers.registry import homes
from agtrace_indexer.run import refresh
from agtrace_indexer.watch.tracker import ChangeTracker

from agtrace.index.trouble import Freshness, as_sentence, damage_in, explained
from agtrace.problems import IndexUnavailable
from agtrace.settings.limits import STEPS_BETWEEN_LOOKS, stopped

if TYPE_CHECKING:
    from agtrace_indexer.logs.files import Progress

    from agtrace.index.team import TeamIndex
    from agtrace.settings.model import Settings

Kept = TypeVar("Kept")

_PATIENCE = 0.02
"""Seconds that a request waits for another writing process: enough for the tail of a log, too short to notice."""

_PAUSE = 0.02


def home_roots(settings: Settings) -> list[str]:
    """Return the home folders of the known agents on this machine."""
    return [str(path) for path in homes(settings.environment, Path(settings.environment.get("HOME") or Path.home()))]


class Index:
    """The index that the settings name. Safe to use from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._beginning = threading.Lock()
        self._tracker = ChangeTracker(settings.database)
        self._run: _Run | None = None
        self._readers: list[Reader] = []
        """The readers that are not in use."""
        self._unusable = _rules_in_use(settings)
        """Why the user's rules for secrets can't be used; while they can't, no logs are indexed."""

    def reader(self, user: str | None = None) -> AbstractContextManager[Reader]:  # all of it is one person's
        """Lend a reader exclusively; after an error of SQLite it opens the index anew."""
        return lent(self._readers, partial(Reader, self._settings))

    def refresh(self, seconds: float) -> Freshness:
        """Find changed logs and index what is new, for at most this long; the rest is done in the background.

        If the index can't be written, answers come from what it holds, and say so. Raises `IndexUnavailable`
        if there is nothing to answer from.
        """
        end = time.monotonic() + seconds
        self._unusable = _rules_in_use(self._settings)
        if self._unusable:
            if not self._settings.database.exists():
                raise IndexUnavailable(self._unusable, "Fix or remove the file.")
            return Freshness("catching_up" if self._built() else "building", problem=self._unusable)
        if self._tracker.is_current():
            self._look_if_due()
            return Freshness("ready")
        run = self._run_that_knows_all(seconds)
        run.join(max(end - time.monotonic(), 0))
        while isinstance(run.trouble, Busy) and not self._settings.database.exists() and time.monotonic() < end:
            time.sleep(_PAUSE)  # another process is creating the index
        if run.trouble is None and not run.is_alive():
            return Freshness("ready")
        state: Literal["catching_up", "building"] = "catching_up" if self._built() else "building"
        progress = run.progress
        if run.trouble is not None and not isinstance(run.trouble, Busy):
            if not self._settings.database.exists():
                raise IndexUnavailable(f"can't create the index: {run.trouble}", "Set AGTRACE_DATA_DIR to a folder.")
            error = run.trouble
            why = as_sentence(self.explain(error)) if isinstance(error, sqlite3.Error) else error
            return Freshness(state, problem=f"the logs can't be indexed: {why}")
        if progress is None:
            return Freshness(state)
        files, size = progress.files_total - progress.files_done, progress.bytes_total - progress.bytes_done
        return Freshness(state, max(files, 0), max(size, 0))

    def _run_that_knows_all(self, seconds: float) -> _Run:
        """Return a run that starts now, for this request or for one made in the meantime.

        If the previous run takes longer than this many seconds, return that one: it misses what was written since.
        """
        with self._beginning:  # a run that is being begun may have looked already
            before = self._run
        if before is not None:
            before.join(seconds)
        with self._beginning:
            if self._run is None or (self._run is before and not before.is_alive()):
                begun = _Run(self._settings, self._tracker)
                begun.start()
                self._run = begun  # only now can it be waited for
            return self._run

    def _look_if_due(self) -> None:
        """Once in a while, look at all logs in the background, whatever was reported."""
        with self._beginning:
            if self._tracker.look_is_due and not (self._run and self._run.is_alive()):
                begun = _Run(self._settings, self._tracker)
                begun.start()
                self._run = begun

    def note(self, kind: str) -> None:
        """Note a question: of one's own index nobody is told what was asked."""

    def check_masks(self, connection: sqlite3.Connection) -> None:
        """Raise `IndexUnavailable` while rules for secrets that the user has just changed aren't applied to the index.

        Otherwise a search could reveal what they mask. While the rules can't be used, the previous ones still apply.
        """
        if self._unusable is None:
            masked_by = meta.get(connection, "redaction")
            if masked_by is not None and not redact.same_own_rules(masked_by):
                raise IndexUnavailable(
                    "the rules for secrets have changed and aren't applied to the index yet",
                    "Try again in a moment.",
                )

    def _built(self) -> bool:
        try:
            with self.reader() as reader:
                return meta.get(reader.connection, "built") == "1"
        except (IndexUnavailable, sqlite3.Error):
            return False

    def explain(self, error: sqlite3.Error | OSError) -> IndexUnavailable:
        """Return why the index can't be used, given an error of reading or writing it."""
        return explained(error, self._settings.database)

    def damage(self) -> IndexUnavailable | None:
        """Read all of the index and return its damage, if there is any."""
        return damage_in(self._settings.database)


class _Run(threading.Thread):
    """A thread that brings the index up to date; requests in the meantime look at its progress."""

    def __init__(self, settings: Settings, tracker: ChangeTracker) -> None:
        super().__init__(daemon=True)
        self._settings, self._tracker = settings, tracker
        self.progress: Progress | None = None
        self.trouble: Exception | None = None

    def run(self) -> None:
        try:
            changed = self._tracker.begin()
            with suppress(OSError), write_lock(self._settings.database, _PATIENCE):
                pass  # cheaper than working out what there is to do, only to learn that another process is doing it
            refresh(
                self._settings.database, otherwise=home_roots(self._settings), report=self._note,
                patience=_PATIENCE, keep_days=self._settings.keep_days, archive=self._settings.archive,
                changed=changed,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001  # a thread's boundary: reported in every answer until it is resolved
            self.trouble = error
        self._tracker.end(well=self.trouble is None)

    def _note(self, progress: Progress) -> None:
        self.progress = progress


class CachingReader:
    """A reader of an index, with objects that it caches. For one thread at a time."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._kept: dict[type, Any] = {}

    def kept(self, kind: type[Kept]) -> Kept:
        """Return the object of this class that is cached until the index is opened anew; create it if necessary."""
        if kind not in self._kept:
            self._kept[kind] = kind()
        result: Kept = self._kept[kind]
        return result

    def close(self) -> None:
        """Forget everything: the next request opens the index anew."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._kept = None, {}


AnyReader = TypeVar("AnyReader", bound=CachingReader)


@contextmanager
def lent(readers: list[AnyReader], make: Callable[[], AnyReader]) -> Iterator[AnyReader]:
    """Lend the reader that was returned last, so that a lone caller always gets the same, or make one.

    After an error of SQLite it forgets everything.
    """
    try:
        reader = readers.pop()
    except IndexError:
        reader = make()
    try:
        yield reader
    except sqlite3.Error:
        reader.close()
        raise
    finally:
        readers.append(reader)


class Reader(CachingReader):
    """A reader of the current index file."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._opened: tuple[int, int] | None = None
        self._size = 0

    @property
    def connection(self) -> sqlite3.Connection:
        """A read-only connection to the current index file.

        Raises `IndexUnavailable` if there is none, `NewerIndex` if a newer agtrace has created it in the meantime.
        """
        lies, size = _identity(self._settings.database)
        known: Reading | None = self._connection
        if known is None or known.is_still or self._opened != lies or size < self._size:  # a truncated map is fatal
            path = self._settings.database
            if not path.exists():
                raise IndexUnavailable("there is no index yet: wait for it, or run `agtrace index`", "Try again.")
            known = self._connection = open_read_only(path)
            known.set_progress_handler(stopped, STEPS_BETWEEN_LOOKS)
            self._opened, size = _identity(self._settings.database)
        self._size = size
        refuse_newer(known)
        return known


def _rules_in_use(settings: Settings) -> str | None:
    """Load the rules for secrets next to the index; return why they can't be used, or None."""
    try:
        redact.use(settings.data_dir)
    except redact.UnusableRules as error:
        return str(error)
    return None


def _identity(path: Path) -> tuple[tuple[int, int] | None, int]:
    """Return the identity and size of the file at a path; another one if the index was moved away and made anew."""
    try:
        status = path.stat()
    except OSError:
        return None, 0
    return (status.st_dev, status.st_ino), status.st_size


# -- the index that is asked -------------------------------------------------------------------------

AnyIndex: TypeAlias = "Index | TeamIndex"


def index_of(settings: Settings) -> AnyIndex:
    """Return the index that answers come from. Raises `SettingError` if what a team's index takes isn't installed."""
    if settings.asked is None:
        return Index(settings)
    from agtrace.index.team import TeamIndex

    return TeamIndex(settings.asked, settings.user)


def opened(settings: Settings) -> sqlite3.Connection:
    """Return a connection that only reads the index, as it is. Raises `sqlite3.Error`."""
    if settings.asked is None:
        return open_read_only(settings.database)
    from agtrace.index.team import connection_to

    return connection_to(settings.asked, settings.user)


def bytes_on_disk(settings: Settings) -> int | None:
    """Return the size of one's own index; None for that of a team, which is its server's business."""
    return None if settings.asked is not None else database_bytes(settings.database)
