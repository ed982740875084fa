"""What git knows of a file: what was committed, by whom, and under which names. For folders that nobody vouches for.

A repository's configuration can name programs: hooks, a file system monitor, filters, converters for diffs, transports.
Only commands are used that run none of them: they read commits, never the work tree, and reach no other repository.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.settings.environment import for_git

_SAFELY = (
    "--no-optional-locks", "--no-pager", "--no-replace-objects", "--literal-pathspecs",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.sshCommand=false",
    "-c", "core.attributesFile=/dev/null", "-c", "protocol.allow=never", "-c", "log.showSignature=false",
    "-c", "blame.ignoreRevsFile=", "-c", "diff.external=", "-c", "safe.bareRepository=explicit", "-c", "gc.auto=0",
)  # fmt: skip
_SECONDS = 10
_LARGEST = 50_000_000
_COMMIT = later(r"([0-9a-f]{40,64}) \d+ (\d+)(?: (\d+))?")
_RENAME = re.compile(rb"R\d+\0([^\0]+)\0([^\0]+)\0")


class Commit(Struct, frozen=True):
    """A commit."""

    hash: str
    author: str
    at: str | None
    """The author's date (UTC)."""
    subject: str


class Tracked(Struct, frozen=True):
    """A file in a repository."""

    root: str
    path: str
    """Below the root, with slashes."""
    content: str | None
    """As in the newest commit; None if it isn't there."""


def tracked(file: Path) -> Tracked | None:
    """Return a file as the repository around it has it; None without one, without git, or if git refuses it."""
    root = _run(file.parent, "rev-parse", "--show-toplevel")
    if root is None:
        return None
    top = root.decode(errors="surrogateescape").rstrip("\n")
    try:
        path = (Path(os.path.realpath(file.parent)) / file.name).relative_to(top).as_posix()
    except ValueError:
        return None
    size = _run(Path(top), "cat-file", "-s", f"HEAD:{path}")
    if size is None or not size.strip().isdigit() or int(size) > _LARGEST:
        return Tracked(top, path, None)
    content = _run(Path(top), "cat-file", "blob", f"HEAD:{path}")
    return Tracked(top, path, None if content is None else content.decode(errors="replace"))


def commits_of(file: Tracked, lines: Iterable[int]) -> dict[int, Commit]:
    """Return the commits that wrote these lines, counted from 1, of a file as it was committed."""
    wanted = sorted(set(lines))
    if not wanted:
        return {}
    spans = [option for first, last in _spans(wanted) for option in ("-L", f"{first},{last}")]
    said = _run(Path(file.root), "blame", "--no-textconv", "--porcelain", *spans, "HEAD", "--", file.path)
    return {} if said is None else _blamed(said.decode(errors="replace"))


def former_names(file: Tracked) -> list[str]:
    """Return the paths that a file had before it was renamed, below the root, newest first."""
    options = ("--follow", "--diff-filter=R", "--name-status", "-M", "-z", "--format=", "--no-ext-diff")
    said = _run(Path(file.root), "log", *options, "HEAD", "--", file.path)
    return [old.decode(errors="surrogateescape") for old, _ in _RENAME.findall(said or b"")]


def _spans(numbers: list[int]) -> list[tuple[int, int]]:
    """Return runs of successive numbers as their first and last one."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return spans


def _blamed(said: str) -> dict[int, Commit]:
    """Read the porcelain format: for each line a header, facts if the commit is named for the first time, the line."""
    facts: dict[str, dict[str, str]] = {}
    of_line: dict[int, str] = {}
    current = ""
    for line in said.split("\n"):
        head = _COMMIT.fullmatch(line)
        if head:
            current = head[1]
            of_line[int(head[2])] = current
            facts.setdefault(current, {})
        elif current and not line.startswith("\t"):
            name, _, value = line.partition(" ")
            facts[current].setdefault(name, value)
    return {number: _commit(hash, facts[hash]) for number, hash in of_line.items()}


def _commit(hash: str, facts: dict[str, str]) -> Commit:
    try:
        at = datetime.fromtimestamp(int(facts.get("author-time", "")), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        at = None
    return Commit(hash, facts.get("author", ""), at, facts.get("summary", ""))


def _run(folder: Path, *command: str) -> bytes | None:
    """Return what git prints; None if it fails, isn't there or takes too long."""
    try:
        run = subprocess.run(
            ["git", *_SAFELY, *command], cwd=folder, env=for_git(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout if run.returncode == 0 else None
