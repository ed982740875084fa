"""Clones on this machine that no session has worked in: which repository they are, as their git configuration says."""

from __future__ import annotations

import configparser
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from agtrace_indexer.events.remotes import repository_at
from agtrace_indexer.index.projects import is_of_this_machine, project_root, small_file
from agtrace_indexer.index.questions import projects

from agtrace.problems import UnknownProject
from agtrace.sessions.projects import is_path, resolved

_ORIGIN = 'remote "origin"'


def remote_at(path: str) -> str | None:
    """Return the remote of the repository around a path, as `host/owner/name`; None without one.

    Of several remotes that is `origin`, or the first one. No program is run for it.
    """
    root = project_root(os.path.abspath(os.path.expanduser(path)))
    if not is_of_this_machine(root):
        return None
    config = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        config.read_string(_config(Path(root, ".git")))
    except (OSError, ValueError, configparser.Error):
        return None
    remotes = {one: config.get(one, "url", fallback=None) for one in config.sections() if one.startswith("remote ")}
    address = remotes.get(_ORIGIN) or next(filter(None, remotes.values()), None)
    return repository_at(address) if address else None


def known_as(connection: sqlite3.Connection, given: str) -> str:
    """Return how the index knows a project that somebody names: as it was named, or the path of a clone by its remote.

    Only for what a person at this machine names: what a client asks for is never looked up on the disk.
    """
    if not is_path(given):
        return given
    with suppress(UnknownProject):
        resolved(connection, given, roughly=False)
        return given
    remote = remote_at(given)
    return remote if remote and projects.called(connection, remote) else given


def _config(git: Path) -> str:
    """Return the configuration of a repository. Raises `OSError`."""
    file = _folder(git) / "config"
    if not file.is_file():
        raise FileNotFoundError(file)
    return small_file(file)


def _folder(git: Path) -> Path:
    """Return the folder that `.git` is, or that it names as in a submodule. Raises `OSError`."""
    if not git.is_file():
        return git
    named = git.parent / small_file(git).removeprefix("gitdir:").strip()
    return named if is_of_this_machine(str(named)) else git
