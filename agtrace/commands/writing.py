"""Writing a file that quotes logs: whole or not at all, and readable by its owner only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from agtrace.commands.errors import USAGE, fail


def write(path: Path, pieces: Iterable[str], *, replace: bool) -> Path:
    """Write a file, and return its resolved path; an existing file is an error unless it may be replaced."""
    from agtrace.serving.interruption import together

    target = path.expanduser().resolve()
    try:
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8") as file:  # a device or a pipe must not be replaced by a file
                file.writelines(pieces)
        else:
            with together:
                _put(target, pieces, replace=replace)
    except FileExistsError:
        fail(f"{path} exists: use --force to replace it", USAGE)
    except OSError as error:
        fail(f"can't write {path}: {error.strerror or error}", USAGE)
    return target


def _put(target: Path, pieces: Iterable[str], *, replace: bool) -> None:
    handle, written = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(pieces)
        if replace:
            Path(written).replace(target)
        else:
            os.link(written, target)  # fails if there is such a file, even one that appeared just now
    finally:
        Path(written).unlink(missing_ok=True)
