"""Settings of a running server, which follow their file.

Before each request the file's stamp is looked at, which takes microseconds; SIGHUP makes it read the file at once. A
file that can't be used changes nothing: the old values stay, and its faults are told until it is mended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import replace as with_changes
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agtrace.settings.environment import anything_set, config_file

if TYPE_CHECKING:
    from agtrace.settings.faults import Fault
    from agtrace.settings.model import Key, Settings
    from agtrace.settings.sources import Found

_AGAIN_SECONDS = 0.05
"""How soon a young file is read again."""

_YOUNG_NS = 1_000_000_000
"""A file that was written so recently may be written again under the same stamp."""

_SECRET = "(secret)"
_STAYING = ("data_dir", "http", "search_events")
"""The settings and groups that can't change in a running process."""

Log = Callable[[Mapping[str, Any]], None]
_Stamp = tuple[int, ...] | None
"""Times of the last change of the content and of anything, size, inode; None for no file."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and what is to be told about where they come from.

    This is no struct, because a server greets before it loads msgspec.
    """

    settings: Settings
    file: Path | None = None
    at: float | None = None
    """When the file was read, in seconds since 1970 UTC; None without one."""
    faults: tuple[Fault, ...] = ()
    """Why the file, as it is now, isn't used."""
    restart: tuple[str, ...] = ()
    """The keys that changed but are put to use only by a restart."""


class Live:
    """The settings in force. Safe to use from several threads: each gets one of the states, never a mixture."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Follow the configuration file of an environment; nothing is read before it is needed."""
        self._environment = environment
        self._follows = True
        self._lock = threading.RLock()
        self._loaded: Loaded | None = None
        self._log: Log | None = None
        self._path: Path | None = None
        self._stamp: _Stamp = None
        self._settled = False
        """Whether the file was last read long enough after its last change."""
        self._read_at = 0.0

    @classmethod
    def fixed(cls, settings: Settings) -> Live:
        """Return settings that stay as they are."""
        live = cls()
        live._loaded, live._follows = Loaded(settings), False
        return live

    @classmethod
    def start(cls, environment: Mapping[str, str] | None = None) -> Live:
        """Return the settings of a process. A file that can't be used is left out, and that is told.

        Raises `SettingError` if anything else can't be used. If no variable sets anything, nothing is loaded yet.
        """
        live = cls(environment)
        if anything_set(environment):
            live._first_loaded()
        return live

    def use_token(self, token: str) -> None:
        """Let clients over HTTP send this token, which no source sets."""
        old = self._first_loaded()
        from msgspec.structs import replace

        http = replace(old.settings.http, token=token)
        self._loaded = with_changes(old, settings=replace(old.settings, http=http))

    def tell(self, log: Log) -> None:
        """Log changes and faults from now on, and those of the start."""
        self._log = log
        self._tell_faults(self._first_loaded().faults)

    @property
    def current(self) -> Loaded:
        """The state in force, after a look at the file."""
        loaded = self._first_loaded()
        if self._follows and self._lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._lock.release()
        return self._loaded or loaded

    def reload(self) -> None:
        """Read the file now."""
        with self._lock:
            loaded = self._first_loaded()
            if self._follows:
                self._settled, self._stamp = False, _stamp(self._path)
                self._read(loaded)

    def _first_loaded(self) -> Loaded:
        """Return the state in force, without a look at the file; read it if it hasn't been."""
        if self._loaded is None:
            with self._lock:
                self._loaded = self._loaded or self._at_first()
        return self._loaded

    def _at_first(self) -> Loaded:
        from agtrace.settings.faults import InvalidSettings
        from agtrace.settings.sources import read

        self._path, _ = config_file(self._environment)
        self._stamp, self._read_at = _stamp(self._path), time.monotonic()
        try:
            found = read(self._environment)
            loaded = Loaded(found.settings, found.file, time.time() if found.file else None)
        except InvalidSettings as error:
            try:
                without = read(self._environment, without_file=True)
            except InvalidSettings:
                raise error from None  # with the file's faults, too
            loaded = Loaded(without.settings, self._path, None, error.faults)
        self._first = self._found = loaded.settings
        """What the sources said at first, and what they said last."""
        return loaded

    def _look(self) -> None:
        loaded, stamp = self._first_loaded(), _stamp(self._path)
        if stamp == self._stamp and (self._settled or time.monotonic() - self._read_at < _AGAIN_SECONDS):
            return
        if not _is_being_written(stamp, loaded):
            self._stamp, self._settled = stamp, stamp is None or time.time_ns() - stamp[0] > _YOUNG_NS
            self._read(loaded)

    def _read(self, old: Loaded) -> None:
        """Read the file and put it to use if it can be."""
        from agtrace.settings.faults import Fault, InvalidSettings
        from agtrace.settings.sources import read

        self._read_at = time.monotonic()
        try:
            found = read(self._environment)
            if old.file is not None and found.file is None:
                raise InvalidSettings((Fault(str(self._path), "", "can't be read: the file is gone"),))
        except InvalidSettings as error:
            self._loaded = with_changes(old, faults=error.faults)
            if error.faults != old.faults:
                self._tell_faults(error.faults)
        else:
            self._put_to_use(old, found)

    def _put_to_use(self, old: Loaded, found: Found) -> None:
        """Change to other settings, and tell how they differ; what can't change in a running process stays."""
        from msgspec.structs import replace

        from agtrace.settings.model import keys

        before, self._found = self._found, found.settings
        changed = [key for key in keys().values() if _differ(found.settings, before, key)]
        if not changed and not old.faults and found.file == old.file:
            return
        restart = tuple(
            key.name for key in keys().values() if key.restart and _differ(found.settings, self._first, key)
        )
        staying = {name: getattr(old.settings, name) for name in _STAYING}
        settings = replace(found.settings, **staying)
        self._loaded = Loaded(settings, found.file, time.time() if found.file else None, (), restart)
        for key in changed:
            self._say(_change(key, before, found.settings))
        if old.faults:
            self._say({"event": "config.mended", "file": str(self._path)})

    def _tell_faults(self, faults: tuple[Fault, ...]) -> None:
        from agtrace.settings.faults import MOST_TOLD

        for fault in faults[:MOST_TOLD]:
            told = {name: text for name, text in fault._asdict().items() if name != "origin"}
            self._say({"event": "config.invalid", "level": "error", "file": fault.origin, **told})
        if len(faults) > MOST_TOLD:
            self._say({"event": "config.invalid", "level": "error", "more_faults": len(faults) - MOST_TOLD})

    def _say(self, record: Mapping[str, Any]) -> None:
        if self._log is not None:
            self._log(record)


def _differ(one: Settings, other: Settings, key: Key) -> bool:
    from agtrace.settings.model import value_of

    return bool(value_of(one, key.name) != value_of(other, key.name))


def _change(key: Key, old: Settings, new: Settings) -> dict[str, Any]:
    """Return the log record of a change."""
    from agtrace.settings.model import plain, value_of

    before, after = (_SECRET if key.secret else plain(value_of(settings, key.name)) for settings in (old, new))
    needs = {"needs_restart": True} if key.restart else {}
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"event": "config.changed", "key": key.name, "old": before, "new": after, "at": at, **needs}


def _stamp(path: Path | None) -> _Stamp:
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _is_being_written(stamp: _Stamp, loaded: Loaded) -> bool:
    """Whether the file in use was emptied a moment ago: editors do that before they write."""
    return loaded.file is not None and stamp is not None and stamp[2] == 0 and time.time_ns() - stamp[0] < _YOUNG_NS
