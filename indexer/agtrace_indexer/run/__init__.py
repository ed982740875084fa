"""One indexing run: discover, compare, read what changed, archive what vanished.

The run that finds nothing to do is the common one: it imports no parser, opens no log and takes no lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from agtrace_indexer import redact
from agtrace_indexer.events import strings
from agtrace_indexer.index.catalog import Catalog, remove_attempts
from agtrace_indexer.index.lock import WriteLock
from agtrace_indexer.reader.plan import make_plan
from agtrace_indexer.run.summary import Summary, summary_of
from agtrace_indexer.run.versions import is_going_on, is_outdated, knows_more_agents, refuse_newer_reading
from agtrace_indexer.run.work import Work

if TYPE_CHECKING:
    from agtrace_indexer.logs.discovery import Found
    from agtrace_indexer.logs.files import Progress

__all__ = ["Summary", "index", "refresh", "refuse_newer_reading"]

Concluded = TypeVar("Concluded")


def index(
    database: Path,
    roots: Iterable[str],
    *,
    otherwise: Iterable[str] = (),
    report: Callable[[Progress], None] | None = None,
    seconds: float | None = None,
    rebuild: bool = False,
    patience: float = 0,
    keep_days: int | None = None,
    archive: bool = True,
) -> Summary:
    """Bring the index up to date with everything below its roots and these new ones.

    `otherwise` are the roots of an index that has none. `report` is called with the progress as it grows. `seconds`
    limits the run, which then ends between two files but always reads one, so that repeated runs finish the work.
    If another process is writing, it waits `patience` seconds and then raises `lock.Busy`. A run that writes also
    forgets sessions whose last event is older than `keep_days`, and without a limit compacts a file much of which
    is free. Without the `archive`, which is emptied then, logs that are gone leave the index.
    Raises `redact.UnusableRules` if the user's rules for secrets can't be read, since nothing that they
    might mask may be stored; `opening.NewerIndex` if a newer agtrace made the index or read its logs, and
    `opening.OlderIndex` if an older one made it.
    """
    started = time.monotonic()

    def summed_up(catalog: Catalog, work: Work, progress: Progress | None) -> Summary:
        return summary_of(catalog, work.plan, progress, work.no_logs, started)

    return _run(
        database,
        partial(_compare, roots=list(roots), otherwise=list(otherwise), rebuild=rebuild, changed=None),
        summed_up,
        report=report,
        deadline=started + seconds if seconds else None,
        patience=patience,
        keep_days=keep_days,
        archive=archive,
        tidy=seconds is None,
    )


def refresh(
    database: Path,
    *,
    otherwise: Iterable[str] = (),
    report: Callable[[Progress], None] | None = None,
    patience: float = 0,
    keep_days: int | None = None,
    archive: bool = True,
    changed: Collection[str] | None = None,
) -> None:
    """Bring the index up to date as `index` does, without a summary, which costs more than one more line in a log.

    If the paths of all files that may have `changed` are known, no others are looked at, unless they have to be.
    """
    compare = partial(_compare, roots=[], otherwise=list(otherwise), rebuild=False, changed=changed)
    _run(
        database,
        compare,
        lambda *_: None,
        report=report,
        deadline=None,
        patience=patience,
        keep_days=keep_days,
        archive=archive,
    )


def _run(
    database: Path,
    compare: Callable[[Catalog], Work],
    conclude: Callable[[Catalog, Work, Progress | None], Concluded],
    *,
    report: Callable[[Progress], None] | None,
    deadline: float | None,
    patience: float,
    keep_days: int | None,
    archive: bool,
    tidy: bool = False,
) -> Concluded:
    """Carry out the work that a comparison finds, and return what is concluded from it."""
    redact.use(database.parent)
    strings.start()

    def compared(catalog: Catalog) -> Work:
        return replace(compare(catalog), deadline=deadline, keep_days=keep_days, archive=archive, tidy=tidy)

    if not database.exists():
        with WriteLock(database, patience), closing(Catalog(database)) as catalog:
            remove_attempts(database)
            _honour_tombstones(catalog)
            work = compared(catalog)
            return conclude(catalog, work, work.carry_out(report))
    with closing(Catalog(database)) as catalog:
        state, work = catalog.state, compared(catalog)
        if not work.needed:
            return conclude(catalog, work, None)
        with WriteLock(database, patience):
            if catalog.is_in_place:
                remove_attempts(database)
                if _honour_tombstones(catalog) or catalog.state != state:  # another process has indexed meanwhile
                    work = compared(catalog)
                return conclude(catalog, work, work.carry_out(report) if work.needed else None)
    return _run(  # meanwhile a rebuild has put another file there
        database,
        compare,
        conclude,
        report=report,
        deadline=deadline,
        patience=patience,
        keep_days=keep_days,
        archive=archive,
        tidy=tidy,
    )


def _compare(
    catalog: Catalog, roots: list[str], otherwise: list[str], *, rebuild: bool, changed: Collection[str] | None
) -> Work:
    """Return the work to do: new roots, changed files, and whether everything is read again."""
    refuse_newer_reading(catalog.meta("reading"))
    known_roots = set(catalog.roots())
    wanted = roots or ([] if known_roots or catalog.meta("root_forgotten") else otherwise)
    new_roots = set(map(os.path.abspath, wanted)) - known_roots
    outdated = is_outdated(catalog)
    goes_on = outdated and not rebuild and is_going_on(catalog)
    archived: Iterable[Found] = ()
    anew = rebuild or outdated or catalog.meta("built") != "1"
    if anew:
        from agtrace_indexer.logs.archive import Archive

        archived = Archive(catalog.path).logs()
    more_agents = knows_more_agents(catalog)
    plan = make_plan(
        catalog,
        sorted(known_roots | new_roots),
        rebuild=(rebuild or outdated) and not goes_on,
        more_agents=more_agents,
        changed=None if new_roots or anew else changed,
        archived=archived,
    )
    rereading = outdated and not goes_on
    return Work(catalog, new_roots, plan, rebuild or outdated, more_agents=more_agents, rereading=rereading)


def _honour_tombstones(catalog: Catalog) -> bool:
    """Delete what was forgotten since the index was last written, and return whether there was any."""
    if not catalog.has_new_tombstones:
        return False
    from agtrace_indexer.forget import finish

    finish(catalog, time.time())
    return True
