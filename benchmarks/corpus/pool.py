"""Text that every machine with this project has: sources and documentation of Python and its packages."""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_SUFFIXES = (".py", ".pyi", ".rst", ".md", ".txt", ".c", ".h", ".pyx", ".js", ".css", ".html", ".toml")
_SKIPPED = {"__pycache__", "site-packages", "dist-packages"}
_SMALLEST, _LARGEST = 400, 120_000
_LIMIT = 100_000_000


def source_files() -> list[Path]:
    """Return the usable files in a stable order: distinct contents, 400 bytes to 120 KB each, 100 MB in total."""
    chosen: list[Path] = []
    seen: set[bytes] = set()
    total = 0
    for path in _candidates():
        content = path.read_bytes()
        digest = hashlib.blake2b(content, digest_size=16).digest()
        if digest not in seen and _is_text(content):
            seen.add(digest)
            chosen.append(path)
            total += len(content)
        if total > _LIMIT:
            break
    return chosen


def _candidates() -> Iterator[Path]:
    places = sysconfig.get_paths()
    for root in dict.fromkeys([places["stdlib"], places["purelib"]]):
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED)
            for name in sorted(names):
                path = Path(folder, name)
                if name.endswith(_SUFFIXES) and _SMALLEST <= path.stat().st_size <= _LARGEST:
                    yield path


def _is_text(content: bytes) -> bool:
    try:
        return "\x00" not in content.decode()
    except UnicodeDecodeError:
        return False
