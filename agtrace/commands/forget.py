"""`agtrace forget`: take sessions out of the index for good, once it is said what goes and what stays."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Iterator
from typing import Any

import click
from agtrace_indexer.lock import Busy

from agtrace.commands import TROUBLE, UNREADABLE, USAGE, behind, fail, print_json, unreadable_index, usable
from agtrace.problems import Problem

_REFRESH_SECONDS = 10
_PATIENCE = 60
"""Seconds that the command waits for another one that is writing."""

_SHOWN = 10


def run(
    sessions: tuple[str, ...], project: str | None, before: str | None, *, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Choose, show, ask, forget. Exits 1 where traces are left or nobody agreed, 2 where nobody could be asked."""
    if not (sessions or project is not None or before is not None):
        fail("name what to forget: sessions, --project or --before", USAGE)
    found = usable()
    try:
        digests, told = _chosen(sessions, project, before)
        if not as_json:
            _print(_description(told) if digests else iter(["no session fits: nothing is forgotten"]))
        forgotten, left = bool(digests) and not dry_run, None
        if forgotten:
            if not yes:
                _agree(told)
            from agtrace_indexer.forget import forget

            left = forget(found.database, digests, now=time.time(), patience=_PATIENCE)
    except Problem as problem:
        fail(str(problem), USAGE)
    except Busy as error:
        fail(str(error), UNREADABLE)
    except (sqlite3.Error, OSError) as error:
        unreadable_index(error)
    if as_json:
        print_json({**told, "forgotten": forgotten, "traces_left": left})
    elif forgotten:
        _print(_result(left))
    if left is not None:
        sys.exit(TROUBLE)


def _chosen(sessions: tuple[str, ...], project: str | None, before: str | None) -> tuple[set[str], dict[str, Any]]:
    """What is chosen of the index as the logs are now."""
    from agtrace.forgetting import chosen
    from agtrace.index import Index

    found = usable()
    freshness = Index(found).refresh(_REFRESH_SECONDS)
    if freshness.state != "ready":
        sys.stderr.write(f"agtrace: {behind(freshness.state, freshness.files_behind, freshness.problem)}\n")
    if not found.database.exists():
        fail("there is no index yet: run agtrace index", UNREADABLE)
    return chosen(found, sessions, project, before)


def _agree(told: dict[str, Any]) -> None:
    if not sys.stdin.isatty():
        fail("nothing is forgotten: --yes is needed where nobody can be asked", USAGE)
    if not click.confirm(f"Forget {_counted(told)} for good?", err=True):
        fail("nothing is forgotten", TROUBLE)


def _description(told: dict[str, Any]) -> Iterator[str]:
    """What a person reads before it is done."""
    span = f", {told['from'][:16]} to {told['to'][:16]} UTC" if told["from"] and told["to"] else ""
    yield f"{_counted(told)} with {told['events']:,} events{span}"
    yield from (f"  {title}" for title in told["titles"])
    for other in told["also_in"][:_SHOWN]:
        yield f"{other['events']:,} events also stand in session {other['uid']}, which stays"
    yield from _list("the agents' own logs stay where they are; agtrace reads them no more:", told["logs"])
    yield from _list("damaged copies of the index may still hold it; delete them yourself:", told["damaged_copies"])


def _counted(told: dict[str, Any]) -> str:
    from agtrace.shaping.cutting import counted

    parts = [counted(told[key], what) for key, what in (("sessions", "session"), ("sub_agents", "sub-agent"))]
    return " and ".join(part for part in parts if not part.startswith("0 "))


def _list(what: str, paths: list[str]) -> Iterator[str]:
    if paths:
        yield what
        yield from (f"  {path}" for path in paths[:_SHOWN])
        if len(paths) > _SHOWN:
            yield f"  ... and {len(paths) - _SHOWN:,} more (--json names them)"


def _result(left: str | None) -> Iterator[str]:
    if left is None:
        yield "forgotten: nothing of it is left in the index"
    else:
        yield f"forgotten, but bytes of it are still on the disk: {left}"
        yield "the next `agtrace index` overwrites them; until then end what reads the index, such as MCP servers"


def _print(lines: Iterator[str]) -> None:
    from agtrace.render.terminal import plain

    for line in lines:
        sys.stdout.write(plain(line).replace("\n", " ") + "\n")
    sys.stdout.flush()
