"""Whether the index holds everything that the logs hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Freshness:
    """Whether the index holds everything that the logs hold; None is unknown."""

    state: Literal["ready", "catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed at the moment; what is answered is what was indexed before."""
