"""Checks: test runs, builds and linters, and whether those that failed were mended."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

import orjson
from agtrace_indexer.events.shell import Part, parts
from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.landmarks.wrappers import unwrapped
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import Json, Outcome
from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.patterns import later

from agtrace.health.examination import Checks
from agtrace.health.facts.actions import command_of
from agtrace.health.facts.changes import changed_files, writes_by_shell
from agtrace.health.history import Call, History, Notice, derived
from agtrace.text.shell_programs import LINTER, reads

Kind: TypeAlias = Literal["test run", "build", "linter"]
KINDS: dict[LandmarkKind, Kind] = {LandmarkKind.TEST_RUN: "test run", LandmarkKind.BUILD: "build"}

OF_THE_MACHINE = later(
    r"command not found|not recognized as|No module named|ModuleNotFoundError"
    r"|Cannot find (?:module|package|implementation)"
    r"|ImportError|[Mm]issing script|unknown (?:option|flag|command|argument)|unrecognized (?:option|argument|command)"
    r"|[Pp]ermission denied|EACCES|ENOENT|[Nn]o such file or directory|not installed|[Cc]onnection refused|ECONNREFUSED"
    r"|[Nn]o such (?:option|command|target)|No rule to make target|could not determine executable|EADDRINUSE"
    r"|[Aa]ddress already in use|not a git repository|must be (?:run|set)|environment variable|fetch failed|ENOTFOUND"
    r"|getaddrinfo|[Cc]ould not resolve|[Nn]etwork|[Tt]imed out after|not a (?:TTY|tty|terminal)|terminal is required"
    r"|[Oo]peration not permitted|EPERM|docker daemon|Executable doesn't exist|invalid (?:choice|option|argument)|cd: "
    r"|no go files|directory prefix|no tests? (?:files? )?(?:found|to run|ran|collected|matched)"
    r"|does not appear to contain"
    r"|No targets specified|could not find `?Cargo|NO_IMPORTER|No files were processed|[Cc]an't open file"
    r"|requires? (?:approval|permission)|\b401\b|[Uu]nauthorized|[Cc]annot connect"
)
"""Errors of commands that say something about the machine, not about the code."""

DISCLOSED = later(
    r"(?i)\b(?:fail\w*|errors?|timeouts?|warnings?)\b[^\n.]{0,120}"
    r"\b(?:unrelated|pre-?existing|not (?:related|caused|from)|outside|someone else|didn['’]t (?:touch|change))\b"
    r"|\b(?:unrelated|(?:pre-?)?existing)\b[^\n.]{0,80}\b(?:fail\w*|errors?|timeouts?|issues?)\b"
)
"""How a model says that a failure isn't its own."""

PROSE = later(r"(?i)\.(?:adoc|md|mdx|org|rst|txt)$|[\\/]\.?(?:plans?|specs?|memory)[\\/]")
"""Files that are rewritten as the talk goes on: plans, notes, documentation."""
_FETCHING = frozenset({"add", "i", "install", "remove", "uninstall", "upgrade"})


def checks(history: History) -> Checks:
    """Return how many checks ran and failed, and how the last one ended."""
    ran = [call for call in history.calls if call.outcome in (Outcome.OK, Outcome.FAILED) and is_check(call)]
    return Checks(len(ran), sum(call.failed for call in ran), bool(ran) and ran[-1].failed)


def is_check(call: Call) -> bool:
    """Whether a call runs tests, builds, or lints."""
    return bool(kinds_of(call))


def kinds_of(call: Call) -> frozenset[Kind]:
    """Return what a call runs of tests, builds and linters."""
    command = command_of(call)
    return frozenset() if command is None else _kinds_in(command)


@lru_cache(maxsize=4_096)
def _kinds_in(command: str) -> frozenset[Kind]:
    found: set[Kind] = {KINDS[attempt.kind] for attempt in attempts(command) if attempt.kind in KINDS}
    if LINTER.search(command) and any(map(_lints, parts(command))):
        found.add("linter")
    return frozenset(found)


def _lints(part: Part) -> bool:
    """Whether a program is a linter, or runs a task with such a name; not one that reads, installs or commits it."""
    words = unwrapped(part.words)[:3]
    if reads(part) or part.program in ("git", "gh", "glab") or not _FETCHING.isdisjoint(words):
        return False
    return any(map(LINTER.search, words))


# -- reviews ---------------------------------------------------------------------------------------

_TITLE = later(r'"title": ?"((?:[^"\\]|\\.)+)"')
_MINOR = later(r"\[P[3-9]\]")
"""How a title begins that is only about style."""


class Review(NamedTuple):
    """A review that found something."""

    event_index: int
    turn: int | None
    problems: tuple[str, ...]
    """The titles of what it found, as the log has them; not those in the middle of a very long review."""


@derived
def reviews(history: History) -> list[Review]:
    """Return the reviews that found something in what this session had changed, in file order.

    Problems of files that it hadn't changed don't count, nor do those that the reviewer calls minor.
    """
    return list(_reviews(history))


def problems_in(text: str) -> list[str]:
    """Return the titles of the problems in the text of a review; none if it isn't one."""
    return [title for title, _ in _problems(text)] if '"review_output"' in text else []


def _reviews(history: History) -> Iterator[Review]:
    kinds = AGENTS[history.provider].notices.reviews
    changed: set[str] = set()
    somewhere = False
    for entry in history.entries if kinds else ():
        if isinstance(entry, Call) and entry.outcome is Outcome.OK:
            changed |= {PurePosixPath(path).name for path in changed_files(entry)}
            somewhere |= writes_by_shell(entry)
        elif isinstance(entry, Notice) and entry.kind in kinds and (changed or somewhere):
            problems = tuple(
                title
                for title, path in _problems(entry.text)
                if not _MINOR.match(title) and (somewhere or path is None or PurePosixPath(path).name in changed)
            )
            if problems:
                yield Review(entry.event_index, entry.turn, problems)


def _problems(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the title of each problem, with its file if that is known; a long review is cut in the middle."""
    try:
        review: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        yield from ((title, None) for title in _TITLE.findall(text))
        return
    output = review.get("review_output") if isinstance(review, dict) else None
    findings = output.get("findings") if isinstance(output, dict) else None
    for finding in findings if isinstance(findings, list) else ():
        title = finding.get("title") if isinstance(finding, dict) else None
        if isinstance(finding, dict) and isinstance(title, str):
            place = finding.get("code_location")
            path = place.get("absolute_file_path") if isinstance(place, dict) else None
            yield title, path if isinstance(path, str) else None
