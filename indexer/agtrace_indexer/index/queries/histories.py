"""The data for judging the health of a session: its events, texts and payloads, files, tokens and sub-agents."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.index.catalog import open_database
from agtrace_indexer.index.opening import Busy, write_lock
from agtrace_indexer.index.queries.base import COUNTED, as_json, pairs, rows, tuples, value, values
from agtrace_indexer.texts.blocks import BlockText

_EVENTS = f"""
SELECT e.event_index, e.type, e.ts, e.turn_index, e.step_index, n.text, e.outcome, e.link, e.duration_ms
FROM event e LEFT JOIN name n ON n.id = e.name_id
WHERE e.session_id = ? AND {COUNTED} ORDER BY e.event_index
"""

_TEXTS = """
SELECT b.first_index, d.ends, d.text FROM block b JOIN block_data d ON d.block_id = b.id
WHERE b.session_id = ? ORDER BY b.first_index
"""

_TOUCHED = """
SELECT t.event_index, t.access, p.text FROM touched t JOIN path p ON p.id = t.path_id WHERE t.session_id = ?
ORDER BY t.event_index, p.text
"""

_USAGES = """
SELECT event_index, model, input_tokens, cache_creation_5m_tokens, cache_creation_1h_tokens, cache_read_tokens,
  output_tokens, context_window
FROM token_usage WHERE session_id = ?
"""

_REQUESTS = "SELECT request_event FROM turn WHERE session_id = ? AND request_event IS NOT NULL"

_AGENTS = """
SELECT started_by, uid FROM session WHERE parent_session = ? AND started_by IS NOT NULL AND kind = 'subagent'
"""

_BELOW = """
WITH RECURSIVE below (id) AS (
  SELECT id FROM session WHERE parent_session = :id AND kind = 'subagent'
  UNION SELECT s.id FROM below b JOIN session s ON s.parent_session = b.id AND s.kind = 'subagent')
SELECT id FROM below WHERE id != :id
"""

_CARRIED_OUT = """
EXISTS (SELECT 1 FROM session o WHERE o.started_at BETWEEN s.ended_at - 2000 AND s.ended_at + 15000
  AND o.id != s.id AND coalesce(o.cwd, '') = coalesce(s.cwd, '') AND o.snippet LIKE 'Implement the following plan%')
"""
"""Claude Code writes an approved plan as refused where the human has the context cleared: a new session has it."""

_STATES = f"""
SELECT s.id, json_array(s.uid, s.turn_count, s.event_count, s.copied_events, s.failed_calls, s.total_tokens, s.cwd,
  (SELECT e.id FROM event e WHERE e.session_id = s.id ORDER BY e.event_index DESC LIMIT 1),
  (SELECT json_array(count(*), max(a.id), sum(a.started_by)) FROM session a WHERE a.parent_session = s.id),
  {_CARRIED_OUT}) AS state
FROM session s WHERE s.id IN (SELECT value FROM json_each(:sessions))
"""
"""Everything in the index that a session's history is read from, as a text that changes with it."""

_KEPT = f"""
SELECT now.id, now.state, h.found FROM ({_STATES}) now
LEFT JOIN health h ON h.session_id = now.id AND h.state = now.state AND h.rules = :rules
"""

_KEEP = f"INSERT OR REPLACE INTO health SELECT id, state, :rules, :found FROM ({_STATES}) now WHERE state = :state"

_COUNTS = f"""
SELECT type, outcome, count(*) FROM event e WHERE e.session_id = ? AND {COUNTED} GROUP BY type, outcome
ORDER BY type, outcome IS NOT NULL, outcome
"""


class PastEvent(NamedTuple):
    """An event that counts in its session, without its text."""

    event_index: int
    type: int
    """A position in `codes.EVENT_TYPE_CODES`."""
    ts: int
    """Milliseconds since 1970 UTC; 0 is unknown."""
    turn: int | None
    step: int | None
    name: str | None
    """The tool, or the kind of a user text or notification."""
    outcome: int | None
    """A position in `codes.OUTCOME_CODES`."""
    link: int | None
    """For a call: the event of its result; for a result: the event of its call."""
    duration_ms: int | None


def is_carried_out(connection: sqlite3.Connection, session_row: int) -> bool:
    """Return whether another session began to carry out a plan, in the same folder, as this one ended."""
    return bool(value(connection, f"SELECT {_CARRIED_OUT} FROM session s WHERE s.id = ?", (session_row,)))


def events(connection: sqlite3.Connection, session_row: int) -> list[PastEvent]:
    """Return the events of a session in file order, without copies and superseded ones."""
    return list(rows(connection, PastEvent, _EVENTS, (session_row,)))


def payloads(connection: sqlite3.Connection, session_row: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each event with the stored rest of its payload, in file order, one block in memory at a time."""
    for first, block in texts(connection, session_row):
        for event_index, rest in enumerate(block.payloads(), first):
            yield event_index, rest or {}


def texts(connection: sqlite3.Connection, session_row: int) -> Iterator[tuple[int, BlockText]]:
    """Yield the texts of a session, block by block, each with the index of its first event."""
    return rows(connection, lambda first, ends, text: (first, BlockText.of(ends, text)), _TEXTS, (session_row,))


def touched(connection: sqlite3.Connection, session_row: int) -> Iterator[tuple[int, str, str]]:
    """Yield (call event, `read` or `write`, path) for the files that the calls of a session name, in file order."""
    return tuples(connection, _TOUCHED, (session_row,))


def token_figures(connection: sqlite3.Connection, session_row: int) -> dict[int, list[Any]]:
    """Return event -> the token figures of a response in it: its model, input, what was written to the cache for five
    minutes and for an hour, what was read from it, output, context window; None is unknown.
    """
    return {event: figures for event, *figures in tuples(connection, _USAGES, (session_row,))}


def requests(connection: sqlite3.Connection, session_row: int) -> set[int]:
    """Return the events that open the turns of a session."""
    return set(values(connection, _REQUESTS, (session_row,)))


def agents(connection: sqlite3.Connection, session_row: int) -> dict[int, str]:
    """Return call event -> id of the sub-agent that it started."""
    return pairs(connection, _AGENTS, (session_row,))


def sub_agents(connection: sqlite3.Connection, session_row: int) -> list[int]:
    """Return the row ids of all sub-agents below a session; a cycle in damaged logs ends where it began."""
    return values(connection, _BELOW, {"id": session_row})


def counts(connection: sqlite3.Connection, session_row: int) -> Iterator[tuple[int, int | None, int]]:
    """Yield (type, outcome, number) of a session's events, with positions in `EVENT_TYPE_CODES`, `OUTCOME_CODES`."""
    return tuples(connection, _COUNTS, (session_row,))


class KeptHealth(NamedTuple):
    """What the index keeps of the health of a session."""

    state: str
    """Of the session, as the connection sees it."""
    found: bytes | None
    """What the rules found in this state; None if nothing is kept of it."""


def kept_health(connection: sqlite3.Connection, rules: str, sessions: Iterable[int]) -> dict[int, KeptHealth]:
    """Return what is kept of the health of sessions, by row id; `rules` is a name of the rules that found it."""
    given = {"rules": rules, "sessions": as_json(sessions)}
    return {id: KeptHealth(*kept) for id, *kept in tuples(connection, _KEPT, given)}


def keep_health(database: Path, rules: str, found: Mapping[int, tuple[str, bytes]]) -> None:
    """Keep what the rules found in sessions, each with the state that it was found in.

    What has changed since is left out. If the index can't be written, or another process writes it, nothing is kept.
    """
    with suppress(Busy, OSError, sqlite3.Error), write_lock(database), closing(open_database(database)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for id, (state, packed) in found.items():
            given = {"rules": rules, "state": state, "found": packed, "sessions": as_json([id])}
            connection.execute(_KEEP, given)
        connection.execute("COMMIT")
