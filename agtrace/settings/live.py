"""Settings of a running server, which follow their file.

Before each request the file's stamp is looked at, which takes microseconds; SIGHUP has the file read at once. A file
that can't be used changes nothing: the old values stay, and its faults are told until it is mended (requirements R-091,
R-093).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agtrace.settings.model import Key, Settings, keys, plain, value_of
from agtrace.settings.sources import Fault, Found, InvalidSettings, config_file, read

_AGAIN_SECONDS = 0.05
"""How soon a young file is read again."""

_YOUNG_NS = 1_000_000_000
"""A file that was written so recently may be written again under the same stamp."""

_SECRET = "(secret)"
_STAYING = ("data_dir", "http", "search_events")
"""The settings and groups that can't change in a running process."""

Log = Callable[[Mapping[str, Any]], None]
_Stamp = tuple[int, int, int] | None
"""Time of the last change, size, inode; None for no file."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and what is to be told about where they come from."""

    settings: Settings
    file: Path | None = None
    at: float | None = None
    """When the file was read, in seconds since 1970 UTC; None without one."""
    faults: tuple[Fault, ...] = ()
    """Why a newer state of the file isn't used."""
    restart: tuple[str, ...] = ()
    """The keys that the file sets to what only a restart can put to use."""


class Live:
    """The settings in force. Safe to use from several threads: each gets one of the states, never a mixture."""

    def __init__(
        self, loaded: Loaded, *, path: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._loaded, self._path, self._environment = loaded, path, environment
        self._first = self._found = loaded.settings
        """What the sources said at first, and what they said last."""
        self._log: Log | None = None
        self._lock = threading.Lock()
        self._read_at = time.monotonic()
        self._stamp = _stamp(path)
        self._settled = False
        """Whether the file was last read long enough after its last change."""

    @classmethod
    def fixed(cls, settings: Settings) -> Live:
        """Return settings that stay as they are."""
        return cls(Loaded(settings))

    @classmethod
    def start(cls, environment: Mapping[str, str] | None = None) -> Live:
        """Read the settings and follow their file. A file that can't be used is left out, and that is told.

        Raises `SettingError` if anything else can't be used.
        """
        path, _ = config_file(environment)
        stamp = _stamp(path)
        try:
            found = read(environment)
            loaded = Loaded(found.settings, found.file, time.time() if found.file else None)
        except InvalidSettings as error:
            try:
                without = read(environment, without_file=True)
            except InvalidSettings:
                raise error from None  # with the file's faults, too
            loaded = Loaded(without.settings, path, None, error.faults)
        live = cls(loaded, path=path, environment=environment)
        live._stamp = stamp
        return live

    def use_token(self, token: str) -> None:
        """Let clients over HTTP send this token, which no source sets."""
        settings = self._loaded.settings
        http = settings.http.model_copy(update={"token": token})
        self._loaded = replace(self._loaded, settings=settings.model_copy(update={"http": http}))

    def tell(self, log: Log) -> None:
        """Log changes and faults from now on, and those of the start."""
        self._log = log
        self._tell_faults(self._loaded.faults)

    @property
    def current(self) -> Loaded:
        """The state in force, after a look at the file."""
        if self._path is not None and self._lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._lock.release()
        return self._loaded

    def reload(self) -> Loaded:
        """Read the file now."""
        with self._lock:
            self._settled, self._stamp = False, _stamp(self._path)
            self._read()
        return self._loaded

    def _look(self) -> None:
        stamp = _stamp(self._path)
        if stamp == self._stamp and (self._settled or time.monotonic() - self._read_at < _AGAIN_SECONDS):
            return
        if not _is_being_written(stamp, self._loaded.file):
            self._stamp, self._settled = stamp, stamp is None or time.time_ns() - stamp[0] > _YOUNG_NS
            self._read()

    def _read(self) -> None:
        """Read the file and put it to use if it can be; what can't change in a running process stays."""
        old, self._read_at = self._loaded, time.monotonic()
        try:
            found = read(self._environment)
            if old.file is not None and found.file is None:
                raise InvalidSettings((Fault(str(self._path), "", "none", "the file that was read before"),))
        except InvalidSettings as error:
            self._keep(old, error.faults)
            return
        self._put_to_use(old, found)

    def _put_to_use(self, old: Loaded, found: Found) -> None:
        """Change to other settings, and tell how they differ; what can't change in a running process stays."""
        before, self._found = self._found, found.settings
        changed = [key for key in keys().values() if _differ(found.settings, before, key)]
        if not changed and not old.faults and found.file == old.file:
            return
        restart = tuple(
            key.name for key in keys().values() if key.restart and _differ(found.settings, self._first, key)
        )
        staying = {name: getattr(old.settings, name) for name in _STAYING}
        settings = found.settings.model_copy(update=staying)
        self._loaded = Loaded(settings, found.file, time.time() if found.file else None, (), restart)
        for key in changed:
            self._say(_change(key, before, found.settings))
        if old.faults:
            self._say({"event": "config.mended", "file": str(self._path)})

    def _keep(self, old: Loaded, faults: tuple[Fault, ...]) -> None:
        self._loaded = replace(old, faults=faults)
        if faults != old.faults:
            self._tell_faults(faults)

    def _tell_faults(self, faults: tuple[Fault, ...]) -> None:
        for fault in faults:
            said = {"key": fault.key, "value": fault.value, "expected": fault.expected}
            self._say({"event": "config.invalid", "level": "error", "file": fault.origin, **said})

    def _say(self, record: Mapping[str, Any]) -> None:
        if self._log is not None:
            self._log(record)


def _differ(one: Settings, other: Settings, key: Key) -> bool:
    return bool(value_of(one, key.name) != value_of(other, key.name))


def _change(key: Key, old: Settings, new: Settings) -> dict[str, Any]:
    """Return the log record of a change."""
    before, after = (_SECRET if key.secret else plain(value_of(settings, key.name)) for settings in (old, new))
    needs = {"needs_restart": True} if key.restart else {}
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"event": "config.changed", "key": key.name, "old": before, "new": after, "at": at, **needs}


def _stamp(path: Path | None) -> _Stamp:
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)


def _is_being_written(stamp: _Stamp, file: Path | None) -> bool:
    """Whether the file in use was emptied a moment ago: editors do that before they write."""
    return file is not None and stamp is not None and stamp[1] == 0 and time.time_ns() - stamp[0] < _YOUNG_NS
