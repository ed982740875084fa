"""The token for clients of the HTTP transport if the user sets none: generated once, kept in the data folder."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from agtrace.problems import SettingError
from agtrace.settings import is_token

_LONGEST = 1_000


def load_token(path: Path) -> str:
    """Read the token; generate it first if there is none.

    Raises `SettingError` if it can't be written or read, or if somebody else could have read or written it.
    """
    try:
        if not os.path.lexists(path):
            _make(path)
        if not stat.S_ISREG(path.lstat().st_mode):
            raise SettingError(f"{path} is not a regular file; remove it, and a new token is generated")
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if os.name != "nt" and (status.st_mode & 0o077 or status.st_uid != os.geteuid()):
                raise SettingError(f"{path} may be accessible to other users; remove it, and a new token is generated")
            token = file.read(_LONGEST).decode("ascii", "replace").strip()
        if not is_token(token):
            raise SettingError(f"{path} doesn't hold a token; remove it, and a new one is generated")
        return token
    except OSError as error:
        raise SettingError(
            f"can't keep a token in {path}: {error.strerror or error}; set AGTRACE_HTTP_TOKEN or AGTRACE_DATA_DIR"
        ) from None


def _make(path: Path) -> None:
    """Put a new token in place atomically, but never over one that another process put there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}.") as fresh:  # readable by its owner only
        fresh.write(f"{secrets.token_urlsafe()}\n")
        fresh.flush()
        with suppress(FileExistsError):
            os.link(fresh.name, path)
