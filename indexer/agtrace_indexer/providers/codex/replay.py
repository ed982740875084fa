"""The replayed history at the beginning of a fork's or a sub-agent's log, and its end.

Such a log may begin with its parent's records, written again. The log itself shows how far they go; the first of
three signs that is available decides:

1. The number of a line (`ordinal`): `subagent_history_start_ordinal` of the first meta is the session's first own.
2. The time in a turn's id, a UUIDv7 (from 0.105): a turn that is older than the session is the parent's, and so is
   what follows it, up to a turn that isn't older. For other kinds of ids, `task_started` has `started_at`.
3. The time of a line, as long as neither of these is known, and only if the beginning names another log as its
   origin (`forked_from_id`, or a second meta with another id right after the first): lines written within a second
   of the first line, or claiming to be older, were written by the fork. A meta alone is no sign of a replay.

The first record that is the session's own ends the replay for good.
"""

from __future__ import annotations

import re
from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.events.json_values import count, fields, first_text, milliseconds
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.codex.steps import leave_steps

_CLUSTER_MS = 1000
_UUID7 = later(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_TURN_STARTS = ("task_started", "turn_started")


def open_head(meta: Record, state: LogState, at: int | None) -> None:
    """Note when the session began, and that it may begin with a replay if another session started it."""
    facts, forked = state.sessions[""], identifier(meta.get("forked_from_id"))
    born = _uuid_time(meta.get("id")) or milliseconds(meta.get("timestamp")) or at
    state.memory["birth"] = {"born": born, "logged": at, "start": count(meta.get("subagent_history_start_ordinal"))}
    if facts.kind != "main":
        _suspect(state, told=forked not in (None, facts.id))


def note_second_meta(state: LogState) -> None:
    """Note that another session's meta follows right after the first: its history was copied."""
    _suspect(state, told=True)


def _suspect(state: LogState, *, told: bool) -> None:
    state.memory["replay"] = {**state.memory["birth"], "older": False, "clustered": False, "seen": False}
    state.sessions[""].replays = told


def is_replaying(state: LogState) -> bool:
    """Whether the current record is the parent's: its directory or name isn't the session's."""
    head = state.memory.get("replay", {})
    return bool(head.get("older") or head.get("clustered"))


def is_clustered(state: LogState) -> bool:
    """Whether only its time shows that the current record is the parent's."""
    return bool(state.memory.get("replay", {}).get("clustered"))


def is_replayed(record: Record, state: LogState, at: int | None) -> bool:
    """Whether the next record, according to the log, is part of the replay; the session's first own record ends it."""
    head, facts = state.memory.get("replay"), state.sessions[""]
    if head is None:
        return False
    own = _tells_own(record, head)
    if own is not None:
        facts.replays = facts.replays and own and head["seen"]
    if own:
        _close_head(state)
        return False
    head["older"] = head["older"] or own is False
    head["clustered"] = facts.replays and _is_clustered(record, head, at)
    head["seen"] = head["seen"] or head["clustered"]
    return bool(head["older"])


def _close_head(state: LogState) -> None:
    """Begin the session's own part: nothing in it doubles or continues what was replayed."""
    del state.memory["replay"]
    state.memory.pop("waiting", None)
    leave_steps(state)


def _tells_own(record: Record, head: dict[str, Any]) -> bool | None:
    """Whether the record shows that it is the session's own, or that it isn't; None if it shows neither."""
    number = count(record.get("ordinal"))
    if head["start"] is not None and number is not None:
        return number >= int(head["start"])
    payload, born = fields(record.get("payload")), head["born"]
    carried = fields(payload.get("internal_chat_message_metadata_passthrough"))
    made = _uuid_time(first_text(payload.get("turn_id"), carried.get("turn_id")))
    if made is None and payload.get("type") in _TURN_STARTS and (seconds := count(payload.get("started_at"))):
        made = seconds * 1000 + 999
    return None if made is None or born is None else made >= born


def _is_clustered(record: Record, head: dict[str, Any], at: int | None) -> bool:
    """Whether a line has the time at which the log began, like everything that a fork writes at once."""
    if record.get("type") == "session_meta":
        return False
    return at is not None and head["logged"] is not None and at < head["logged"] + _CLUSTER_MS


def _uuid_time(value: Any) -> int | None:
    """Return the milliseconds since 1970 UTC in a UUIDv7; None for anything else."""
    found = _UUID7.fullmatch(value) if isinstance(value, str) else None
    return int(found[1] + found[2], 16) if found else None
