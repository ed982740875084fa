"""Where the time of a session went: tools, model or human."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Literal, TypeGuard

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.analysis import TimeSpent
from agtrace_schema.events import Outcome, Provider, UserKind

from agtrace.health.facts.actions import asks_human, is_shell
from agtrace.health.history import Call, Entry, History, Message, Thought, UserText

_MINUTE = 60_000
ABSENT_MS = 120 * _MINUTE
"""A longer wait isn't a slow model: the machine was asleep, or nobody was there."""

_TYPED = frozenset({UserKind.HUMAN, UserKind.TASK, UserKind.COMMAND})

_Who = Literal["tools", "model", "human", "unknown"]
_MODEL: _Who = "model"
_HUMAN: _Who = "human"

_What = Literal["typed", "put", "said", "done", "noted"]
"""Typed by the human; put in the user's role by the harness; said by the model; done by it or a tool; none of these."""


def _took(call: Call) -> int:
    """Return how long a call was waited for, in ms, without what continued in the background; 0 if unknown."""
    if call.duration_ms is None or call.result_event is None:
        return 0
    waited = call.answered_at - call.at if call.at and call.answered_at > call.at else call.duration_ms
    return min(call.duration_ms, waited)


def _cut_off(call: Call, took: int, provider: Provider) -> int:
    """Return the agent's time limit for commands, in milliseconds, if this one took longer: then it waited for
    permission first, which the log doesn't record. 0 for any other call."""
    most = AGENTS[provider].longest_command_ms
    return most if most is not None and is_shell(call) and took > most + _MINUTE else 0


def time_spent(history: History) -> TimeSpent:
    """Return where the time went from the first event to the last; empty if the log's times can't tell.

    The parts add up to that span. While a call ran, the time is the tools'; otherwise it is the human's while they were
    asked or until they typed; otherwise the model's, or unknown if longer than `ABSENT_MS`.
    """
    pieces = _pieces(history) if history.timed else []
    if not pieces:
        return TimeSpent()
    shares: dict[_Who, int] = dict.fromkeys(("tools", "model", "human", "unknown"), 0)
    for who, milliseconds in pieces:
        shares[who] += milliseconds
    seconds, told, before = {}, 0, 0
    for who, milliseconds in shares.items():
        before += milliseconds
        seconds[who] = round(before / 1000) - told
        told += seconds[who]
    return TimeSpent(
        tools_seconds=seconds["tools"],
        model_seconds=seconds["model"],
        human_seconds=seconds["human"],
        unknown_seconds=seconds["unknown"] or None,
    )


def _pieces(history: History) -> list[tuple[_Who, int]]:
    """Return the span of a session in pieces, each with who took it and its milliseconds, in order of time.

    At each point in time calls and questions begin or end, or a stretch begins that belongs to somebody.
    """
    points: list[
        tuple[int, int, int, _Who | None]
    ] = []  # time, change in running calls, in open questions, whose stretch begins
    points += [(start, 0, 0, who) for start, who in _stretches(history)]
    for call in history.calls:
        if call.at and call.answered_at > call.at:
            running = _running_from(call, history.provider)
            points += [(call.at, 0, 1, None), (running, 1, 0, None), (call.answered_at, -1, -1, None)]
    if not points:
        return []
    points.sort(key=itemgetter(0))
    pieces: list[tuple[_Who, int]] = []
    who: _Who = "model"
    executions = questions = 0
    before = points[0][0]
    for time, ran, asked, stretch in points:
        if time > before:
            taken: _Who = "tools" if executions else "human" if questions else who
            if taken == "model" and time - before > ABSENT_MS:
                taken = "unknown"
            pieces.append((taken, time - before))
            before = time
        executions, questions = executions + ran, questions + asked
        who = stretch or who
    return pieces


def _running_from(call: Call, provider: Provider) -> int:
    """Return when a call began to run; the time before is the human's, who was asked."""
    if asks_human(call) or call.outcome is Outcome.REJECTED:
        return call.answered_at
    if cut_off := _cut_off(call, _took(call), provider):
        return call.answered_at - cut_off
    return call.at if call.duration_ms is None else max(call.at, call.answered_at - call.duration_ms)


def _stretches(history: History) -> list[tuple[int, _Who]]:
    """Return the times from which the model or the human had to act next, in order; the last one is the end."""
    told = sorted(_moments(history), key=itemgetter(0, 1))
    if not told:
        return []
    first, found, since, spoken = told[0][0], [], 0, False
    for moment, _, what in told:
        if what != "noted":
            typed = what == "typed" or (what == "put" and spoken)
            found.append((since or first, _HUMAN if typed else _MODEL))
            since, spoken = moment, what == "said"
    return [*found, (since or first, _HUMAN if spoken or not since else _MODEL), (told[-1][0], _MODEL)]


def _moments(history: History) -> Iterator[tuple[int, int, _What]]:
    """Yield the time, the event and the kind of everything that has a time in the log."""
    for entry in history.entries:
        if isinstance(entry, Call):
            if entry.answered_at and entry.result_event is not None:
                yield entry.answered_at, entry.result_event, "done"
            what: _What = "done"
        elif isinstance(entry, UserText):
            interrupted = entry.kind is UserKind.INTERRUPTION
            what = "typed" if entry.kind in _TYPED else "done" if interrupted else "put"
        else:
            what = "noted" if not _by_model(entry) else "said" if isinstance(entry, Message) else "done"
        if entry.at:
            yield entry.at, entry.event_index, what


def _by_model(entry: Entry) -> TypeGuard[Message | Thought]:
    """Whether it is a text or a thought of a model: what an agent says in its place is part of no response."""
    return isinstance(entry, (Message, Thought)) and entry.step is not None
