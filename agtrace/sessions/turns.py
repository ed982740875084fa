"""Overview of a session by its turns: what each did, and how it ended."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from agtrace_indexer.index.questions import turns
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.turns import Ending, ToolUse, Turn
from agtrace_indexer.providers.provider import Notices
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import FailingTurns, TurnDetail, TurnOutcome, TurnOverview
from agtrace_schema.events import Provider
from msgspec.structs import replace

from agtrace.problems import InvalidRange
from agtrace.sessions.known_failures import failures_known, known_failures
from agtrace.sessions.said import beginnings
from agtrace.sessions.steps import ALWAYS_SHOWN, Step
from agtrace.text.lines import USER_MESSAGE, one_line
from agtrace.times import iso

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
    actions = _key_actions(turns.tools(connection, session.id, found))
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


def count_turns(connection: sqlite3.Connection, session: Session, last_event: int) -> int:
    """Count the turns of a session up to the snapshot's last event."""
    return turns.count(connection, session.id, last_event)


def turn_behind(
    connection: sqlite3.Connection, session: Session, turn_index: int | None, last_event: int
) -> int | None:
    """Return the turn after this one, up to the snapshot's last event; None after the last one."""
    return turns.behind(connection, session.id, turn_index, last_event)


def check_turn(connection: sqlite3.Connection, session: Session, turn_index: int) -> None:
    """Raise `InvalidRange` for a turn that the session doesn't have, or no longer has."""
    if turns.exists(connection, session.id, turn_index):
        return
    last = turns.last(connection, session.id)
    last = -1 if last is None else last
    trouble = f"out of bounds: the session has {session.turn_count + session.copied_turns} turns (max: {last})"
    raise InvalidRange(
        f"Turn {turn_index} {trouble if turn_index > last else 'was retracted: nothing of it is left in the session'}",
        "Leave out turn_index to see every turn.",
        requested_turn=turn_index,
        max_turn=last,
    )


def _outcomes(connection: sqlite3.Connection, session: Session, found: Sequence[Turn]) -> dict[int, TurnOutcome]:
    """Return how these turns of a session ended, by turn."""
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
        stats=_token_sums(turn) or None,
        tokens_incomplete=True if turn.incomplete_usage else None,
    )


def _token_sums(turn: Turn) -> dict[str, int]:
    """Return the known token sums of a turn; those of caches and reasoning only if they aren't zero."""
    return {kind: sum for kind, sum in turn.tokens._asdict().items() if sum or (sum == 0 and kind in ALWAYS_SHOWN)}


def _key_actions(tools: Iterable[ToolUse]) -> dict[int | None, list[str]]:
    """Return by turn the tools used most and those that failed."""
    actions: dict[int | None, list[str]] = {}
    for turn, group in groupby(tools, key=lambda tool: tool.turn_index):
        of_turn = list(group)
        used = Counter({tool.name: tool.calls for tool in of_turn}).most_common(_KEY_ACTIONS)
        failed = Counter({tool.name: tool.failed for tool in of_turn if tool.failed}).most_common(_KEY_ACTIONS)
        said = ["Used tools: " + ", ".join(f"{name} x{count}" if count > 1 else name for name, count in used)]
        said += ["Failed: " + ", ".join(f"{name} x{count}" for name, count in failed)] if failed else []
        actions[turn] = [one_line(action, USER_MESSAGE) for action in said]
    return actions
