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
from agtrace.health.facts.checks import DISCLOSED, KINDS, OF_THE_MACHINE, Kind, is_check, kinds_of
from agtrace.health.facts.ending import ending_of
from agtrace.health.finding import Finding, detector, took
from agtrace.health.history import Call, History, derived
from agtrace.text.lines import without_controls
from agtrace.text.signatures import Signature, signatures_in

RETURNS, SOME_RETURNS, MANY_REPEATED, MANY_RETURNS, _SHARE = 3, 4, 5, 6, 3
_LONG_MS = 2 * 60_000
_COMMON_NAMES = frozenset("__init__ app index layout lib main mod page route test types util utils".split())  # noqa: SIM905
_EVERYTHING = later(
    r"\b(?:npm|pnpm|yarn|bun|make|just|task|mise|nx|turbo)\b(?: run)? (?:verify|validate|ci|all|preflight|check:all)\b"
)
"""A task that runs all checks of a project."""
_PLACE = later(r"[\w/\\-]\.\w{1,5}(?::|\()\d")
_SHOWN, _COMMAND, _ERROR, _LAST = 120, 60, 100, 1_500
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


@detector("Loops", version=2)
def find_repeated_failure(history: History) -> Iterator[Finding]:
    """The same call got the same error at least 5 times, or 3 times if it never worked; 6 times if it only reads."""
    yield from _again(history, same=True)


@detector("Failures", version=4)
def find_returning_error(history: History) -> Iterator[Finding]:
    """Different calls got the same error at least 6 times, or 4 times over two minutes or more if the machine was
    its cause; not edits, and not checks of the code. Numbers, paths and quoted texts in it don't matter.
    """
    yield from _again(history, same=False)


def _again(history: History, *, same: bool) -> Iterator[Finding]:
    for cause, calls, times in _same_errors(history):
        if _is_guarded(calls[0], history) or same != _is_one_deed(calls):
            continue
        machine = OF_THE_MACHINE.search(cause.line) is not None
        lasted = not history.timed or calls[-1].at - calls[0].at >= _LONG_MS
        reading = all(map(only_reads, calls))
        if same and not reading:
            least = MANY_REPEATED if _solved(history, calls) or not cause.sure else RETURNS
        else:
            least = SOME_RETURNS if machine and lasted and not reading else MANY_RETURNS
        edits = all(command_of(call) is None and call.writes for call in calls)
        fits = same or (not edits and (lasted or not reading) and (machine or not any(map(is_check, calls))))
        if fits and times >= least:
            yield _finding(history, "attempts got the same error", cause, calls, times)
            if not same:
                return  # the others mostly tell the same again


def _finding(history: History, what: str, cause: Signature, calls: Sequence[Call], times: int) -> Finding:
    first, same = calls[0], _is_one_deed(calls)
    never = same and not _solved(history, calls)
    return Finding.of(
        "Warning" if never or times >= MANY_REPEATED else "Info",
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


@detector("Outcome", version=4)
def find_failing_check(history: History) -> Iterator[Finding]:
    """The last test run, build or linter of the session failed because of the code, not the machine or the command
    line, in a file that the session had changed; none of its kind passed after it, nor any other once that file was
    changed again, the model didn't call the failure another's, and the session didn't end on one.
    """
    if history.at_work or ending_of(history).ending == "error_left":
        return
    left = _left_failing(history)
    if not left:
        return
    kind, last = max(left.items(), key=lambda one: one[1].event_index)
    cause = _cause_in_changes(last, history)
    after = (message.text for message in history.messages if (message.turn or 0) >= (last.turn or 0))
    if cause is not None and not any(map(DISCLOSED.search, after)):
        yield Finding.of(
            "Warning",
            f"The last {kind if len(kinds_of(last)) == 1 else 'check'} failed: "
            f"{quoted(command_of(last) or '', _COMMAND)}, {quoted(cause, _ERROR)}",
            (last.evidence,),
            last.turn,
            count=len(left),
        )


def _cause_in_changes(last: Call, history: History) -> str | None:
    """Return the line with the cause of a failed check in what the session had changed; None if it is elsewhere, or
    was mended after it.
    """
    cause = cause_of(last, history)
    names = {_name(path) for call in history.calls for path in changed_files(call)}
    named = {name for name in names if name in last.result}
    if cause is None or not named:
        return None
    again = False
    for call in history.calls:
        if call.event_index > last.event_index and call.outcome is Outcome.OK:
            again |= not named.isdisjoint(map(_name, changed_files(call)))
            if again and is_check(call):
                return None
    lines = [one.line for one in signatures_in(last.result) if one.sure]
    inside = next((line for line in lines if any(name in line for name in named)), None)
    return inside or (None if _PLACE.search(cause.line) else cause.line)


def _name(path: str) -> str:
    """Return a file's name without its ending, by which outputs name it and its tests; with its folder if many files
    are called so.
    """
    inner = path.replace("\\", "/").split("/")
    name = inner[-1].partition(".")[0]
    return "/".join([*inner[-2:-1], name]) if name in _COMMON_NAMES else name


def _left_failing(history: History) -> dict[Kind, Call]:
    """Return the last check of each kind, if it failed."""
    left: dict[Kind, Call] = {}
    for call in history.calls if any(call.failed for call in history.calls) else ():
        if left and call.outcome is Outcome.OK and _EVERYTHING.search(command_of(call) or ""):
            left.clear()
        kinds = kinds_of(call)
        passed = kinds if call.outcome is Outcome.OK else _passed(call)
        for kind in {*passed, "build"} if passed else ():  # what is tested or linted was built
            left.pop(kind, None)
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
    if call.outcome is Outcome.RUNNING and WELL.search(without_controls(call.result[-_LAST:])):
        return kinds_of(call)
    found = landmarks(landmarks_in(command_of(call) or ""), call.result, call.outcome)
    runs = [one for one in found if one.kind in KINDS]
    counted = "linter" in kinds_of(call)  # whose errors aren't those of the tests before it
    well = {one for one in runs if one.verdict is Verdict.PASSED or (counted and WELL.search(one.detail or ""))}
    return frozenset(KINDS[one.kind] for one in runs) - {KINDS[one.kind] for one in runs if one not in well}
