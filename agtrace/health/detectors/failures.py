"""Findings about failures: the same error again and again, what was refused again and again, a check left red."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from agtrace_indexer.landmarks.attempts import attempts as landmarks_in
from agtrace_indexer.landmarks.recognition import landmarks
from agtrace_schema.events import Outcome
from agtrace_schema.landmarks import Verdict
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import (
    attempts,
    call_label,
    command_of,
    deed,
    is_passed_over,
    is_poll,
    only_reads,
    quoted,
    refused_by_human,
)
from agtrace.health.facts.causes import WELL, cause_of
from agtrace.health.facts.changes import changed_files
from agtrace.health.facts.checks import DISCLOSED, KINDS, OF_THE_MACHINE, is_check, kinds_of
from agtrace.health.facts.ending import ending_of
from agtrace.health.finding import Finding, detector, took
from agtrace.health.history import Call, History, derived
from agtrace.text.lines import without_controls
from agtrace.text.signatures import Signature, signatures_in

RETURNS, SOME_RETURNS, MANY_REPEATED, MANY_RETURNS, _SHARE = 3, 4, 5, 6, 3
_LONG_MS = 2 * 60_000
_COMMON_NAMES = frozenset("__init__ app index layout lib main mod page route test types util utils".split())  # noqa: SIM905
_PLACE = later(r"[\w/\\-]\.\w{1,5}(?::|\()\d")
_SHOWN, _COMMAND, _ERROR, _LAST = 120, 60, 100, 1_500
_GUARD = later(
    r"(?i)\b(?:blocked|denied|rejected|refused|not allowed|not permitted|forbidden|disallowed)\b.{0,60}"
    r"\b(?:by|hook|policy|rule|sandbox|permission|guard|settings|parsed safely|workspace)"
    r"|\b(?:hook|policy|sandbox|guard|permission)s?\b.{0,40}\b(?:blocked|denied|rejected|refused|error)\b"
    r"|\boutside (?:of )?the (?:allowed|workspace|project)|\bwas blocked\b|\boperation not permitted\b"
    r"|\brequires? (?:approval|permission)\b"
    r"|\bmust be within\b|\brequested permissions\b|\bsudo: a (?:terminal|password) is required"
)
"""How hooks, rules and sandboxes refuse a call."""


@detector("Failures", version=3)
def find_refused_again(history: History) -> Iterator[Finding]:
    """A hook, a rule, a sandbox or a missing permission refused 4 attempts for the same reason, 3 if each did more than
    read, or 4 and a third of all calls.
    """
    refused: dict[str, list[Call]] = defaultdict(list)
    for attempt in attempts(history):
        call = next((call for call in attempt if _is_guarded(call, history)), None)
        if call is not None and (cause := cause_of(call, history)) is not None:
            refused[cause.key].append(call)
    every = sorted((call for calls in refused.values() for call in calls), key=lambda call: call.event_index)
    most = max(refused.values(), key=len, default=[])
    enough = SOME_RETURNS if any(map(only_reads, most)) else RETURNS
    if len(most) >= enough or len(every) >= max(SOME_RETURNS, len(history.calls) / _SHARE):
        calls = most if len(most) >= enough else every
        cause = cause_of(most[0], history)
        assert cause is not None
        yield _finding(history, "attempts were refused", cause, calls, len(calls))


def _is_guarded(call: Call, history: History) -> bool:
    """Whether a hook, a rule, a sandbox or a missing permission refused a call, and not the human."""
    if call.outcome is Outcome.REJECTED:
        return not refused_by_human(call)
    cause = cause_of(call, history) if call.failed and not is_passed_over(call) else None
    return cause is not None and _GUARD.search(cause.line) is not None


@detector("Loops", version=5)
def find_returning_error(history: History) -> Iterator[Finding]:
    """The same call got the same error at least 5 times, 3 times if it never worked, 6 times if it only reads; or
    different calls did at least 6 times, or 4 times over two minutes or more if the machine was its cause, no edits and
    no checks of the code. Numbers, paths and quoted texts in it don't matter.
    """
    told = False
    for cause, calls, times in _same_errors(history):
        same, reading = _is_one_deed(calls), all(map(only_reads, calls))
        machine = OF_THE_MACHINE.search(cause.line) is not None
        lasted = not history.timed or calls[-1].at - calls[0].at >= _LONG_MS
        if same and not reading:
            least = MANY_REPEATED if _solved(history, calls) or not cause.sure else RETURNS
        else:
            least = SOME_RETURNS if machine and lasted and not reading else MANY_RETURNS
        edits = all(command_of(call) is None and call.writes for call in calls)
        fits = not edits and (lasted or not reading) and (machine or not any(map(is_check, calls)))
        if times >= least and (same or (fits and not told)) and not _is_guarded(calls[0], history):
            yield _finding(history, "attempts got the same error", cause, calls, times)
            told |= not same  # the others mostly tell the same again


def _finding(history: History, what: str, cause: Signature, calls: Sequence[Call], times: int) -> Finding:
    first, same = calls[0], _is_one_deed(calls)
    never = same and not _solved(history, calls)
    return Finding.of(
        "Warning" if never or times >= MANY_REPEATED else "Info",
        f"{times:,} {what}{took(history, first.event_index, calls[-1].evidence)}"
        f"{', and it never worked' if never else ''}: "
        f"{quoted(cause.line, _SHOWN)}, {'as' if same else 'first'} {call_label(first)}",
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
        for call in attempt:
            if not call.failed or is_passed_over(call) or is_poll(call):
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


@detector("Outcome", version=5)
def find_failing_check(history: History) -> Iterator[Finding]:
    """The last test run, build or linter of the session failed because of the code, not the machine or the command
    line, in a file that the session had changed; the model didn't call the failure another's, and the session didn't
    end on one.
    """
    ran = [call for call in history.calls if is_check(call) and call.outcome in (Outcome.OK, Outcome.FAILED)]
    last = ran[-1] if ran else None
    if last is None or not last.failed or history.at_work or ending_of(history).ending == "error_left":
        return
    cause, spoken = cause_of(last, history), [one for one in history.messages if (one.turn or 0) >= (last.turn or 0)]
    if cause is None or not cause.sure or OF_THE_MACHINE.search(cause.line) or _passed_later(last, history):
        return
    changed = {_name(path) for call in history.calls for path in changed_files(call)}
    named = {name for name in changed if name in last.result}
    lines = [one.line for one in signatures_in(last.result) if one.sure]
    inside = next((line for line in lines if any(name in line for name in named)), None)
    line = inside or (None if _PLACE.search(cause.line) else cause.line)
    if named and line and not any(DISCLOSED.search(one.text) for one in spoken):
        yield Finding.of(
            "Warning",
            f"The last check failed: {quoted(command_of(last) or '', _COMMAND)}, {quoted(line, _ERROR)}",
            (last.evidence,),
            last.turn,
        )


def _passed_later(last: Call, history: History) -> bool:
    """Whether a check that failed only failed in what came after it, or a later call prints that all went well."""
    after = (call for call in history.calls if call.event_index > last.event_index)
    if any(WELL.search(without_controls(call.result[-_LAST:])) for call in after if is_poll(call) or is_check(call)):
        return True
    runs = [
        one for one in landmarks(landmarks_in(command_of(last) or ""), last.result, last.outcome) if one.kind in KINDS
    ]
    return bool(runs) and kinds_of(last) == {"test run"} and all(one.verdict is Verdict.PASSED for one in runs)


def _name(path: str) -> str:
    """Return a file's name without its ending, by which outputs name it and its tests; with its folder if many files
    are called so.
    """
    inner = path.replace("\\", "/").split("/")
    name = inner[-1].partition(".")[0]
    return "/".join([*inner[-2:-1], name]) if name in _COMMON_NAMES else name
