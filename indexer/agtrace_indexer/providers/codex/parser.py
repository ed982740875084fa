"""OpenAI Codex: rollout files of three eras (indexer/README.md).

A: one JSON object {session, items}. B: bare JSON lines, no envelope. C: lines {timestamp, type, payload}.
All three use the same tables: `record_types` names the reader of every type.

The rules: Codex writes what is said twice, and the first of the two is the event (`doubles`). Tool calls and results
are read from response items, and from events only if no item has them (`tool_events`). Codex has no error flag: the
outcome is read from what the harness wrote (`tool_outputs`). Responses have no id: a step is a run of items up to a
tool output, a token count or a user's text (`steps`). The tokens of a request are the growth of the session's total
(`tokens`). A fork or sub-agent may begin with a replay of its parent (`replay`), which is recognised item by item
(`identities`). An execution may continue after its result (`background`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import milliseconds, text
from agtrace_indexer.providers.codex.handlers import unknown_record
from agtrace_indexer.providers.codex.identities import identity_of
from agtrace_indexer.providers.codex.record_types import ITEMS, LINES, item_kind, response_item
from agtrace_indexer.providers.codex.replay import is_clustered, is_replayed
from agtrace_indexer.providers.codex.sessions import session_meta
from agtrace_indexer.providers.notes import skip
from agtrace_indexer.providers.provider import Rewrite

as_patch: Rewrite = None

_LINE_TYPES = {"session_meta", "response_item", "event_msg", "turn_context"}
_META_KEYS = {"id", "timestamp", "instructions", "git"}


def recognizes(record: Record) -> bool:
    """Whether only Codex writes such a record: an enveloped line, a bare log's first line or its state line.

    Bare response items don't count, as they are OpenAI's general format.
    """
    kind, payload = text(record.get("type")), record.get("payload")
    if isinstance(payload, dict):
        return kind in _LINE_TYPES and bool(payload)
    if kind is None and record.get("record_type") == "state":
        return True
    return _is_bare_meta(record) and "instructions" in record and "timestamp" in record


def unroll(document: Any) -> Iterable[Record] | None:
    """Return the session line and the items of a TypeScript CLI rollout `{session, items}` (2025-04 to 06)."""
    if not isinstance(document, dict):
        return None
    session, entries = document.get("session"), document.get("items")
    if not isinstance(session, dict) or not isinstance(entries, list) or not text(session.get("id")):
        return None
    return [session, *(entry for entry in entries if isinstance(entry, dict))]


def begin(path: PurePath) -> LogState:
    """Return an empty state: the first line of a rollout says more than its name."""
    return LogState()


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next record, enveloped or bare; see `Parser.drafts`."""
    state.memory["n"] = state.memory.get("n", 0) + 1
    at = _time(record)
    replayed = is_replayed(record, state, at)
    clustered = is_clustered(state)
    found = _read(record, state, at)
    for said in found:
        if isinstance(said, Draft):
            said.identity = identity_of(said.payload)
            said.replayed, said.clustered = replayed, clustered
    return found


def _time(record: Record) -> int | None:
    """Return the time of a line; odd published logs have it inside. A meta's own time is that of its session."""
    at, payload = milliseconds(record.get("timestamp")), record.get("payload")
    if at is None and isinstance(payload, dict) and record.get("type") != "session_meta":
        return milliseconds(payload.get("timestamp"))
    return at


def _read(record: Record, state: LogState, at: int | None) -> Sequence[Said]:
    kind, payload = text(record.get("type")), record.get("payload")
    if isinstance(payload, dict):
        handler = LINES.get(kind) if kind else None
        return handler(payload, state, at) if handler else unknown_record(kind or "untyped", record, state, at)
    if kind is None and record.get("record_type") == "state":
        return skip("state", state)
    if _is_bare_meta(record):
        return session_meta(record, state, at)
    if item_kind(record) in ITEMS:
        return response_item(record, state, at)
    return unknown_record(kind or "untyped", record, state, at)


def _is_bare_meta(record: Record) -> bool:
    """Whether this is the first line of a bare log: {id, timestamp, instructions, git} and no type."""
    return text(record.get("id")) is not None and {"id"} < record.keys() <= _META_KEYS
