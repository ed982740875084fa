"""The logical content of an index, without ids, blocks and times of indexing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from agtrace_indexer.texts.blocks import BlockText

_SESSIONS = """
SELECT s.uid, s.own_id, s.thread, s.provider, s.parent_id, s.kind, s.agent_type, s.cwd, s.branch, s.version, s.model,
  s.title, s.snippet, s.started_at, s.ended_at, s.event_count, s.turn_count, s.tool_calls, s.failed_calls,
  s.input_tokens, s.output_tokens, s.total_tokens, s.incomplete_usage, s.responses, s.active_ms, s.description,
  s.title_rank, s.own_title, s.replayed_to, s.clustered_to,
  s.continues, s.started_call, s.copied_events, s.copied_turns, s.copied_tool_calls,
  s.copied_failed_calls, s.copied_responses, s.copied_tokens, iif(f.gone, 0, s.pending),
  parent.path, o.thread, s.started_by, p.hash, f.path, f.gone
FROM session s JOIN file f ON f.id = s.file_id LEFT JOIN project p ON p.id = s.project_id
LEFT JOIN session o ON o.id = s.parent_session LEFT JOIN file parent ON parent.id = o.file_id
WHERE {where} ORDER BY f.path, s.thread
"""

_EVENTS = """
SELECT s.uid, e.event_index, e.type, e.ts, e.turn_index, e.step_index, n.text, e.outcome, e.link, e.line, e.offset,
  e.length, r.event_index, e.identity, e.duration_ms, e.own, g.text, e.copy_of IS NULL, o.event_index, owner.path
FROM event e JOIN session s ON s.id = e.session_id LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN name g ON g.id = e.program_id
LEFT JOIN event r ON r.id = abs(e.superseded_by) LEFT JOIN event o ON o.id = e.copy_of
LEFT JOIN session os ON os.id = o.session_id LEFT JOIN file owner ON owner.id = os.file_id
WHERE {where} ORDER BY s.uid, e.event_index
"""

_BESIDE = {
    "turns": "turn t",
    "usage": "token_usage t",
    "models": "model_usage t",
    "requests": "request t",
    "agents": "agent_start t",
    "namings": "naming t",
    "touched": "touched t JOIN path ON path.id = t.path_id",
    "landmarks": "landmark t",
    "clues": "clue t",
    "secrets": "(SELECT session_id, event_index, number, kind, tier FROM secret) t",
}
"""The tables with rows of a session, apart from its events."""

_REPOSITORIES = """
SELECT r.name, r.remote, r.made, p.hash FROM repository r JOIN repository_folder f ON f.repository_id = r.id
JOIN project p ON p.id = f.project_id ORDER BY p.hash
"""
"""They follow from all logs together, so they are compared only if all are."""

_FILES = """
SELECT path, status, reason, provider, gone, size, read_to, lines, records, unreadable_lines, pending_bytes FROM file
WHERE {files} ORDER BY path
"""


def contents(database: Path, *, gone: bool | None = None, path: str | None = None) -> dict[str, Any]:
    """Return everything that an answer could be made of, comparable between two indexes of the same logs.

    `gone` selects the rows of logs that still exist (False), or of those that don't (True); `path` those of
    one log.
    """
    files = "1" if gone is None else f"gone = {int(gone)}"
    if path is not None:
        files += " AND path = '{}'".format(path.replace("'", "''"))
    where = f"s.file_id IN (SELECT id FROM file WHERE {files})"
    connection = sqlite3.connect(database, isolation_level=None, timeout=300)
    connection.execute("BEGIN")
    try:
        return {
            "sessions": connection.execute(_SESSIONS.format(where=where)).fetchall(),
            "events": connection.execute(_EVENTS.format(where=where)).fetchall(),
            "texts": list(texts(connection, where)),
            **{name: _rows(connection, table, where) for name, table in _BESIDE.items()},
            "repositories": connection.execute(_REPOSITORIES).fetchall() if gone is None and path is None else [],
            "files": connection.execute(_FILES.format(files=files)).fetchall(),
            "record_types": connection.execute(
                "SELECT f.path, t.status, t.type, t.count, t.first_line FROM record_type t "
                f"JOIN file f ON f.id = t.file_id WHERE {files} ORDER BY 1, 2, 3"
            ).fetchall(),
        }
    finally:
        connection.close()


def _rows(connection: sqlite3.Connection, table: str, where: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table in a fixed order, with the session's visible id."""
    cursor = connection.execute(
        f"SELECT s.uid, t.*, {'path.text' if 'path' in table else 'NULL'} FROM {table} "
        f"JOIN session s ON s.id = t.session_id WHERE {where}"
    )
    left_out = {n for n, column in enumerate(cursor.description) if column[0] in ("session_id", "path_id")}
    return sorted((tuple(v for n, v in enumerate(row) if n not in left_out) for row in cursor), key=repr)


def texts(connection: sqlite3.Connection, where: str = "1") -> Any:
    """Yield (session, event_index, searchable text, rest of the payload) of every event: the plain scan."""
    rows = connection.execute(
        "SELECT s.uid, b.first_index, d.ends, d.text FROM block b "
        "JOIN block_data d ON d.block_id = b.id JOIN session s ON s.id = b.session_id "
        f"WHERE {where} ORDER BY s.uid, b.first_index"
    )
    for uid, first, ends, text in rows:
        block = BlockText.of(ends, text)
        rests = block.payloads()
        for number in range(len(block.ends)):
            yield uid, first + number, block.text(number), rests[number]
