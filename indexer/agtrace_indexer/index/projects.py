"""The project that a session belongs to: the real root of its first working directory.

`project_hash` is the SHA-256 of the root's path (Gemini CLI's own rule), so that a project has the
same hash for all providers. A git worktree belongs to its main repository.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from functools import lru_cache
from pathlib import Path

from agtrace_schema.patterns import later

_CLAUDE_WORKTREE = later(r"^(.+?)[/\\]\.claude[/\\]worktrees[/\\].+$")
_GITDIR_OF_WORKTREE = later(r"^gitdir: (.+)[/\\]\.git[/\\]worktrees[/\\][^/\\]+\s*$")
_HASH = later(r"[0-9A-Fa-f]{64}")
_LARGEST_GIT_FILE = 65_536
_ELSEWHERE = later(
    r"""
      [/\\]{2} | [/\\]\?\?[/\\]         # UNC and device paths of Windows
    | .*[/\\]\.\.?(?:[/\\]|$)          # . and .., which no agent writes
    | /(?:System/+Volumes/+[^/]+/+)?    # where macOS keeps the folders of the root
      (?:net|network|hosts|afs|coda|cifs|smb|nfs|misc|ipfs|ipns  # the next one is a machine: looking there mounts it
      |proc|dev(?!/+shm/)|sys|run|\.\.\.|\.vol)(?:/|$)                     # from these others can be reached
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Paths that may lead to another machine: looking there would open a connection, with the user's name in it."""
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_DRIVE = later(
    r"(?:(?:/{2}[?.]/|/\?\?/)?(?=[A-Za-z]:)|/(?:mnt|cygdrive)/(?=[A-Za-z](?:/|\Z))|/(?=[A-Za-z]/Users/))([A-Za-z]):?(?=/|\Z)"
)
_OF_WSL = later(r"\A//(?:[?.]/UNC/)?wsl(?:\.localhost|\$)/[^/]+(?=/)", re.IGNORECASE)
_SCRATCH = later(
    r"""(?: /?
      | /(?:root|home|Users|private|var|tmp|opt|srv|mnt|work|workspace|workspaces|app|src|code|project|repo|data)
      | /(?:home|Users)/[^/]+ (?:/(?:Desktop|Documents|Downloads|Projects?|code|src|dev|work|workspace|repos?|git))?
      | (?:/private)?/(?:tmp|var/tmp|var/folders)(?:/.*)?
      | [A-Za-z]: (?:/(?:Users(?:/[^/]+ (?:/(?:Desktop|Documents|Downloads))?)?|Windows(?:/.*)?|Temp(?:/.*)?))?
      | [A-Za-z]:/Users/[^/]+/AppData(?:/.*)?
    )/?""",
    re.VERBOSE | re.IGNORECASE,
)
"""Folders in which one works on many repositories, or on none."""


def project_hash(root: str) -> str:
    """Return the hash of a project root: 64 hexadecimal digits."""
    return hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()


def told_hash(told: str) -> str:
    """Return the hash of a project that its log gives; anything that isn't a hash is hashed."""
    return told.lower() if _HASH.fullmatch(told) else project_hash(told)


@lru_cache(maxsize=4096)
def project_root(cwd: str) -> str:
    """Return the root of the project that a working directory belongs to.

    A path on a foreign system or on another machine, or one that no longer exists, is its own root. Only the
    `.git` entries on the way up are looked at, and no process is started.
    """
    worktree = _CLAUDE_WORKTREE.match(cwd)
    if worktree:
        return project_root(worktree[1])
    if not os.path.isabs(cwd) or _ELSEWHERE.match(cwd) or not os.path.isdir(cwd):
        return cwd
    for folder in (Path(cwd), *Path(cwd).parents):
        entry = folder / ".git"
        try:
            kind = entry.lstat().st_mode
        except OSError:
            continue
        return (_main_repository(entry) if stat.S_ISREG(kind) else None) or str(folder)
    return cwd


def is_of_this_machine(path: str) -> bool:
    """Whether a path can't lead to another machine, so that looking there opens no connection."""
    return os.path.isabs(path) and _ELSEWHERE.match(path) is None


def small_file(path: Path) -> str:
    """Return the beginning of a file of git's, which may have been put there by anybody. Raises `OSError`."""
    descriptor = os.open(path, _HOW)  # a log names the folder: it may contain a pipe, which must not block us
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
        return os.read(descriptor, _LARGEST_GIT_FILE).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def _main_repository(git_file: Path) -> str | None:
    try:
        match = _GITDIR_OF_WORKTREE.match(small_file(git_file))
    except OSError:
        return None
    return os.path.normpath(git_file.parent / match[1]) if match else None


def portable(path: str) -> str:
    """Return a path with `/`, by the one of a folder's names that Windows and WSL have in common: `C:/Users/mira`."""
    path = path.replace("\\", "/")
    drive = _DRIVE.match(path)
    return f"{drive[1].upper()}:{path[drive.end() :]}" if drive else _OF_WSL.sub("", path).replace("//?/UNC/", "//", 1)


def is_scratch(path: str) -> bool:
    """Return whether a path is that of a home directory or another folder in which one works on many repositories."""
    return _SCRATCH.fullmatch(portable(path)) is not None
