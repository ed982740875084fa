"""A session's events on their way into the index: gathered in memory, written with `executemany`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, Outcome, TokenUsage, ToolResult, User
from agtrace_schema.landmarks import Landmark
from msgspec import Struct, field

from agtrace_indexer.events.assembly import REQUESTS, Ending, Event, Supersession
from agtrace_indexer.events.clues import Clue
from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.events.strings import masked, plain_id
from agtrace_indexer.index.projects import project_hash, project_root, told_hash
from agtrace_indexer.index.ranking import is_ranked, words_of
from agtrace_indexer.index.sums import changes_from, sum_turns
from agtrace_indexer.redact.engine import Noted
from agtrace_indexer.texts.blocks import BlockText, OpenBlock

_MOST_SECRETS = 100
"""The most secrets of one event that are noted."""
SNIPPET = 200
"""Characters of the first human request that represent a session or a turn."""

_OF_TOOLS = (TYPE_CODE[EventType.TOOL_CALL], TYPE_CODE[EventType.TOOL_RESULT])
_WITH_ROWS_BESIDE = (*_OF_TOOLS, TYPE_CODE[EventType.TOKEN_USAGE], TYPE_CODE[EventType.USER])

_INSERT_EVENT = """
INSERT INTO event (session_id, event_index, type, ts, turn_index, step_index, name_id, outcome, link,
  line, offset, length, identity, duration_ms, own, program_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_BESIDE = {
    "usage": "INSERT INTO token_usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "request": "INSERT OR REPLACE INTO request VALUES (?, ?, ?)",
    "touched otherwise": "DELETE FROM touched WHERE session_id = ? AND event_index = ?",
    "touched": "INSERT OR IGNORE INTO touched VALUES (?, ?, ?, ?)",
    "clue": "INSERT OR IGNORE INTO clue VALUES (?, ?, ?, ?)",
    "secret": "INSERT INTO secret VALUES (?, ?, ?, ?, ?, ?)",
    "agent": "INSERT OR IGNORE INTO agent_start VALUES (?, ?, ?)",
}
"""The statements for rows of other tables, in their order; a result may say which files its call touched."""

_SUPERSEDE = """
UPDATE event SET superseded_by = ?3 * (SELECT id FROM event WHERE session_id = ?1 AND event_index = ?2), copy_of = NULL
WHERE session_id = ?1 AND superseded_by IS NULL
"""


class SessionBuffer(Struct):
    """The gathered rows of one session, and how they are written."""

    connection: sqlite3.Connection
    interning: Interning
    session_id: int
    block: OpenBlock
    block_row: int | None = None
    """The id of the stored block that `block` continues."""
    last_ts: int = 0
    untimed: bool = False
    """Whether events without a time wait for the first time in the log."""
    first_row: int = 0
    """The event_index of the first gathered row."""
    rows: list[list[Any]] = field(default_factory=list)
    ranked: list[tuple[int, str]] = field(default_factory=list)
    """(number of a gathered row, from 1 on; what is ranked of its text)."""
    superseded: list[Supersession] = field(default_factory=list)
    identities: set[int] = field(default_factory=set)
    """Identities of the gathered rows."""
    beside: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: {name: [] for name in _BESIDE})
    """The arguments of the statements in `_BESIDE`."""
    landmarks: dict[int, list[Landmark]] = field(default_factory=dict)
    """event_index -> all its landmarks as known now."""
    calls_after: list[tuple[int, int, int | None, int | None, str | None]] = field(default_factory=list)
    """Calls whose results stand before them: (result, call, turn, step, tool)."""
    endings: list[tuple[int, Ending]] = field(default_factory=list)
    """(next event_index of the session when the log reported it, how executions ended)."""
    dropped: list[tuple[int | None, int, bool]] = field(default_factory=list)
    """(turn, or None for what is in no turn; event_index of the event that dropped it; whether it was rolled back)."""
    first_turn_touched: int | None = None

    def touch(self, turn: int | None) -> None:
        """Note that the totals of this turn and those after it must be computed again."""
        if turn is not None and (self.first_turn_touched is None or turn < self.first_turn_touched):
            self.first_turn_touched = turn

    @classmethod
    def reopened(
        cls, connection: sqlite3.Connection, interning: Interning, session_id: int, next_index: int
    ) -> SessionBuffer:
        """Create the buffer of a session that continues at this event."""
        buffer = cls(connection, interning, session_id, OpenBlock(next_index), first_row=next_index)
        if next_index == 0:
            return buffer
        last = connection.execute(
            "SELECT ts FROM event WHERE session_id = ? ORDER BY event_index DESC LIMIT 1", (session_id,)
        ).fetchone()
        buffer.last_ts = last[0] if last else 0
        buffer.untimed = not buffer.last_ts
        found = connection.execute(
            "SELECT b.id, b.first_index, b.t0, b.t1, b.types, d.ends, d.text FROM block b "
            "JOIN block_data d ON d.block_id = b.id WHERE b.session_id = ? ORDER BY b.first_index DESC LIMIT 1",
            (session_id,),
        ).fetchone()
        if found:
            row, first, t0, t1, types, *packed = found
            block = OpenBlock.reopened(first, BlockText.of(*packed), t0, t1, types)
            if not block.full:
                buffer.block, buffer.block_row = block, row
        return buffer

    def has_identity(self, identity: int) -> bool:
        """Whether the session already has an event with this identity."""
        if identity in self.identities or not self.first_row:
            return identity in self.identities
        query = "SELECT 1 FROM event WHERE identity = ? AND identity > 0 AND session_id = ?"
        return self.connection.execute(query, (identity, self.session_id)).fetchone() is not None

    def note_clues(self, event_index: int, clues: Iterable[Clue]) -> None:
        """Gather what an event tells about the repository of its session."""
        self.beside["clue"] += ((self.session_id, event_index, clue.kind, clue.value) for clue in clues)

    def note_secrets(self, event_index: int, secrets: list[Noted]) -> None:
        """Gather what was found in the texts of an event."""
        numbered = enumerate(secrets[:_MOST_SECRETS])
        self.beside["secret"] += ((self.session_id, event_index, number, *noted) for number, noted in numbered)

    def add(self, event: Event, text: str, rest: dict[str, Any] | None, identity: int | None) -> None:
        """Gather one event with the stored rest of its payload."""
        if event.timestamp is None:
            ts = self.last_ts
            self.untimed = self.untimed or not ts
        else:
            ts = self.last_ts = event.timestamp
        if self.block.full:
            self._write_block()
            self.block, self.block_row = OpenBlock(event.event_index), None
        code, line, outcome = TYPE_CODE[event.type], event.line, event.outcome
        name = None if event.name is None else self.interning.name(event.name)
        self.block.add(text, rest, ts, code, name if code in _OF_TOOLS else None)
        self.rows.append(
            [
                self.session_id, event.event_index, code, ts, event.turn_index, event.step_index, name,
                None if outcome is None else OUTCOME_CODE[outcome], event.link,
                line.number, line.offset, line.text_length, identity, event.duration_ms, event.own or None,
                None if event.program is None else self.interning.name(event.program),
            ]
        )  # fmt: skip
        if identity is not None:
            self.identities.add(identity)
        if not event.own and is_ranked(event.type, event.name) and (words := words_of(event.type, text)):
            self.ranked.append((len(self.rows), words))
        self.touch(event.turn_index)
        if code in _WITH_ROWS_BESIDE:
            self._add_rows_beside(event, text)

    def _add_rows_beside(self, event: Event, text: str) -> None:
        """Gather an event's rows in other tables, for questions that would otherwise have to read every payload."""
        session, index, payload, beside = self.session_id, event.event_index, event.payload, self.beside
        if event.type is EventType.TOOL_CALL and event.link is not None:
            self.calls_after.append((event.link, index, event.turn_index, event.step_index, event.name))
        if event.files is not None:
            call = event.link if isinstance(payload, ToolResult) and event.link is not None else index
            if call != index:
                beside["touched"] = [row for row in beside["touched"] if row[1] != call]
                beside["touched otherwise"].append((session, call))
            for path, access in event.files.items():
                beside["touched"].append((session, call, self.interning.path(path), access))
        if isinstance(payload, ToolResult):
            if payload.agent_id:
                beside["agent"].append((plain_id(payload.agent_id), session, index))
            if event.link is not None:
                self._answer_call(event)
        elif isinstance(payload, TokenUsage):
            beside["usage"].append((session, index, *_usage(payload)))
        elif isinstance(payload, User) and payload.kind in REQUESTS:
            beside["request"].append((session, index, snippet(text)))

    def write(self) -> list[tuple[int, str]]:
        """Write the gathered rows into the open transaction, and compute the totals of the turns that changed.

        Return the events to rank, by their ids.
        """
        if not (self.rows or self.superseded or self.endings or self.dropped or self.landmarks):
            return []
        first_placed = min([self.first_row, *(result for result, *_ in self.calls_after)])
        ranked = self._write_rows()
        self._write_block()
        self._give_first_time()
        if self.first_turn_touched is not None:
            sum_turns(self.connection, self.session_id, self.first_turn_touched, first_placed)
            self.first_turn_touched = None
        return ranked

    def _write_rows(self) -> list[tuple[int, str]]:
        write = self.connection.executemany
        write(_INSERT_EVENT, self.rows)
        (last,) = self.connection.execute("SELECT last_insert_rowid()").fetchone()
        ranked = [(last - len(self.rows) + number, words) for number, words in self.ranked]
        for name, rows in self.beside.items():
            if rows:
                write(_BESIDE[name], rows)
                self.beside[name] = []
        write(
            f"{_SUPERSEDE} AND event_index = ?4",
            [(self.session_id, s.by, -1 if s.rolled_back else 1, s.event_index) for s in self.superseded],
        )
        if self.landmarks:
            self._write_landmarks()
        self._link_early_results()
        self._end_executions()
        self._drop_turns()
        for supersession in self.superseded:
            self._note_change(supersession.event_index)
        self.first_row += len(self.rows)
        self.rows, self.superseded, self.identities, self.landmarks, self.ranked = [], [], set(), {}, []
        self.calls_after, self.endings, self.dropped = [], [], []
        return ranked

    def _write_landmarks(self) -> None:
        write, session = self.connection.executemany, self.session_id
        write("DELETE FROM landmark WHERE session_id = ? AND event_index = ?", [(session, n) for n in self.landmarks])
        write(
            "INSERT INTO landmark VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (session, event, number, *landmark)
                for event, landmarks in self.landmarks.items()
                for number, landmark in enumerate(landmarks)
            ],
        )

    def _link_early_results(self) -> None:
        for result, call, turn, step, tool in self.calls_after:
            name = None if tool is None else self.interning.name(tool)
            place = (self.session_id, result)
            was_in = "SELECT turn_index FROM event WHERE session_id = ? AND event_index = ?"
            self.touch(self.connection.execute(was_in, place).fetchone()[0])  # the turn that it is taken from
            self.connection.execute(
                "UPDATE event SET link = ?, turn_index = ?, step_index = ?, name_id = ? "
                "WHERE session_id = ? AND event_index = ?",
                (call, turn, step, name, *place),
            )
            if result < self.block.first_index:
                self.connection.execute(
                    "INSERT OR IGNORE INTO block_tool SELECT id, ?2 FROM block WHERE session_id = ?1 AND "
                    "first_index = (SELECT max(first_index) FROM block WHERE session_id = ?1 AND first_index <= ?3) "
                    "AND ?2 IS NOT NULL",
                    (self.session_id, name, result),
                )
            self._note_change(result)

    def _end_executions(self) -> None:
        for told_at, ending in self.endings:
            for event_index in ending.event_indices:
                self.connection.execute(
                    "UPDATE event SET outcome = ?, duration_ms = coalesce(?, duration_ms) "
                    "WHERE session_id = ? AND event_index = ? AND (link IS NULL OR (outcome = ? AND link < ?))",
                    (OUTCOME_CODE[ending.outcome], ending.duration_ms, self.session_id, event_index,
                     OUTCOME_CODE[Outcome.RUNNING], told_at),
                )  # fmt: skip
                self._note_change(event_index)

    def _drop_turns(self) -> None:
        for turn, by, rolled_back in self.dropped:
            self.connection.execute(
                f"{_SUPERSEDE} AND turn_index IS ?4 AND type != ?5 AND event_index <= ?2",
                (self.session_id, by, -1 if rolled_back else 1, turn, TYPE_CODE[EventType.TOKEN_USAGE]),
            )
            self.touch(turn)
            changes_from(self.connection, self.session_id, 0)

    def _note_change(self, event_index: int) -> None:
        """Note that an event changed that others come after, perhaps in sums."""
        changes_from(self.connection, self.session_id, event_index)
        found = self.connection.execute(
            "SELECT turn_index FROM event WHERE session_id = ? AND event_index = ?", (self.session_id, event_index)
        ).fetchone()
        self.touch(found[0] if found else None)

    def _write_block(self) -> None:
        block = self.block
        if not block.texts:
            return
        packed = block.pack()
        row = self.connection.execute(
            "INSERT OR REPLACE INTO block (id, session_id, first_index, event_count, t0, t1, text_size, types) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (self.block_row, self.session_id, block.first_index, len(block.texts), block.t0, block.t1, block.size,
             block.types),
        ).fetchone()[0]  # fmt: skip
        self.connection.executemany("INSERT OR IGNORE INTO block_tool VALUES (?, ?)", [(row, t) for t in block.tools])
        self.connection.execute("INSERT OR REPLACE INTO block_data VALUES (?, ?, ?)", (row, *packed))
        self.block_row = row

    def _give_first_time(self) -> None:
        """Give the events before the first time in the log that time, once it is known."""
        if not (self.untimed and self.last_ts):
            return
        session = {"session": self.session_id}
        first = self.connection.execute(
            "SELECT ts FROM event WHERE session_id = :session AND ts != 0 ORDER BY event_index LIMIT 1", session
        ).fetchone()[0]
        session["first"] = first
        self.connection.execute("UPDATE event SET ts = :first WHERE session_id = :session AND ts = 0", session)
        self.connection.execute(
            "UPDATE block SET t0 = :first, t1 = max(t1, :first) WHERE session_id = :session AND t0 = 0", session
        )
        self.block.t0 = self.block.t0 or first
        self.untimed = False
        self.touch(0)
        changes_from(self.connection, self.session_id, 0)

    def _answer_call(self, result: Event) -> None:
        """Record on a call how it ended; its row may still be gathered, or already be in the index."""
        assert result.link is not None and result.outcome is not None
        outcome = OUTCOME_CODE[Outcome.OK if result.reports else result.outcome]
        position = result.link - self.first_row
        if position >= 0:
            row = self.rows[position]
            row[7], row[8], row[13] = outcome, result.event_index, result.duration_ms
            return
        changes_from(self.connection, self.session_id, result.link)
        self.connection.execute(
            "UPDATE event SET outcome = ?, link = ?, duration_ms = ? WHERE session_id = ? AND event_index = ?",
            (outcome, result.event_index, result.duration_ms, self.session_id, result.link),
        )


def snippet(text: str) -> str:
    """Return the beginning of a request on one line, at most `SNIPPET` characters, without the IDE's preface."""
    line = " ".join(without_preface(text)[: 8 * SNIPPET].split())
    return line if len(line) <= SNIPPET else line[: SNIPPET - 3] + "..."


def _usage(usage: TokenUsage) -> tuple[Any, ...]:
    return (
        usage.response_id, usage.model, usage.input_tokens, usage.cache_creation_5m_tokens,
        usage.cache_creation_1h_tokens, usage.cache_read_tokens, usage.output_tokens, usage.reasoning_tokens,
        usage.complete, usage.context_window, usage.speed, usage.cost_usd,
    )  # fmt: skip


class Interning:
    """The ids of strings; a new string gets a row."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._names: dict[str, int] = {}
        self._paths: dict[str, int] = {}
        self._projects: dict[str, int] = {}
        self.relative = False
        """Whether there was a path that says nothing about the folder it lies in."""

    def name(self, name: str) -> int:
        """Return the id of a short, recurring string."""
        result = self._names.get(name)
        if result is None:
            result = self._interned("name", "text", masked(name))
            self._names[name] = result
        return result

    def path(self, path: str) -> int:
        """Return the id of a path, masked."""
        self.relative |= path[:1] != "/" and path[1:2] != ":"
        result = self._paths.get(path)  # masking a masked path changes nothing
        if result is None:
            path = masked(path)
            result = self._paths.get(path) or self._interned("path", "text", path)
            self._paths[path] = result
        return result

    def project(self, cwd: str | None, told: str | None = None) -> int | None:
        """Return the id of a project, by a session's directory or the hash that its log tells; None without either."""
        if cwd:
            root = project_root(cwd)
            key, values = project_hash(root), root
        elif told:
            key, values = told_hash(told), None
        else:
            return None
        if key not in self._projects:
            self._projects[key] = self._interned("project", "hash", key)
        if values is not None:
            self._connection.execute(
                "UPDATE project SET root_path = ? WHERE id = ? AND root_path IS NULL", (values, self._projects[key])
            )
        return self._projects[key]

    def _interned(self, table: str, column: str, value: str) -> int:
        self._connection.execute(f"INSERT OR IGNORE INTO {table} ({column}) VALUES (?)", (value,))
        return int(self._connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (value,)).fetchone()[0])
