"""A session part by part, in file order: the beginnings of what was thought, said, done and given back (R-112)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.conditions import LIVE
from agtrace_indexer.index.questions.sessions import Session
from agtrace_schema.answers import CallQuote, EventQuote, Quote, ResultQuote, StepDetail, ToolExecution, TurnSteps
from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType, Outcome

from agtrace.sessions.query import EVENT, StoredEvent, short_id, with_texts
from agtrace.sessions.quotes import arguments_quote, beginning
from agtrace.sessions.steps import StepUsage
from agtrace.sessions.transcript import newest_row
from agtrace.text.lines import LABEL, one_line

_READ_AT_ONCE = 4  # events: each can be as large as the longest line

_LIVE_CALL = LIVE.replace("e.", "c.")

# A result is a part of its own only where its call doesn't show it.
_PARTS = f"""
SELECT e.*, n.text AS name, t.turn_index AS turn, t.request_event IS e.event_index AS opens, t.copied AS copied_turn
FROM event e LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN turn t ON t.session_id = e.session_id AND t.turn_index = e.turn_index
LEFT JOIN event c ON e.type = :result AND c.session_id = e.session_id AND c.event_index = e.link
WHERE e.session_id = :session AND e.event_index > :behind AND e.event_index <= :last AND {LIVE}
  AND e.turn_index IS coalesce(:turn, e.turn_index)
  AND NOT (c.id IS NOT NULL AND c.link IS e.event_index AND {_LIVE_CALL})
ORDER BY e.event_index
"""


class Part(NamedTuple):
    """What a page can end behind: a text, a tool execution with its result, or the token figures of a step."""

    event_index: int
    turn_index: int | None
    """None for what belongs to no turn, or to one that was taken back."""
    step_index: int | None
    opens_turn: bool
    """Whether it is the request of its turn."""
    shown: Quote | ToolExecution | EventQuote | StepUsage
    copied_turn: bool
    is_reasoning: bool

    @property
    def failure(self) -> int | None:
        """The event that tells the failure of a tool execution that failed."""
        if not isinstance(self.shown, ToolExecution) or self.shown.outcome is not Outcome.FAILED:
            return None
        return self.event_index if self.shown.result_event is None else self.shown.result_event

    @property
    def without_texts(self) -> Part:
        """The same part, for a page that has no room for its texts."""
        return self._replace(shown=_without_texts(self.shown))


def parts_of(
    connection: sqlite3.Connection, session: Session, *, behind: int, last_event: int, turn_index: int | None
) -> Iterator[Part]:
    """The parts of a session behind an event, or those of a turn, in file order; each is read when it is asked for."""
    named = {
        "session": session.id, "behind": behind, "last": last_event, "turn": turn_index,
        "newest": newest_row(connection, session, last_event), "result": TYPE_CODE[EventType.TOOL_RESULT],
    }  # fmt: skip
    found = connection.execute(_PARTS, named)
    while rows := found.fetchmany(_READ_AT_ONCE):
        beside = _Beside.of(connection, rows)
        yield from (_part(event, beside) for event in with_texts(connection, rows))


def by_turns(parts: Iterable[Part]) -> list[TurnSteps]:
    """Group parts into turns and steps; what the log interleaves appears again and again."""
    return [_turn(index, list(group)) for index, group in groupby(parts, key=lambda part: part.turn_index)]


@dataclass(frozen=True, slots=True)
class _Beside:
    """What the parts of some events are made of beside the events themselves."""

    results: dict[int, StoredEvent]
    """By the event of the call."""
    usages: dict[int, sqlite3.Row]
    agents: dict[int, str]

    @classmethod
    def of(cls, connection: sqlite3.Connection, rows: list[sqlite3.Row]) -> _Beside:
        """Read what belongs to these rows of events."""
        session_row = rows[0]["session_id"]
        calls = [row for row in rows if row["type"] == TYPE_CODE[EventType.TOOL_CALL]]
        linked = _listed(row["link"] for row in calls if row["link"] is not None)
        answers = f"{EVENT} WHERE e.session_id = ? AND e.event_index IN ({linked})"
        results = with_texts(connection, connection.execute(answers, (session_row,)).fetchall())
        usages = f"SELECT * FROM token_usage WHERE session_id = ? AND event_index IN ({_events(rows)})"
        agents = sessions.started_by(connection, session_row, (row["event_index"] for row in calls))
        return cls(
            {result.row["link"]: result for result in results},
            {row["event_index"]: row for row in connection.execute(usages, (session_row,))},
            {call: short_id(connection, uid) for call, uid in agents.items()},
        )


def _part(event: StoredEvent, beside: _Beside) -> Part:
    row = event.row
    step = None if row["turn"] is None else row["step_index"]
    shown = _shown(event, beside, opens=bool(row["opens"]))
    return Part(
        event_index=event.event_index,
        turn_index=row["turn"],
        step_index=step,
        opens_turn=bool(row["opens"]),
        shown=shown,
        copied_turn=bool(row["copied_turn"]),
        is_reasoning=event.type == EventType.REASONING,
    )


def _shown(event: StoredEvent, beside: _Beside, *, opens: bool) -> Quote | ToolExecution | EventQuote | StepUsage:
    match event.type:
        case EventType.MESSAGE | EventType.REASONING:
            return Quote(event_index=event.event_index, **beginning(event.text))
        case EventType.TOOL_CALL:
            return _execution(event, beside)
        case EventType.TOOL_RESULT:
            result = ResultQuote(**beginning(event.text, "content"))
            return ToolExecution(
                result=result,
                outcome=event.outcome,
                call_event=event.row["link"],
                result_event=event.event_index,
            )
        case EventType.TOKEN_USAGE:
            return StepUsage.of([beside.usages[event.event_index]])
        case _:
            text = without_preface(event.text).lstrip() if opens else event.text
            return EventQuote(
                event_index=event.event_index,
                event_type=event.type,
                kind=event.row["name"] and one_line(event.row["name"], LABEL),
                **beginning(text),
            )


def _execution(call: StoredEvent, beside: _Beside) -> ToolExecution:
    """A tool call with its result."""
    result = beside.results.get(call.event_index)
    arguments, chars = arguments_quote(call.rest.get("arguments"))
    return ToolExecution(
        call=CallQuote(name=one_line(call.row["name"] or "", LABEL), arguments=arguments, chars=chars),
        result=None if result is None else ResultQuote(**beginning(result.text, "content")),
        outcome=call.outcome,
        duration_ms=call.row["duration_ms"],
        call_event=call.event_index,
        result_event=None if result is None else result.event_index,
        agent=beside.agents.get(call.event_index),
    )


def _without_texts(shown: Quote | ToolExecution | EventQuote | StepUsage) -> Any:
    """What is shown of a part, with its coordinates alone."""
    if isinstance(shown, (Quote, EventQuote)):
        return shown.model_copy(update={"text": "..."})
    if isinstance(shown, StepUsage):
        return shown
    call = shown.call and shown.call.model_copy(update={"arguments": "..."})
    return shown.model_copy(update={"call": call, "result": shown.result and ResultQuote(content="...")})


def _turn(index: int | None, parts: list[Part]) -> TurnSteps:
    request = next((part.shown for part in parts if part.opens_turn and isinstance(part.shown, EventQuote)), None)
    beside = [part.shown for part in parts if isinstance(part.shown, EventQuote) and part.shown is not request]
    steps = [part for part in parts if not isinstance(part.shown, EventQuote)]
    return TurnSteps(
        turn_index=index,
        user_message=request.text if request else None,
        user_event=request.event_index if request else None,
        copied=parts[0].copied_turn or None,
        events=beside or None,
        steps=[_step(entry) for entry in _entries(steps)] or None,
    )


def _entries(parts: Iterable[Part]) -> list[list[Part]]:
    """Put neighbours of one step together, as long as each has a place of its own."""
    entries: list[list[Part]] = []
    for part in parts:
        if entries and entries[-1][0].step_index == part.step_index and _has_place(part, entries[-1]):
            entries[-1].append(part)
        else:
            entries.append([part])
    return entries


def _has_place(part: Part, entry: list[Part]) -> bool:
    """A step has one thought, then one message, then executions, and token figures anywhere."""
    if isinstance(part.shown, ToolExecution):
        return True
    if isinstance(part.shown, StepUsage):
        return not any(isinstance(other.shown, StepUsage) for other in entry)
    before = [other for other in entry if not isinstance(other.shown, StepUsage)]
    return not before or (not part.is_reasoning and all(other.is_reasoning for other in before))


def _step(entry: list[Part]) -> StepDetail:
    shown: dict[str, Any] = {"step_index": entry[0].step_index}
    for part in entry:
        match part.shown:
            case ToolExecution():
                shown.setdefault("tools", []).append(part.shown)
            case StepUsage(tokens, context_tokens, incomplete):
                shown |= {"tokens": tokens, "context_tokens": context_tokens, "tokens_incomplete": incomplete}
                shown["usage_event"] = part.event_index
            case Quote():
                shown["reasoning" if part.is_reasoning else "message"] = part.shown
    return StepDetail(**shown)


def _events(rows: Iterable[sqlite3.Row]) -> str:
    return _listed(row["event_index"] for row in rows)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
