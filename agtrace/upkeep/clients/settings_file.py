"""Reading a client's settings file, and replacing it whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agtrace.upkeep.clients.refusal import Refused, refused_at

MOST_BYTES = 8_000_000
"""More than any settings have; a larger file is refused."""


class SettingsFile(Struct, frozen=True):
    """A settings file as it was read."""

    path: Path
    """Where it is, as its client names it: maybe a link."""
    content: bytes | None
    """Its bytes; None if it doesn't exist."""

    @property
    def text(self) -> str:
        """Its text, empty if it doesn't exist. Raises `Refused` if it isn't UTF-8."""
        content = self.content or b""
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            before = content[: error.start].decode()
            raise refused_at(before, len(before), "this isn't UTF-8") from error


def read(path: Path) -> SettingsFile:
    """Read a settings file. Raises `Refused` if it isn't a file, or can't be read."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Refused("it isn't a file")
        if status.st_size > MOST_BYTES:
            raise Refused(f"it has more than {MOST_BYTES:,} bytes")
        return SettingsFile(path, path.read_bytes())
    except FileNotFoundError:
        return SettingsFile(path, None)
    except OSError as error:
        raise Refused(f"it can't be read: {error.strerror or error}") from error


def replace(file: SettingsFile, text: str) -> None:
    """Put a text in the place of the one that was read, with the same permissions; a link stays a link.

    A new file is its owner's alone. Raises `Refused` if the file changed since it was read, or can't be written.
    """
    try:
        target = file.path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, target, text)
    except OSError as error:
        raise Refused(f"it can't be written: {error.strerror or error}") from error


def _replace(file: SettingsFile, target: Path, text: str) -> None:
    handle, written = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(text.encode())
            new.flush()
            os.fsync(new.fileno())
        if file.content is not None:
            _like(target, Path(written))
        if read(file.path).content != file.content:
            raise Refused("it was changed by another program meanwhile: run the command again")
        Path(written).replace(target)
    finally:
        Path(written).unlink(missing_ok=True)


def _like(target: Path, written: Path) -> None:
    """Give a new file the permissions of the one that it replaces, and its owner where that is allowed."""
    status = target.stat()
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(written, status.st_uid, status.st_gid)
    written.chmod(stat.S_IMODE(status.st_mode))
