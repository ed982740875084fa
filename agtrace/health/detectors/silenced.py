"""Findings about checks that were switched off instead of passing, and commits of what was lying around."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of, is_passed_over
from agtrace.health.facts.changes import changes
from agtrace.health.facts.labels import quoted, quoted_path
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_SWITCHED_OFF = later(
    r"\bcontinue-on-error: *true|\bcontinueOnError: *true|\ballow_failure: *true|\|\| *(?:true\b|:(?:\s|$)|exit 0\b)"
    r"|@(?:pytest\.mark|unittest)\.(?:skip|xfail)|\b(?:it|test|describe)\.skip\(|\bx(?:it|describe)\("
    r"|\bt\.Skip(?:Now|f)?\(|#\[ignore\b|@(?:Disabled|Ignore)\b|//\s*@ts-nocheck|#\s*(?:type|mypy): *ignore-errors"
)
"""Lines with which a check is ignored, or a test isn't run."""


class _Silenced(NamedTuple):
    """An edit that switches off a check, the line, and the command that had failed before."""

    edit: Call
    path: str
    line: str
    failed: Call


@detector(
    "Outcome",
    "After a command failed, the model had a failing check ignored, or a test skipped, in the same turn: "
    "`continue-on-error`, `|| true`, a mark to skip it.",
)
def find_silenced_check(history: History) -> Iterator[Finding]:
    """Find checks that pass because they were switched off."""
    found = list(_silenced(history))
    if not found:
        return
    first = found[0]
    yield Finding(
        severity="Warning",
        message=f"After {quoted(command_of(first.failed) or '', 60)} had failed, the model switched a check off in "
        f"{quoted_path(first.path)}: {quoted(first.line, 60)}",
        count=len(found),
        events=evidence([event for one in found for event in (one.failed.evidence, one.edit.event_index)]),
        turn=first.edit.turn,
    )


def _silenced(history: History) -> Iterator[_Silenced]:
    failed: Call | None = None
    for call in history.calls:
        if failed is not None and failed.turn != call.turn:
            failed = None
        if command_of(call) is not None and call.failed and not is_passed_over(call):
            failed = call
        elif failed is not None and call.outcome is Outcome.OK:
            for change in changes(call):
                line = next((line for line in sorted(change.added) if _SWITCHED_OFF.search(line)), None)
                if line is not None and not any(map(_SWITCHED_OFF.search, change.removed)):
                    yield _Silenced(call, change.path, line, failed)


_EVERYTHING = later(r"\bgit (?:-C \S+ )?add (?:-A|--all|\.)(?:\s|$|&|;)")
_COMMITTING = later(r"\bgit (?:-C \S+ )?commit\b")
_UNTRACKED = later(r"^\?\? (.+)$", re.MULTILINE)
_UNTRACKED_LISTED = later(r"^Untracked files:\n(?:  \(.*\)\n)?((?:\t.+(?:\n|\Z))+)", re.MULTILINE)
_ASKS_STATUS = later(r"\bgit (?:-C \S+ )?status\b")
_GONE = later(r"\bgit clean\b|\brm -|\bgit stash\b")


@detector(
    "Outcome",
    "Everything in the folder was committed (`git add -A`) although the last `git status` had shown untracked files "
    "that the session hadn't written.",
)
def find_swept_commit(history: History) -> Iterator[Finding]:
    """Find commits that probably took in what wasn't meant."""
    seen: tuple[Call, list[str]] | None = None
    written: set[str] = set()
    for call in history.calls:
        command = command_of(call) or ""
        if call.outcome is Outcome.OK and _EVERYTHING.search(command) and _COMMITTING.search(command) and seen:
            foreign = [path for path in seen[1] if not _is_among(path, written)]
            if foreign:
                yield Finding(
                    severity="Warning",
                    message=f"{quoted(command, 60)} committed everything, {counted(len(foreign), 'untracked path')} "
                    f"included that the session hadn't written: {quoted_path(foreign[0])}",
                    count=len(foreign),
                    events=evidence([seen[0].evidence, call.event_index]),
                    turn=call.turn,
                )
            seen = None
        written.update(call.writes)
        if _ASKS_STATUS.search(command):
            untracked = _untracked(call.result)
            seen = (call, untracked) if untracked else None
        elif _GONE.search(command):
            seen = None


def _untracked(status: str) -> list[str]:
    listed = [line.strip() for block in _UNTRACKED_LISTED.findall(status) for line in block.splitlines()]
    return [path.strip().strip('"') for path in (*_UNTRACKED.findall(status), *listed)]


def _is_among(path: str, written: set[str]) -> bool:
    """Whether a path of a status is a file that was written, or a folder that has one."""
    inner = f"/{path.strip('/')}/"
    return any(inner in f"/{one.strip('/')}/" for one in written)
