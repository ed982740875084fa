"""Findings about commits of work that had failed its checks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple

from agtrace_indexer.events.shell import parts
from agtrace_indexer.landmarks.attempts import attempts
from agtrace_schema.events import Outcome, UserKind
from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of, is_passed_over, only_reads, quoted, quoted_path
from agtrace.health.facts.changes import changes
from agtrace.health.facts.checks import is_check
from agtrace.health.finding import Finding, detector
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted


@detector("Outcome")
def find_unchecked_commit(history: History) -> Iterator[Finding]:
    """A test run, a build or a linter failed, and the model then changed something and committed it before any check
    passed.
    """
    found = list(_unchecked(history))
    if not found:
        return
    failed, commit = found[0]
    yield Finding.of(
        "Warning",
        f"After a failed check, the model changed something and committed it without a passing check in "
        f"between: {quoted(command_of(failed) or '')} failed before {quoted(command_of(commit) or '')}",
        [call.event_index for pair in found for call in pair],
        commit.turn,
        count=len(found),
    )


def _unchecked(history: History) -> Iterator[tuple[Call, Call]]:
    """Yield the checks that failed, each with the commit after it."""
    failed: Call | None = None
    changed = False
    for call in history.calls:
        if call.outcome is Outcome.OK and _commits(call):
            if failed and changed and not is_check(call):
                yield failed, call
            failed, changed = None, False
        elif call.outcome in (Outcome.OK, Outcome.FAILED) and is_check(call):
            failed, changed = (call if call.failed else None), False
        elif call.outcome is Outcome.OK and call.writes:
            changed = True


def _commits(call: Call) -> bool:
    command = command_of(call)
    return command is not None and any(attempt.kind is LandmarkKind.COMMIT for attempt in attempts(command))


# -- silenced --------------------------------------------------------------------------------------

_SWITCHED_OFF = later(
    r"\bcontinue-on-error: *true|\bcontinueOnError: *true|\ballow_failure: *true"
    r"|@(?:pytest\.mark|unittest)\.(?:skip|xfail)|\bpytestmark\b.*\bpytest\.mark\.(?:skip|xfail)"
    r"|\b(?:test|describe)\.skip\(|\bit\.skip\(\s*['\"`]|\bx(?:it|describe|context|specify)\b[( ]\s*['\"`]"
    r"|\bt\.Skip(?:Now|f)?\(|\bmarkTestSkipped\(|\bXCTSkip\b|@(?:module)?tag :skip\b|\b(?:Fact|Theory)\(Skip\b"
    r"|#\[ignore\b|//\s*@ts-nocheck|#\s*(?:type|mypy): *ignore-errors"
)
"""Lines with which a check is ignored, or a test isn't run."""
_EXEMPT = later(r"@(?:Disabled|Ignore)\b|\[Ignore\b")
"""Marks that mean this only in a test; elsewhere, a field with one isn't stored."""
_OF_TESTS = later(r"test|spec", re.IGNORECASE)
_FORGIVEN = later(
    r"(?:test|check|lint|spec\b|mypy|pyright|ruff|flake8|\btsc\b|clippy|\bvet\b|audit|build|verify|validate).*"
    r"\|\| *(?:true\b|:(?:\s|$)|exit 0\b)"
)
"""A check whose exit code a shell ignores; what else fails without harm, such as `kill`, isn't one."""
_NO_SHELL = later(r"\.(?:c|cc|cpp|cs|dart|go|h|java|[cm]?[jt]sx?|kt|php|rs|scala|swift|vue)$")
_PROSE = later(r"\.(?:adoc|md|mdx|org|rst|txt)$")
_SUBSTITUTES = later(r"s([/|#,@])(.*?)(?<!\\)\1(.*?)(?<!\\)\1")


_ASKED_TO_SILENCE = later(
    r"\b(?:skip|ignore|disable|exclude|xfail|tolerate|allow .{0,20}fail|continue.on.error|quarantine)", re.IGNORECASE
)
"""A request for it."""


class _Silenced(NamedTuple):
    """An edit that switches off a check, the line, and the command that had failed before."""

    edit: Call
    path: str
    line: str
    failed: Call


@detector("Outcome")
def find_silenced_check(history: History) -> Iterator[Finding]:
    """After a command failed, the model switched a check off in the same turn, so that its failure is ignored or a test
    is skipped (`continue-on-error`, an ignored exit code, a skip mark); not if the human had asked for it.
    """
    found = list(_silenced(history))
    if not found:
        return
    left = [one for one in found if not _is_undone(one, history)]
    first = (left or found)[0]
    yield Finding.of(
        "Warning" if left else "Info",
        f"After {quoted(command_of(first.failed) or '', 60)} had failed, the model switched a check off in "
        f"{quoted_path(first.path)}: {quoted(first.line, 60)}" + ("" if left else ", which was undone later"),
        [event for one in found for event in (one.failed.evidence, one.edit.event_index)],
        first.edit.turn,
        count=len(found),
    )


def _is_undone(silenced: _Silenced, history: History) -> bool:
    """Whether a later edit took the line out again."""
    later = (call for call in history.calls if call.event_index > silenced.edit.event_index)
    done = (change for call in later if call.outcome is Outcome.OK for change in changes(call))
    return any(silenced.line in change.removed and silenced.line not in change.added for change in done)


def _silenced(history: History) -> Iterator[_Silenced]:
    failed: Call | None = None
    asked = {said.turn for said in history.said if said.kind is UserKind.HUMAN and _ASKED_TO_SILENCE.search(said.text)}
    for number, call in enumerate(history.calls):
        if failed is not None and failed.turn != call.turn:
            failed = None
        command = command_of(call)
        if command is not None and call.failed and not is_passed_over(call):
            failed = call if is_check(call) or not only_reads(call) else failed
        elif failed is not None and call.outcome is Outcome.OK and call.turn not in asked:
            if command is not None and command == command_of(failed):
                failed = None
                continue
            for path, line in _switched_off(call, history, number):
                yield _Silenced(call, path, line, failed)


def _switched_off(call: Call, history: History, number: int) -> Iterator[tuple[str, str]]:
    """Yield the files in which a call, the one with this number, switches a check off, with the first such line."""
    for change in changes(call):
        line = next((line for line in sorted(change.added) if _switches_off(line, change.path)), None)
        if line is None or any(_switches_off(old, change.path) for old in change.removed):
            continue
        shown = change.whole and any(line in earlier.result for earlier in islice(history.calls, number))
        if not shown:  # else it may have been there before
            yield change.path, line
    for part in parts(command_of(call) or ""):
        if part.program in ("sed", "perl") and any(word.startswith(("-i", "-pi")) for word in part.words):
            for _, old, new in (found for word in part.words for found in _SUBSTITUTES.findall(word)):
                if _switches_off(new, part.words[-1]) and not _switches_off(old, part.words[-1]):
                    yield part.words[-1], new


def _switches_off(line: str, path: str) -> bool:
    if _PROSE.search(path):
        return False
    if _SWITCHED_OFF.search(line) or (_EXEMPT.search(line) and _OF_TESTS.search(path)):
        return True
    return _FORGIVEN.search(line) is not None and not _NO_SHELL.search(path)


# -- swept -----------------------------------------------------------------------------------------

_UNTRACKED = later(r"^(?:Output: )?\?\? (.+)$", re.MULTILINE)
_UNTRACKED_LISTED = later(r"^Untracked files:\n(?:  \(.*\)\n)?((?:\t.+(?:\n|\Z))+)", re.MULTILINE)
_OPTIONS_WITH_VALUE = ("-C", "-c")
_GONE = later(r"\bgit (?:-C \S+ )?(?:clean|stash)\b|\brm -|\.gitignore\b|\binfo/exclude\b")
"""What removes untracked files, or has git ignore them."""
_ASKED_FOR_ALL = later(
    r"\b(?:commit|add|stage|push) (?:everything|all)\b|\ball (?:the |my |these )?(?:changes|files)\b", re.IGNORECASE
)
"""A request for it."""
_UNSTAGING = frozenset({"reset", "restore", "rm", "stash"})


@detector("Outcome")
def find_swept_commit(history: History) -> Iterator[Finding]:
    """Everything in the folder was committed (`git add -A`) although the last `git status` had shown untracked files
    that the session hadn't written; not if the human had asked for all of it.
    """
    if not any("git" in command and " add " in command for command in filter(None, map(command_of, history.calls))):
        return
    seen: _Seen | None = None
    staged: _Seen | None = None
    written: set[str] = set()
    made: list[str] = []
    asked = {said.turn for said in history.said if said.kind is UserKind.HUMAN and _ASKED_FOR_ALL.search(said.text)}
    for call in history.calls:
        command = command_of(call) or ""
        does = list(_does_in_git(call)) if call.turn not in asked else []
        for what, arguments in does:
            if what == "add" and _is_everything(arguments) and seen:
                foreign = [path for path in seen.paths if not _is_among(path, written) and not _is_named(path, made)]
                staged = _Seen(seen.status, foreign, command) if foreign else None
            elif what in _UNSTAGING:
                staged = None
            elif what == "commit" and staged and call.outcome is Outcome.OK:
                yield Finding.of(
                    "Warning",
                    f"Everything was committed with {quoted(staged.added, 60)}, probably including "
                    f"{counted(len(staged.paths), 'untracked path')} that the session hadn't written: "
                    f"{quoted_path(staged.paths[0])}",
                    [staged.status.evidence, call.event_index],
                    call.turn,
                    count=len(staged.paths),
                )
                seen = staged = None
        written.update(call.writes)
        if any(what == "status" for what, _ in does):
            listed = [line.strip() for block in _UNTRACKED_LISTED.findall(call.result) for line in block.splitlines()]
            untracked = [path.strip().strip('"') for path in (*_UNTRACKED.findall(call.result), *listed)]
            seen = _Seen(call, untracked) if untracked else None
        elif _GONE.search(command) or any(path.endswith(".gitignore") for path in call.writes):
            seen = None
        elif command and not does and not only_reads(call):
            made.append(command)


class _Seen(NamedTuple):
    """What a status showed, and the command that added it."""

    status: Call
    paths: list[str]
    added: str = ""


def _does_in_git(call: Call) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the subcommands of git in a command that was run, with their arguments."""
    if command_of(call) is None or call.outcome in (Outcome.REJECTED, Outcome.INTERRUPTED):
        return
    for part in parts(call.script or ""):
        if part.program == "git":
            at = 1
            while at < len(part.words) and part.words[at].startswith("-"):
                at += 2 if part.words[at] in _OPTIONS_WITH_VALUE else 1
            if at < len(part.words):
                yield part.words[at], part.words[at + 1 :]


def _is_everything(arguments: Sequence[str]) -> bool:
    """Whether `git add` with these arguments adds all there is, and not only some paths."""
    if any(word in ("-n", "--dry-run", "-u", "--update") for word in arguments):
        return False
    paths = {word for word in arguments if not word.startswith("-")}
    return paths <= {".", ":/"} and (bool(paths) or not {"-A", "--all"}.isdisjoint(arguments))


def _is_among(path: str, written: set[str]) -> bool:
    """Whether a path of a status is a file that was written, or a folder that has one."""
    inner = f"/{path.strip('/')}/"
    return any(inner in f"/{one.strip('/')}/" for one in written)


def _is_named(path: str, commands: Sequence[str]) -> bool:
    """Whether one of these commands has the name of a file in it, and may have made it."""
    name = re.compile(rf"(?<![\w.-]){re.escape(path.strip('/').rpartition('/')[2])}(?![\w-])")
    return any(map(name.search, commands))


# -- checkouts -------------------------------------------------------------------------------------

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


@detector("Outcome")
def find_edits_elsewhere(history: History) -> Iterator[Finding]:
    """The same edit was made to the same file in two checkouts, one of them outside the session's folder: in a worktree
    and in the original, for example.
    """
    found = list(_twice(history))
    if not found:
        return
    one, other = found[0].roots
    yield Finding.of(
        "Warning",
        f"The same {'edits were' if len(found) > 1 else 'edit was'} made in two checkouts: "
        f"{counted(len(found), 'edit')} in {quoted_path(one)}, then in {quoted_path(other)}",
        sorted({call.event_index for pair in found for call in (pair.first, pair.again)}),
        found[0].first.turn,
        count=len(found),
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
