"""Where the time of a session went."""

from __future__ import annotations

from agtrace_schema.analysis import TimeSpent
from agtrace_schema.events import Outcome, UserKind
from hypothesis import given, settings
from hypothesis import strategies as st

from agtrace.health.facts.time_spent import time_spent
from agtrace.health.history import Call, Entry, History, Message, Notice, Thought, UserText
from tests.depth import examples

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
START = 1_790_000_000_000


def _history(*entries: Entry) -> History:
    return History("claude_code", list(entries), 1)


def _said(event: int, at: int, kind: UserKind = UserKind.HUMAN) -> UserText:
    return UserText(event, 0, START + at, kind, "Go on.", kind is UserKind.HUMAN)


def _message(event: int, at: int, step: int = 0) -> Message:
    return Message(event, 0, step, START + at, "Well.")


def _ran(
    event: int, at: int, took: int, step: int = 0, tool: str = "Bash", told: int | None = -1, **more: object
) -> Call:
    call = Call(event, 0, step, START + at, tool, {"command": "make all"}, b"", Outcome.OK)
    call.result_event, call.answered_at, call.duration_ms = event + 1, START + at + took, took if told == -1 else told
    for name, value in more.items():
        setattr(call, name, value)
    return call


def test_the_time_is_told_apart() -> None:
    spent = time_spent(
        _history(
            _said(0, 0),
            _message(1, 10 * SECOND),
            _ran(2, 12 * SECOND, 30 * SECOND),
            _message(4, 50 * SECOND, 1),
            _said(5, HOUR),
            _message(6, HOUR + 5 * SECOND, 2),
        )
    )
    assert spent == TimeSpent(tools_seconds=30, model_seconds=12 + 8 + 5, human_seconds=3600 - 50)


def test_executions_at_the_same_time_count_once() -> None:
    spent = time_spent(
        _history(_said(0, 0), _ran(1, SECOND, MINUTE), _ran(3, SECOND, MINUTE), _ran(5, 31 * SECOND, MINUTE))
    )
    assert spent == TimeSpent(tools_seconds=90, model_seconds=1, human_seconds=0)


def test_a_night_within_a_turn_is_nobodys_time_but_a_night_before_a_request_is_the_humans() -> None:
    spent = time_spent(_history(_said(0, 0), _message(1, 8 * HOUR), _said(2, 20 * HOUR), _message(3, 20 * HOUR)))
    assert spent == TimeSpent(tools_seconds=0, model_seconds=0, human_seconds=12 * 3600, unknown_seconds=8 * 3600)


def test_what_a_human_took_to_answer_or_to_allow_is_the_humans_time() -> None:
    asked = _ran(1, 0, 5 * MINUTE, tool="AskUserQuestion", told=None)
    allowed = _ran(3, 5 * MINUTE, 10 * MINUTE, told=2 * SECOND)
    refused = _ran(5, 15 * MINUTE, MINUTE, told=None, outcome=Outcome.REJECTED)
    spent = time_spent(_history(_said(0, 0), asked, allowed, refused))
    assert spent == TimeSpent(tools_seconds=2, model_seconds=0, human_seconds=16 * 60 - 2)


def test_notes_of_the_harness_while_the_human_is_away_are_the_humans_time() -> None:
    summary = Notice(2, 0, START + 30 * MINUTE, "system/away_summary", "All is done.")
    hook = _said(3, 40 * MINUTE, UserKind.INJECTED)
    spent = time_spent(_history(_said(0, 0), _message(1, SECOND), summary, hook, _said(4, HOUR), _message(5, HOUR, 1)))
    assert spent.human_seconds is not None and spent.human_seconds >= 40 * 60
    assert spent.model_seconds == 3600 - spent.human_seconds


def test_what_the_agent_says_in_place_of_a_model_took_no_time_of_the_models() -> None:
    left = _said(2, 2 * MINUTE, UserKind.COMMAND)
    own = Message(3, 0, None, START + 10 * MINUTE, "No response requested.")
    history = _history(_said(0, 0), _message(1, SECOND), left, own, _said(4, 11 * MINUTE), _message(5, 11 * MINUTE, 1))
    assert time_spent(history) == TimeSpent(tools_seconds=0, model_seconds=1, human_seconds=11 * 60 - 1)


def test_without_times_nothing_is_said() -> None:
    assert time_spent(_history(Message(0, 0, 0, 0, "Hello."))) == TimeSpent()


_TIMES = st.integers(0, 30 * HOUR)


@st.composite
def _entries(draw: st.DrawFn) -> list[Entry]:
    """Anything in any order: the times of a log needn't rise."""
    entries: list[Entry] = []
    for number, kind in enumerate(draw(st.lists(st.sampled_from("smtcpun"), max_size=25))):
        event, at = 2 * number, draw(st.one_of(st.just(-START), _TIMES))
        if kind in "sn":
            entries.append(_said(event, at, UserKind.HUMAN if kind == "s" else UserKind.INJECTED))
        elif kind == "m":
            entries.append(_message(event, at, number))
        elif kind == "t":
            entries.append(Thought(event, 0, number, START + at))
        elif kind == "u":
            entries.append(Notice(event, 0, START + at, "system", ""))
        else:
            told = draw(st.one_of(st.none(), st.integers(0, HOUR)))
            call = _ran(event, at, draw(st.integers(-HOUR, HOUR)), number, told=told)
            call.outcome = draw(st.sampled_from(list(Outcome)))
            entries.append(call)
    return entries


@settings(max_examples=examples(40), deadline=None)
@given(_entries())
def test_the_parts_add_up_to_the_span(entries: list[Entry]) -> None:
    times = [entry.at for entry in entries if entry.at]
    times += [entry.answered_at for entry in entries if isinstance(entry, Call) and entry.answered_at]
    history = _history(*entries)
    spent = time_spent(history)
    if not history.timed:
        assert spent == TimeSpent()
        return
    parts = [spent.tools_seconds, spent.model_seconds, spent.human_seconds, spent.unknown_seconds]
    assert all(part is None or part >= 0 for part in parts)
    assert sum(filter(None, parts)) == (round((max(times) - min(times)) / 1000) if times else 0)


def test_a_log_whose_time_runs_backwards_or_stands_still_tells_no_durations() -> None:
    assert time_spent(_history(_said(0, HOUR), _message(1, 0), _said(2, 2 * HOUR))) == TimeSpent()
    rewritten = (_message(number, 10 if number < 30 else HOUR + number * MINUTE) for number in range(40))
    assert time_spent(_history(*rewritten)) == TimeSpent()
