"""Findings about commits of work that had failed its checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agtrace_indexer.landmarks.attempts import attempts
from agtrace_schema.events import Outcome
from agtrace_schema.landmarks import LandmarkKind

from agtrace.health.facts.actions import command_of
from agtrace.health.facts.checks import is_check
from agtrace.health.facts.labels import quoted
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History


class _Unchecked(NamedTuple):
    """A commit, and the check that had failed before it."""

    failed: Call
    commit: Call


@detector(
    "Outcome",
    "A test run, a build or a linter failed, and the model then changed something and committed it before any check "
    "passed.",
)
def find_unchecked_commit(history: History) -> Iterator[Finding]:
    """Find commits of what was mended and never checked again."""
    found = list(_unchecked(history))
    if not found:
        return
    failed, commit = found[0]
    yield Finding(
        severity="Warning",
        message=f"After a failed check, the model changed something and committed it without a passing check in "
        f"between: {quoted(command_of(failed) or '')} failed before {quoted(command_of(commit) or '')}",
        count=len(found),
        events=evidence([call.event_index for pair in found for call in pair]),
        turn=commit.turn,
    )


def _unchecked(history: History) -> Iterator[_Unchecked]:
    failed: Call | None = None
    changed = False
    for call in history.calls:
        if call.outcome is Outcome.OK and _commits(call):
            if failed and changed and not is_check(call):
                yield _Unchecked(failed, call)
            failed, changed = None, False
        elif call.outcome in (Outcome.OK, Outcome.FAILED) and is_check(call):
            failed, changed = (call if call.failed else None), False
        elif call.outcome is Outcome.OK and call.writes:
            changed = True


def _commits(call: Call) -> bool:
    command = command_of(call)
    return command is not None and any(attempt.kind is LandmarkKind.COMMIT for attempt in attempts(command))
