"""Who else on the machine could read or replace the files of the index."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

_OURS = ("index.", "cursor.key", "http.token", "forgotten", "redaction.")
"""How the names of our files begin: the folder may hold others."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PASS = stat.S_IXGRP | stat.S_IXOTH


def exposure(folder: Path) -> list[str]:
    """What a data folder lets others do, as sentences with the command that ends it; nothing where it is closed.

    What agtrace makes is its owner's alone: others come in where the folder was there before, or where files were
    copied into it. Nothing is told of systems whose files have no modes.
    """
    if os.name == "nt" or not folder.is_dir():
        return []
    status = folder.stat()
    told = []
    if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != os.getgid()):
        told.append(f"others can put files into {folder}: set AGTRACE_DATA_DIR to a folder of your own")
    if status.st_mode & _PASS:
        told += [
            f"others can read {name}: chmod 600 {shlex.quote(str(folder / name))}"
            for name in sorted(os.listdir(folder))
            if name.startswith(_OURS) and _is_open(folder / name)
        ]
    return told


def _is_open(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & _OTHERS)
