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
from agtrace.health.facts.actions import command_of, own_name
from agtrace.health.facts.changes import changed_files, writes_by_shell
from agtrace.health.history import Call, History, Notice, derived
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


# -- todos -----------------------------------------------------------------------------------------

_WHOLE_LISTS = frozenset({"todowrite", "todo_write", "write_todos", "update_plan"})
_SINGLE_TASKS = frozenset({"taskcreate", "taskupdate"})
_LISTS, _TEXTS = ("todos", "plan"), ("content", "step", "description", "subject")
_DONE = frozenset({"completed", "cancelled", "canceled", "deleted"})
_MADE = (Outcome.OK, Outcome.UNKNOWN)
"""Codex doesn't log how its calls for this ended."""
_NUMBER = later(r"#(\d{1,9})\b")


class Todos(NamedTuple):
    """A list of what is to do."""

    event_index: int
    """The call that left it so."""
    open: tuple[str, ...]
    """What isn't done."""
    of: int
    """Everything on the list, done or not."""


class Ticked(NamedTuple):
    """Something that was ticked off."""

    event_index: int
    """The call that did."""
    since: int
    """The call before that had it still open."""
    text: str


def ticked_off(history: History) -> Iterator[Ticked]:
    """Yield what was ticked off of lists that are written as a whole, in the order in which that happened."""
    before: dict[str, str] = {}
    last = 0
    for call in history.calls:
        if own_name(call.tool) not in _WHOLE_LISTS or call.outcome not in _MADE:
            continue
        if isinstance(call.arguments, dict):
            now = dict(_items(call.arguments))
            for text, status in now.items():
                if status == "completed" and before.get(text, "completed") not in _DONE:
                    yield Ticked(call.event_index, last, text)
            before, last = now, call.event_index


def todos(history: History) -> Todos | None:
    """Return the list as it was at the end; None if the model kept none, or its form isn't known."""
    last: Todos | None = None
    tasks: dict[str, tuple[str, str]] = {}
    for call in history.calls:
        tool = own_name(call.tool)
        if call.outcome not in _MADE or not isinstance(call.arguments, dict):
            continue
        if tool in _WHOLE_LISTS:
            items = list(_items(call.arguments))
            last = Todos(call.event_index, tuple(text for text, status in items if status not in _DONE), len(items))
        elif tool in _SINGLE_TASKS:
            _of_one(call, call.arguments, tasks)
            left = tuple(text for text, status in tasks.values() if status not in _DONE)
            last = Todos(call.event_index, left, len(tasks))
    return last


def keeps_list(call: Call) -> bool:
    """Whether a call writes such a list, or a part of it."""
    return own_name(call.tool) in _WHOLE_LISTS or own_name(call.tool) in _SINGLE_TASKS


def _items(arguments: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a whole list with their statuses."""
    listed = next((arguments[name] for name in _LISTS if isinstance(arguments.get(name), list)), [])
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict):
            text = next((said for name in _TEXTS if isinstance(said := item.get(name), str)), "")
            yield text, str(item.get("status") or "pending")


def _of_one(call: Call, arguments: dict[str, Json], tasks: dict[str, tuple[str, str]]) -> None:
    """Record a task that was made or changed; Claude Code gives its number in the result of the call that makes it."""
    if own_name(call.tool) == "taskcreate":
        number = _NUMBER.search(call.result)
        if number:
            tasks[number[1]] = str(arguments.get("subject") or ""), "pending"
        return
    task = str(arguments.get("taskId"))
    if task in tasks and isinstance(status := arguments.get("status"), str):
        tasks[task] = tasks[task][0], status


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
