"""Checks: test runs, builds and linters, and whether those that failed were mended."""

from __future__ import annotations

from typing import NamedTuple

from agtrace_indexer.landmarks.attempts import attempts
from agtrace_schema.events import Outcome
from agtrace_schema.landmarks import LandmarkKind

from agtrace.health.facts.actions import command_of
from agtrace.health.history import Call, History
from agtrace.text.shell_programs import LINTER

_KINDS = (LandmarkKind.TEST_RUN, LandmarkKind.BUILD)


class Checks(NamedTuple):
    """The turns of a session that ran checks."""

    turns: int
    failing: int
    """Those whose last check failed."""
    failed: int
    """Checks that failed."""


def checks(history: History) -> Checks:
    """Return how many turns ran checks, and in how many the last one failed."""
    last: dict[int | None, Call] = {}
    failed = 0
    for call in history.calls:
        if call.outcome in (Outcome.OK, Outcome.FAILED) and is_check(call):
            last[call.turn] = call
            failed += call.failed
    return Checks(len(last), sum(call.failed for call in last.values()), failed)


def is_check(call: Call) -> bool:
    """Whether a call runs tests, builds, or lints."""
    command = command_of(call)
    if command is None:
        return False
    return LINTER.search(command) is not None or any(attempt.kind in _KINDS for attempt in attempts(command))
