"""Texts that are kept for a day under an id, so that what an answer left out can still be read.

A text is a file of its own in a private folder, compressed; texts older than a day go, and the oldest of too many.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from uuid import uuid4

import zstandard
from agtrace_schema.patterns import later
from msgspec import Struct

REFERENCE = "ax://exec/"
"""The beginning of a reference to a kept text; its id follows."""
KEPT_SECONDS = 24 * 3600
MOST_BYTES = 268_435_456
"""The most bytes of all texts together, as they are on disk."""

_ID = later(r"[0-9a-f]{16}")
_SUFFIX = ".zst"


class KeptText(Struct, frozen=True):
    """A text that was kept."""

    text: str
    first_line: int
    """The number of its first line where it comes from."""


class KeptTexts:
    """The texts in a folder. Safe to use from several threads and processes: each text is written once, atomically."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, text: str, first_line: int = 1) -> str | None:
        """Keep a text, already without secrets; return its id, or None if it can't be written.

        `first_line` is the number of its first line where it comes from.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept = []
            for path in self._folder.iterdir():
                with suppress(OSError):
                    found = path.stat()
                    kept.append((found.st_mtime, found.st_size, path))
            left, oldest = MOST_BYTES, time.time() - KEPT_SECONDS
            for at, size, path in sorted(kept, reverse=True):
                left -= size
                if at < oldest or left < 0:
                    with suppress(OSError):
                        path.unlink()
            id = uuid4().hex[:16]
            with NamedTemporaryFile(dir=self._folder, prefix=".") as fresh:  # readable by its owner only
                fresh.write(zstandard.ZstdCompressor(level=3).compress(f"{first_line}\n{text}".encode()))
                fresh.flush()
                os.link(fresh.name, self._path(id))
        except OSError:
            return None
        return id

    def read(self, id: str) -> KeptText | None:
        """Return a text; None if there is none under this id any more."""
        if not _ID.fullmatch(id):
            return None
        path = self._path(id)
        try:
            if path.stat().st_mtime < time.time() - KEPT_SECONDS:
                return None
            number, _, text = zstandard.ZstdDecompressor().decompress(path.read_bytes()).decode().partition("\n")
            return KeptText(text, int(number))
        except (OSError, zstandard.ZstdError, ValueError):
            return None

    def _path(self, id: str) -> Path:
        return self._folder / f"{id}{_SUFFIX}"
