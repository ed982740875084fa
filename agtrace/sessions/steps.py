"""The steps of a session: model responses, each with what it said and the tool calls that it asked for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agtrace_indexer.index.questions import turns
from agtrace_indexer.index.questions.sessions import Session
from agtrace_schema.answers import StepSummary, Tokens
from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, Outcome

from agtrace.sessions.query import EVENT, StoredEvent, with_texts
from agtrace.sessions.quotes import seen
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line
from agtrace.usage.usage import KINDS

_REASONING = 200
_NAMED = 8  # calls of a step
_SUMMARY = 480  # characters that name calls, within the 500 of a string
_INPUT = KINDS[:4]  # what a response was given to read, cached or not
_TELLING_ARGUMENTS = ("file_path", "path", "command", "cmd", "pattern", "query", "url", "description", "prompt")

_OF_STEP = """
e.session_id = :session AND e.event_index BETWEEN :first AND :last AND e.turn_index = :turn AND e.step_index = :step
AND e.superseded_by IS NULL
"""

_SAID = f"{EVENT} WHERE {_OF_STEP} AND e.type IN (:call, :message, :reasoning) ORDER BY e.event_index"

_USAGES = f"""
SELECT u.* FROM event e JOIN token_usage u USING (session_id, event_index) WHERE {_OF_STEP} ORDER BY e.event_index
"""

_CODES = {
    "call": TYPE_CODE[EventType.TOOL_CALL],
    "message": TYPE_CODE[EventType.MESSAGE],
    "reasoning": TYPE_CODE[EventType.REASONING],
    "failed": OUTCOME_CODE[Outcome.FAILED],
}


ALWAYS_SHOWN = ("input_tokens", "output_tokens")
"""The kinds of tokens that are shown where they are known; the others only where they aren't zero."""


@dataclass(frozen=True, slots=True)
class StepUsage:
    """The token figures of a step."""

    tokens: Tokens | None = None
    context_tokens: int | None = None
    """The whole input of the last response: what filled its context window."""
    incomplete: bool | None = None
    """True where the log has only placeholder figures."""

    @classmethod
    def of(cls, rows: Sequence[sqlite3.Row]) -> StepUsage:
        """Sum up rows of `token_usage`, in file order."""
        if not rows:
            return cls()
        sums = {kind: _sum(row[kind] for row in rows) for kind in KINDS}
        known = {
            kind.removesuffix("_tokens"): sum
            for kind, sum in sums.items()
            if sum or (sum == 0 and kind in ALWAYS_SHOWN)
        }
        return cls(
            tokens=Tokens(**known) if known else None,
            context_tokens=_sum(rows[-1][kind] for kind in _INPUT),
            incomplete=None if all(row["complete"] for row in rows) else True,
        )


class Step(NamedTuple):
    """A step with the turn it belongs to; a turn without a response has one without a summary."""

    turn_index: int
    step_index: int
    summary: StepSummary | None


def steps_of(
    connection: sqlite3.Connection,
    session: Session,
    *,
    behind: tuple[int, int],
    last_event: int,
    turn_index: int | None,
    include_reasoning: bool,
) -> Iterator[Step]:
    """The steps behind a (turn, step), in order; each is read when it is asked for.

    A turn without a response counts as a step -1.
    """
    for turn in turns.spans(connection, session.id, from_turn=behind[0], only=turn_index, last_event=last_event):
        shown_to = behind[1] if turn.turn_index == behind[0] else -2
        span = turn._replace(last_event=min(turn.last_event, last_event))
        found = turns.steps(connection, session.id, span, shown_to)
        if not found and shown_to < -1:
            yield Step(turn.turn_index, -1, None)
        for step in found:
            yield _step(connection, session, step, include_reasoning=include_reasoning)


def _step(connection: sqlite3.Connection, session: Session, step: turns.Step, *, include_reasoning: bool) -> Step:
    place = {
        **_CODES, "session": session.id, "turn": step.turn_index, "step": step.step_index,
        "first": step.first_event, "last": step.last_event,
        "reasoning": _CODES["reasoning"] if include_reasoning else None,
    }  # fmt: skip
    usage = StepUsage.of(connection.execute(_USAGES, place).fetchall())
    summary = StepSummary(
        step_index=step.step_index,
        first_event=step.first_event,
        tool_calls=step.calls,
        failed_tools=step.failed,
        tokens=usage.tokens,
        context_tokens=usage.context_tokens,
        tokens_incomplete=usage.incomplete,
        **_said(connection, step.calls, place),
    )
    return Step(step.turn_index, step.step_index, summary)


def _said(connection: sqlite3.Connection, total_calls: int, place: dict[str, Any]) -> dict[str, str]:
    """What the model said and asked for, as one line; its thinking, where that is asked for."""
    rows: dict[int, list[sqlite3.Row]] = {_CODES["call"]: [], _CODES["message"]: [], _CODES["reasoning"]: []}
    for row in connection.execute(_SAID, place):
        rows[row["type"]].append(row)
    first = [row for kind, of_kind in rows.items() for row in of_kind[: 1 if kind == _CODES["message"] else _NAMED]]
    events = with_texts(connection, first)
    calls = [event for event in events if event.type == EventType.TOOL_CALL]
    message = "".join(seen(event.text) for event in events if event.type == EventType.MESSAGE)
    thought = one_line(" ".join(seen(event.text) for event in events if event.type == EventType.REASONING), _REASONING)
    said = one_line(message, USER_MESSAGE if not calls else LABEL * 2)
    summary = " ".join(filter(None, [said, _named_calls(calls, total_calls, _SUMMARY - len(said))]))
    return {"summary": summary} | ({"reasoning": thought} if thought else {})


def _named_calls(calls: Sequence[StoredEvent], total: int, most: int) -> str:
    """The first calls in at most this many characters, and how many more there are."""
    named: list[str] = []
    for call in calls:
        label = f"{_call_label(call)} ({call.outcome})"
        if sum(map(len, named)) + 2 * len(named) + len(label) > most:
            break
        named.append(label)
    return ", ".join([*named, f"and {total - len(named)} more"] if total > len(named) else named)


def telling_argument(arguments: Any) -> str:
    """The argument of a call that tells most: a path, a command, a pattern; empty where none is known."""
    value: Any = arguments if isinstance(arguments, str) else ""
    if isinstance(arguments, dict):
        value = next((arguments[key] for key in _TELLING_ARGUMENTS if arguments.get(key)), "")
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _call_label(call: StoredEvent) -> str:
    """The tool's name with the argument that tells most."""
    what = telling_argument(call.rest.get("arguments"))
    return f"{one_line(call.row['name'], LABEL)} {one_line(seen(what), 80)}".strip()


def _sum(figures: Any) -> int | None:
    """The sum of the known figures; None where none is known."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None
