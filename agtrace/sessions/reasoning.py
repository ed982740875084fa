"""Only the thinking: the readable reasoning of a session, each piece with what the model did next."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.texts.blocks import BlockText
from agtrace_schema.answers import Thought
from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace.sessions.query import EVENT, StoredEvent, iso, with_texts
from agtrace.text.lines import LABEL, SUMMARY, cut, named, one_line, without_controls

TEXT = 1_000
"""Characters of a thought that the chain shows at most."""

_THINKING = TYPE_CODE[EventType.REASONING]
_CALL = TYPE_CODE[EventType.TOOL_CALL]
_MESSAGE = TYPE_CODE[EventType.MESSAGE]

_THOUGHTS = """
SELECT event_index, copy_of IS NOT NULL AS copied FROM event
WHERE session_id = :session AND type = :thinking AND superseded_by IS NULL AND event_index <= :last_event
  AND (:turn IS NULL OR turn_index = :turn)
ORDER BY event_index
"""

_ENDS = """
SELECT b.first_index, d.ends FROM block b JOIN block_data d ON d.block_id = b.id
WHERE b.session_id = ? ORDER BY b.first_index
"""

# Reasoning that a log holds without a readable text, and that therefore is no event (Codex).
_LEFT_OUT = """
SELECT coalesce(sum(count), 0) FROM record_type
WHERE file_id = ? AND status = 'skipped' AND type IN ('reasoning/encrypted', 'reasoning/empty')
"""


class Extent(NamedTuple):
    """What of a session is looked at."""

    turn_index: int | None
    """Only this turn; None is all of the session."""
    last_event: int
    """The newest event of the snapshot."""


class Chain(NamedTuple):
    """Where the thinking of a session stands; the texts are not opened yet."""

    readable: list[int]
    """The event_index of every thought with a text, in file order."""
    hidden: int
    """Thoughts of which the log keeps no readable text."""
    copied: int
    """How many of the readable ones the log repeats from another session's."""


def chain_of(connection: sqlite3.Connection, session: Session, extent: Extent) -> Chain:
    """Find the thoughts of a session, copies included; what was superseded is left out.

    Codex' encrypted reasoning is counted over the whole log, so it is hidden only where no turn is asked for.
    """
    named = {
        "session": session.id, "thinking": _THINKING, "last_event": extent.last_event, "turn": extent.turn_index,
    }  # fmt: skip
    rows = connection.execute(_THOUGHTS, named).fetchall()
    with_text = _with_text(connection, session.id, [row["event_index"] for row in rows])
    left_out = 0 if extent.turn_index is not None else _left_out(connection, session)
    return Chain(
        readable=[row["event_index"] for row in rows if row["event_index"] in with_text],
        hidden=len(rows) - len(with_text) + left_out,
        copied=sum(row["copied"] for row in rows if row["event_index"] in with_text),
    )


def thoughts(connection: sqlite3.Connection, session: Session, indices: list[int], last_event: int) -> list[Thought]:
    """Open these thoughts."""
    if not indices:
        return []
    listed = ", ".join(map(str, indices))
    condition = f"e.session_id = ? AND e.event_index IN ({listed}) ORDER BY e.event_index"
    rows = connection.execute(f"{EVENT} WHERE {condition}", (session.id,)).fetchall()
    following = _actions(connection, session.id, rows, last_event)
    return [_thought(event, following.get(event.event_index)) for event in with_texts(connection, rows)]


def _thought(event: StoredEvent, following: str | None) -> Thought:
    row, text = event.row, without_controls(event.text).strip()
    return Thought(
        event_index=event.event_index,
        turn_index=row["turn_index"],
        step_index=row["step_index"],
        timestamp=iso(row["ts"]),
        text=cut(text, TEXT),
        chars=len(event.text) if len(text) > TEXT else None,
        next=following,
        copied=True if row["copy_of"] is not None else None,
    )


def _with_text(connection: sqlite3.Connection, session_row: int, indices: list[int]) -> set[int]:
    """Which of these events have a text: told by where the texts end, so that none is decompressed."""
    if not indices:
        return set()
    blocks = connection.execute(_ENDS, (session_row,)).fetchall()
    firsts = [block["first_index"] for block in blocks]
    opened = [BlockText(b"", array("I", block["ends"])) for block in blocks]
    found = set()
    for index in indices:
        number = bisect_right(firsts, index) - 1
        place = index - firsts[number]
        if opened[number].ends[place] > opened[number].start(place):
            found.add(index)
    return found


def _left_out(connection: sqlite3.Connection, session: Session) -> int:
    return int(connection.execute(_LEFT_OUT, (session.file_id,)).fetchone()[0])


def _actions(
    connection: sqlite3.Connection, session_row: int, thinking: Iterable[sqlite3.Row], last_event: int
) -> dict[int, str]:
    """What follows each of these thoughts within its step, up to the next thought there."""
    steps: dict[tuple[int, int], list[sqlite3.Row]] = {}
    wanted = [row for row in thinking if row["turn_index"] is not None and row["step_index"] is not None]
    places = ", ".join(sorted({f"({row['turn_index']}, {row['step_index']})" for row in wanted}))
    found = connection.execute(
        f"{EVENT} WHERE e.session_id = ? AND e.superseded_by IS NULL AND e.event_index <= ? "
        f"AND e.type IN ({_THINKING}, {_CALL}, {_MESSAGE}) AND (e.turn_index, e.step_index) IN (VALUES {places}) "
        "ORDER BY e.event_index",
        (session_row, last_event),
    ) if wanted else ()  # fmt: skip
    for row in found:
        steps.setdefault((row["turn_index"], row["step_index"]), []).append(row)
    said = {row["event_index"]: _action(connection, row, steps[row["turn_index"], row["step_index"]]) for row in wanted}
    return {index: action for index, action in said.items() if action is not None}


def _action(connection: sqlite3.Connection, thought: sqlite3.Row, step: list[sqlite3.Row]) -> str | None:
    """The tools that were called behind a thought, else the beginning of what was said."""
    behind = [row for row in step if row["event_index"] > thought["event_index"]]
    followed = list(takewhile(lambda row: row["type"] != _THINKING, behind))
    tools = Counter(
        named(row["name"], LABEL) if row["name"] else "an unnamed tool" for row in followed if row["type"] == _CALL
    )
    if tools:
        return cut("calls " + ", ".join(f"{name} x{n}" if n > 1 else name for name, n in tools.items()), SUMMARY)
    messages = [row for row in followed if row["type"] == _MESSAGE]
    if not messages:
        return None
    said = one_line(with_texts(connection, messages[:1])[0].text, SUMMARY - len("says ''"))
    return f"says {said!r}"
