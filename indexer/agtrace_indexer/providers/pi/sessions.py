"""The session: what its first line says about it, and the entries that another log has as well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import milliseconds, text
from agtrace_indexer.events.strings import identifier

_SEPARATORS = later(r"[/\\]")
_NAME_RANK = 3
"""Above 2, the rank of a title from another log."""

_SINCE = "forked at"


def begin_session(record: Record, state: LogState) -> None:
    """Take the facts from the first line; those of a later one, in logs that were joined, are another session's."""
    facts = state.sessions[""]
    if facts.id is not None:
        return
    facts.id = identifier(record.get("id"))
    facts.cwd = facts.cwd or text(record.get("cwd"))
    note_name(record.get("title"), state)
    note_model(record, state)
    origin = text(record.get("parentSession"))
    if origin and facts.parent_id is None:
        facts.parent_id = session_named(origin)
        state.memory[_SINCE] = milliseconds(record.get("timestamp"))


def session_named(path: str) -> str | None:
    """Return the id of a session whose log is at a path, `<time>_<id>.jsonl` or `<id>.jsonl`; an id is itself."""
    name = _SEPARATORS.split(path)[-1].partition(".jsonl")[0]
    return identifier(name.rpartition("_")[2] if name[:4].isdigit() else name)


def note_place(record: Record, state: LogState) -> None:
    """Call a session a fork if its first entry is older than itself: it is then a copy of its parent's.

    An extension may also name a parent whose entries are not copied.
    """
    if _SINCE not in state.memory or record.get("type") == "session":
        return
    since, written = state.memory.pop(_SINCE), milliseconds(record.get("timestamp"))
    if since is not None and written is not None and written < since and state.sessions[""].kind == "main":
        state.sessions[""].kind = "fork"


def note_model(record: Record, state: LogState) -> None:
    """Take the model, which oh-my-pi writes with its provider (`anthropic/claude-opus-4-5`) when it changes."""
    named = text(record.get("modelId")) or text(record.get("model"))
    if named and record.get("type") == "model_change":
        named = named.partition("/")[2] or named if "modelId" not in record else named
    state.sessions[""].model = named or state.sessions[""].model


def note_name(name: Any, state: LogState) -> None:
    """Take the name that the user or the agent gave the session; an empty one takes it back."""
    if isinstance(name, str):
        facts = state.sessions[""]
        facts.title, facts.title_rank = (name, _NAME_RANK) if name.strip() else (None, 0)


def identify(said: Iterable[Draft], record: Record) -> None:
    """Give the events of an entry their identities: its id, unique in a log only, with its time and their place."""
    entry, written = identifier(record.get("id")), text(record.get("timestamp"))
    if entry is None or written is None:
        return
    for number, draft in enumerate(said):
        draft.identity = f"{entry}@{written}#{number}"
