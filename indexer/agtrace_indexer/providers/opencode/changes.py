"""Messages that come again: what changed in them becomes events, what is gone is taken back.

Rows are rewritten in place (a call from pending to completed, a text while it grows) and deleted (`/undo`). Drafts
therefore have `<message id>/<part>` as their key, and the state has a short hash of each, so that only those that
changed are returned again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from agtrace_indexer.events.drafts import Draft, LogState, Retraction, Said
from agtrace_indexer.events.json_values import digest

Parts: TypeAlias = dict[str, Draft]
"""The drafts of one message by the name of their part, in reading order."""

_HASH = 10
"""Hexadecimal digits: enough to notice that one part changed."""


def _live(state: LogState) -> dict[str, dict[str, str]]:
    live: dict[str, dict[str, str]] = state.memory.setdefault("messages", {})
    return live


def replace(message: str, parts: Parts, state: LogState) -> list[Said]:
    """Return the differences between a version of a message and the one before."""
    live = _live(state)
    old = live.get(message, {})
    new = {name: digest(f"{draft.payload!r}{draft.timestamp}")[:_HASH] for name, draft in parts.items()}
    live[message] = new
    said = _retraction(f"{message}/{name}" for name in old if name not in new)
    for name, draft in parts.items():
        if old.get(name) != new[name]:
            draft.key = f"{message}/{name}"
            said.append(draft)
    return said


def forget(messages: Iterable[str], state: LogState) -> list[Said]:
    """Take back everything that deleted messages said."""
    live = _live(state)
    return _retraction(f"{message}/{name}" for message in messages for name in live.pop(message, {}))


def _retraction(keys: Iterable[str]) -> list[Said]:
    gone = [*keys]
    return [Retraction(gone)] if gone else []
