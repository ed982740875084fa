"""Messages that come again: what changed in them becomes events, what is gone is taken back.

Rows are rewritten in place (a call from pending to completed, a text while it grows) and deleted (`/undo`). Drafts
therefore have their message and their part as their key, and the state has a short hash of each, so that only those
that changed are returned again. In state and keys, ids are digests: half the length, and nothing like a token, for
which ids would have to be searched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from agtrace_indexer.events.drafts import Draft, LogState, Retraction, Said
from agtrace_indexer.events.json_values import digest

Parts: TypeAlias = dict[str, Draft]
"""The drafts of one message by the name of their part, in reading order."""

_OF_MESSAGE, _OF_PART, _OF_CONTENT = 12, 8, 12
"""Hexadecimal digits: enough to tell apart the messages of a session, the parts of a message, versions of a part."""


def known_as(message: str) -> str:
    """Return what a message is called in states and keys."""
    return digest(message)[:_OF_MESSAGE]


def print_of(*told: object) -> int:
    """Return a short hash of what is known of something, to notice a change."""
    return int(digest(repr(told))[:_OF_CONTENT], 16)


def _live(state: LogState) -> dict[str, dict[str, int]]:
    live: dict[str, dict[str, int]] = state.memory.setdefault("messages", {})
    return live


def replace(message: str, parts: Parts, state: LogState) -> list[Said]:
    """Return the differences between a version of a message and the one before."""
    live, known = _live(state), known_as(message)
    old = live.get(known, {})
    named = {digest(name)[:_OF_PART]: draft for name, draft in parts.items()}
    new = {name: print_of(draft.payload, draft.timestamp) for name, draft in named.items()}
    live[known] = new
    said = _retraction(f"{known}/{name}" for name in old if name not in new)
    for name, draft in named.items():
        if old.get(name) != new[name]:
            draft.key = f"{known}/{name}"
            said.append(draft)
    return said


def forget(messages: Iterable[str], state: LogState) -> list[Said]:
    """Take back everything that deleted messages said, given what they are called in states."""
    live = _live(state)
    return _retraction(f"{known}/{name}" for known in messages for name in live.pop(known, {}))


def _retraction(keys: Iterable[str]) -> list[Said]:
    gone = [*keys]
    return [Retraction(gone)] if gone else []
