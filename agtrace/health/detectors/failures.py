"""Findings about failures: by tool, in streaks, errors that return, the model's API, calls without a result."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from agtrace_schema.analysis import Severity

from agtrace.health.detectors.outcome import ending_of, is_unanswered, shown_by
from agtrace.health.examination import SEVERITIES
from agtrace.health.facts.actions import (
    Attempt,
    attempts,
    deed,
    error_text,
    is_api_error,
    is_interruption,
    is_passed_over,
    is_probe,
    quoted,
    tool_named,
    was_retried,
)
from agtrace.health.facts.checks import is_check
from agtrace.health.finding import Finding, cost, detector
from agtrace.health.history import Call, History, Message, Notice, Said, Thought, of_one_response
from agtrace.text.lines import cut
from agtrace.text.numbers import counted
from agtrace.text.signatures import Signature, signature_of

FEW_FAILURES, FAILING_SHARE, MANY_FAILURES = 4, 0.2, 10
STREAK, LONG_STREAK = 3, 6
RETURNS, MANY_RETURNS = 3, 6

_SHOWN = 120


@detector("Failures", version=3)
def find_failed_calls(history: History) -> Iterator[Finding]:
    """Of a tool's calls, at least 4 and at least one in five failed, or at least 10; probes, tests, builds and linters
    don't count.
    """
    by_tool: dict[str, list[Call]] = defaultdict(list)
    for call in history.calls:
        by_tool[call.tool].append(call)
    found = [finding for tool, calls in by_tool.items() if (finding := _failed_calls(tool, calls))]
    yield from _worst_first(found)


@detector("Failures")
def find_failure_streak(history: History) -> Iterator[Finding]:
    """At least 3 attempts in a row failed within one turn, whatever the tools."""
    found = []
    for streak in _streaks(history):
        calls = [call for attempt in streak for call in attempt.counted]
        tools = Counter(call.tool for call in calls)
        which = ", ".join(tool_named(tool) for tool, _ in tools.most_common(3))
        spent = cost(history, streak[0].first_event, streak[-1].last_event)
        error = next(filter(None, (signature_of(call.result) for call in calls if call.failed)), None)
        found.append(
            Finding.of(
                "Critical" if len(streak) >= LONG_STREAK else "Warning",
                f"{len(streak):,} attempts in a row failed ({which}){spent}"
                + (f": {quoted(error.line, _SHOWN)}" if error else ""),
                [attempt.counted[0].evidence for attempt in streak],
                streak[0].turn,
                told=frozenset(call.evidence for call in calls),
            )
        )
    yield from _worst_first(found)


@detector("Failures")
def find_returning_error(history: History) -> Iterator[Finding]:
    """At least 3 attempts, with at least 2 different actions, got the same error; numbers, paths and quoted texts in it
    don't matter.
    """
    came: dict[str, list[Call]] = defaultdict(list)
    lines: dict[str, Signature] = {}
    tries: Counter[str] = Counter()
    for attempt in attempts(history):
        told = [(call, signature_of(call.result)) for call in attempt.counted if call.failed]
        for call, signature in told:
            if signature is not None:
                came[signature.key].append(call)
                lines.setdefault(signature.key, signature)
        tries.update({signature.key for _, signature in told if signature is not None})
    found = []
    for key, calls in came.items():
        if tries[key] < RETURNS or len({deed(call) for call in calls}) < 2:
            continue
        found.append(
            Finding.of(
                "Critical" if tries[key] >= MANY_RETURNS else "Warning",
                f"{tries[key]:,} attempts with different actions got the same error: {quoted(lines[key].line, _SHOWN)}",
                [call.evidence for call in calls],
                calls[0].turn,
                count=tries[key],
                told=frozenset(call.evidence for call in calls),
            )
        )
    yield from _worst_first(found)


@detector("Failures", structural=True)
def find_api_errors(history: History) -> Iterator[Finding]:
    """The model's API failed, according to the log."""
    errors = [n for n in history.notices if is_api_error(n, history.provider)]
    if not errors:
        return
    shown = sum(not was_retried(error) for error in errors)
    last = ending_of(history).event_index == errors[-1].event_index
    severity: Severity = "Critical" if last else "Warning" if shown or len(errors) >= 3 else "Info"
    what = [
        f"{shown:,} shown to the human" if shown else "",
        f"{len(errors) - shown:,} retried" if shown < len(errors) else "",
    ]
    said = next(filter(None, map(error_text, reversed(errors))), "")
    message = f"The model's API failed {counted(len(errors), 'time')} ({', '.join(filter(None, what))})"
    message += ", and nothing came after it" if last else ""
    yield Finding.of(
        severity, f"{message}: {said}" if said else message, [error.event_index for error in errors], errors[0].turn
    )


@detector("Failures", structural=True)
def find_unanswered_calls(history: History) -> Iterator[Finding]:
    """Calls never got a result although the session went on; interrupted calls don't count."""
    calls = list(_unanswered(history))
    if not calls:
        return
    tools = ", ".join(sorted({tool_named(call.tool) for call in calls}))
    yield Finding.of(
        "Warning",
        f"{counted(len(calls), 'call')} never got a result although the session went on ({cut(tools, _SHOWN)})",
        [call.event_index for call in calls],
        calls[0].turn,
    )


@detector("Failures")
def find_ended_on_failure(history: History) -> Iterator[Finding]:
    """The last attempt of the session failed, or it ended with an error of the model's API, whatever was said
    afterwards.
    """
    ending = ending_of(history)
    if ending.ending != "error_left" or ending.event_index is None:
        return
    spoken = any(message.event_index > ending.event_index for message in history.messages)
    how = "and the model spoke after it" if spoken else "and the model said nothing after it"
    turn = next((entry.turn for entry in reversed(history.entries) if shown_by(entry) == ending.event_index), None)
    yield Finding.of(
        "Warning" if spoken else "Critical",
        f"The session ended on a failure, {how}: {ending.reason}",
        (ending.event_index,),
        turn,
    )


def _failed_calls(tool: str, calls: list[Call]) -> Finding | None:
    failed = [call for call in calls if call.failed]
    telling = [call for call in failed if not is_passed_over(call)]
    real = [call for call in telling if not is_check(call)]
    if len(real) < FEW_FAILURES or (len(real) < FAILING_SHARE * len(calls) and len(real) < MANY_FAILURES):
        return None
    rate, told = len(failed) / len(calls), sum(call.told_by_text for call in failed)
    probes, checks = sum(map(is_probe, failed)), len(telling) - len(real)
    message = f"{len(failed):,} of {counted(len(calls), f'{tool_named(tool)} call')} failed ({rate:.0%})"
    others = [f"{counted(probes, 'probe')} that answered “no”"] if probes else []
    others += [counted(checks, "check")] if checks else []
    if others:
        message += f", including {' and '.join(others)}"
    if told:
        message += f"; for {'it' if len(failed) == 1 else f'{told:,} of them'} only the output says so"
    return Finding.of(
        "Critical" if 2 * len(real) >= len(calls) else "Warning",
        message,
        [call.evidence for call in real],
        real[0].turn,
        count=len(failed),
        told=frozenset(call.evidence for call in real),
    )


def _streaks(history: History) -> Iterator[list[Attempt]]:
    """Yield runs of failed attempts within one turn; attempts that are passed over don't end a run."""
    streak: list[Attempt] = []
    spoken = False
    for attempt in attempts(history):
        spoken |= attempt.after_human
        if attempt.passed_over:
            continue
        if streak and (spoken or not attempt.failed or attempt.turn != streak[-1].turn):
            if len(streak) >= STREAK:
                yield streak
            streak = []
        if attempt.failed:
            streak.append(attempt)
        spoken = False
    if len(streak) >= STREAK:
        yield streak


def _unanswered(history: History) -> Iterator[Call]:
    """Yield calls that never got a result and weren't interrupted, after which the session went on."""
    waiting: list[Call] = []  # of one response: the next response shows that the session went on
    for entry in history.entries:
        if isinstance(entry, (Said, Notice)) and is_interruption(entry, history.provider):
            waiting = []
        elif (isinstance(entry, Said) and entry.opens_turn) or (
            isinstance(entry, (Call, Message, Thought)) and waiting and not _goes_with(entry, waiting[0])
        ):
            yield from waiting
            waiting = []
        if isinstance(entry, Call):
            if entry.result_event == entry.event_index:
                waiting = waiting[1:]  # a result that doesn't say whose it is
            elif is_unanswered(entry, history.provider):
                waiting.append(entry)


def _goes_with(entry: Call | Message | Thought, waiting: Call) -> bool:
    """Whether an entry belongs to the response of a call, or is a result without a call."""
    if isinstance(entry, Call) and entry.result_event == entry.event_index:
        return True
    return of_one_response(waiting, entry)


def _worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Sort findings, the worst first."""
    return sorted(found, key=lambda finding: (SEVERITIES.index(finding.severity), -finding.count, finding.events))
