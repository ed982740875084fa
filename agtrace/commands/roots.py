"""`agtrace roots`: list the files and folders that are kept fresh, or remove one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import click

from agtrace.commands.asking import with_index
from agtrace.commands.options import plain_json
from agtrace.commands.printing import leave_lines
from agtrace.text.numbers import counted

if TYPE_CHECKING:
    from agtrace_indexer.index.roots import Root

_PATIENCE = 60
"""Seconds that the command waits for another process that is writing."""


@click.group(invoke_without_command=True)
@plain_json
@click.pass_context
def roots(context: click.Context, as_json: bool) -> None:
    """List the files and folders that are kept fresh; `agtrace roots remove PATH` removes one."""
    if context.invoked_subcommand is None:
        _list(as_json=as_json)


@roots.command(short_help="Stop keeping a file or folder fresh.")
@click.argument("path", type=click.Path())
@plain_json
def remove(path: str, as_json: bool) -> None:
    """Stop keeping a file or folder fresh. Its sessions stay in the index as archived ones, until `agtrace forget`.

    A plain `agtrace index` doesn't bring it back; `agtrace index PATH` does.
    """
    from agtrace_indexer.index.roots import remove as take_away

    from agtrace.index.reader import home_roots

    chosen = with_index()
    root = take_away(chosen.database, path, home_roots(chosen), patience=_PATIENCE)
    leave_lines({"removed": root._asdict()}, as_json, _readable(_told(root)))


def _list(*, as_json: bool) -> None:
    from agtrace_indexer.index.opening import open_read_only
    from agtrace_indexer.index.roots import listed, removed

    with closing(open_read_only(with_index().database)) as connection:
        found, away = listed(connection), sorted(removed(connection))
    value = {"roots": [root._asdict() for root in found], "removed": away}
    leave_lines(value, as_json, _readable(_lines(found, away)))


def _lines(roots: list[Root], away: list[str]) -> Iterator[str]:
    if not roots:
        yield "nothing is kept fresh; to add a file or folder: agtrace index PATH"
    for root in roots:
        yield f"{root.path}  {_held(root) if root.exists else 'missing'}"
    yield from (f"{path}  removed: agtrace index PATH brings it back" for path in away)


def _told(root: Root) -> Iterator[str]:
    yield f"{root.path} is no longer kept fresh; nothing in it was touched"
    if root.sessions:
        yield f"{_held(root)}: archived. They stay in the index and can be searched as before, until `agtrace forget`"


def _held(root: Root) -> str:

    return f"{counted(root.logs, 'log')}, {counted(root.sessions, 'session')}"


def _readable(lines: Iterator[str]) -> Iterator[str]:
    from agtrace.render.terminal import plain

    yield from map(plain, lines)
