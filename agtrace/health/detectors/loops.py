"""Findings about loops: the same action and error, a command that never succeeds, edits that are changed again.

Attempts that are passed over are ignored; polls, and calls that only read, aren't loops.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from agtrace_schema.analysis import Severity
from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import (
    Attempt,
    attempts,
    command_of,
    counted_attempts,
    is_passed_over,
    is_poll,
    named,
    only_reads,
    quoted_path,
)
from agtrace.health.facts.changes import Change, changes, edits, writes_by_shell
from agtrace.health.finding import Finding, cost, detector
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_SAME_ERROR, _SAME_ERROR_CRITICAL = 3, 5
_ERRORS = later(r"\b(\d{1,5}) (?:errors?|failed|failures?|failing|problems?|issues?)\b")
_WITHOUT_SUCCESS, _WITHOUT_SUCCESS_CRITICAL = 3, 7
_QUICK = 2 * 60 * 1000

# -- rows of attempts ------------------------------------------------------------------------------


@detector("Loops")
def find_same_action_same_error(history: History) -> Iterator[Finding]:
    """At least 3 attempts in a row had the same tool and arguments, and all failed."""
    for row in _longest_first(_rows(history, _same_failure), _SAME_ERROR):
        alike = "with the same error" if all(map(row[0].came_to_the_same, row)) else "and failed each time"
        said = f"{_named(row[0])} was run {len(row)} times in a row {alike}"
        yield _of_row(history, row, said, _SAME_ERROR_CRITICAL)


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


def _of_row(history: History, row: list[Attempt], said: str, critical: int) -> Finding:
    return Finding.of(
        "Critical" if len(row) >= critical else "Warning",
        said + cost(history, row[0].first_event, row[-1].last_event),
        [attempt.counted[0].evidence for attempt in row],
        row[0].turn,
        told=frozenset(call.evidence for attempt in row for call in attempt.counted),
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


@detector("Loops", version=3)
def find_command_without_success(history: History) -> Iterator[Finding]:
    """A shell command failed at least 3 times, with other calls in between, before it succeeded, if it ever did; not if
    it reported fewer errors each time, or succeeded within two minutes and after fewer than 7 failures.
    """
    found = sorted(_never_succeeding(history), key=lambda failing: -len(failing.calls))
    for failing in found:
        calls, times = failing.calls, len(failing.calls)
        severity: Severity = "Critical" if times >= _WITHOUT_SUCCESS_CRITICAL else "Warning"
        said = f"{named(calls[0])} failed {times} times and never succeeded"
        if failing.succeeded:
            severity = "Warning" if times >= _WITHOUT_SUCCESS_CRITICAL else "Info"
            said = f"{named(calls[0])} failed {times} times before it succeeded"
        yield Finding.of(
            severity,
            said + cost(history, calls[0].event_index, calls[-1].evidence),
            [call.evidence for call in calls],
            calls[0].turn,
            count=times,
            told=frozenset(call.evidence for call in calls),
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
                if ended.counts and not _was_quick(ended, call):
                    yield ended
    yield from (failing for failing in open_now.values() if failing.counts)


def _was_quick(failing: _Failing, succeeded: Call) -> bool:
    """Whether a command succeeded soon: to mend what it says until it says nothing is how one works."""
    first = failing.calls[0]
    return bool(first.at) and len(failing.calls) < _WITHOUT_SUCCESS_CRITICAL and succeeded.at - first.at < _QUICK


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


# -- edits -----------------------------------------------------------------------------------------

_CHURN, _CHURN_CRITICAL = 3, 6
_QUICK_EDITS = 2 * 60 * 1000
_NOTHING_DONE = (Outcome.FAILED, Outcome.REJECTED, Outcome.INTERRUPTED)


@dataclass
class _Text:
    """The text that one turn wrote into a file, or into a cell of a notebook."""

    writers: dict[str, int] = field(default_factory=dict)
    """Lines that were added and are still there, with the event of the edit."""
    whole: frozenset[str] | None = None
    """The lines when the whole text was last written."""
    wholes: set[int] = field(default_factory=set)
    """The edits that wrote the whole text."""
    polished: set[int] = field(default_factory=set)
    """The first changes to parts of a text that was just written as a whole. They count as part of writing it, unless
    the same parts are changed again."""

    def edit(self, event: int, change: Change) -> set[int]:
        """Record an edit; return the edits now known to have changed what an earlier one wrote."""
        gone = self.writers.keys() - change.added if change.whole else self.writers.keys() & change.removed
        changed = {self.writers.pop(line) for line in gone}
        rewritten = change.whole and self.whole is not None and self.whole != change.added
        self.writers |= dict.fromkeys(change.added, event)
        if change.whole:
            self.whole = change.added
            self.wholes.add(event)
        elif changed and changed <= self.wholes:
            self.polished.add(event)
            return set()
        return {event} | (changed & self.polished) if changed or rewritten else set()


@dataclass
class _File:
    """The edits of one turn to a file."""

    path: str
    edits: list[int] = field(default_factory=list)
    texts: dict[str, _Text] = field(default_factory=dict)
    """By cell; a file that isn't a notebook has one cell without a name."""
    again: set[int] = field(default_factory=set)
    """Edits that changed what an earlier one wrote."""
    in_vain: set[int] = field(default_factory=set)
    """Edits after which a command failed, before the next one."""

    @property
    def churn(self) -> set[int]:
        """The edits that make it churn: the larger of the two kinds."""
        return max(self.again, self.in_vain, key=len)


@detector("Loops", version=2)
def find_edit_churn(history: History) -> Iterator[Finding]:
    """At least 3 edits of a file in one turn changed what earlier ones wrote, or were each followed by a failed
    command; not if that took less than two minutes and the last command after it succeeded.
    """
    found = sorted(_files(history), key=lambda found: -len(found[1].churn))
    for turn, file in found:
        if _edits_were_quick(history, turn, file):
            continue
        events, times = sorted(file.churn), len(file.churn)
        what = "were each followed by a failed command"
        if file.churn is file.again:
            what = "changed lines that earlier ones wrote"
        said = f"{times} of {len(file.edits)} edits of {quoted_path(file.path)} in one turn {what}"
        yield Finding.of(
            "Critical" if times >= _CHURN_CRITICAL else "Warning",
            said + cost(history, events[0], events[-1]),
            events,
            turn,
            count=times,
        )


def _edits_were_quick(history: History, turn: int | None, file: _File) -> bool:
    """Whether it took no time, and the last check after it passed: that is how one works."""
    edits = [call for call in history.calls if call.event_index in file.churn]
    first, last = edits[0], edits[-1]
    after = [call for call in history.calls if call.turn == turn and call.event_index > last.event_index]
    ran = [call for call in after if command_of(call) is not None and not is_passed_over(call)]
    passed = bool(ran) and ran[-1].outcome is Outcome.OK and not only_reads(ran[-1])
    return passed and bool(first.at) and last.at - first.at < _QUICK_EDITS


def _files(history: History) -> Iterator[tuple[int | None, _File]]:
    """Yield the files that churn, each with its turn."""
    turn: int | None = None
    files: dict[str, _File] = {}
    unproven: dict[str, int] = {}  # the last edit of each file, until a command fails
    for call in history.calls:
        if call.turn != turn:
            yield from _churning(turn, files)
            turn, files, unproven = call.turn, {}, {}
        if call.failed and command_of(call) is not None and not is_passed_over(call):
            for path, event in unproven.items():
                files[path].in_vain.add(event)
            unproven = {}
        elif call.result_event is not None and call.outcome not in _NOTHING_DONE:
            for change in changes(call):
                file = files.setdefault(change.path, _File(change.path))
                file.edits.append(call.event_index)
                file.again |= file.texts.setdefault(change.cell, _Text()).edit(call.event_index, change)
                unproven[change.path] = call.event_index
    yield from _churning(turn, files)


def _churning(turn: int | None, files: dict[str, _File]) -> Iterator[tuple[int | None, _File]]:
    return ((turn, file) for file in files.values() if len(file.churn) >= _CHURN)


# -- failed edits ----------------------------------------------------------------------------------

_FAILED_EDITS, _FAILED_EDIT_ATTEMPTS = 2, 6
_FAILED_EDITS_GIVEN_UP = 3


@dataclass
class _Trouble:
    """Edits of a file that failed, up to the one that succeeded."""

    path: str
    failed: list[Call] = field(default_factory=list)
    attempts: int = 0
    """Responses with calls, from the first edit that failed on."""
    done: bool = False
    """Whether an edit of the file succeeded, or a command that names it and may have changed it."""

    @property
    def costly(self) -> bool:
        """Whether it failed more than once and took many attempts, or failed several times and was given up."""
        if not self.done:
            return len(self.failed) >= _FAILED_EDITS_GIVEN_UP
        return len(self.failed) >= _FAILED_EDITS and self.attempts >= _FAILED_EDIT_ATTEMPTS


@detector("Loops")
def find_edit_without_success(history: History) -> Iterator[Finding]:
    """At least 2 edits of a file failed in one turn, and one succeeded only 5 or more attempts after the first of them,
    whatever those attempts did; or at least 3 failed, and none succeeded after them.
    """
    for trouble in _troubles(history):
        how = (
            f"before one succeeded, {trouble.attempts - 1} attempts after the first"
            if trouble.done
            else "and none succeeded after them"
        )
        times = len(trouble.failed)
        yield Finding.of(
            "Warning" if not trouble.done or times > _FAILED_EDITS else "Info",
            f"{counted(times, 'edit')} of {quoted_path(trouble.path)} failed {how}",
            [call.evidence for call in trouble.failed],
            trouble.failed[0].turn,
            count=times,
        )


def _troubles(history: History) -> Iterator[_Trouble]:
    turn: int | None = None
    going: dict[str, _Trouble] = {}
    failed = Counter(call.turn for call in history.calls if call.failed)
    for attempt in attempts(history):
        if failed[attempt.turn] < _FAILED_EDITS:
            continue
        if attempt.turn != turn:
            yield from (trouble for trouble in going.values() if trouble.costly)
            turn, going = attempt.turn, {}
        for trouble in going.values():
            trouble.attempts += 1
        for call in attempt.calls:
            for file in _edited(call, history, going):
                if call.failed:
                    going.setdefault(file, _Trouble(file, attempts=1)).failed.append(call)
                elif file in going:
                    ended = going.pop(file)
                    ended.done = True
                    if ended.costly:
                        yield ended
    yield from (trouble for trouble in going.values() if trouble.costly)


def _edited(call: Call, history: History, going: Iterable[str]) -> Iterator[str]:
    """Yield the files that a call edits or tried to; for a command that succeeded, those of them that it names."""
    if call.outcome not in (Outcome.OK, Outcome.FAILED):
        return
    command = command_of(call)
    if command is not None and not call.failed and writes_by_shell(call):
        yield from [file for file in going if posixpath.basename(file) in command]
    for edit in edits(call.tool, call.arguments, writes=True):
        yield posixpath.normpath(posixpath.join(history.cwd or "", edit.moved_from or edit.path))
