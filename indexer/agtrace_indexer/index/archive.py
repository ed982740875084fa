"""Filling newer tables for vanished logs from their stored events, as the logs can't be read again."""

from __future__ import annotations

import sqlite3

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.events.assembly import REQUESTS
from agtrace_indexer.index.session_buffer import snippet
from agtrace_indexer.index.sums import sum_session, sum_turns
from agtrace_indexer.texts.blocks import BlockText

_ARCHIVED = "SELECT s.id FROM session s JOIN file f ON f.id = s.file_id WHERE f.gone ORDER BY s.id"

# The requests of a session, each with the block that contains its text.
_REQUESTS = f"""
SELECT e.event_index, b.id AS block, b.first_index FROM event e JOIN name n ON n.id = e.name_id
JOIN block b ON b.session_id = e.session_id AND e.event_index >= b.first_index
  AND e.event_index < b.first_index + b.event_count
WHERE e.session_id = ? AND e.type = {TYPE_CODE[EventType.USER]}
  AND n.text IN ({", ".join(f"'{kind}'" for kind in sorted(REQUESTS))})
ORDER BY e.event_index
"""


def sum_up_archive(connection: sqlite3.Connection) -> None:
    """Collect the requests and compute the totals of sessions from vanished logs again."""
    for (session,) in connection.execute(_ARCHIVED).fetchall():
        _note_requests(connection, session)
        sum_turns(connection, session)
        sum_session(connection, session)


def _note_requests(connection: sqlite3.Connection, session: int) -> None:
    for event_index, block, first in connection.execute(_REQUESTS, (session,)).fetchall():
        ends, text = connection.execute("SELECT ends, text FROM block_data WHERE block_id = ?", (block,)).fetchone()
        said = BlockText.of(ends, text).text(event_index - first)
        connection.execute("INSERT OR IGNORE INTO request VALUES (?, ?, ?)", (session, event_index, snippet(said)))
