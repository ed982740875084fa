"""Findings about edits that go round in circles: the same lines of a file are written again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agtrace_schema.events import Outcome

from agtrace.health.facts.actions import command_of, is_passed_over, only_reads
from agtrace.health.facts.changes import Change, changes
from agtrace.health.facts.cost import cost
from agtrace.health.facts.labels import quoted_path
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import History

_FEWEST, _CRITICAL = 3, 6
_QUICK = 2 * 60 * 1000
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


@detector(
    "Loops",
    "At least 3 edits of a file in one turn changed what earlier ones wrote, or were each followed by a failed "
    "command; not if that took less than two minutes and the last command after it succeeded.",
    version=2,
)
def find_edit_churn(history: History) -> Iterator[Finding]:
    """Find files whose lines one turn rewrote again and again, or which it edited in vain."""
    found = sorted(_files(history), key=lambda found: -len(found[1].churn))
    for turn, file in found:
        if _was_quick(history, turn, file):
            continue
        events, times = sorted(file.churn), len(file.churn)
        what = "were each followed by a failed command"
        if file.churn is file.again:
            what = "changed lines that earlier ones wrote"
        said = f"{times} of {len(file.edits)} edits of {quoted_path(file.path)} in one turn {what}"
        yield Finding(
            severity="Critical" if times >= _CRITICAL else "Warning",
            message=said + cost(history, events[0], events[-1]),
            count=times,
            events=evidence(events),
            turn=turn,
            caught=times,
        )


def _was_quick(history: History, turn: int | None, file: _File) -> bool:
    """Whether it took no time, and the last check after it passed: that is how one works."""
    edits = [call for call in history.calls if call.event_index in file.churn]
    first, last = edits[0], edits[-1]
    after = [call for call in history.calls if call.turn == turn and call.event_index > last.event_index]
    ran = [call for call in after if command_of(call) is not None and not is_passed_over(call)]
    passed = bool(ran) and ran[-1].outcome is Outcome.OK and not only_reads(ran[-1])
    return passed and bool(first.at) and last.at - first.at < _QUICK


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
    return ((turn, file) for file in files.values() if len(file.churn) >= _FEWEST)
