"""What an event tells about the repository that its session works in: addresses of remotes, and hashes of commits.

Only what git and the programs of forges print counts, and only of commands that stay in the session's working
directory: any other text names many repositories. A clue alone proves nothing (`index.membership` weighs them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from agtrace_schema.events import ToolCall
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.events.commands import Command
from agtrace_indexer.events.remotes import repository_at
from agtrace_indexer.events.shell import Part
from agtrace_indexer.events.strings import masked

REMOTE = "remote"
"""The address of the repository in the working directory, which the log itself records."""
SHOWN = "shown"
"""An address that git or a forge printed."""
COMMIT = "commit"
"""The hash of a commit, at most twelve digits of it."""
ROOT = "root"
"""The path whose hash a log gives in place of its working directory."""

_MOST = 40
"""The most commits that are kept of one output."""
_LOOKED_AT = 20_000
_REMEMBERED = 64

_TELLING = frozenset(
    "branch cherry-pick commit fetch log merge pull push rebase reflog remote reset rev-parse show switch".split()  # noqa: SIM905
)
FORGES = frozenset({"gh", "glab"})
_SUBJECTS = frozenset({"issue", "mr", "pr", "release", "run"})
_ELSEWHERE = frozenset({"--git-dir", "--work-tree", "-R", "--repo", "--hostname"})
_GOES = later(
    r"(?:^|[;&|(\n])[^\S\n]*(?:cd|pushd|popd|Set-Location)\b(?:[^\S\n]+(\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|()]+))?"
)
_MOVING = later(r"\b(?:cd|pushd|popd|Set-Location)\b")
_PLACES = ("workdir", "cwd", "working_directory", "dir_path", "directory")
"""Arguments by which agents have a command run in another folder."""

_MOVED = later(r"^(?:To|From) (\S+)$|^origin\s+(\S+) \((?:fetch|push)\)$", re.MULTILINE)
_PAGE = later(r"https?://[^\s/@]+/[\w.~/-]+?/(?:pull|merge_requests|issues|actions|releases)/\S+")
_HASH = later(
    r"^(?:commit |[*|/\\_ ]{0,20}|[*+ ] \S{1,100}\s+|\[[^\]\n]{1,120} |HEAD is now at |Updating )"
    r"(?P<first>[0-9a-f]{7,40})(?:\.{2,3}(?P<second>[0-9a-f]{7,40}))?(?![0-9A-Za-z_.:/-])",
    re.MULTILINE,
)
_DIGITS = 12


Remembered = dict[str, Any]
"""`away`: whether commands run elsewhere; `calls`: the ids of those that wait for their result. JSON values only."""


_PATH = later(r"(?:/[\w.@+-]+){2,40}|[A-Za-z]:\\\\?(?:[\w.@+-]+\\\\?){2,40}")


class Clue(Struct, frozen=True):
    """Something that tells which repository a session works in."""

    kind: str
    value: str


def remote(address: Any) -> tuple[Clue, ...]:
    """Return the clue that a log records itself: the address of the remote of its working directory."""
    found = repository_at(address) if isinstance(address, str) else None
    return () if found is None else (Clue(REMOTE, found),)


def linked(addresses: Iterable[str | None]) -> list[Clue]:
    """Return the clues in the addresses of pull requests."""
    found = {repository_at(address) for address in addresses if address}
    return [Clue(SHOWN, repository) for repository in sorted(filter(None, found))]


def of_call(
    call: ToolCall, command: Command | None, arguments: Any, folder: str | None, remembered: Remembered
) -> None:
    """Remember a call whose output will tell of the repository; `folder` is the working directory of its session.

    Whoever left that directory with `cd` is elsewhere until a command names it again: some agents keep the shell.
    """
    if command is None or folder is None:
        return
    if _MOVING.search(command.text):
        for target in _GOES.findall(command.text):
            remembered["away"] = not _same(target.strip("\"'"), folder)
    if call.call_id and not remembered.get("away") and _tells(command) and _is_here(arguments, folder):
        remembered["calls"] = [*remembered.get("calls", ()), call.call_id][-_REMEMBERED:]


def of_result(call_id: str | None, output: str, remembered: Remembered) -> list[Clue]:
    """Return the clues in the output of a call, without secrets."""
    if call_id is None or call_id not in remembered.get("calls", ()):
        return []
    remembered["calls"].remove(call_id)
    return list(dict.fromkeys(clues_in(output[:_LOOKED_AT])))


def of_hash(told: str | None, output: str, remembered: Remembered) -> list[Clue]:
    """Return the folder with the hash that a log gives, if an output names anything in it; it is looked for once."""
    if told is None or "root" in remembered:
        return []
    for path in dict.fromkeys(_PATH.findall(output[:_LOOKED_AT])):
        for folder in _folders(path):
            if sha256(folder.encode()).hexdigest() == told:
                remembered["root"] = True
                return [Clue(ROOT, masked(folder))]
    return []


def _folders(path: str) -> Iterator[str]:
    """Yield a path and the folders above it."""
    path = path.replace("\\\\", "\\").rstrip("\\")
    while path:
        yield path
        path = path[: max(path.rfind("/"), path.rfind("\\"), 0)]


def _tells(command: Command) -> bool:
    """Whether the output of a command tells of the repository in the working directory."""
    meant = "git" in command.text or "gh " in command.text or "glab " in command.text
    return meant and any(map(_is_telling, command.parts))


def clues_in(output: str) -> Iterator[Clue]:
    """Yield what git or a forge printed: remotes, and commits. Pages of several repositories tell nothing."""
    for moved in _MOVED.finditer(output):
        if found := repository_at(moved[1] or moved[2]):
            yield Clue(SHOWN, found)
    pages = {repository_at(page) for page in _PAGE.findall(output)} if "://" in output else set()
    if len(pages) == 1 and (page := pages.pop()):
        yield Clue(SHOWN, page)
    commits = (value for match in _HASH.finditer(output) for value in match.groups() if value and is_hash(value))
    for number, commit in enumerate(commits):
        if number == _MOST:
            return
        yield Clue(COMMIT, commit[:_DIGITS])


def _is_telling(part: Part) -> bool:
    if part.program == "git":
        words = part.words[1:]
        while words and words[0] in ("-c", "--no-pager"):
            words = words[2 if words[0] == "-c" else 1 :]
        return bool(words) and words[0] in _TELLING
    if part.program in FORGES:
        return part.words[1:2] != () and part.words[1] in _SUBJECTS and _ELSEWHERE.isdisjoint(part.words)
    return False


def _is_here(arguments: Any, folder: str) -> bool:
    """Whether the arguments of a call name no other folder to run it in."""
    if not isinstance(arguments, dict):
        return True
    named = (arguments.get(name) for name in _PLACES)
    return all(_same(place, folder) for place in named if isinstance(place, str) and place)


def _same(place: str, folder: str) -> bool:
    return place.rstrip("/\\") in (folder.rstrip("/\\"), ".")


def is_hash(text: str) -> bool:
    """Whether digits and letters make up a text: a number or a word made of a to f is no hash."""
    return not text.isdigit() and not text.isalpha()
