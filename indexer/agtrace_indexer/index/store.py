"""Writing the index: transactions, files and sessions; `session_buffer` gathers the events of a session.

All rows of a batch and the new position in the file are committed together: a crash repeats work but never
skips any.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import count
from typing import Any

import orjson
from agtrace_schema.patterns import later

from agtrace_indexer.events.assembly import Thread
from agtrace_indexer.events.drafts import SessionFacts
from agtrace_indexer.events.identity import line_identity
from agtrace_indexer.events.strings import masked, masked_json, plain_id
from agtrace_indexer.index import ranking
from agtrace_indexer.index.maintenance import note_scrub
from agtrace_indexer.index.opening import Wal
from agtrace_indexer.index.references import COLUMNS, delete_session
from agtrace_indexer.index.session_buffer import Interning, SessionBuffer
from agtrace_indexer.index.sums import sum_session
from agtrace_indexer.index.tombstones import hidden
from agtrace_indexer.logs.discovery import REPEATS, REPLACED
from agtrace_indexer.redact import suspicious
from agtrace_indexer.texts.blocks import pack, unpack

_BEGIN_LOG = """
INSERT INTO file (path, status, stamp, size) VALUES (?, 'log', '', 0)
ON CONFLICT (path) DO UPDATE SET status = 'log', stamp = '' RETURNING id
"""
_SAVED = [name for name in COLUMNS["file"] if name != "id"]
_SAVE_FILE = f"""
INSERT INTO file ({", ".join(_SAVED)}) VALUES ({", ".join(f":{name}" for name in _SAVED)})
ON CONFLICT (path) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _SAVED)} RETURNING id
"""


class Store:
    """The index, open for writing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._buffers: dict[int, SessionBuffer] = {}
        self._interning, self._wal = Interning(connection), Wal(connection)
        self._to_sum: set[int] = set()
        """Sessions of logs that have been read to the end: no session is summed up while it is still being read."""

    # -- transactions ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Open a write transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        self._ranks = ranking.prepared(self.connection)

    def commit(self) -> None:
        """Write everything gathered and end the transaction."""
        self.flush()
        self.connection.execute("COMMIT")
        self._buffers.clear()
        self._wal.empty_if_large()

    # -- files -------------------------------------------------------------------------------------

    def state(self, file_id: int) -> dict[str, Any] | None:
        """Return the parser's stored state for a file."""
        found = self.connection.execute("SELECT state FROM file_state WHERE file_id = ?", (file_id,)).fetchone()
        return None if found is None else orjson.loads(unpack(found[0]))

    def begin_log(self, path: str) -> int:
        """Return the row of a log that is about to be read: until it is saved, it has neither columns nor a stamp."""
        return int(self.connection.execute(_BEGIN_LOG, (path,)).fetchone()[0])

    def save_file(self, path: str, columns: dict[str, Any], state: dict[str, Any] | None) -> int:
        """Insert or update the row of a file, with the state of its parser if it is a log; return its id."""
        (file_id,) = self.connection.execute(_SAVE_FILE, {"path": path, **columns}).fetchone()
        if state is None:
            self.connection.execute("DELETE FROM file_state WHERE file_id = ?", (file_id,))
        else:
            packed = pack(orjson.dumps(_masked_where_due(state)))
            self.connection.execute("INSERT OR REPLACE INTO file_state VALUES (?, ?)", (file_id, packed))
        return int(file_id)

    def move_file(self, file_id: int, path: str) -> None:
        """Move the row of a file to a new path, replacing any row there that has no sessions."""
        self.connection.execute(
            "DELETE FROM file WHERE path = ? AND NOT EXISTS (SELECT 1 FROM session WHERE file_id = file.id)", (path,)
        )
        self.show(path)
        self.connection.execute("UPDATE file SET path = ?, gone = 0 WHERE id = ?", (path, file_id))
        self.rejoin(file_id)

    def rejoin(self, file_id: int) -> None:
        """Have the sessions of a log that came back compared with all others again."""
        again = "UPDATE session SET pending = 2, compared_to = min(compared_to, 0) WHERE file_id = ?"
        self.connection.execute(again, (file_id,))

    def archive_generation(self, file_id: int, path: str, first: int = 1) -> int:
        """Keep the sessions of a log that was replaced by another one, under a path with a number, and return that."""
        self.flush()
        number = next(n for n in count(first) if not self._has_file(REPLACED.format(path, n)))
        self.connection.execute(
            "UPDATE file SET path = ?, gone = 1 WHERE id = ?", (REPLACED.format(path, number), file_id)
        )
        return number

    def log_at(self, path: str, stamp: str) -> int | None:
        """Return the row of a log with this stamp; None if there is none."""
        query = "SELECT id FROM file WHERE path = ? AND stamp = ? AND status = 'log'"
        found = self.connection.execute(query, (path, stamp)).fetchone()
        return None if found is None else int(found[0])

    def note_trouble(self, file_id: int, path: str, stamp: str, reason: str) -> None:
        """Record why a log that is there can't be read at the moment; what was read of it stays.

        A row that isn't at the path any more is the one of an earlier log, which stays gone.
        """
        values = (stamp, reason, file_id, path)
        self.connection.execute("UPDATE file SET stamp = ?, reason = ?, gone = 0 WHERE id = ? AND path = ?", values)

    def forget_contents(self, file_id: int) -> None:
        """Delete everything read from a file, so that it can be read again into the same row."""
        self._leave_family(file_id)
        self.connection.execute(
            "UPDATE session SET compared_to = min(compared_to, 0) WHERE id IN (SELECT k.other_id FROM kin k "
            "JOIN session s ON s.id = k.session_id WHERE s.file_id = ?)",
            (file_id,),
        )  # two sessions that each shared events with these may share some with each other
        sessions = [row[0] for row in self.connection.execute("SELECT id FROM session WHERE file_id = ?", (file_id,))]
        for session_id in sessions:
            self._buffers.pop(session_id, None)
            self._to_sum.discard(session_id)
            delete_session(self.connection, session_id)
        self.connection.execute("DELETE FROM record_type WHERE file_id = ?", (file_id,))

    def hide(self, path: str, stamp: str) -> None:
        """Remember the file of a forgotten log by a digest of its path, in place of everything read from it."""
        for (file_id,) in self.connection.execute("SELECT id FROM file WHERE path = ?", (path,)).fetchall():
            query = "SELECT EXISTS (SELECT 1 FROM session WHERE file_id = ?)"
            (was_read,) = self.connection.execute(query, (file_id,)).fetchone()
            self.forget_contents(file_id)
            self.connection.execute("DELETE FROM file WHERE id = ?", (file_id,))
            note_scrub(self.connection, of_events=bool(was_read))
        self.connection.execute(
            "INSERT OR REPLACE INTO file (path, status, stamp, size) VALUES (?, 'forgotten', ?, 0)",
            (hidden(path), stamp),
        )

    def show(self, path: str) -> None:
        """Forget that a file belonged to a forgotten log."""
        self.connection.execute("DELETE FROM file WHERE path = ?", (hidden(path),))

    def hides(self, reason: str) -> bool:
        """Whether a file repeats a forgotten log, according to the reason why it isn't read (`discovery.REPEATS`)."""
        before, after = REPEATS.split("{}")
        return self._has_file(hidden(reason.removeprefix(before).removesuffix(after)))

    def drop(self, file_ids: Iterable[int], *, unread: bool) -> None:
        """Delete files with what was read of them, and those that couldn't be read again; no trace of it is left."""
        self.flush()
        query = "SELECT id FROM file WHERE stamp = '' AND status != 'forgotten'"
        for file_id in {*file_ids, *(id for (id,) in self.connection.execute(query) if unread)}:
            self.forget_contents(file_id)
            self.connection.execute("DELETE FROM file WHERE id = ?", (file_id,))
        note_scrub(self.connection)

    def mark_gone(self, file_ids: Iterable[int]) -> None:
        """Archive the rows of vanished logs; drop the rows of vanished files that weren't logs."""
        for file_id in file_ids:
            self.connection.execute("UPDATE file SET gone = 1 WHERE id = ? AND status = 'log'", (file_id,))
            self.connection.execute("DELETE FROM file WHERE id = ? AND status != 'log'", (file_id,))

    def _leave_family(self, file_id: int) -> None:
        """Have the families look again at everything related to the sessions of a file that is going."""
        self.connection.execute(
            "UPDATE session SET pending = 2 WHERE id IN (SELECT k.other_id FROM kin k JOIN session s "
            "ON s.id = k.session_id WHERE s.file_id = ?1) "
            "OR parent_session IN (SELECT id FROM session WHERE file_id = ?1) OR (title IS NOT own_title AND EXISTS "
            "(SELECT 1 FROM naming n JOIN session s ON s.id = n.session_id WHERE s.file_id = ?1))",
            (file_id,),
        )

    def count_record_types(self, file_id: int, counts: dict[tuple[str, str], list[int]]) -> None:
        """Add to the counts of record types: (status, type) -> [count, first line]."""
        self.connection.executemany(
            "INSERT INTO record_type VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
            [(file_id, status, kind, n, first) for (status, kind), (n, first) in counts.items()],
        )

    # -- sessions and events -----------------------------------------------------------------------

    def session(self, file_id: int, thread: str, provider: str) -> int:
        """Return the id of the session of a file's thread; insert a row if there is none."""
        found = self.connection.execute(
            "SELECT id FROM session WHERE file_id = ? AND thread = ?", (file_id, thread)
        ).fetchone()
        if found:
            return int(found[0])
        placeholder = f"{file_id}/{thread}".encode("utf-8", "replace")  # bytes: never equal to an id from a log
        inserted = self.connection.execute(
            "INSERT INTO session (file_id, thread, provider, uid, own_id, kind) VALUES (?, ?, ?, ?, ?, 'main')",
            (file_id, thread, provider, placeholder, placeholder),
        )
        return int(inserted.lastrowid or 0)

    def save_facts(
        self, session_id: int, facts: SessionFacts, own_id: str, thread: Thread, *, complete: bool = True
    ) -> None:
        """Write the log's facts about the session; sum it up if the log has been read to the end."""
        if complete:
            self._to_sum.add(session_id)
        columns = {
            "own_id": plain_id(own_id), "project_id": self._interning.project(facts.cwd, facts.project_hash),
            "parent_id": facts.parent_id and plain_id(facts.parent_id), "kind": facts.kind,
            "agent_type": facts.agent_type, "cwd": facts.cwd, "branch": facts.branch, "version": facts.version,
            "model": facts.model, "title": facts.title, "own_title": facts.title,
            "title_rank": facts.title_rank if facts.title else 0,
            "description": facts.description, "started_call": thread.started_by, "replayed_to": thread.replayed_to,
            "clustered_to": thread.clustered_to if facts.replays else None,
            "continues": facts.continues and line_identity(facts.continues),
        }  # fmt: skip
        changes = ", ".join(f"{name} = :{name}" for name in columns)
        self.connection.execute(
            f"UPDATE session SET {changes}, pending = CASE WHEN own_id = :own_id THEN max(pending, 1) ELSE 2 END, "
            "uid = CASE WHEN own_id = :own_id THEN uid WHEN EXISTS (SELECT 1 FROM session WHERE uid = :own_id) "
            "  THEN :own_id || '~new' || id ELSE :own_id END WHERE id = :id",
            {**columns, "id": session_id},
        )
        self.connection.execute("DELETE FROM naming WHERE session_id = ?", (session_id,))
        self.connection.executemany(
            "INSERT OR REPLACE INTO naming VALUES (?, ?, ?)",
            [(session_id, line_identity(line), title) for line, title in facts.namings.items()],
        )

    def rows(self, session_id: int, next_index: int) -> SessionBuffer:
        """Return what is gathered of a session, which continues at this event."""
        rows = self._buffers.get(session_id)
        if rows is None:
            rows = SessionBuffer.reopened(self.connection, self._interning, session_id, next_index)
            self._buffers[session_id] = rows
        return rows

    def set_origin_length(self, session_ids: Iterable[int], length: int) -> None:
        """Record the length of the document that contains all events of these sessions."""
        self.connection.executemany(
            "UPDATE event SET length = ? WHERE session_id = ?", [(length, i) for i in session_ids]
        )

    @property
    def named_relatively(self) -> bool:
        """Whether calls named files by paths that other folders may have, too."""
        return self._interning.relative

    def flush(self) -> None:
        """Write everything gathered into the open transaction."""
        ranked = [event for buffer in self._buffers.values() for event in buffer.write()]
        if ranked and self._ranks:
            ranking.add(self.connection, ranked)
        for session_id in sorted(self._to_sum):
            sum_session(self.connection, session_id)
        self._to_sum.clear()

    # -- inside ------------------------------------------------------------------------------------

    def _has_file(self, path: str) -> bool:
        return self.connection.execute("SELECT 1 FROM file WHERE path = ?", (path,)).fetchone() is not None


def _masked_where_due(value: Any) -> Any:
    """Mask the strings of a JSON value; a part of it in which nothing is suspicious is only looked at as a whole."""
    if not isinstance(value, (dict, list)) or not value:
        return masked_json(value)
    apart = _KEY_ENDS.sub('"\n', orjson.dumps(value).decode())  # one field's name mustn't say anything about another
    if not suspicious(apart):
        return value
    if isinstance(value, list):
        return [_masked_where_due(item) for item in value]
    return {masked(key): _masked_where_due(item) for key, item in value.items()}


_KEY_ENDS = later(r'(?<!\\)":')
