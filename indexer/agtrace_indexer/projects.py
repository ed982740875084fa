"""Which project a session belongs to: the real root of its first working directory.

`project_hash` is the SHA-256 of the root's path (Gemini CLI's own rule), so that one project has
one hash across providers. A git worktree belongs to its main repository.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from functools import lru_cache
from pathlib import Path

_CLAUDE_WORKTREE = re.compile(r"^(.+?)[/\\]\.claude[/\\]worktrees[/\\].+$")
_GITDIR_OF_WORKTREE = re.compile(r"^gitdir: (.+)[/\\]\.git[/\\]worktrees[/\\][^/\\]+\s*$")
_LARGEST_GIT_FILE = 4096
_OF_ANOTHER_MACHINE = ("\\\\", "//")
"""How the paths of shared folders begin: to look there would make a connection, with the user's name in it."""
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def project_hash(root: str) -> str:
    """The hash of a project root: 64 hexadecimal digits."""
    return hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=4096)
def project_root(cwd: str) -> str:
    """The root of the project that a working directory belongs to.

    A path of a foreign system, of another machine, or one that is not there any more, is its own root;
    nothing but the `.git` entries on the way up is looked at, and no process is started.
    """
    worktree = _CLAUDE_WORKTREE.match(cwd)
    if worktree:
        return project_root(worktree[1])
    if not os.path.isabs(cwd) or cwd.startswith(_OF_ANOTHER_MACHINE) or not os.path.isdir(cwd):
        return cwd
    for folder in (Path(cwd), *Path(cwd).parents):
        entry = folder / ".git"
        if entry.is_dir():
            return str(folder)
        if entry.is_file():
            return _main_repository(entry) or str(folder)
    return cwd


def _main_repository(git_file: Path) -> str | None:
    try:
        descriptor = os.open(git_file, _HOW)  # a log names the folder: there may be a pipe, which nobody waits for
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = os.read(descriptor, _LARGEST_GIT_FILE) if regular else b""
        finally:
            os.close(descriptor)
    except OSError:
        return None
    found = _GITDIR_OF_WORKTREE.match(content.decode("utf-8", "replace"))
    return os.path.normpath(git_file.parent / found[1]) if found else None
