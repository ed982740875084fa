"""`agtrace index`: bring the index up to date, with a progress bar at a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from agtrace.commands.asking import usable, with_index
from agtrace.commands.errors import patiently, tell
from agtrace.commands.options import plain_json
from agtrace.commands.printing import leave_lines, print_json, print_lines
from agtrace.text.numbers import counted, size

if TYPE_CHECKING:
    from pathlib import Path

    from agtrace_indexer.logs.files import Progress
    from agtrace_indexer.run import Summary

    from agtrace.settings.model import Settings

_NICENESS = 5
"""Added to the process's niceness: agents that wait for an answer come first."""

_SHOW_CURSOR = b"\x1b[?25h"

_ROOTS_NAMED = 3
"""Folders that are named if nothing is in them; those of all agents would be too many."""

_PATIENCE = 600
"""Seconds that the command waits for another process that is writing."""


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(exists=True))
@click.option("--rebuild", is_flag=True, help="Read every log again.")
@click.option("--watch", is_flag=True, help="Keep running, and index changes within a second, until Ctrl-C.")
@click.option("--optimize", is_flag=True, help="Don't read logs: compact the index, and return free space to the disk.")
@plain_json
def index(paths: tuple[str, ...], rebuild: bool, watch: bool, optimize: bool, as_json: bool) -> None:
    """Index the agents' logs, or the given files and folders; only what changed is read.

    A PATH may hold logs of any of the agents, under any name, plain or .zst. From then on it is kept
    fresh: before every answer, or continuously with --watch, which prints a line (with --json, a JSON
    object on one line) for each run that changed something.
    """
    if optimize and (paths or rebuild or watch):
        raise click.UsageError("--optimize can't be combined with a PATH, --rebuild or --watch")
    if watch:
        from agtrace.commands.index_watch import watch_index

        watch_index(paths, rebuild=rebuild, as_json=as_json)
    elif optimize:
        _optimize(as_json=as_json)
    else:
        index_once(paths, rebuild=rebuild, as_json=as_json)


def index_once(paths: tuple[str, ...], *, rebuild: bool, as_json: bool, indent: int | None = 2) -> Summary:
    """Index, and print what was found and changed; JSON on a single line if `indent` is None."""
    chosen = usable(creates_index=True)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    if chosen.database.exists():
        _make_anew_if_older(chosen)
    roots = roots_of(paths)
    with _progress_bar(shown=sys.stderr.isatty() and not as_json) as report:
        summary = _index(chosen, roots, report, rebuild=rebuild)
    if as_json:
        print_json({**asdict(summary), "index": str(chosen.database)}, indent)
    else:
        print_lines(_lines(summary, roots))
        if summary.files_changed and indent:
            print_lines(_by_agent(chosen.database))
    return summary


def _optimize(*, as_json: bool) -> None:
    """Merge the index's parts and give free space back, and print the sizes before and after."""
    from agtrace_indexer.index.maintenance import optimize

    database = with_index().database
    done = optimize(database, patience=_PATIENCE)
    told = f"the index had {size(done.bytes_before)}, it now has {size(done.bytes_after)}"
    leave_lines({**asdict(done), "index": str(database)}, as_json, [told])


def roots_of(paths: tuple[str, ...]) -> list[str]:
    """Return what to index for these paths: the paths, or if none are given, the homes of the known agents except
    those that the user removed.
    """
    if paths:
        return list(paths)
    from agtrace.index.reader import home_roots

    chosen = usable(creates_index=True)
    taken_away = _removed(chosen)
    return [root for root in home_roots(chosen) if root not in taken_away]


def _removed(chosen: Settings) -> set[str]:
    """Return the homes that `agtrace roots remove` took away."""
    from agtrace_indexer.index.opening import open_read_only
    from agtrace_indexer.index.roots import removed

    if not chosen.database.exists():
        return set()
    with closing(open_read_only(chosen.database)) as connection:
        return removed(connection)


def _index(chosen: Settings, roots: list[str], report: Callable[[Progress], None] | None, *, rebuild: bool) -> Summary:
    """Index, waiting for another process that is writing."""
    from agtrace_indexer.run import index

    run = partial(index, chosen.database, roots, report=report, rebuild=rebuild, keep_days=chosen.keep_days)
    return patiently(lambda seconds: run(patience=seconds), _PATIENCE)


def _make_anew_if_older(chosen: Settings) -> None:
    """Rebuild an index that an older agtrace made, and say what was kept of it."""
    import sqlite3  # not needed by --help

    from agtrace_indexer.index.opening import is_older

    older = False
    with suppress(sqlite3.Error):  # the run itself reports what is wrong
        older = is_older(chosen.database)
    if older:
        from agtrace.commands.doctor import rebuilt

        done = rebuilt()
        tell(
            "an older agtrace made the index, so it was rebuilt",
            f"kept from the old index: {counted(done.archived, 'log')} whose files are gone",
            *([f"not all of it could be kept: {counted(len(done.lost), 'session')}"] if done.lost else ()),
            f"the old index is now {done.old}: delete it once you are sure that nothing is missing",
        )


def _lines(summary: Summary, roots: list[str]) -> Iterator[str]:
    """Yield the lines that a person reads after a run."""
    if not summary.files_seen:
        from agtrace_indexer.providers.registry import AGENTS

        from agtrace.text.lines import unbroken  # loads more than a run without changes does

        if len(roots) <= _ROOTS_NAMED:
            yield "No logs found. Looked in:"
            yield from (f"  {unbroken(root)}" for root in roots)
        else:
            yield f"Found no logs of {', '.join(agent.title for agent in AGENTS.values())}."
            yield "Whether another agent keeps logs here: agtrace doctor (all places: --json)"
        yield "To index a file or folder elsewhere: agtrace index PATH"
        return
    found = f"{counted(summary.sessions, 'session')}, {counted(summary.events, 'event')}"
    files = f"{counted(summary.files_seen, 'file')} ({summary.files_changed:,} changed)"
    yield f"{found} from {files} in {summary.seconds:.2f} s; the index has {size(summary.index_bytes)}"
    if summary.unreadable_lines:
        yield f"{counted(summary.unreadable_lines, 'unreadable line')} kept as found: `agtrace doctor` shows where"
    if summary.files_unreadable:
        yield f"{counted(summary.files_unreadable, 'file')} can't be read: `agtrace doctor` names them"
    if summary.no_logs:
        from agtrace.text.lines import without_controls

        for path, why in summary.no_logs.items():
            yield f"{without_controls(path)} is not a log ({why}): it is not kept fresh"
    unknown = sum(summary.unknown_record_types.values())
    if unknown:
        kinds = counted(len(summary.unknown_record_types), "unknown type")
        yield f"{counted(unknown, 'record')} of {kinds} kept and searchable: `agtrace doctor` names them"


def _by_agent(database: Path) -> Iterator[str]:
    """Yield what the index has of each agent, and what wasn't read."""
    from agtrace_indexer.index.opening import open_read_only
    from agtrace_indexer.index.questions import upkeep
    from agtrace_indexer.providers.registry import AGENTS

    with closing(open_read_only(database)) as connection:
        agents, unread = upkeep.providers(connection), upkeep.files_not_read(connection)
    yield ", ".join(f"{AGENTS[agent.provider].title} {agent.sessions:,}" for agent in agents)
    if starts := sum(agent.warmups for agent in agents):
        yield f"not listed as sessions: {counted(starts, 'mere start')} of an agent"
    if others := [file for file in unread if file.status in ("empty", "unrecognized")]:
        yield f"not read: {counted(len(others), 'file')}, empty or no known log: `agtrace doctor` names them"


@contextmanager
def _progress_bar(*, shown: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on stderr with files, MB/s and the time left, from the first changed file on."""
    if not shown:
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("indexing"), BarColumn(), TextColumn("{task.fields[files]} files"), TransferSpeedColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    from rich.console import Console

    from agtrace.serving.interruption import last_words

    console = Console(stderr=True)
    if not console.is_dumb_terminal:
        last_words.append(_SHOW_CURSOR)  # the bar hides it
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("indexing", files="0/0", visible=False)

        def report(progress: Progress) -> None:
            files = f"{progress.files_done}/{progress.files_total}"
            bar.update(task, total=progress.bytes_total, completed=progress.bytes_done, files=files, visible=True)

        yield report
