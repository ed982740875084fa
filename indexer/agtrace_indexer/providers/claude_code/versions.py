"""Versions of Claude Code: the meaning of some things depends on them."""

from __future__ import annotations

from functools import lru_cache

from agtrace_schema.patterns import later

_VERSION = later(r"([0-9]{1,6})\.([0-9]{1,6})\.([0-9]{1,6})")


@lru_cache(maxsize=256)
def is_older(version: str | None, than: tuple[int, int, int]) -> bool:
    """Whether a version is older than another; an unknown one isn't."""
    found = _VERSION.match(version) if version else None
    return found is not None and tuple(map(int, found.groups())) < than
