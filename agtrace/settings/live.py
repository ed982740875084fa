"""Settings of a running server, which follow their file.

Before each request the file is looked at; SIGHUP makes a server read it at once. A file that can't be used changes
nothing: the old values stay, and its faults are told until it is mended.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from agtrace.settings import load
from agtrace.settings.environment import anything_set, command_line, config_file

if TYPE_CHECKING:
    from agtrace.settings.model import Settings
    from agtrace.settings.sources import Fault

_BEING_WRITTEN_SECONDS = 1
"""Editors empty a file before they write it: one that was emptied so recently is left alone."""

Log = Callable[[Mapping[str, Any]], None]


class Loaded(NamedTuple):
    """Settings, and what is to be told about where they come from."""

    settings: Settings
    file: Path | None = None
    at: float | None = None
    """When the file was read, in seconds since 1970 UTC; None without one that is in use."""
    faults: tuple[Fault, ...] = ()
    """What isn't used: of the file as it is now, or of variables."""
    unknown: tuple[Fault, ...] = ()
    """Keys that set nothing."""
    restart: tuple[str, ...] = ()
    """The keys that changed but are put to use only by a restart."""


class Live:
    """The settings in force. Safe to use from several threads: each gets one of the states, never a mixture."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Follow the configuration file of an environment; nothing is read before it is needed."""
        self._environment = environment
        self._lock = threading.RLock()
        self._loaded: Loaded | None = None
        self._log: Log | None = None
        self._path: Path | None = None
        """The file that is followed."""
        self._content: bytes | None = None
        """What the file held when it was read; None if it couldn't be."""

    @classmethod
    def fixed(cls, settings: Settings) -> Live:
        """Return settings that stay as they are."""
        live = cls()
        live._loaded = Loaded(settings)
        return live

    @classmethod
    def start(cls, environment: Mapping[str, str] | None = None) -> Live:
        """Return the settings of a process. What can't be used of a file or of variables is left out, and that is told.

        Raises `SettingError` for what the command line sets. If it sets nothing, nothing is loaded yet.
        """
        live = cls(environment)
        if command_line():
            live._first_loaded()
        return live

    def use_token(self, token: str) -> None:
        """Let clients over HTTP send this token, which no source sets."""
        old = self._first_loaded()
        from msgspec.structs import replace

        http = replace(old.settings.http, token=token)
        self._loaded = old._replace(settings=replace(old.settings, http=http))

    def tell(self, log: Log) -> None:
        """Log changes and faults from now on, and those of the start."""
        self._log = log
        self._tell_faults(self._first_loaded())

    def follow_signal(self) -> None:
        """Read the file again whenever this process gets SIGHUP, as operators expect; on Windows there is none."""
        hang_up = getattr(signal, "SIGHUP", None)
        if hang_up is None:
            return

        def reload(number: int, frame: FrameType | None) -> None:
            threading.Thread(
                target=self.reload, name="reload", daemon=True
            ).start()  # a handler mustn't wait for a lock

        signal.signal(hang_up, reload)

    @property
    def current(self) -> Loaded:
        """The state in force, after a look at the file."""
        loaded = self._first_loaded()
        if self._path is not None and self._lock.acquire(blocking=False):
            try:
                if _content(self._path) != self._content and not _is_being_written(self._path):
                    self._read(loaded)
            finally:
                self._lock.release()
        return self._loaded or loaded

    def reload(self) -> None:
        """Read the file now."""
        with self._lock:
            loaded = self._first_loaded()
            if self._path is not None:
                self._read(loaded)

    def _first_loaded(self) -> Loaded:
        if self._loaded is None:
            with self._lock:
                self._loaded = self._loaded or self._at_first()
        return self._loaded

    def _at_first(self) -> Loaded:
        loaded = self._found()
        refused = [fault for fault in loaded.faults if fault.origin.startswith("--")]
        if refused:
            from agtrace.settings.sources import InvalidSettings

            raise InvalidSettings(refused)
        self._first = self._last = loaded.settings
        """What the sources said at first, and what they said last."""
        return loaded

    def _found(self) -> Loaded:
        """Return what the sources say now."""
        self._path, _ = config_file(self._environment)
        self._content = _content(self._path)
        if not anything_set(self._environment):
            return Loaded(load(self._environment))
        from agtrace.settings.sources import read

        found = read(self._environment)
        at = time.time() if found.file and not self._of_file(found.faults) else None
        return Loaded(found.settings, found.file, at, found.faults, found.unknown)

    def _of_file(self, faults: tuple[Fault, ...]) -> bool:
        return any(fault.origin == str(self._path) for fault in faults)

    def _read(self, old: Loaded) -> None:
        from agtrace.settings.sources import Fault

        new = self._found()
        faults = new.faults
        if old.file is not None and new.file is None:
            faults = (Fault(str(self._path), "", "can't be read: the file is gone"), *faults)
        if not self._of_file(faults):
            self._put_to_use(old, new)
        elif faults != old.faults:
            self._loaded = old._replace(faults=faults)
            self._tell_faults(self._loaded)

    def _put_to_use(self, old: Loaded, new: Loaded) -> None:
        """Change to other settings, and tell how they differ; what can't change in a running process stays."""
        from msgspec.structs import replace

        from agtrace.settings.model import RESTART, changes

        changed = list(changes(self._last, new.settings))
        restart = tuple(one.key for one in changes(self._first, new.settings) if one.needs_restart)
        self._last = new.settings
        staying = {name: getattr(old.settings, name) for name in RESTART}
        self._loaded = new._replace(settings=replace(new.settings, **staying), restart=restart)
        for one in changed:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            needs = {"needs_restart": True} if one.needs_restart else {}
            self._say({"event": "config.changed", "key": one.key, "old": one.old, "new": one.new, "at": at, **needs})
        if new.unknown != old.unknown:
            self._tell_faults(new._replace(faults=()))
        if self._of_file(old.faults):
            self._say({"event": "config.mended", "file": str(self._path)})

    def _tell_faults(self, loaded: Loaded) -> None:
        if not (loaded.faults or loaded.unknown):
            return
        from agtrace.settings.sources import MOST_TOLD

        def tell(event: str, level: str, faults: tuple[Fault, ...]) -> None:
            for fault in faults[:MOST_TOLD]:
                rest = {name: text for name, text in fault._asdict().items() if name != "origin"}
                self._say({"event": event, "level": level, "file": fault.origin, **rest})

        tell("config.invalid", "error", loaded.faults)
        if len(loaded.faults) > MOST_TOLD:
            self._say({"event": "config.invalid", "level": "error", "more_faults": len(loaded.faults) - MOST_TOLD})
        tell("config.unknown", "warning", loaded.unknown)

    def _say(self, record: Mapping[str, Any]) -> None:
        if self._log is not None:
            self._log(record)


def _content(path: Path) -> bytes | None:
    from agtrace.settings.sources import LARGEST

    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError:
        return None


def _is_being_written(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return found.st_size == 0 and time.time() - found.st_mtime < _BEING_WRITTEN_SECONDS
