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
_LARGEST_GIT_FILE = 4096
_ELSEWHERE = later(
    r"""
      [/\\]{2} | [/\\]\?\?[/\\]         # UNC and device paths of Windows
    | .*[/\\]\.\.?(?:[/\\]|$)          # . and .., which no agent writes
    | /(?:System/+Volumes/+[^/]+/+)?    # where macOS keeps the folders of the root
      (?:net|network|hosts|afs|coda|cifs|smb|nfs|misc|ipfs|ipns  # the next one is a machine: looking there mounts it
      |proc|dev|sys|run|\.\.\.|\.vol)(?:/|$)                     # from these others can be reached
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Paths that may lead to another machine: looking there would open a connection, with the user's name in it."""
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


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


def _main_repository(git_file: Path) -> str | None:
    try:
        descriptor = os.open(git_file, _HOW)  # a log names the folder: it may contain a pipe, which must not block us
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = os.read(descriptor, _LARGEST_GIT_FILE) if regular else b""
        finally:
            os.close(descriptor)
    except OSError:
        return None
    found = _GITDIR_OF_WORKTREE.match(content.decode("utf-8", "replace"))
    return os.path.normpath(git_file.parent / found[1]) if found else None
