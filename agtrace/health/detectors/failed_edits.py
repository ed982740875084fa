"""Findings about edits that the agent's own tool refused to make."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agtrace_schema.events import Outcome

from agtrace.health.facts.actions import attempts, command_of
from agtrace.health.facts.changes import writes_by_shell
from agtrace.health.facts.edits import edits
from agtrace.health.facts.labels import quoted_path
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_FEWEST, _ATTEMPTS = 2, 6
_GIVEN_UP = 3


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
            return len(self.failed) >= _GIVEN_UP
        return len(self.failed) >= _FEWEST and self.attempts >= _ATTEMPTS


@detector(
    "Loops",
    "At least 2 edits of a file failed in one turn, and one succeeded only 5 or more attempts after the first of them, "
    "whatever those attempts did; or at least 3 failed, and none succeeded after them.",
)
def find_edit_without_success(history: History) -> Iterator[Finding]:
    """Find files that could only be edited after several attempts."""
    for trouble in _troubles(history):
        how = (
            f"before one succeeded, {trouble.attempts - 1} attempts after the first"
            if trouble.done
            else "and none succeeded after them"
        )
        times = len(trouble.failed)
        yield Finding(
            severity="Warning" if not trouble.done or times > _FEWEST else "Info",
            message=f"{counted(times, 'edit')} of {quoted_path(trouble.path)} failed {how}",
            count=times,
            events=evidence([call.evidence for call in trouble.failed]),
            turn=trouble.failed[0].turn,
            caught=times,
        )


def _troubles(history: History) -> Iterator[_Trouble]:
    turn: int | None = None
    going: dict[str, _Trouble] = {}
    failed = Counter(call.turn for call in history.calls if call.failed)
    for attempt in attempts(history):
        if failed[attempt.turn] < _FEWEST:
            continue
        if attempt.turn != turn:
            yield from filter(_is_costly, going.values())
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
                    yield from filter(_is_costly, [ended])
    yield from filter(_is_costly, going.values())


def _edited(call: Call, history: History, going: Iterable[str]) -> Iterator[str]:
    """Yield the files that a call edits or tried to; for a command that succeeded, those of them that it names."""
    if call.outcome not in (Outcome.OK, Outcome.FAILED):
        return
    command = command_of(call)
    if command is not None and not call.failed and writes_by_shell(call):
        yield from [file for file in going if posixpath.basename(file) in command]
    for edit in edits(call.tool, call.arguments, writes=True):
        yield posixpath.normpath(posixpath.join(history.cwd or "", edit.moved_from or edit.path))


def _is_costly(trouble: _Trouble) -> bool:
    return trouble.costly
