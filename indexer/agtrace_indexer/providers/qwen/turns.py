"""Turns, and the rewinds that drop them.

A rewind names, as its parent, the line after which the conversation goes on: that before one of the user's requests
(`rewindRecording`). This request and all later ones are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

from agtrace_schema.events import User

from agtrace_indexer.events.assembly import REQUESTS
from agtrace_indexer.events.drafts import Draft, LogState, Record, Rollback, Said
from agtrace_indexer.events.strings import identifier

_TURNS_REMEMBERED = 256


def note_turns(said: Iterable[Said], record: Record, state: LogState) -> None:
    """Remember the line before a request, if this is one."""
    for draft in said:
        if isinstance(draft, Draft) and isinstance(draft.payload, User) and draft.payload.kind in REQUESTS:
            before: list[str | None] = state.memory.setdefault("before", [])
            before.append(identifier(record.get("parentUuid")))
            del before[:-_TURNS_REMEMBERED]


def rolled_back(record: Record, state: LogState) -> list[Said]:
    """Return what a rewind drops: nothing if it goes back into the middle of a turn, or to one long forgotten."""
    before: list[str | None] = state.memory.get("before", [])
    parent = identifier(record.get("parentUuid"))
    if parent not in before:
        return []
    dropped = before[before.index(parent) :]
    del before[before.index(parent) :]
    return [Rollback(len(dropped))]
