"""The steps of a session: model responses, each with its message and tool calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agtrace_indexer.index.questions import events, turns, usage
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts
from agtrace_indexer.index.questions.turns import TokenCounts
from agtrace_indexer.index.questions.usage import Figures
from agtrace_schema.answers import StepSummary, Tokens
from agtrace_schema.events import EventType
from msgspec import Struct

from agtrace.sessions.known_failures import known_failures
from agtrace.sessions.quotes import seen
from agtrace.sessions.said import error_of
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line

_REASONING = 200
_NAMED = 8  # calls per step
_SUMMARY = 480  # characters that name calls, within the 500 of a string
_INPUT = 4  # kinds that count the input of a response, cached or not: the first ones
_TELLING_ARGUMENTS = ("file_path", "path", "command", "cmd", "pattern", "query", "url", "description", "prompt")

ALWAYS_SHOWN = ("input_tokens", "output_tokens")
"""The kinds of tokens that are shown whenever they are known; the others only if they aren't zero."""


class StepUsage(Struct, frozen=True):
    """The token usage of a step."""

    tokens: Tokens | None = None
    context_tokens: int | None = None
    """The whole input of the last response, which filled its context window."""
    incomplete: bool | None = None
    """True if the log has only placeholder figures for some response."""

    @classmethod
    def of(cls, figures: Sequence[Figures]) -> StepUsage:
        """Sum up the figures of responses, in file order."""
        if not figures:
            return cls()
        sums = {kind: _sum(getattr(each.tokens, kind) for each in figures) for kind in TokenCounts._fields}
        known = {
            kind.removesuffix("_tokens"): sum
            for kind, sum in sums.items()
            if sum or (sum == 0 and kind in ALWAYS_SHOWN)
        }
        return cls(
            tokens=Tokens(**known) if known else None,
            context_tokens=_sum(figures[-1].tokens[:_INPUT]),
            incomplete=None if all(each.complete for each in figures) else True,
        )


class Step(NamedTuple):
    """A step and its turn; a turn without a response has one step without a summary."""

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
    """Yield the steps after a (turn, step), in order, reading each as needed.

    A turn without a response counts as step -1.
    """
    for turn in turns.spans(connection, session.id, from_turn=behind[0], turn_index=turn_index, last_event=last_event):
        shown_to = behind[1] if turn.turn_index == behind[0] else -2
        span = turn._replace(last_event=min(turn.last_event, last_event))
        found = turns.steps(connection, session.id, span, shown_to)
        if not found and shown_to < -1:
            yield Step(turn.turn_index, -1, None)
        for step in found:
            yield _step(connection, session, step, include_reasoning=include_reasoning)


def _step(connection: sqlite3.Connection, session: Session, step: turns.Step, *, include_reasoning: bool) -> Step:
    used = StepUsage.of(usage.of_step(connection, session.id, step))
    summary = StepSummary(
        step_index=step.step_index,
        first_event=step.first_event,
        tool_calls=step.calls,
        failed_tools=known_failures(session.provider, step.calls, step.failed),
        tokens=used.tokens,
        context_tokens=used.context_tokens,
        tokens_incomplete=used.incomplete,
        **_said(connection, session, step, include_reasoning=include_reasoning),
    )
    return Step(step.turn_index, step.step_index, summary)


def _said(
    connection: sqlite3.Connection, session: Session, step: turns.Step, *, include_reasoning: bool
) -> dict[str, str]:
    """Return the model's message and calls as one line, and its thinking if requested."""
    shown = {EventType.TOOL_CALL: _NAMED, EventType.MESSAGE: 1}
    if include_reasoning:
        shown[EventType.REASONING] = _NAMED
    of_step = events.of_step(connection, session.id, step, shown)
    first = [event for kind, most in shown.items() for event in [e for e in of_step if e.type == kind][:most]]
    opened = with_texts(connection, first)
    calls = [event for event in opened if event.type == EventType.TOOL_CALL]
    message = "".join(seen(event.text) for event in opened if event.type == EventType.MESSAGE)
    thought = one_line(" ".join(seen(event.text) for event in opened if event.type == EventType.REASONING), _REASONING)
    said = one_line(message, USER_MESSAGE if not calls else LABEL * 2)
    summary = " ".join(filter(None, [said, _named_calls(calls, step.calls, _SUMMARY - len(said))]))
    errors = (error_of(connection, session.provider, call) for call in calls)
    told = {"summary": summary, "error": next(filter(None, errors), ""), "reasoning": thought}
    return {name: value for name, value in told.items() if value or name == "summary"}


def _named_calls(calls: Sequence[StoredEvent], total: int, most: int) -> str:
    """Return the first calls in at most this many characters, and the number of others."""
    named: list[str] = []
    for call in calls:
        label = f"{_call_label(call)} ({call.outcome})"
        if sum(map(len, named)) + 2 * len(named) + len(label) > most:
            break
        named.append(label)
    return ", ".join([*named, f"and {total - len(named)} more"] if total > len(named) else named)


def telling_argument(arguments: Any) -> str:
    """Return the most telling argument of a call, such as a path, command or pattern; empty if none is known."""
    value: Any = arguments if isinstance(arguments, str) else ""
    if isinstance(arguments, dict):
        value = next((arguments[key] for key in _TELLING_ARGUMENTS if arguments.get(key)), "")
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _call_label(call: StoredEvent) -> str:
    """Return the name of the tool and its most telling argument."""
    what = telling_argument(call.rest.get("arguments"))
    return f"{one_line(call.row.name or '', LABEL)} {one_line(seen(what), 80)}".strip()


def _sum(figures: Any) -> int | None:
    """Return the sum of the known figures; None if none is known."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None
