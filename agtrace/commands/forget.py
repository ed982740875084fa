"""`agtrace forget`: remove sessions from the index for good, after showing what goes and what stays."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from agtrace.commands.asking import refreshed, usable, with_index
from agtrace.commands.errors import TROUBLE, USAGE, fail, tell
from agtrace.commands.options import plain_json, session_ids
from agtrace.commands.printing import leave_lines, print_lines
from agtrace.text.numbers import counted, size

_REFRESH_SECONDS = 10
_PATIENCE = 60
"""Seconds that the command waits for another process that is writing."""

_SHOWN = 10
_COPIES = "old files of the index may still hold what is forgotten; delete them yourself:"


@click.command()
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=session_ids)
@click.option("--project", metavar="P", help="Only one project, by its name; or one folder, by its path or hash.")
@click.option("--before", metavar="TIME", help="Only sessions that ended before: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--older-content", is_flag=True, help="No session: what logs said before they were edited.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would be forgotten.")
@plain_json
def forget(
    sessions: tuple[str, ...],
    project: str | None,
    before: str | None,
    older_content: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove sessions from the index for good: those named, or all that match; several conditions must all hold.

    The sub-agents of a session go with it. Nothing of them stays in the data folder except a digest of each id, so that
    they are never read again, not even into a new index. The agents' log files are not deleted; a log without a
    session id is recognised by its path, so it is read again if it is moved. You see what would go and are asked first.
    The index is rewritten, which takes as much free disk space as it occupies. AGTRACE_KEEP_DAYS forgets by age,
    continuously. What `agtrace prune` keeps of outputs is no session: it goes after a day, or when you delete the
    folder `outputs` in the data folder.

    After you have edited a log, to take a secret out of it, --older-content forgets what it said before: otherwise the
    archive keeps that for a week, and free pages of the index until they are used again.

    \b
      agtrace forget fb3cff44
      agtrace forget --project tidepool --before 90d --dry-run
    """
    named = bool(sessions) or project is not None or before is not None
    if named == older_content:
        fail("say what to forget: session ids, --project or --before; or --older-content alone", USAGE)
    if usable().asked is not None:
        tell("this forgets in your own index; `agtrace push` then removes it from the team's database")
    settings = with_index()
    refreshed(settings, _REFRESH_SECONDS)
    from agtrace.upkeep.forgetting import chosen, older

    digests, told = (set(), older(settings)) if older_content else chosen(settings, sessions, project, before)
    forgotten, left = (bool(digests) or older_content) and not dry_run, None
    asking = forgotten and not yes
    if asking and not sys.stdin.isatty():
        fail("nothing was forgotten: without a terminal to ask at, --yes is needed", USAGE)
    if asking or not as_json:
        print_lines(_readable(_description(told)), sys.stderr if asking else sys.stdout)
    if asking and not click.confirm(f"Forget {_counts(told)} for good?", err=True):
        fail("nothing was forgotten", TROUBLE)
    if forgotten:
        from agtrace_indexer.forget import forget, forget_older

        database = usable().database
        if sys.stderr.isatty():
            room = size(database.stat().st_size)
            sys.stderr.write(f"rewriting the index, which takes as much free disk space as it occupies ({room}) ...\n")
        left = (
            forget_older(database, patience=_PATIENCE)
            if older_content
            else forget(database, digests, now=time.time(), patience=_PATIENCE)
        )
    leave_lines(
        {**told, "forgotten": forgotten, "traces_left": left}, as_json, _readable(_result(left)) if forgotten else ()
    )
    if left is not None:
        sys.exit(TROUBLE)


def _description(told: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that a person reads before anything is forgotten; times are local."""
    from agtrace.times import when

    if "older" in told:
        yield from _list("the archive has these logs as they were before they were edited:", told["older"])
        yield from _list(_COPIES, told["damaged_copies"])
        return
    yield from (f"{session} was forgotten already" for session in told["already"])
    if not (told["sessions"] or told["sub_agents"]):
        if not told["already"]:
            yield "no session matches: nothing to forget"
        return
    span = f", {when(told['from'])} to {when(told['to'])}" if told["from"] and told["to"] else ""
    yield f"{_counts(told)} with {told['events']:,} events{span}"
    if len(told["folders"]) > 1:
        yield f"in {len(told['folders'])} folders of one project:"
        yield from (f"  {folder}" for folder in told["folders"][:_SHOWN])
    yield from (f"  {title}" for title in told["titles"])
    more = told["sessions"] - len(told["titles"])
    if told["titles"] and more > 0:
        yield f"  ... and {more:,} more"
    for other in told["also_in"][:_SHOWN]:
        yield f"{other['events']:,} events are also in session {other['uid']}, which stays"
    for parent in told["told_in"][:_SHOWN]:
        yield f"session {parent} stays, with what it asked its sub-agent and the answer it got"
    yield from _list("the agents' log files are not deleted; agtrace will ignore them:", told["logs"])
    yield from _list(_COPIES, told["damaged_copies"])


def _counts(told: dict[str, Any]) -> str:
    if "older" in told:
        return "what logs said before they were edited"
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
        yield f"forgotten, but traces are still on the disk: {left}"
        yield "stop what reads the index, such as MCP servers; the next `agtrace index` then overwrites the traces"


def _readable(lines: Iterator[str]) -> Iterator[str]:
    from agtrace.text.lines import unbroken

    yield from map(unbroken, lines)
