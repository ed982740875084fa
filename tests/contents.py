"""The logical content of an index: what it says, without ids, blocks and times of indexing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import orjson
from agtrace_indexer.blocks import BlockText, unpack

_SESSIONS = """
SELECT s.uid, s.own_id, s.thread, s.provider, s.parent_id, s.kind, s.agent_type, s.cwd, s.branch, s.version, s.model,
  s.title, s.snippet, s.started_at, s.ended_at, s.event_count, s.turn_count, s.tool_calls, s.failed_calls,
  s.input_tokens, s.output_tokens, s.total_tokens, s.incomplete_usage, p.hash, f.path, f.gone
FROM session s JOIN file f ON f.id = s.file_id LEFT JOIN project p ON p.id = s.project_id ORDER BY f.path, s.thread
"""

_EVENTS = """
SELECT s.uid, e.event_index, e.type, e.ts, e.turn_index, e.step_index, n.text, e.outcome, e.link, e.line, e.offset,
  e.length, r.event_index
FROM event e JOIN session s ON s.id = e.session_id LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN event r ON r.id = e.superseded_by ORDER BY s.uid, e.event_index
"""

_FILES = """
SELECT path, status, reason, provider, gone, size, read_to, lines, records, unreadable_lines, pending_bytes FROM file
ORDER BY path
"""


def contents(database: Path) -> dict[str, Any]:
    """Everything an answer could be made of, comparable between two indexes of the same logs."""
    connection = sqlite3.connect(database)
    try:
        return {
            "sessions": connection.execute(_SESSIONS).fetchall(),
            "events": connection.execute(_EVENTS).fetchall(),
            "texts": list(texts(connection)),
            "turns": [
                (row[0], *row[2:])
                for row in connection.execute(
                    "SELECT s.uid, t.* FROM turn t JOIN session s ON s.id = t.session_id ORDER BY s.uid, t.turn_index"
                )
            ],
            "usage": [
                (row[0], *row[2:])
                for row in connection.execute(
                    "SELECT s.uid, u.* FROM token_usage u JOIN session s ON s.id = u.session_id "
                    "ORDER BY s.uid, u.event_index"
                )
            ],
            "files": connection.execute(_FILES).fetchall(),
            "record_types": connection.execute(
                "SELECT f.path, t.status, t.type, t.count, t.first_line FROM record_type t "
                "JOIN file f ON f.id = t.file_id ORDER BY 1, 2, 3"
            ).fetchall(),
        }
    finally:
        connection.close()


def texts(connection: sqlite3.Connection) -> Any:
    """(session, event_index, searchable text, rest of the payload) of every event: the plain scan."""
    rows = connection.execute(
        "SELECT s.uid, b.first_index, d.ends, d.text, d.payload FROM block b "
        "JOIN block_data d ON d.block_id = b.id JOIN session s ON s.id = b.session_id ORDER BY s.uid, b.first_index"
    )
    for uid, first, ends, text, payload in rows:
        block = BlockText.of(ends, text)
        rests = orjson.loads(unpack(payload))
        for number in range(len(block.ends)):
            yield uid, first + number, block.text(number), rests[number]
