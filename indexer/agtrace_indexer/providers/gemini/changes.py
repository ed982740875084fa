"""A log of changes: each record adds, replaces or retracts something.

A message whose id has occurred replaces the earlier version, `$set.messages` replaces the whole list, `$rewindTo`
drops its end. Drafts therefore have `<message id>/<part>` as their key, and the state has a short hash per key, so
that only changed parts are returned again (`chatRecordingService.ts` of gemini-cli).

The tokens of a dropped message were spent, so its token usage stays. Only a rewritten document retracts it as well,
as reading that document for the first time wouldn't find it either.
"""

from __future__ import annotations

from agtrace_schema.events import Notification, Payload

from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction
from agtrace_indexer.events.json_values import digest
from agtrace_indexer.providers.gemini.documents import identified, is_made_up
from agtrace_indexer.providers.gemini.messages import FIGURES, Hashes, parts_of
from agtrace_indexer.providers.gemini.sessions import note_metadata


def _live(state: LogState) -> Hashes:
    live: Hashes = state.memory.setdefault("messages", {})
    return live


def replace(record: Record, state: LogState) -> list[Draft | Retraction]:
    """Read a message that is new or replaces its earlier version."""
    live = _live(state)
    changes = _fold(record, live, live, state)
    if not any(isinstance(change, Draft) for change in changes):
        state.skipped.append(str(record.get("type")))
    return changes


def patch(changed: Record, kind: str, state: LogState, *, rewritten: bool = False) -> list[Draft | Retraction]:
    """Read metadata; a list of messages in it replaces all messages."""
    note_metadata(changed, state)
    state.skipped.append(kind)
    if not isinstance(changed.get("messages"), list):
        return []
    before, after = _live(state), Hashes()
    messages = identified(changed["messages"])
    ids = {message["id"] for message in messages}
    dropped = {key: parts for key, parts in before.items() if key not in ids}
    said = _retraction(dropped if rewritten else _without_figures(dropped))
    state.memory["messages"] = after
    for message in messages:  # of two with the same id, the later one counts
        said += _fold(message, after if message["id"] in after else before, after, state)
    return said


def rewind(message_id: str, state: LogState) -> list[Draft | Retraction]:
    """Drop a message and all after it, or all messages if it is unknown (indexer/README.md)."""
    live = _live(state)
    ids = list(live)
    dropped = ids[ids.index(message_id) :] if message_id in live else ids
    gone = _retraction(_without_figures({key: live.pop(key) for key in dropped}))
    return [*gone, Draft(Notification("rewind", message_id), None)]


def _fold(record: Record, before: Hashes, after: Hashes, state: LogState) -> list[Draft | Retraction]:
    """Return the differences between this version of a message and the one before."""
    message_id = record["id"]
    parts = parts_of(record, after, state)
    old, new = before.get(message_id, {}), {part: _hash(draft.payload) for part, draft in parts.items()}
    after[message_id] = new
    gone = _retraction({message_id: {part: old[part] for part in old if part not in new}})
    changed = (part for part in parts if old.get(part) != new[part])
    return [*gone, *(_named(parts[part], message_id, part) for part in changed)]


def _named(draft: Draft, message_id: str, part: str) -> Draft:
    """Give a draft its key, which also identifies it in any other log with that message."""
    draft.key = _key(message_id, part)
    draft.identity = None if is_made_up(message_id) else draft.key
    return draft


def _retraction(dropped: Hashes) -> list[Draft | Retraction]:
    keys = [_key(message_id, part) for message_id, parts in dropped.items() for part in parts]
    return [Retraction(keys)] if keys else []


def _without_figures(dropped: Hashes) -> Hashes:
    return {
        message_id: {part: parts[part] for part in parts if part != FIGURES} for message_id, parts in dropped.items()
    }


def _key(message_id: str, part: str) -> str:
    return f"{message_id}/{part}"


def _hash(payload: Payload) -> str:
    return digest(repr(payload))
