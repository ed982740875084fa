"""Findings about commits of what was lying around."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agtrace_indexer.events.shell import parts
from agtrace_schema.events import Outcome, UserKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of, only_reads
from agtrace.health.facts.labels import quoted, quoted_path
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_UNTRACKED = later(r"^(?:Output: )?\?\? (.+)$", re.MULTILINE)
_UNTRACKED_LISTED = later(r"^Untracked files:\n(?:  \(.*\)\n)?((?:\t.+(?:\n|\Z))+)", re.MULTILINE)
_OPTIONS_WITH_VALUE = ("-C", "-c")
_GONE = later(r"\bgit (?:-C \S+ )?(?:clean|stash)\b|\brm -|\.gitignore\b|\binfo/exclude\b")
"""What removes untracked files, or has git ignore them."""
_ASKED = later(
    r"\b(?:commit|add|stage|push) (?:everything|all)\b|\ball (?:the |my |these )?(?:changes|files)\b", re.IGNORECASE
)
"""A request for it."""
_UNSTAGING = frozenset({"reset", "restore", "rm", "stash"})


@detector(
    "Outcome",
    "Everything in the folder was committed (`git add -A`) although the last `git status` had shown untracked files "
    "that the session hadn't written; not if the human had asked for all of it.",
)
def find_swept_commit(history: History) -> Iterator[Finding]:
    """Find commits that probably took in what wasn't meant."""
    if not any("git" in command and " add " in command for command in filter(None, map(command_of, history.calls))):
        return
    seen: _Seen | None = None
    staged: _Seen | None = None
    written: set[str] = set()
    made: list[str] = []
    asked = {said.turn for said in history.said if said.kind is UserKind.HUMAN and _ASKED.search(said.text)}
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
                yield Finding(
                    severity="Warning",
                    message=f"Everything was committed with {quoted(staged.added, 60)}, probably including "
                    f"{counted(len(staged.paths), 'untracked path')} that the session hadn't written: "
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
