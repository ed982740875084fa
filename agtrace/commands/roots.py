"""`agtrace roots`: what is kept fresh, and how something is so no more."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from agtrace_indexer.index.lock import Busy
from agtrace_indexer.index.opening import open_read_only
from agtrace_indexer.index.roots import Root, UnknownRoot, listed, remove, removed

from agtrace.commands import UNREADABLE, USAGE, fail, print_json, unreadable_index, usable
from agtrace.index.reader import home_roots

if TYPE_CHECKING:
    from agtrace.settings import Settings

_PATIENCE = 60
"""Seconds that the command waits for another one that is writing."""


def show(*, as_json: bool) -> None:
    """Print the roots."""
    chosen = _settings()
    try:
        with closing(open_read_only(chosen.database)) as connection:
            roots, away = listed(connection), sorted(removed(connection))
    except (sqlite3.Error, OSError) as error:
        unreadable_index(error)
    if as_json:
        print_json({"roots": [root._asdict() for root in roots], "removed": away})
    else:
        _print(_lines(roots, away))


def take_away(path: str, *, as_json: bool) -> None:
    """Take a root away, and print what becomes of its sessions."""
    chosen = _settings()
    try:
        root = remove(chosen.database, path, home_roots(chosen), patience=_PATIENCE)
    except UnknownRoot as unknown:
        fail(f"{unknown} is no root: `agtrace roots` lists them", USAGE)
    except Busy as error:
        fail(str(error), UNREADABLE)
    except (sqlite3.Error, OSError) as error:
        unreadable_index(error)
    if as_json:
        print_json({"removed": root._asdict()})
    else:
        _print(_told(root))


def _settings() -> Settings:
    chosen = usable()
    if not chosen.database.exists():
        fail("there is no index yet: run agtrace index", UNREADABLE)
    return chosen


def _lines(roots: list[Root], away: list[str]) -> Iterator[str]:
    if not roots:
        yield "nothing is kept fresh: agtrace index PATH"
    for root in roots:
        yield f"{root.path}  {_held(root) if root.exists else 'is not there'}"
    yield from (f"{path}  taken away: agtrace index PATH brings it back" for path in away)


def _told(root: Root) -> Iterator[str]:
    yield f"{root.path} is kept fresh no more; nothing in it was touched"
    if root.sessions:
        yield f"{_held(root)}: archived. They stay in the index and are found as before, until `agtrace forget`"


def _held(root: Root) -> str:
    from agtrace.text.lines import counted

    return f"{counted(root.logs, 'log')}, {counted(root.sessions, 'session')}"


def _print(lines: Iterator[str]) -> None:
    from agtrace.render.terminal import plain

    for line in lines:
        sys.stdout.write(plain(line) + "\n")
    sys.stdout.flush()
