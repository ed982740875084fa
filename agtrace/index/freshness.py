"""Whether the index holds everything in the logs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Freshness(Struct, frozen=True):
    """How far the index is behind the logs; None means unknown."""

    state: Literal["ready", "catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed at the moment, so that answers come from what was indexed before."""
