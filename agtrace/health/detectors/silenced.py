"""Findings about checks that were switched off instead of passing, and commits of what was lying around."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agtrace_indexer.events.shell import parts
from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of, is_passed_over, only_reads
from agtrace.health.facts.changes import changes
from agtrace.health.facts.checks import is_check
from agtrace.health.facts.labels import quoted, quoted_path
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

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
    for number, call in enumerate(history.calls):
        if failed is not None and failed.turn != call.turn:
            failed = None
        command = command_of(call)
        if command is not None and call.failed and not is_passed_over(call):
            failed = call if is_check(call) or not only_reads(call) else failed
        elif failed is not None and call.outcome is Outcome.OK:
            if command is not None and command == command_of(failed):
                failed = None
                continue
            for path, line in _switched_off(call, history.calls[:number]):
                yield _Silenced(call, path, line, failed)


def _switched_off(call: Call, before: Sequence[Call]) -> Iterator[tuple[str, str]]:
    """Yield the files in which a call switches a check off, each with the first such line."""
    for change in changes(call):
        line = next((line for line in sorted(change.added) if _switches_off(line, change.path)), None)
        if line is None or any(_switches_off(old, change.path) for old in change.removed):
            continue
        if not (change.whole and any(line in earlier.result for earlier in before)):  # else it may have been there
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


_UNTRACKED = later(r"^(?:Output: )?\?\? (.+)$", re.MULTILINE)
_UNTRACKED_LISTED = later(r"^Untracked files:\n(?:  \(.*\)\n)?((?:\t.+(?:\n|\Z))+)", re.MULTILINE)
_OPTIONS_WITH_VALUE = ("-C", "-c")
_GONE = later(r"\bgit (?:-C \S+ )?(?:clean|stash)\b|\brm -|\.gitignore\b|\binfo/exclude\b")
"""What removes untracked files, or has git ignore them."""
_UNSTAGING = frozenset({"reset", "restore", "rm", "stash"})


@detector(
    "Outcome",
    "Everything in the folder was committed (`git add -A`) although the last `git status` had shown untracked files "
    "that the session hadn't written.",
)
def find_swept_commit(history: History) -> Iterator[Finding]:
    """Find commits that probably took in what wasn't meant."""
    seen: _Seen | None = None
    staged: _Seen | None = None
    written: set[str] = set()
    made: list[str] = []
    for call in history.calls:
        command = command_of(call) or ""
        does = list(_does_in_git(call))
        for what, arguments in does:
            if what == "add" and _is_everything(arguments) and seen:
                foreign = [path for path in seen.paths if not _is_among(path, written) and not _is_named(path, made)]
                staged = _Seen(seen.status, foreign, command) if foreign else None
            elif what in _UNSTAGING:
                staged = None
            elif what == "commit" and staged and call.outcome is Outcome.OK:
                yield Finding(
                    severity="Warning",
                    message=f"{quoted(staged.added, 60)} committed everything, "
                    f"{counted(len(staged.paths), 'untracked path')} included that the session hadn't written: "
                    f"{quoted_path(staged.paths[0])}",
                    count=len(staged.paths),
                    events=evidence([staged.status.evidence, call.event_index]),
                    turn=call.turn,
                )
                seen = staged = None
        written.update(call.writes)
        if any(what == "status" for what, _ in does):
            untracked = _untracked(call.result)
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


def _untracked(status: str) -> list[str]:
    listed = [line.strip() for block in _UNTRACKED_LISTED.findall(status) for line in block.splitlines()]
    return [path.strip().strip('"') for path in (*_UNTRACKED.findall(status), *listed)]


def _is_among(path: str, written: set[str]) -> bool:
    """Whether a path of a status is a file that was written, or a folder that has one."""
    inner = f"/{path.strip('/')}/"
    return any(inner in f"/{one.strip('/')}/" for one in written)


def _is_named(path: str, commands: Sequence[str]) -> bool:
    """Whether one of these commands has the name of a file in it, and may have made it."""
    name = re.compile(rf"(?<![\w.-]){re.escape(path.strip('/').rpartition('/')[2])}(?![\w-])")
    return any(map(name.search, commands))
