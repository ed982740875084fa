"""What happened in a session, read from the index for the detectors: each block is opened once.

Texts are kept at their beginnings and ends only, so that long ones take no more memory than others.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson
from agtrace_indexer.texts.blocks import BlockText, unpack
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Json, Outcome, OutcomeSource, UserKind

from agtrace.health.history import KEPT, Call, Entry, History, Message, Notice, Said, Thought, Usage
from agtrace.sessions.query import COUNTED
from agtrace.usage.prices import PriceTable

AT_WORK_SECONDS = 600
"""A session whose last event is younger than this may still go on."""

NO_TOOL = "unknown tool"
"""What the tool of a result is called whose call the log doesn't have."""

_LONGEST_ARGUMENT = 20_000
_LEVELS = 6

_EVENTS = f"""
SELECT e.event_index, e.type, e.ts, e.turn_index, e.step_index, n.text, e.outcome, e.link, e.duration_ms
FROM event e LEFT JOIN name n ON n.id = e.name_id
WHERE e.session_id = ? AND {COUNTED} ORDER BY e.event_index
"""

_BLOCKS = """
SELECT b.first_index, d.{column}, d.ends FROM block b JOIN block_data d ON d.block_id = b.id
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

_AGENTS = (
    "SELECT started_by, uid FROM session WHERE parent_session = ? AND started_by IS NOT NULL AND kind = 'subagent'"
)


class _Row(NamedTuple):
    event_index: int
    type: int
    ts: int
    turn: int | None
    step: int | None
    name: str | None
    outcome: int | None
    link: int | None
    duration_ms: int | None


def read_history(connection: sqlite3.Connection, session: sqlite3.Row, *, now: float, prices: PriceTable) -> History:
    """What happened in a session, copies and what was taken back left out; `now` is seconds since 1970 UTC."""
    plain = connection.cursor()
    plain.row_factory = None
    rows = [_Row(*row) for row in plain.execute(_EVENTS, (session["id"],))]
    agents = dict(plain.execute(_AGENTS, (session["id"],)).fetchall())
    entries = _Reading(plain, session, rows, agents, prices).entries()
    return History(
        provider=session["provider"],
        entries=entries,
        turns=session["turn_count"],
        at_work=not session["gone"] and abs(now - (session["ended_at"] or 0) / 1000) < AT_WORK_SECONDS,
        agents=agents,
    )


class _Reading:
    """Reads one session."""

    def __init__(
        self,
        plain: sqlite3.Cursor,
        session: sqlite3.Row,
        rows: list[_Row],
        agents: dict[int, str],
        prices: PriceTable,
    ) -> None:
        self._plain, self._id, self._rows, self._agents = plain, session["id"], rows, agents
        self._prices = prices

    def entries(self) -> list[Entry]:
        """Everything that happened, in file order."""
        calls = self._calls()
        texts, requests = self._texts(), self._requests()
        usages = {row[0]: row[1:] for row in self._plain.execute(_USAGES, (self._id,))}
        entries: list[Entry] = []
        for row in self._rows:
            match EVENT_TYPE_CODES[row.type]:
                case EventType.TOOL_CALL:
                    entries.append(calls[row.event_index])
                case EventType.TOOL_RESULT:
                    call = calls.get(row.link) if row.link is not None else None
                    if call is None or call.result_event not in (None, row.event_index):
                        call = calls[row.event_index]
                        entries.append(call)
                    _answer(call, texts[row.event_index])
                case EventType.USER:
                    kind = UserKind(row.name) if row.name else UserKind.INJECTED
                    opens = row.event_index in requests
                    entries.append(Said(row.event_index, row.turn, row.ts, kind, texts[row.event_index].kept, opens))
                case EventType.MESSAGE:
                    said = texts[row.event_index].kept
                    entries.append(Message(row.event_index, row.turn, row.step, row.ts, said))
                case EventType.REASONING:
                    entries.append(Thought(row.event_index, row.turn, row.step, row.ts))
                case EventType.TOKEN_USAGE:
                    if row.event_index in usages:
                        entries.append(self._usage(row, usages[row.event_index]))
                case EventType.NOTIFICATION:
                    said = texts[row.event_index].kept
                    entries.append(Notice(row.event_index, row.turn, row.ts, row.name or "", said))
        return entries

    def _calls(self) -> dict[int, Call]:
        """The executions by their event, without what came back; that of a result without a call by the result's."""
        reads, writes = self._touched()
        rows = {row.event_index: row for row in self._rows}
        calls: dict[int, Call] = {}
        for event_index, rest in self._payloads():
            row = rows.get(event_index)
            kind = None if row is None else EVENT_TYPE_CODES[row.type]
            if row is None or kind not in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
                continue
            if kind is EventType.TOOL_RESULT:
                call = calls.get(row.link) if row.link is not None else None
                if call is not None and call.result_event is None:
                    call.result_event = row.event_index
                    _end(call, row, rest)
                    continue
            arguments = rest.get("arguments") if kind is EventType.TOOL_CALL else None
            call = Call(
                event_index=row.event_index,
                turn=row.turn,
                step=row.step,
                at=row.ts,
                tool=row.name or NO_TOOL,
                arguments=_short(arguments),
                action=_action(row, arguments),
                outcome=Outcome.UNKNOWN if row.outcome is None else OUTCOME_CODES[row.outcome],
                duration_ms=row.duration_ms,
                reads=tuple(reads.get(row.event_index, ())),
                writes=tuple(writes.get(row.event_index, ())),
                agent=row.event_index in self._agents,
            )
            if kind is EventType.TOOL_RESULT:
                call.result_event = row.event_index
                _end(call, row, rest)
            calls[row.event_index] = call
        return calls

    def _payloads(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each event with what its text doesn't say, one block in memory at a time."""
        for first, payload, _ in self._plain.execute(_BLOCKS.format(column="payload"), (self._id,)):
            for event_index, rest in enumerate(orjson.loads(unpack(payload)), first):
                yield event_index, rest or {}

    def _texts(self) -> dict[int, _Text]:
        """The texts that detectors read; tool calls are known by their arguments."""
        wanted = {
            row.event_index
            for row in self._rows
            if EVENT_TYPE_CODES[row.type] not in (EventType.TOOL_CALL, EventType.TOKEN_USAGE, EventType.REASONING)
        }
        found = {}
        for first, text, ends in self._plain.execute(_BLOCKS.format(column="text"), (self._id,)):
            block = BlockText.of(ends, text)
            for number in range(len(block.ends)):
                if first + number in wanted:
                    found[first + number] = _Text.of(block.text(number))
        return found

    def _requests(self) -> set[int]:
        rows = self._plain.execute("SELECT request_event FROM turn WHERE session_id = ?", (self._id,))
        return {row[0] for row in rows if row[0] is not None}

    def _touched(self) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
        reads: dict[int, list[str]] = defaultdict(list)
        writes: dict[int, list[str]] = defaultdict(list)
        for event_index, access, path in self._plain.execute(_TOUCHED, (self._id,)):
            (writes if access == "write" else reads)[event_index].append(path)
        return reads, writes

    def _usage(self, row: _Row, figures: tuple[Any, ...]) -> Usage:
        model, fresh, short_lived, long_lived, cached, output, window = figures
        created = None if short_lived is None and long_lived is None else (short_lived or 0) + (long_lived or 0)
        return Usage(
            event_index=row.event_index,
            turn=row.turn,
            step=row.step,
            at=row.ts,
            model=model,
            input_tokens=fresh,
            cache_creation_tokens=created,
            cache_read_tokens=cached,
            output_tokens=output,
            context_window=window or self._prices.window(model),
        )


class _Text(NamedTuple):
    """The beginning and the end of a text."""

    kept: str
    chars: int
    middle: bytes = b""
    """A digest of what isn't kept."""

    @classmethod
    def of(cls, text: str) -> _Text:
        if len(text) <= 2 * KEPT:
            return cls(text, len(text))
        middle = blake2b(text[KEPT:-KEPT].encode("utf-8", "replace"), digest_size=8).digest()
        return cls(f"{text[:KEPT]}\n...\n{text[-KEPT:]}", len(text), middle)


def _end(call: Call, row: _Row, rest: dict[str, Any]) -> None:
    """Note how an execution ended."""
    call.answered_at = row.ts
    call.told_by_text = rest.get("outcome_source") == OutcomeSource.TEXT
    call.exit_code = rest.get("exit_code")


def _answer(call: Call, text: _Text) -> None:
    """Note what came back."""
    call.result, call.result_chars, call.middle = text


def _action(row: _Row, arguments: Json) -> bytes:
    """Equal for calls of one tool with equal arguments; what has no arguments is equal to nothing."""
    said = row.event_index if arguments is None else [row.name, arguments]
    return blake2b(orjson.dumps(said, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _short(value: Any, levels: int = _LEVELS) -> Json:
    """Arguments without the middle of very long texts."""
    if isinstance(value, str):
        half = _LONGEST_ARGUMENT // 2
        return value if len(value) <= _LONGEST_ARGUMENT else f"{value[:half]}\n...\n{value[-half:]}"
    if isinstance(value, dict):
        return {key: _short(item, levels - 1) for key, item in value.items()} if levels else None
    if isinstance(value, list):
        return [_short(item, levels - 1) for item in value] if levels else None
    return value  # type: ignore[no-any-return]
