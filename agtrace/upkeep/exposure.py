"""Files and folders of the index that other users of the machine could read or replace."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

_OURS = ("index.", "cursor.key", "http.token", "forgotten", "redaction.", "telemetry.", "outputs")
"""Beginnings of our files' names: the folder may hold other files."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PASS = stat.S_IXGRP | stat.S_IXOTH


def exposure(folder: Path) -> list[str]:
    """Return what a data folder lets other users do, as sentences with the command that stops it; empty if nothing.

    Only the owner has access to what agtrace creates. Others can have it if the folder existed before, or if files
    were copied into it. Always empty on Windows, whose files have no modes.
    """
    if os.name == "nt" or not folder.is_dir():
        return []
    status = folder.stat()
    told = []
    if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != os.getgid()):
        told.append(f"other users can put files into {folder}: set AGTRACE_DATA_DIR to a folder of your own")
    if status.st_mode & _PASS:
        told += [
            f"other users can read {path.name}: chmod {'700' if path.is_dir() else '600'} {shlex.quote(str(path))}"
            for path in sorted(folder.iterdir())
            if path.name.startswith(_OURS) and _is_open(path)
        ]
    return told


def _is_open(path: Path) -> bool:
    status = path.lstat()
    ours = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return ours and bool(status.st_mode & _OTHERS)
