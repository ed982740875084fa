"""Checks: test runs, builds and linters, and whether those that failed were mended."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from agtrace_indexer.events.shell import Part, parts
from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.landmarks.wrappers import unwrapped
from agtrace_schema.events import Outcome
from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of
from agtrace.health.history import Call, History
from agtrace.text.shell_programs import LINTER, reads

Kind: TypeAlias = Literal["test run", "build", "linter"]
_KINDS: dict[LandmarkKind, Kind] = {LandmarkKind.TEST_RUN: "test run", LandmarkKind.BUILD: "build"}

OF_THE_MACHINE = later(
    r"command not found|not recognized as|No module named|ModuleNotFoundError|Cannot find (?:module|package)"
    r"|ImportError|[Mm]issing script|unknown (?:option|flag|command|argument)|unrecognized (?:option|argument|command)"
    r"|[Pp]ermission denied|EACCES|ENOENT|[Nn]o such file or directory|not installed|[Cc]onnection refused|ECONNREFUSED"
    r"|[Nn]o such (?:option|command|target)|No rule to make target|could not determine executable|EADDRINUSE"
    r"|[Aa]ddress already in use|not a git repository|must be (?:run|set)|environment variable"
)
"""Errors of tests and builds that say something about the machine, not about the code."""

_FETCHING = frozenset({"add", "i", "install", "remove", "uninstall", "upgrade"})


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
    return bool(kinds_of(call))


def kinds_of(call: Call) -> frozenset[Kind]:
    """Return what a call runs of tests, builds and linters."""
    command = command_of(call)
    return frozenset() if command is None else _kinds_in(command)


@lru_cache(maxsize=4_096)
def _kinds_in(command: str) -> frozenset[Kind]:
    found: set[Kind] = {_KINDS[attempt.kind] for attempt in attempts(command) if attempt.kind in _KINDS}
    if LINTER.search(command) and any(map(_lints, parts(command))):
        found.add("linter")
    return frozenset(found)


def _lints(part: Part) -> bool:
    """Whether a program is a linter, or runs a task with such a name; not one that reads, installs or commits it."""
    words = unwrapped(part.words)[:3]
    if reads(part) or part.program in ("git", "gh", "glab") or not _FETCHING.isdisjoint(words):
        return False
    return any(map(LINTER.search, words))
