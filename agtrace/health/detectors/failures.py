"""Findings about failures: the same error again and again, what was refused again and again, a check left red."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from agtrace_indexer.landmarks.attempts import attempts as landmarks_in
from agtrace_indexer.landmarks.recognition import landmarks
from agtrace_schema.events import Outcome
from agtrace_schema.landmarks import Verdict
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import (
    attempts,
    command_of,
    deed,
    is_passed_over,
    is_poll,
    is_probe,
    named,
    only_reads,
    quoted,
    refused_by_human,
)
from agtrace.health.facts.causes import WELL, cause_of
from agtrace.health.facts.changes import changed_files
from agtrace.health.facts.checks import KINDS, OF_THE_MACHINE, Kind, kinds_of
from agtrace.health.facts.ending import ending_of
from agtrace.health.finding import Finding, detector, took
from agtrace.health.history import Call, History, derived
from agtrace.text.signatures import Signature

RETURNS, SOME_RETURNS, MANY_REPEATED, MANY_RETURNS = 3, 4, 5, 6
_LONG_MS = 2 * 60_000
_SHOWN, _COMMAND, _ERROR = 120, 60, 100
_SET_ASIDE = later(r"\bgit (?:stash|worktree|checkout|switch)\b")
"""The check was to show how things were without the changes."""

_GUARD = later(
    r"(?i)\b(?:blocked|denied|rejected|refused|not allowed|not permitted|forbidden|disallowed)\b.{0,60}"
    r"\b(?:by|hook|policy|rule|sandbox|permission|guard|settings|parsed safely|workspace)"
    r"|\b(?:hook|policy|sandbox|guard|permission)s?\b.{0,40}\b(?:blocked|denied|rejected|refused|error)\b"
    r"|\boutside (?:of )?the (?:allowed|workspace|project)|\bwas blocked\b|\boperation not permitted\b"
    r"|\brequires? (?:approval|permission)\b"
    r"|\bmust be within\b|\brequested permissions\b|\bsudo: a (?:terminal|password) is required"
)
"""How hooks, rules and sandboxes refuse a call."""


@detector("Failures")
def find_refused_again(history: History) -> Iterator[Finding]:
    """A hook, a rule, a sandbox or a missing permission refused at least 4 attempts for the same reason."""
    for cause, calls, times in _same_errors(history):
        if times >= SOME_RETURNS and _GUARD.search(cause.line):
            yield _finding(history, "attempts were refused", cause, calls, times)


@detector("Loops")
def find_repeated_failure(history: History) -> Iterator[Finding]:
    """The same call got the same error at least 4 times, or 3 times if it never worked; 6 times if it only reads."""
    yield from _again(history, same=True)


@detector("Failures", version=2)
def find_returning_error(history: History) -> Iterator[Finding]:
    """Different calls got the same error at least 6 times, or 4 times over two minutes or more if they were no edits
    and did more than read; numbers, paths and quoted texts in it don't matter.
    """
    yield from _again(history, same=False)


def _again(history: History, *, same: bool) -> Iterator[Finding]:
    for cause, calls, times in _same_errors(history):
        if _GUARD.search(cause.line) or same != _is_one_deed(calls):
            continue
        quick = all(only_reads(call) or (not same and command_of(call) is None and call.writes) for call in calls)
        lasted = not history.timed or calls[-1].at - calls[0].at >= _LONG_MS
        enough = times >= SOME_RETURNS or (same and cause.sure and not _solved(history, calls))
        if times >= MANY_RETURNS or (enough and (lasted or same) and not quick):
            yield _finding(history, "attempts got the same error", cause, calls, times)


def _finding(history: History, what: str, cause: Signature, calls: Sequence[Call], times: int) -> Finding:
    first, same = calls[0], _is_one_deed(calls)
    never = same and not _solved(history, calls)
    return Finding.of(
        "Warning" if never or times >= (MANY_REPEATED if same else MANY_RETURNS) else "Info",
        f"{times:,} {what}{took(history, first.event_index, calls[-1].evidence)}"
        f"{', and it never worked' if never else ''}: "
        f"{quoted(cause.line, _SHOWN)}, {'as' if same else 'first'} {named(first)}",
        [call.evidence for call in calls],
        first.turn,
        count=times,
    )


def _is_one_deed(calls: Sequence[Call]) -> bool:
    return len({deed(call) for call in calls}) == 1


@derived
def _same_errors(history: History) -> list[tuple[Signature, list[Call], int]]:
    """Return the causes of at least three failed attempts, with the calls and the number of attempts, most first."""
    came: dict[str, list[Call]] = defaultdict(list)
    tries: dict[str, set[int]] = defaultdict(set)
    causes: dict[str, Signature] = {}
    for number, attempt in enumerate(attempts(history)):
        for call in attempt.calls:
            refused = call.outcome is Outcome.REJECTED and not refused_by_human(call)
            if not (refused or (call.failed and not is_passed_over(call))) or is_poll(call):
                continue
            cause = cause_of(call, history)
            if cause is not None:
                came[cause.key].append(call)
                tries[cause.key].add(number)
                causes.setdefault(cause.key, cause)
    found = [(causes[key], calls, len(tries[key])) for key, calls in came.items() if len(tries[key]) >= RETURNS]
    return sorted(found, key=lambda one: -one[2])


def _solved(history: History, calls: Sequence[Call]) -> bool:
    """Whether the same, or a check of the same kind, went well after the last failure."""
    last, kinds = calls[-1], kinds_of(calls[-1])
    after = (call for call in history.calls if call.event_index > last.event_index and call.outcome is Outcome.OK)
    return any(deed(call) == deed(last) or not kinds.isdisjoint(kinds_of(call)) for call in after)


# -- checks ----------------------------------------------------------------------------------------


@detector("Outcome", version=3)
def find_failing_check(history: History) -> Iterator[Finding]:
    """The last test run, build or linter of the session failed because of the code, not the machine or the command
    line; none of its kind passed after it, what it printed names a file that the session had changed, and the session
    didn't end on a failure.
    """
    if history.at_work or ending_of(history).ending == "error_left":
        return
    left = _left_failing(history)
    if not left:
        return
    kind, last = max(left.items(), key=lambda one: one[1].event_index)
    cause = cause_of(last, history)
    assert cause is not None
    written = {PurePath(path).stem for call in history.calls for path in changed_files(call)}
    if not any(name in last.result for name in written):
        return
    yield Finding.of(
        "Warning",
        f"The last {kind} failed: {quoted(command_of(last) or '', _COMMAND)}, {quoted(cause.line, _ERROR)}",
        (last.evidence,),
        last.turn,
        count=len(left),
    )


def _left_failing(history: History) -> dict[Kind, Call]:
    """Return the last check of each kind, if it failed."""
    left: dict[Kind, Call] = {}
    for call in history.calls if any(call.failed for call in history.calls) else ():
        kinds = kinds_of(call)
        passed = kinds if call.outcome is Outcome.OK else _passed(call)
        for kind in passed:
            left.pop(kind, None)
            if kind == "test run":
                left.pop("build", None)  # what is tested was built
        aside = is_probe(call) or _SET_ASIDE.search(command_of(call) or "")
        if call.failed and kinds - passed and not aside and _tells(call, history):
            left |= dict.fromkeys(kinds - passed, call)
    return left


def _tells(call: Call, history: History) -> bool:
    """Whether a failed check tells of the code: not if the machine or the command was the cause, or none is named."""
    cause = cause_of(call, history)
    return cause is not None and cause.sure and OF_THE_MACHINE.search(cause.line) is None


def _passed(call: Call) -> frozenset[Kind]:
    """Return which tests and builds passed of a command that failed or is running, as what it printed says."""
    if not kinds_of(call) or call.outcome not in (Outcome.FAILED, Outcome.RUNNING):
        return frozenset()
    found = landmarks(landmarks_in(command_of(call) or ""), call.result, call.outcome)
    runs = [one for one in found if one.kind in KINDS]
    counted = "linter" in kinds_of(call)  # whose errors aren't those of the tests before it
    well = {one for one in runs if one.verdict is Verdict.PASSED or (counted and WELL.search(one.detail or ""))}
    return frozenset(KINDS[one.kind] for one in runs) - {KINDS[one.kind] for one in runs if one not in well}
