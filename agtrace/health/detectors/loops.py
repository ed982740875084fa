"""Findings about loops: three of the five patterns of OpenHands' StuckDetector, and a command that never succeeds.

Attempts that are passed over are ignored; polls, and calls that only read, aren't loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from agtrace_schema.analysis import Severity
from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import Attempt, command_of, counted_attempts, is_poll, only_reads
from agtrace.health.facts.cost import cost
from agtrace.health.facts.labels import named
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History

_SAME_OBSERVATION, _SAME_OBSERVATION_CRITICAL = 4, 8
_SAME_ERROR, _SAME_ERROR_CRITICAL = 3, 5
_ALTERNATION, _ALTERNATION_CRITICAL = 6, 10
_ERRORS = later(r"\b(\d{1,5}) (?:errors?|failed|failures?|failing|problems?|issues?)\b")
_WITHOUT_SUCCESS, _WITHOUT_SUCCESS_CRITICAL = 3, 7
_QUICK = 2 * 60 * 1000

# -- rows of attempts ------------------------------------------------------------------------------


@detector("Loops", "At least 4 attempts in a row had the same tool, arguments and result, and none failed.")
def find_same_action_same_observation(history: History) -> Iterator[Finding]:
    """Find the same action with the same result, again and again, although nothing failed."""
    for row in _longest_first(_rows(history, _same_observation), _SAME_OBSERVATION):
        times = len(row)
        yield _of_row(
            history,
            row,
            f"{_named(row[0])} was run {times} times in a row with the same result",
            "Critical" if times >= _SAME_OBSERVATION_CRITICAL else "Warning",
        )


@detector("Loops", "At least 3 attempts in a row had the same tool and arguments, and all failed.")
def find_same_action_same_error(history: History) -> Iterator[Finding]:
    """Find the same action failing again and again."""
    for row in _longest_first(_rows(history, _same_failure), _SAME_ERROR):
        times = len(row)
        alike = "with the same error" if all(map(row[0].came_to_the_same, row)) else "and failed each time"
        yield _of_row(
            history,
            row,
            f"{_named(row[0])} was run {times} times in a row {alike}",
            "Critical" if times >= _SAME_ERROR_CRITICAL else "Warning",
        )


@detector("Loops", "At least 6 attempts in a row alternated between two actions, each always with the same result.")
def find_alternation(history: History) -> Iterator[Finding]:
    """Find two actions that alternate, each always with the same result."""
    for row in _longest_first(_alternations(counted_attempts(history)), _ALTERNATION):
        times = len(row)
        yield _of_row(
            history,
            row,
            f"{_named(row[0])} and {_named(row[1])} were run alternately, {times} times in a row with the same results",
            "Critical" if times >= _ALTERNATION_CRITICAL else "Warning",
        )


def _same_observation(one: Attempt, two: Attempt) -> bool:
    return not (one.failed or two.failed) and one.deed == two.deed and one.came_to_the_same(two)


def _same_failure(one: Attempt, two: Attempt) -> bool:
    return one.failed and two.failed and one.deed == two.deed


def _rows(history: History, alike: Callable[[Attempt, Attempt], bool]) -> Iterator[list[Attempt]]:
    """Yield the longest runs of attempts in which each is like the one before, without a human in between."""
    row: list[Attempt] = []
    for attempt in counted_attempts(history):
        if row and not attempt.after_human and alike(row[-1], attempt):
            row.append(attempt)
            continue
        if len(row) > 1:
            yield row
        row = [attempt]
    if len(row) > 1:
        yield row


def _alternations(found: list[Attempt]) -> Iterator[list[Attempt]]:
    """Yield the longest runs in which every attempt is like the last but one and unlike the one before."""
    start = 0
    for place, attempt in enumerate(found):
        if attempt.after_human:
            yield found[start:place]
            start = place
        elif place - start >= 2 and not _goes_on(found[place - 2], found[place - 1], attempt):
            yield found[start:place]
            start = place - 1
    yield found[start:]


def _goes_on(before: Attempt, between: Attempt, attempt: Attempt) -> bool:
    return before.deed == attempt.deed and before.deed != between.deed and before.came_to_the_same(attempt)


def _longest_first(rows: Iterable[list[Attempt]], fewest: int) -> list[list[Attempt]]:
    """Return the runs of at least `fewest` attempts that are loops, the longest first."""
    found = [row for row in rows if len(row) >= fewest and _is_loop(row)]
    return sorted(found, key=len, reverse=True)


def _is_loop(row: list[Attempt]) -> bool:
    """Whether a run has no poll, and a call that may change something; calls that fail count even if they only read."""
    calls = [call for attempt in row[:2] for call in attempt.counted]
    if any(map(is_poll, calls)):
        return False
    failing = row[0].failed and row[0].deed == row[1].deed
    return failing or not all(map(only_reads, calls))


def _of_row(history: History, row: list[Attempt], said: str, severity: Severity) -> Finding:
    return Finding(
        severity=severity,
        message=said + cost(history, row[0].first_event, row[-1].last_event),
        count=len(row),
        events=evidence([attempt.counted[0].evidence for attempt in row]),
        told=frozenset(call.evidence for attempt in row for call in attempt.counted),
        turn=row[0].turn,
        caught=sum(len(attempt.counted) for attempt in row),
    )


def _named(attempt: Attempt) -> str:
    others = len(attempt.counted) - 1
    return named(attempt.counted[0]) + (f" (with {others} more)" if others else "")


# -- a command without success ---------------------------------------------------------------------


class _Failing:
    """The failures of one command since it last succeeded."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.others_between = False
        self.succeeded = False
        self.last_place = 0

    def add(self, call: Call, place: int) -> None:
        self.others_between |= bool(self.calls) and place > self.last_place + 1
        self.calls.append(call)
        self.last_place = place

    @property
    def counts(self) -> bool:
        """Whether it failed with other calls in between; failures in a row are the subject of another rule."""
        enough = len(self.calls) >= _WITHOUT_SUCCESS and self.others_between and not is_poll(self.calls[0])
        return enough and not _converges([call.result for call in self.calls])


def _converges(results: list[str]) -> bool:
    """Whether each result tells of fewer errors than the one before: the work advances."""
    told = [_ERRORS.findall(result) for result in results]
    counts = [int(found[-1]) for found in told if found]
    return len(counts) == len(results) and all(after < before for before, after in pairwise(counts))


@detector(
    "Loops",
    "A shell command failed at least 3 times, with other calls in between, before it succeeded, if it ever did; not if "
    "it reported fewer errors each time, or succeeded within two minutes and after fewer than 7 failures.",
    version=3,
)
def find_command_without_success(history: History) -> Iterator[Finding]:
    """Find a command that fails again and again, whatever is done in between."""
    found = sorted(_never_succeeding(history), key=lambda failing: -len(failing.calls))
    for failing in found:
        calls, times = failing.calls, len(failing.calls)
        severity: Severity = "Critical" if times >= _WITHOUT_SUCCESS_CRITICAL else "Warning"
        said = f"{named(calls[0])} failed {times} times and never succeeded"
        if failing.succeeded:
            severity = "Warning" if times >= _WITHOUT_SUCCESS_CRITICAL else "Info"
            said = f"{named(calls[0])} failed {times} times before it succeeded"
        yield Finding(
            severity=severity,
            message=said + cost(history, calls[0].event_index, calls[-1].evidence),
            count=times,
            events=evidence([call.evidence for call in calls]),
            told=frozenset(call.evidence for call in calls),
            turn=calls[0].turn,
            caught=times,
        )


def _never_succeeding(history: History) -> Iterator[_Failing]:
    open_now: dict[tuple[str, str], _Failing] = {}
    for place, attempt in enumerate(counted_attempts(history)):
        for command, call in _commands(attempt).items():
            if call.failed:
                open_now.setdefault(command, _Failing()).add(call, place)
            elif call.outcome in (Outcome.OK, Outcome.RUNNING) and command in open_now:
                ended = open_now.pop(command)
                ended.succeeded = True
                if not _was_quick(ended, call):
                    yield from _if_it_counts(ended)
    for failing in open_now.values():
        yield from _if_it_counts(failing)


def _was_quick(failing: _Failing, succeeded: Call) -> bool:
    """Whether a command succeeded soon: to mend what it says until it says nothing is how one works."""
    first = failing.calls[0]
    return bool(first.at) and len(failing.calls) < _WITHOUT_SUCCESS_CRITICAL and succeeded.at - first.at < _QUICK


def _if_it_counts(failing: _Failing) -> Iterator[_Failing]:
    if failing.counts:
        yield failing


def _commands(attempt: Attempt) -> dict[tuple[str, str], Call]:
    """Return one call for each command and folder of an attempt, preferably one that succeeded."""
    found: dict[tuple[str, str], Call] = {}
    for call in attempt.counted:
        command = command_of(call)
        if command:
            folder = call.arguments.get("workdir") if isinstance(call.arguments, dict) else None
            key = command, str(folder or "")
            found[key] = call if key not in found or not call.failed else found[key]
    return found
