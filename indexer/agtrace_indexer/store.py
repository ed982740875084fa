"""Writing the index: the only module that changes the database.

All rows of a batch and the new position in the file commit together: a crash repeats work, never
skips it. Rows of one session are gathered in memory and written by `executemany`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import orjson
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Outcome, TokenUsage, ToolCall, ToolResult, User

from agtrace_indexer.assemble import REQUESTS, Ending, Event, Supersession, Thread
from agtrace_indexer.blocks import OpenBlock, PackedBlock, pack, unpack
from agtrace_indexer.drafts import SessionFacts
from agtrace_indexer.identity import line_identity
from agtrace_indexer.paths import touched
from agtrace_indexer.projects import project_hash, project_root
from agtrace_indexer.redact import redact
from agtrace_indexer.sums import sum_session, sum_turns

_LONGEST_TYPE = 200
_LONGEST_ID = 150  # tools take 200 characters
SNIPPET = 200
"""Characters of the first human request that stand for a session or a turn."""

_CODEX_IDE_REQUEST = "## My request for Codex:"
"""Codex's IDE extensions put the open files before it, the typed text behind it (indexer/README.md)."""

_TYPE_CODE = {name: code for code, name in enumerate(EVENT_TYPE_CODES)}
_OUTCOME_CODE = {name: code for code, name in enumerate(OUTCOME_CODES)}

_INSERT_EVENT = """
INSERT INTO event (session_id, event_index, type, ts, turn_index, step_index, name_id, outcome, link,
  line, offset, length, identity, duration_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_INSERT_USAGE = """
INSERT INTO token_usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_OF_A_SESSION = (
    "block", "token_usage", "turn", "event", "request", "touched", "agent_start", "naming", "model_usage", "kin",
)  # fmt: skip
"""The tables with rows of a session, but for `session` itself."""


@dataclass(slots=True)
class SessionBuffer:
    """What is gathered of one session before it is written."""

    session_id: int
    block: OpenBlock
    block_row: int | None = None
    """The id of the stored block that `block` continues."""
    last_ts: int = 0
    untimed: bool = False
    """Whether events without a time wait for the first time of the log."""
    first_row: int = 0
    """The event_index of the first gathered row."""
    rows: list[list[Any]] = field(default_factory=list)
    usages: list[tuple[Any, ...]] = field(default_factory=list)
    superseded: list[Supersession] = field(default_factory=list)
    identities: set[int] = field(default_factory=set)
    """Of the gathered rows."""
    requests: list[tuple[int, int, str]] = field(default_factory=list)
    agents: list[tuple[str, int, int]] = field(default_factory=list)
    touched: list[tuple[int, int, int, str]] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    dropped: list[tuple[int, int]] = field(default_factory=list)
    """(turn, event_index of what dropped it)."""
    first_turn_touched: int | None = None

    @property
    def is_written(self) -> bool:
        """Whether nothing was gathered since the last time it was written."""
        return not (self.rows or self.superseded or self.endings or self.dropped)

    def touch(self, turn: int | None) -> None:
        """Note that the sums of this turn and those after it must be made again."""
        if turn is not None and (self.first_turn_touched is None or turn < self.first_turn_touched):
            self.first_turn_touched = turn


class Store:
    """The index, open for writing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._buffers: dict[int, SessionBuffer] = {}
        self._names: dict[str, int] = {}
        self._paths: dict[str, int] = {}
        self._to_sum: set[int] = set()
        """Sessions of logs that are read to their end: a session isn't summed up while it is still being read."""
        self._projects: dict[str, int] = {}

    # -- transactions ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Open a write transaction."""
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Write what is gathered and end the transaction."""
        self.flush()
        self.connection.execute("COMMIT")
        self._buffers.clear()

    # -- files -------------------------------------------------------------------------------------

    def state(self, file_id: int) -> dict[str, Any] | None:
        """What the parser remembered of a file."""
        (packed,) = self.connection.execute("SELECT state FROM file WHERE id = ?", (file_id,)).fetchone()
        return None if packed is None else orjson.loads(unpack(packed))

    def save_file(self, path: str, values: dict[str, Any], state: dict[str, Any] | None) -> int:
        """Insert or update the row of a file; give its id."""
        packed = None if state is None else pack(orjson.dumps(state))
        columns = {**values, "state": packed}
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
        return int(
            self.connection.execute(
                f"INSERT INTO file (path, {names}) VALUES (?, {marks}) "
                f"ON CONFLICT (path) DO UPDATE SET {changes} RETURNING id",
                (path, *columns.values()),
            ).fetchone()[0]
        )

    def move_file(self, file_id: int, path: str) -> None:
        """Let the row of a file follow it to a new path, in place of any row that stands there without sessions."""
        self.connection.execute(
            "DELETE FROM file WHERE path = ? AND NOT EXISTS (SELECT 1 FROM session WHERE file_id = file.id)", (path,)
        )
        self.connection.execute("UPDATE file SET path = ?, gone = 0 WHERE id = ?", (path, file_id))
        self.connection.execute("UPDATE session SET pending = 2, compared_to = 0 WHERE file_id = ?", (file_id,))

    def archive_generation(self, file_id: int, path: str) -> None:
        """Keep the sessions of a log that was replaced by another one, under a path that tells so."""
        self.flush()
        archived = next(name for n in count(1) if not self._has_file(name := f"{path}#replaced-{n}"))
        self.connection.execute("UPDATE file SET path = ?, gone = 1 WHERE id = ?", (archived, file_id))
        self._leave_family(file_id)

    def note_trouble(self, file_id: int, stamp: str, reason: str) -> None:
        """Say why a log can't be read at the moment; what was read of it stays."""
        self.connection.execute("UPDATE file SET stamp = ?, reason = ? WHERE id = ?", (stamp, reason, file_id))

    def forget_contents(self, file_id: int) -> None:
        """Delete what was read of a file, so that it can be read again into the same row."""
        self._leave_family(file_id)
        sessions = [row[0] for row in self.connection.execute("SELECT id FROM session WHERE file_id = ?", (file_id,))]
        for session_id in sessions:
            self._buffers.pop(session_id, None)
            self._to_sum.discard(session_id)
            self.connection.execute(
                "DELETE FROM block_data WHERE block_id IN (SELECT id FROM block WHERE session_id = ?)", (session_id,)
            )
            for table in _OF_A_SESSION:
                self.connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
            self.connection.execute("DELETE FROM kin WHERE other_id = ?", (session_id,))
        self.connection.execute("DELETE FROM session WHERE file_id = ?", (file_id,))
        self.connection.execute("DELETE FROM record_type WHERE file_id = ?", (file_id,))

    def mark_gone(self, file_ids: Iterable[int]) -> None:
        """Archive the rows of vanished logs; drop the rows of vanished files that held none."""
        for file_id in file_ids:
            self._leave_family(file_id)
            self.connection.execute("UPDATE file SET gone = 1 WHERE id = ? AND status = 'log'", (file_id,))
            self.connection.execute("DELETE FROM file WHERE id = ? AND status != 'log'", (file_id,))

    def _leave_family(self, file_id: int) -> None:
        """Let the families look again at whatever is related to the sessions of a file that goes."""
        self.connection.execute(
            "UPDATE session SET pending = 2 WHERE id IN (SELECT k.other_id FROM kin k JOIN session s "
            "ON s.id = k.session_id WHERE s.file_id = ?1) "
            "OR parent_session IN (SELECT id FROM session WHERE file_id = ?1)",
            (file_id,),
        )

    def count_record_types(self, file_id: int, counts: dict[tuple[str, str], list[int]]) -> None:
        """Add to the counts of record types: (status, type) -> [count, first line]."""
        self.connection.executemany(
            "INSERT INTO record_type VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
            [
                (file_id, status, redact(kind[:_LONGEST_TYPE]), n, first)
                for (status, kind), (n, first) in counts.items()
            ],
        )

    # -- sessions and events -----------------------------------------------------------------------

    def session(self, file_id: int, thread: str, provider: str) -> int:
        """The id of the session of a file's thread; a new row where there is none."""
        found = self.connection.execute(
            "SELECT id FROM session WHERE file_id = ? AND thread = ?", (file_id, thread)
        ).fetchone()
        if found:
            return int(found[0])
        placeholder = f"{file_id}/{thread}".encode("utf-8", "replace")  # bytes: never equal to an id of a log
        inserted = self.connection.execute(
            "INSERT INTO session (file_id, thread, provider, uid, own_id, kind) VALUES (?, ?, ?, ?, ?, 'main')",
            (file_id, thread, provider, placeholder, placeholder),
        )
        return int(inserted.lastrowid or 0)

    def save_facts(
        self, session_id: int, facts: SessionFacts, own_id: str, thread: Thread, *, complete: bool = True
    ) -> None:
        """Write what the log says about the session; sum it up if the log is read to its end."""
        if complete:
            self._to_sum.add(session_id)
        columns = {
            "own_id": _visible(own_id), "project_id": self._project(facts),
            "parent_id": facts.parent_id and _visible(facts.parent_id), "kind": facts.kind,
            "agent_type": facts.agent_type, "cwd": facts.cwd, "branch": facts.branch, "version": facts.version,
            "model": facts.model, "title": facts.title, "own_title": facts.title,
            "title_rank": facts.title_rank if facts.title else 0,
            "description": facts.description, "started_call": thread.started_by, "replayed_to": thread.replayed_to,
            "clustered_to": thread.clustered_to if facts.replays else None,
            "continues": facts.continues and line_identity(facts.continues),
        }  # fmt: skip
        changes = ", ".join(f"{name} = :{name}" for name in columns if name != "kind")
        self.connection.execute(
            f"UPDATE session SET {changes}, pending = max(pending, 1), "
            "kind = CASE WHEN kind = 'warmup' AND :kind = 'subagent' THEN kind ELSE :kind END, "
            "uid = CASE WHEN own_id = :own_id THEN uid WHEN EXISTS (SELECT 1 FROM session WHERE uid = :own_id) "
            "  THEN :own_id || '~new' || id ELSE :own_id END WHERE id = :id",
            {**columns, "id": session_id},
        )
        self.connection.execute("DELETE FROM naming WHERE session_id = ?", (session_id,))
        self.connection.executemany(
            "INSERT OR REPLACE INTO naming VALUES (?, ?, ?)",
            [(session_id, line_identity(line), redact(title)) for line, title in facts.namings.items()],
        )

    def has_identity(self, session_id: int, identity: int) -> bool:
        """Whether a session has an event of this identity already."""
        buffer = self._buffers.get(session_id)
        if buffer is not None and identity in buffer.identities:
            return True
        if buffer is not None and not buffer.first_row:
            return False
        return (
            self.connection.execute(
                "SELECT 1 FROM event WHERE identity = ? AND identity > 0 AND session_id = ?", (identity, session_id)
            ).fetchone()
            is not None
        )

    def add_event(
        self, session_id: int, event: Event, text: str, rest: dict[str, Any] | None, identity: int | None = None
    ) -> None:
        """Gather one event of a session with what is stored of its payload."""
        buffer = self._buffer(session_id, event.event_index)
        if event.timestamp is None:
            ts = buffer.last_ts
            buffer.untimed = buffer.untimed or not ts
        else:
            ts = buffer.last_ts = event.timestamp
        if buffer.block.full:
            self._write_block(buffer)
            buffer.block, buffer.block_row = OpenBlock.at(event.event_index), None
        buffer.block.add(text, rest, ts)
        buffer.rows.append(
            [
                session_id, event.event_index, _TYPE_CODE[event.type], ts, event.turn_index, event.step_index,
                self._name_id(event.name), None if event.outcome is None else _OUTCOME_CODE[event.outcome],
                event.link, event.line.number, event.line.offset, event.line.length, identity, event.duration_ms,
            ]
        )  # fmt: skip
        if identity is not None:
            buffer.identities.add(identity)
        buffer.touch(event.turn_index)
        self._add_what_is_asked_for(buffer, event, text)
        if event.link is not None:
            self._answer_call(buffer, event)

    def _add_what_is_asked_for(self, buffer: SessionBuffer, event: Event, text: str) -> None:
        """Gather the rows beside an event: what some questions would otherwise read every payload for."""
        place = (buffer.session_id, event.event_index)
        match event.payload:
            case TokenUsage():
                buffer.usages.append((*place, *_usage(event.payload)))
            case User(kind=kind) if kind in REQUESTS:
                buffer.requests.append((*place, snippet(text)))
            case ToolCall():
                buffer.touched += (
                    (*place, self._path_id(path), access) for path, access in touched(event.payload).items()
                )
            case ToolResult(agent_id=agent_id) if agent_id:
                buffer.agents.append((_visible(agent_id), *place))

    def end(self, session_id: int, next_index: int, ending: Ending) -> None:
        """Tell executions how they ended after all; `next_index` is where the session goes on."""
        self._buffer(session_id, next_index).endings.append(ending)

    def drop_turn(self, session_id: int, turn: int, *, by: int) -> None:
        """Mark the events of a turn as taken back, but for the token figures: those tokens were spent."""
        self._buffer(session_id, by + 1).dropped.append((turn, by))

    def set_origin_length(self, session_ids: Iterable[int], length: int) -> None:
        """Say how long the document is that all events of these sessions stand in."""
        self.connection.executemany(
            "UPDATE event SET length = ? WHERE session_id = ?", [(length, i) for i in session_ids]
        )

    def supersede(self, session_id: int, next_index: int, supersession: Supersession) -> None:
        """Mark an event of a session as replaced or taken back; `next_index` is where the session goes on."""
        self._buffer(session_id, next_index).superseded.append(supersession)

    def flush(self) -> None:
        """Write everything gathered into the open transaction."""
        for buffer in self._buffers.values():
            if buffer.is_written:
                continue
            self._write_rows(buffer)
            self._write_block(buffer)
            self._give_first_time(buffer)
            if buffer.first_turn_touched is not None:
                sum_turns(self.connection, buffer.session_id, buffer.first_turn_touched)
                buffer.first_turn_touched = None
        for session_id in sorted(self._to_sum):
            sum_session(self.connection, session_id)
        self._to_sum.clear()

    # -- inside ------------------------------------------------------------------------------------

    def _has_file(self, path: str) -> bool:
        return self.connection.execute("SELECT 1 FROM file WHERE path = ?", (path,)).fetchone() is not None

    def _buffer(self, session_id: int, next_index: int) -> SessionBuffer:
        buffer = self._buffers.get(session_id)
        if buffer is None:
            buffer = self._buffers[session_id] = self._reopen(session_id, next_index)
        return buffer

    def _reopen(self, session_id: int, next_index: int) -> SessionBuffer:
        buffer = SessionBuffer(session_id, OpenBlock.at(next_index), first_row=next_index)
        if next_index == 0:
            return buffer
        last = self.connection.execute(
            "SELECT ts FROM event WHERE session_id = ? ORDER BY event_index DESC LIMIT 1", (session_id,)
        ).fetchone()
        buffer.last_ts = last[0] if last else 0
        buffer.untimed = not buffer.last_ts
        found = self.connection.execute(
            "SELECT b.id, b.first_index, b.t0, b.t1, d.ends, d.text, d.payload FROM block b "
            "JOIN block_data d ON d.block_id = b.id WHERE b.session_id = ? ORDER BY b.first_index DESC LIMIT 1",
            (session_id,),
        ).fetchone()
        if found:
            row, first, t0, t1, *packed = found
            block = OpenBlock.reopened(first, PackedBlock(*packed), t0, t1)
            if not block.full:
                buffer.block, buffer.block_row = block, row
        return buffer

    def _write_rows(self, buffer: SessionBuffer) -> None:
        write = self.connection.executemany
        write(_INSERT_EVENT, buffer.rows)
        write(_INSERT_USAGE, buffer.usages)
        write("INSERT OR REPLACE INTO request VALUES (?, ?, ?)", buffer.requests)
        write("INSERT OR IGNORE INTO touched VALUES (?, ?, ?, ?)", buffer.touched)
        write("INSERT OR IGNORE INTO agent_start VALUES (?, ?, ?)", buffer.agents)
        write(
            "UPDATE event SET superseded_by = (SELECT id FROM event WHERE session_id = ?1 AND event_index = ?2) "
            "WHERE session_id = ?1 AND event_index = ?3 AND superseded_by IS NULL",
            [(buffer.session_id, s.by, s.event_index) for s in buffer.superseded],
        )
        self._end_executions(buffer)
        self._drop_turns(buffer)
        for supersession in buffer.superseded:
            buffer.touch(self._turn_of(buffer.session_id, supersession.event_index))
        buffer.first_row += len(buffer.rows)
        buffer.rows, buffer.usages, buffer.superseded, buffer.identities = [], [], [], set()
        buffer.requests, buffer.touched, buffer.agents, buffer.endings, buffer.dropped = [], [], [], [], []

    def _end_executions(self, buffer: SessionBuffer) -> None:
        for ending in buffer.endings:
            for event_index in ending.event_indices:
                self.connection.execute(
                    "UPDATE event SET outcome = ?, duration_ms = coalesce(?, duration_ms) "
                    "WHERE session_id = ? AND event_index = ? AND (link IS NULL OR outcome = ?)",
                    (_OUTCOME_CODE[ending.outcome], ending.duration_ms, buffer.session_id, event_index,
                     _OUTCOME_CODE[Outcome.RUNNING]),
                )  # fmt: skip
                buffer.touch(self._turn_of(buffer.session_id, event_index))

    def _drop_turns(self, buffer: SessionBuffer) -> None:
        for turn, by in buffer.dropped:
            self.connection.execute(
                "UPDATE event SET superseded_by = (SELECT id FROM event WHERE session_id = ?1 AND event_index = ?2) "
                "WHERE session_id = ?1 AND turn_index = ?3 AND type != ?4 "
                "AND superseded_by IS NULL",
                (buffer.session_id, by, turn, _TYPE_CODE[EventType.TOKEN_USAGE]),
            )
            buffer.touch(turn)

    def _turn_of(self, session_id: int, event_index: int) -> int | None:
        found = self.connection.execute(
            "SELECT turn_index FROM event WHERE session_id = ? AND event_index = ?", (session_id, event_index)
        ).fetchone()
        return found[0] if found else None

    def _write_block(self, buffer: SessionBuffer) -> None:
        block = buffer.block
        if not block.texts:
            return
        packed = block.pack()
        row = self.connection.execute(
            "INSERT OR REPLACE INTO block (id, session_id, first_index, event_count, t0, t1, text_size) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (buffer.block_row, buffer.session_id, block.first_index, len(block.texts), block.t0, block.t1, block.size),
        ).fetchone()[0]
        self.connection.execute("INSERT OR REPLACE INTO block_data VALUES (?, ?, ?, ?)", (row, *packed))
        buffer.block_row = row

    def _give_first_time(self, buffer: SessionBuffer) -> None:
        """Let the events before the first time of the log take that time, once it is known."""
        if not (buffer.untimed and buffer.last_ts):
            return
        session = {"session": buffer.session_id}
        first = self.connection.execute(
            "SELECT ts FROM event WHERE session_id = :session AND ts != 0 ORDER BY event_index LIMIT 1", session
        ).fetchone()[0]
        session["first"] = first
        self.connection.execute("UPDATE event SET ts = :first WHERE session_id = :session AND ts = 0", session)
        self.connection.execute(
            "UPDATE block SET t0 = :first, t1 = max(t1, :first) WHERE session_id = :session AND t0 = 0", session
        )
        buffer.block.t0 = buffer.block.t0 or first
        buffer.untimed = False

    def _answer_call(self, buffer: SessionBuffer, result: Event) -> None:
        """Tell a call how it ended; it may lie in the rows at hand or in the index."""
        assert result.link is not None and result.outcome is not None
        position = result.link - buffer.first_row
        if position >= 0:
            row = buffer.rows[position]
            row[7], row[8], row[13] = _OUTCOME_CODE[result.outcome], result.event_index, result.duration_ms
            return
        self.connection.execute(
            "UPDATE event SET outcome = ?, link = ?, duration_ms = ? WHERE session_id = ? AND event_index = ?",
            (_OUTCOME_CODE[result.outcome], result.event_index, result.duration_ms, buffer.session_id, result.link),
        )

    def _name_id(self, name: str | None) -> int | None:
        if name is None:
            return None
        found = self._names.get(name)
        if found is None:
            found = self._interned("name", "text", redact(name))
            self._names[name] = found
        return found

    def _path_id(self, path: str) -> int:
        path = redact(path)
        if path not in self._paths:
            self._paths[path] = self._interned("path", "text", path)
        return self._paths[path]

    def _project(self, facts: SessionFacts) -> int | None:
        if facts.cwd:
            root = project_root(facts.cwd)
            key, values = project_hash(root), root
        elif facts.project_hash:
            key, values = facts.project_hash.lower(), None
        else:
            return None
        if key not in self._projects:
            self._projects[key] = self._interned("project", "hash", key)
        if values is not None:
            self.connection.execute(
                "UPDATE project SET root_path = ? WHERE id = ? AND root_path IS NULL", (values, self._projects[key])
            )
        return self._projects[key]

    def _interned(self, table: str, column: str, value: str) -> int:
        self.connection.execute(f"INSERT OR IGNORE INTO {table} ({column}) VALUES (?)", (value,))
        return int(self.connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (value,)).fetchone()[0])


def snippet(text: str) -> str:
    """The beginning of a request on one line, at most `SNIPPET` characters, without the IDE's preface."""
    request = text.rpartition(_CODEX_IDE_REQUEST)[2]
    line = " ".join(request[: 8 * SNIPPET].split())
    return line if len(line) <= SNIPPET else line[: SNIPPET - 3] + "..."


def _visible(own_id: str) -> str:
    """An id as it can be typed, and shown where a terminal would obey control characters."""
    blank = "".join(letter if letter.isprintable() else " " * letter.isspace() for letter in own_id)
    return " ".join(blank.split())[:_LONGEST_ID].rstrip() or "nameless"


def _usage(usage: TokenUsage) -> tuple[Any, ...]:
    return (
        usage.response_id, usage.model, usage.input_tokens, usage.cache_creation_5m_tokens,
        usage.cache_creation_1h_tokens, usage.cache_read_tokens, usage.output_tokens, usage.reasoning_tokens,
        usage.complete, usage.context_window, usage.speed, usage.cost_usd,
    )  # fmt: skip
