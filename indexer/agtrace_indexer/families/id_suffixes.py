"""Sessions that share one id: all but one of them get a visible suffix."""

from __future__ import annotations

import sqlite3

_RENUMBER_TWINS = """
SELECT s.id, s.uid, s.own_id,
  row_number() OVER (PARTITION BY s.own_id ORDER BY f.gone, s.started_at IS NULL, s.started_at, f.path, s.thread) AS n
FROM session s JOIN file f ON f.id = s.file_id
WHERE s.own_id IN (SELECT own_id FROM session GROUP BY own_id HAVING count(*) > 1)
   OR s.uid != s.own_id
"""


def tell_apart(connection: sqlite3.Connection) -> None:
    """Give sessions that share one id their suffixes: the log that is still there and oldest has none."""
    twins = connection.execute(_RENUMBER_TWINS).fetchall()
    wanted = [(own if n == 1 else f"{own}~{n}", i, uid) for i, uid, own, n in twins]
    changed = [(uid, i) for uid, i, before in wanted if uid != before]
    parked = [(str(i).encode(), i) for _, i in changed]  # bytes: never equal to an id of a log
    connection.executemany("UPDATE session SET uid = ? WHERE id = ?", parked)
    connection.executemany("UPDATE session SET uid = ? WHERE id = ?", changed)
