"""The size of the context window, which no line of Claude Code's tells, from its automatic compactions.

A model that can have a million tokens may be run with 200,000 (indexer/README.md), under the same name.
"""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.json_values import count, fields

_WINDOWS = (200_000, 1_000_000)
_NEAR_THE_END = 0.75
"""The part of a window that is full when Claude Code compacts by itself, at least: it keeps room for an answer."""


def note_window(compaction: Any, state: LogState) -> None:
    """Remember the window that an automatic compaction shows, and the model that had it."""
    facts = fields(compaction)
    held = count(facts.get("preTokens")) or 0
    shown = (window for window in _WINDOWS if window * _NEAR_THE_END <= held <= window)
    if facts.get("trigger") == "auto" and (window := next(shown, None)):
        state.memory["window"] = [state.sessions[""].model, window]


def window_of(model: str | None, held: int, state: LogState) -> int | None:
    """Return the window of a response that was given `held` tokens, if a compaction before it showed one."""
    noted, window = state.memory.get("window", (None, 0))
    return window if model == noted and held <= window else None
