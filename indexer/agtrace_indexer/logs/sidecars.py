"""Logs with a file next to them that describes their session, and that changes later than they do.

The stamp of such a log begins with that of its sidecar: a change of either is a change of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from agtrace_indexer.logs.discovery import Found, found_at

Endings: TypeAlias = Sequence[tuple[str, str]]
"""How the path of a log ends, and how that of its sidecar ends in place of it."""


def described(found: list[Found], endings: Endings) -> list[Found]:
    """Return the files, with the stamps of sidecars in those of their logs."""
    stamps: dict[str, str] = {}
    for log, itself in reversed(endings):  # of two sidecars of a log the first ending counts
        stamps |= {file.path.removesuffix(itself) + log: file.stamp for file in found if file.path.endswith(itself)}
    return [_with(file, stamps[file.path]) if file.path in stamps else file for file in found] if stamps else found


def described_at(path: str, root: str, endings: Endings) -> Found | None:
    """Return a regular file below a root, as `described` returns it; None if there is none, or not exactly that."""
    file = found_at(path, root)
    if file is None:
        return None
    beside = (found_at(other, root) for other in _beside(path, endings))
    return _described(file, endings, {other.path: other.stamp for other in beside if other is not None})


def is_sidecar(path: str, endings: Endings) -> bool:
    """Whether a file may describe a log, judging by its name."""
    return path.endswith(tuple(itself for _, itself in endings))


def _described(file: Found, endings: Endings, stamps: dict[str, str]) -> Found:
    beside = next((stamps[path] for path in _beside(file.path, endings) if path in stamps), None)
    return file if beside is None else _with(file, beside)


def _with(file: Found, sidecar: str) -> Found:
    return replace(file, stamp=f"{sidecar}+{file.stamp}")


def _beside(path: str, endings: Endings) -> list[str]:
    """Return the paths of the sidecars that a log may have."""
    return [path.removesuffix(log) + itself for log, itself in endings if path.endswith(log)]
