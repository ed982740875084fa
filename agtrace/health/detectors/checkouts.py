"""Findings about changes made in two places of which only one was meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from agtrace_schema.events import Outcome

from agtrace.health.facts.changes import Change, changes
from agtrace.health.facts.labels import quoted_path
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_SHARED = 3
"""The parts that two paths share at their ends if they are the same file in two checkouts."""


class _Twice(NamedTuple):
    """An edit that was made in one checkout and again in another."""

    first: Call
    again: Call
    roots: tuple[str, str]


@detector(
    "Outcome",
    "The same edit was made to the same file in two checkouts, one of them outside of the session's folder: to a "
    "worktree and to the original, for example.",
)
def find_edits_elsewhere(history: History) -> Iterator[Finding]:
    """Find edits that were made again in another checkout."""
    found = list(_twice(history))
    if not found:
        return
    one, other = found[0].roots
    yield Finding(
        severity="Warning",
        message=f"The same {'edits were' if len(found) > 1 else 'edit was'} made in two checkouts: "
        f"{counted(len(found), 'edit')} in {quoted_path(one)}, then in {quoted_path(other)}",
        count=len(found),
        events=evidence(sorted({call.event_index for pair in found for call in (pair.first, pair.again)})),
        turn=found[0].first.turn,
    )


def _twice(history: History) -> Iterator[_Twice]:
    made: dict[tuple[frozenset[str], frozenset[str], str], list[tuple[Call, Change]]] = {}
    for call in history.calls:
        if call.outcome is not Outcome.OK:
            continue
        for change in changes(call):
            if change.whole or not change.added or not change.path.startswith("/"):
                continue
            before = made.setdefault((change.removed, change.added, PurePosixPath(change.path).name), [])
            roots = (_roots(earlier.path, change.path, history.cwd) for _, earlier in before)
            found = next(((first, told) for (first, _), told in zip(before, roots, strict=True) if told), None)
            if found:
                yield _Twice(found[0], call, found[1])
            before.append((call, change))


def _roots(one: str, other: str, cwd: str | None) -> tuple[str, str] | None:
    """Return the folders of two checkouts that have the same file; None if it isn't, or both are in one folder."""
    parts, others = PurePosixPath(one).parts, PurePosixPath(other).parts
    shared = 0
    while shared < min(len(parts), len(others)) - 1 and parts[-1 - shared] == others[-1 - shared]:
        shared += 1
    if shared < _SHARED or one == other:
        return None
    roots = str(PurePosixPath(*parts[:-shared])), str(PurePosixPath(*others[:-shared]))
    outside = cwd is None or any(not f"{root}/".startswith(f"{cwd.rstrip('/')}/") for root in roots)
    return roots if outside else None
