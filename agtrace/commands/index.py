"""`agtrace index` brings the index up to date, once or from now on; `agtrace roots` lists what it is made of."""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from agtrace.commands.asking import usable, with_index
from agtrace.commands.errors import patiently, tell
from agtrace.commands.options import plain_json
from agtrace.commands.printing import bar_of, leave_lines, print_json, print_lines
from agtrace.text.numbers import counted, counted_sessions, size

if TYPE_CHECKING:
    from pathlib import Path

    from agtrace_indexer.index.roots import Root
    from agtrace_indexer.logs.files import Progress
    from agtrace_indexer.run import Summary

    from agtrace.settings.model import Settings


_ROOTS_NAMED = 3
"""Folders that are named if nothing is in them; those of all agents would be too many."""

PATIENCE = 600
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
        watch_index(paths, rebuild=rebuild, as_json=as_json)
    elif optimize:
        _optimize(as_json=as_json)
    else:
        index_once(paths, rebuild=rebuild, as_json=as_json)


def index_once(paths: tuple[str, ...], *, rebuild: bool, as_json: bool, indent: int | None = 2) -> Summary:
    """Index, and print what was found and changed; JSON on a single line if `indent` is None."""
    chosen = usable(creates_index=True)
    roots = roots_of(paths)
    with _progress_bar(shown=sys.stderr.isatty() and not as_json) as report:
        from agtrace_indexer.run import index

        run = partial(
            index,
            chosen.database,
            roots,
            report=report,
            rebuild=rebuild,
            keep_days=chosen.keep_days,
            archive=chosen.archive,
        )
        summary = patiently(lambda seconds: run(patience=seconds), PATIENCE)
    missed = _missed(chosen)
    if summary.repaired:
        tell("the index couldn't be used, so it was rebuilt from the logs and the archive", *summary.repaired)
    if as_json:
        told = {**asdict(summary), **missed, "no_logs": missed["no_logs"] | summary.no_logs}
        print_json({**told, "index": str(chosen.database)}, indent)
    else:
        print_lines(_lines(summary, roots))
        print_lines(_not_read(missed))
        if summary.files_changed and indent:
            print_lines(_by_agent(chosen.database))
    return summary


def _optimize(*, as_json: bool) -> None:
    from agtrace_indexer.index.maintenance import optimize

    database = with_index().database
    done = optimize(database, patience=PATIENCE)
    told = f"the index had {size(done.bytes_before)}, it now has {size(done.bytes_after)}"
    leave_lines({**asdict(done), "index": str(database)}, as_json, [told])


def roots_of(paths: tuple[str, ...]) -> list[str]:
    """Return what to index for these paths: the paths, or if none are given, the homes of the known agents except
    those that the user removed.
    """
    if paths:
        return list(paths)
    import sqlite3  # not needed by --help

    from agtrace_indexer.index.opening import open_read_only
    from agtrace_indexer.index.roots import removed

    from agtrace.index.reader import home_roots

    chosen = usable(creates_index=True)
    roots = home_roots(chosen)
    if not chosen.database.exists():
        return roots
    taken_away = set(roots)  # if the index can't be read: the run says why, or rebuilds it with its own
    with suppress(sqlite3.DatabaseError), closing(open_read_only(chosen.database)) as connection:
        taken_away = removed(connection)
    return [root for root in roots if root not in taken_away]


def _lines(summary: Summary, roots: list[str]) -> Iterator[str]:
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
    found = f"{counted_sessions(summary.sessions, summary.sub_agents)}, {counted(summary.events, 'event')}"
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
        yield f"{counted(unknown, 'record')} of {kinds}, so that totals are lower bounds: `agtrace doctor` names them"


def _missed(chosen: Settings) -> dict[str, Any]:
    """Return the files that were taken for no logs, with reasons, and the stores of agents that aren't read."""
    from pathlib import Path

    from agtrace_indexer.index.opening import open_read_only
    from agtrace_indexer.index.queries import upkeep
    from agtrace_indexer.providers import unread

    home = Path(chosen.environment.get("HOME") or Path.home())
    with closing(open_read_only(chosen.database)) as connection:
        others = [
            file for file in upkeep.not_read(connection) if file["status"] in ("empty", "unrecognized", "skipped")
        ]
    found = unread.unread_stores(chosen.environment, home, (file["path"] for file in others))
    stores = [{"agent": title, "path": path} for title, path in found]
    return {"no_logs": {file["path"]: file["reason"] or "" for file in others}, "unread_agents": stores}


def _not_read(missed: dict[str, Any]) -> Iterator[str]:
    from agtrace.text.lines import unbroken

    for why, files in Counter(missed["no_logs"].values()).most_common():
        yield f"not read: {counted(files, 'file')}, {why}: `agtrace doctor` names them"
    for store in missed["unread_agents"]:
        yield f"not read yet: {store['agent']}, {unbroken(store['path'])}"


def _by_agent(database: Path) -> Iterator[str]:
    from agtrace_indexer.index.opening import open_read_only
    from agtrace_indexer.index.queries import upkeep
    from agtrace_indexer.providers.registry import AGENTS

    with closing(open_read_only(database)) as connection:
        agents = upkeep.providers(connection)
    yield ", ".join(f"{AGENTS[agent['provider']].title} {agent['sessions']:,}" for agent in agents)
    if starts := sum(agent["warmups"] for agent in agents):
        yield f"not listed as sessions: {counted(starts, 'mere start')} of an agent"


@contextmanager
def _progress_bar(*, shown: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on stderr with files, MB/s and the time left, from the first changed file on."""
    if not shown:
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    files = TextColumn("{task.fields[files]} files")
    columns = (TextColumn("indexing"), BarColumn(), files, TransferSpeedColumn(), TimeRemainingColumn())
    with bar_of(*columns) as bar:
        task = bar.add_task("indexing", files="0/0", visible=False)

        def report(progress: Progress) -> None:
            files = f"{progress.files_done}/{progress.files_total}"
            bar.update(task, total=progress.bytes_total, completed=progress.bytes_done, files=files, visible=True)

        yield report


def watch_index(paths: tuple[str, ...], *, rebuild: bool, as_json: bool) -> None:
    """Index, then keep the index fresh. SIGTERM ends it with exit code 0, Ctrl-C with 130."""
    from agtrace_indexer.watch.watcher import watch

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.excepthook = lambda failed: tell(  # of watchdog, whose notifications are set up again
        f"notifications of changed files failed ({failed.exc_value!r}); trying again"
    )
    chosen = usable()
    database = chosen.database
    summary = index_once(paths, rebuild=rebuild, as_json=as_json, indent=None)
    if not as_json:
        print_lines(["watching for changes; Ctrl-C stops"])
    with closing(watch(database, roots_of(paths), summary, tell, chosen.keep_days, archive=chosen.archive)) as changes:
        for before, now in changes:
            if as_json:
                print_json({**asdict(now), "index": str(database)}, indent=None)
            else:
                print_lines([f"{datetime.now():%H:%M:%S}  {', '.join(_words(before, now))}"])


def _words(before: Summary, now: Summary) -> Iterator[str]:
    if now.files_changed:
        yield f"{counted(now.files_changed, 'file')} read"
    if now.files_seen < before.files_seen:
        yield f"{counted(before.files_seen - now.files_seen, 'file')} gone"
    for more, what in ((now.events - before.events, "event"), (now.sessions - before.sessions, "session")):
        if more:
            yield f"{more:+,} {what}{'s' * (abs(more) != 1)}"


_ROOTS_PATIENCE = 60
"""Seconds that the command waits for another process that is writing."""


@click.group(invoke_without_command=True)
@plain_json
@click.pass_context
def roots(context: click.Context, as_json: bool) -> None:
    """List the files and folders that are kept fresh; `agtrace roots remove PATH` removes one."""
    if context.invoked_subcommand is None:
        from agtrace_indexer.index.opening import open_read_only
        from agtrace_indexer.index.roots import all_roots, removed

        from agtrace.index.reader import home_roots

        chosen = with_index()
        with closing(open_read_only(chosen.database)) as connection:
            found, away = all_roots(connection), sorted(removed(connection))
        value = {"roots": [root._asdict() for root in found], "removed": away}
        leave_lines(value, as_json, _readable(_roots_lines(found, away, home_roots(chosen))))


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
    root = take_away(chosen.database, path, home_roots(chosen), patience=_ROOTS_PATIENCE)
    leave_lines({"removed": root._asdict()}, as_json, _readable(_lines_of_root(root)))


def _roots_lines(roots: list[Root], away: list[str], usual: Collection[str]) -> Iterator[str]:
    if not roots:
        yield "nothing is kept fresh; to add a file or folder: agtrace index PATH"
    absent = sum(not root.exists and root.path in usual for root in roots)
    for root in roots:
        if root.exists or root.path not in usual:
            yield f"{root.path}  {_contents_of_root(root) if root.exists else 'missing'}"
    if absent:
        yield f"absent  {counted(absent, 'more place')} where agents keep logs: `--json` names them"
    yield from (f"{path}  removed: agtrace index PATH brings it back" for path in away)


def _lines_of_root(root: Root) -> Iterator[str]:
    yield f"{root.path} is no longer kept fresh; nothing in it was touched"
    if root.sessions:
        contents = _contents_of_root(root)
        yield f"{contents}: archived. They stay in the index and can be searched as before, until `agtrace forget`"


def _contents_of_root(root: Root) -> str:
    return f"{counted(root.logs, 'log')}, {counted(root.sessions, 'session')}"


def _readable(lines: Iterator[str]) -> Iterator[str]:
    from agtrace.render.terminal import plain

    yield from map(plain, lines)
