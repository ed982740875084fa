"""Findings about edits that the agent's own tool refused to make."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field

from agtrace_schema.events import Outcome

from agtrace.health.facts.edits import edits
from agtrace.health.facts.labels import quoted_path
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_FEWEST, _CALLS = 2, 6
_GIVEN_UP = 3


@dataclass
class _Trouble:
    """Edits of a file that failed, up to the one that succeeded."""

    path: str
    failed: list[Call] = field(default_factory=list)
    calls: int = 0
    """All calls from the first failed one on."""
    last: Call | None = None
    """The edit that succeeded."""

    @property
    def costly(self) -> bool:
        """Whether it failed more than once and took many calls, or failed several times and was given up."""
        if self.last is None:
            return len(self.failed) >= _GIVEN_UP
        if len(self.failed) < _FEWEST:
            return False
        return self.calls >= _CALLS


@detector(
    "Loops",
    "At least 2 edits of a file failed in one turn, and it took at least 6 calls until one succeeded; or at "
    "least 3 failed, and none succeeded.",
)
def find_edit_without_success(history: History) -> Iterator[Finding]:
    """Find files that could only be edited after several attempts."""
    for trouble in _troubles(history):
        first = trouble.failed[0]
        how = f"before one succeeded, {counted(trouble.calls, 'call')}" if trouble.last else "and none succeeded"
        yield Finding(
            severity="Warning" if trouble.last is None or len(trouble.failed) > _FEWEST else "Info",
            message=f"{counted(len(trouble.failed), 'edit')} of {quoted_path(trouble.path)} failed {how}",
            count=len(trouble.failed),
            events=evidence([call.evidence for call in trouble.failed]),
            turn=first.turn,
            caught=len(trouble.failed),
        )


def _troubles(history: History) -> Iterator[_Trouble]:
    turn: int | None = None
    going: dict[str, _Trouble] = {}
    for call in history.calls:
        if call.turn != turn:
            yield from _costly(going)
            turn, going = call.turn, {}
        for trouble in going.values():
            trouble.calls += 1
        if call.outcome not in (Outcome.OK, Outcome.FAILED):
            continue
        for edit in edits(call.tool, call.arguments, writes=True):
            path = edit.moved_from or edit.path
            file = posixpath.normpath(posixpath.join(history.cwd or "", path))
            if call.failed:
                trouble = going.setdefault(file, _Trouble(path, calls=1))
                trouble.failed.append(call)
            elif file in going:
                ended = going.pop(file)
                ended.last = call
                yield from _costly({file: ended})
    yield from _costly(going)


def _costly(troubles: dict[str, _Trouble]) -> Iterator[_Trouble]:
    return (trouble for trouble in troubles.values() if trouble.costly)
