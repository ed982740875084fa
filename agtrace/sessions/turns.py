"""A session by its turns and steps: what each did, and how it ended. A step is a response with its tool calls."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from agtrace_indexer.index.queries import events, turns, usage
from agtrace_indexer.index.queries.events import StoredEvent, with_texts
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.index.queries.turns import Ending, TokenCounts, Turn
from agtrace_indexer.index.queries.usage import Figures
from agtrace_indexer.providers.provider import Notices
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import FailingTurns, StepSummary, Tokens, TurnDetail, TurnOutcome, TurnOverview
from agtrace_schema.events import EventType, Provider
from msgspec import Struct
from msgspec.structs import replace

from agtrace.problems import InvalidRange
from agtrace.sessions.quotes import beginnings, error_of, start_of
from agtrace.sessions.terms import failures_known, known_failures
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line
from agtrace.times import iso

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
            context_tokens=_sum(figures[-1].tokens[:_INPUT]) if len(figures) > 1 else None,
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
            yield Step(step.turn_index, step.step_index, summary)


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
    message = "".join(start_of(event.text) for event in opened if event.type == EventType.MESSAGE)
    thought = one_line(
        " ".join(start_of(event.text) for event in opened if event.type == EventType.REASONING), _REASONING
    )
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
    what = telling_argument(call.rest.get("arguments"))
    return f"{one_line(call.row.name or '', LABEL)} {one_line(start_of(what), 80)}".strip()


def _sum(figures: Any) -> int | None:
    """Return the sum of the known figures; None if none is known."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


_ANSWERS, _SHORTEST_ANSWER, _LONGEST_ANSWER = 2_400, 120, 400
"""Characters of all answers of turns in an overview, and of one."""
_WITH_ANSWERS = 40

_KEY_ACTIONS = 6
_FAILING_SHOWN = 20
_ALL_EVENTS = 1 << 62


def turn_overviews(
    connection: sqlite3.Connection, session: Session, from_turn: int, last_event: int, most: int
) -> list[TurnOverview]:
    """Return the turns of a session from one on, at most this many, up to the snapshot's last event."""
    found = turns.page(connection, session.id, from_turn=from_turn, last_event=last_event, most=most)
    outcomes = _outcomes(connection, session, found)
    return [_overview(turn, outcomes[turn.turn_index], session.provider) for turn in found]


def with_answers(
    connection: sqlite3.Connection, session: Session, listed: Sequence[TurnOverview], *, but: int | None
) -> list[TurnOverview]:
    """Return turns with what the model said last in each; not where that is the event `but`, which is shown already.

    Of very many, only the first have it: no page has room for more.
    """
    found = turns.several(connection, session.id, [turn.turn_index for turn in listed[:_WITH_ANSWERS]])
    endings = turns.endings(connection, session.id, found, api_errors=AGENTS[session.provider].notices.api_errors)
    last = {turn: ending.last_message for turn, ending in endings.items() if ending.last_message != but}
    most = min(max(_ANSWERS // max(len(listed), 1), _SHORTEST_ANSWER), _LONGEST_ANSWER)
    told = beginnings(connection, session, filter(None, last.values()), most)
    return [
        replace(turn, answer=(index, told[index])) if (index := last.get(turn.turn_index)) in told else turn
        for turn in listed
    ]


def turn_details(connection: sqlite3.Connection, session: Session, steps: Iterable[Step]) -> list[TurnDetail]:
    """Group steps into their turns."""
    grouped = {index: list(group) for index, group in groupby(steps, key=lambda step: step.turn_index)}
    found = turns.several(connection, session.id, grouped)
    if not found:
        return []
    outcomes = _outcomes(connection, session, found)
    tools = turns.tools(connection, session.id, found)
    actions: dict[int | None, list[str]] = {}
    for turn, group in groupby(tools, key=lambda tool: tool.turn_index):
        of_turn = list(group)
        used = Counter({tool.name: tool.calls for tool in of_turn}).most_common(_KEY_ACTIONS)
        failed = Counter({tool.name: tool.failed for tool in of_turn if tool.failed}).most_common(_KEY_ACTIONS)
        said = ["Used tools: " + ", ".join(f"{name} x{count}" if count > 1 else name for name, count in used)]
        said += ["Failed: " + ", ".join(f"{name} x{count}" for name, count in failed)] if failed else []
        actions[turn] = [one_line(action, USER_MESSAGE) for action in said]
    return [
        TurnDetail(
            turn_index=turn.turn_index,
            user_message=one_line(turn.request or "", USER_MESSAGE),
            copied=True if turn.copied else None,
            steps=[step.summary for step in grouped[turn.turn_index] if step.summary is not None],
            outcome=outcomes[turn.turn_index],
            key_actions=actions.get(turn.turn_index, []),
        )
        for turn in found
    ]


def failing_turns(connection: sqlite3.Connection, session: Session, last_event: int) -> FailingTurns | None:
    """Return the turns with failed tool calls and their number, without copied turns; None if there are none."""
    found = turns.failing(connection, session.id, last_event)
    return FailingTurns(total=len(found), turns=found[:_FAILING_SHOWN]) if found else None


def last_outcome(connection: sqlite3.Connection, session: Session) -> TurnOutcome:
    """Return how the last turn of a session ended; unknown if it has none."""
    last = turns.last(connection, session.id)
    return "unknown" if last is None else turn_overviews(connection, session, last, _ALL_EVENTS, 1)[0].outcome


def why_unknown(connection: sqlite3.Connection, session: Session) -> str:
    """Return why it isn't known how a session ended whose `last_outcome` is unknown."""
    last = turns.last(connection, session.id)
    if last is None:
        return "no turns"
    if not failures_known(session.provider, session.tool_calls):
        return "no results in its log"
    found = turns.page(connection, session.id, from_turn=last, last_event=_ALL_EVENTS, most=1)
    api_errors = AGENTS[session.provider].notices.api_errors
    ending = turns.endings(connection, session.id, found, api_errors=api_errors)[last]
    return "open call" if ending.responses else "no answer"


def check_turn(connection: sqlite3.Connection, session: Session, turn_index: int) -> None:
    """Raise `InvalidRange` for a turn that the session doesn't have, or no longer has."""
    if turns.exists(connection, session.id, turn_index):
        return
    last = turns.last(connection, session.id)
    last = -1 if last is None else last
    dropped = turns.rolled_back(connection, session.id, turn_index)
    if dropped:
        trouble = f"was rolled back; its events can be opened, {dropped[0]} to {dropped[-1]}"
    elif turn_index > last:
        trouble = f"out of bounds: the session has {session.turn_count + session.copied_turns} turns (max: {last})"
    else:
        trouble = "was retracted: nothing of it is left in the session"
    raise InvalidRange(
        f"Turn {turn_index} {trouble}",
        f"Open event {dropped[0]}." if dropped else "Leave out turn_index to see every turn.",
        requested_turn=turn_index,
        max_turn=last,
    )


def _outcomes(connection: sqlite3.Connection, session: Session, found: Sequence[Turn]) -> dict[int, TurnOutcome]:
    notices = AGENTS[session.provider].notices
    endings = turns.endings(connection, session.id, found, api_errors=notices.api_errors)
    outcomes = {turn: _outcome(ending, notices) for turn, ending in endings.items() if turn is not None}
    untold = {turn.turn_index for turn in found if not failures_known(session.provider, turn.tool_calls)}
    return {turn: "unknown" if turn in untold else outcome for turn, outcome in outcomes.items()}


def _outcome(ending: Ending, notices: Notices) -> TurnOutcome:
    """Return how a turn ended.

    failed: the last tool execution or the model's API failed, and no message followed; partial: executions failed or
    were rejected or interrupted, or the turn was; unknown: the model never answered, or the outcome of its last call
    isn't known; success otherwise.
    """
    said = -1 if ending.last_message is None else ending.last_message
    if _failed_at_api(ending, said, notices):
        return "failed"
    if not ending.responses:
        return "unknown"
    if ending.failed:
        last_one_did = ending.last_failed is not None and ending.last_failed == ending.last_result
        return "failed" if last_one_did and said < (ending.last_failed or 0) else "partial"
    if ending.stopped:
        return "partial"
    return "unknown" if ending.open_call is not None and ending.open_call > said else "success"


def _failed_at_api(ending: Ending, said: int, notices: Notices) -> bool:
    """Whether the model's API failed and the model did nothing more.

    If commands of the human may fail with the same notification, an error after the model's last message is theirs.
    """
    error, done = ending.api_error, ending.last_result or -1
    return error is not None and error > max(said, done) and (said <= done or not notices.also_of_commands)


def _overview(turn: Turn, outcome: TurnOutcome, provider: Provider) -> TurnOverview:
    tokens = turn.tokens._asdict()
    return TurnOverview(
        id=f"turn-{turn.turn_index}",
        turn_index=turn.turn_index,
        timestamp=iso(turn.started_at),
        user_message=one_line(turn.request or "", USER_MESSAGE),
        user_event=turn.request_event,
        copied=True if turn.copied else None,
        step_count=turn.step_count,
        tool_calls=turn.tool_calls,
        failed_tools=known_failures(provider, turn.tool_calls, turn.failed_calls),
        outcome=outcome,
        stats={name: sum for name, sum in tokens.items() if sum or (sum == 0 and name in ALWAYS_SHOWN)} or None,
        tokens_incomplete=True if turn.incomplete_usage else None,
    )
