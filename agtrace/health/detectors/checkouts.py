"""Findings about changes made in two places of which only one was meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from agtrace_schema.events import Outcome

from agtrace.health.facts.changes import changes
from agtrace.health.facts.labels import quoted_path
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_SHARED, _TELLING = 3, 2
"""The parts that two paths share at their ends if they are the same file in two checkouts, and those that tell."""
_USUAL = frozenset(
    """
    .github .vscode ISSUE_TEMPLATE app assets com components config docs java kotlin lib main org packages pages public
    resources scripts spec src test tests ui workflows
    """.split()  # noqa: SIM905
)
"""Folders that many projects have, so that the same path may be in two of them."""


class _Twice(NamedTuple):
    """An edit that was made in one checkout and again in another."""

    first: Call
    again: Call
    roots: tuple[str, str]


@detector(
    "Outcome",
    "The same edit was made to the same file in two checkouts, one of them outside the session's folder: in a "
    "worktree and in the original, for example.",
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
    paths: dict[str, set[str]] = {}
    for written in (written for call in history.calls for written in call.writes):
        paths.setdefault(PurePosixPath(written).name, set()).add(written)
    twice = {name for name, several in paths.items() if len(several) > 1}
    if not twice:
        return
    made: dict[tuple[frozenset[str], frozenset[str], str], dict[PurePosixPath, Call]] = {}
    for call in history.calls:
        if call.outcome is not Outcome.OK:
            continue
        for change in changes(call):
            path = PurePosixPath(history.cwd or "", change.path)
            if path.name not in twice or change.whole or not (change.added or change.removed) or not path.is_absolute():
                continue
            before = made.setdefault((change.removed, change.added, path.name), {})
            if path in before:
                continue
            roots = ((first, _roots(earlier, path, history.cwd)) for earlier, first in before.items())
            found = next(((first, told) for first, told in roots if told), None)
            if found:
                yield _Twice(found[0], call, found[1])
            before[path] = call


def _roots(one: PurePosixPath, other: PurePosixPath, cwd: str | None) -> tuple[str, str] | None:
    """Return the folders of two checkouts that have the same file; None if it isn't, or both are in one folder."""
    shared = 0
    while shared < min(len(one.parts), len(other.parts)) - 1 and one.parts[-1 - shared] == other.parts[-1 - shared]:
        shared += 1
    if not shared or one == other:
        return None
    below = [len(path.relative_to(cwd).parts) for path in (one, other) if cwd and path.is_relative_to(cwd)]
    up = min((shared, *below)) - 1
    roots = one.parents[up], other.parents[up]
    if cwd and all(root.is_relative_to(cwd) for root in roots):
        return None
    return (str(roots[0]), str(roots[1])) if _of_one_repository(*roots, one.parts[-shared:]) else None


def _of_one_repository(one: PurePosixPath, other: PurePosixPath, shared: tuple[str, ...]) -> bool:
    """Whether two folders are checkouts of one repository, by their names and the parts of a path that both have."""
    for inner, outer in ((one, other), (other, one)):
        if inner.is_relative_to(outer):
            return any("worktree" in part for part in inner.relative_to(outer).parts)
    if one.name in other.parts[-2:] or other.name in one.parts[-2:]:
        return True  # as in worktrees/tidepool/branch
    return len(shared) >= _SHARED and len(set(shared) - _USUAL) >= _TELLING
