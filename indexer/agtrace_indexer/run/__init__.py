"""One indexing run: discover, compare, read what changed, archive what vanished.

The run that finds nothing to do is the common one: it imports no parser, opens no log and takes no lock.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import field
from msgspec.structs import asdict

from agtrace_indexer import redact
from agtrace_indexer.events import strings
from agtrace_indexer.index.catalog import Catalog, Totals, remove_attempts
from agtrace_indexer.index.opening import OlderIndex, is_damage, write_lock
from agtrace_indexer.reader.plan import make_plan
from agtrace_indexer.run import versions
from agtrace_indexer.run.work import Work

if TYPE_CHECKING:
    from agtrace_indexer.logs.discovery import LogFile
    from agtrace_indexer.logs.files import Progress


CHEAP = 64 * 1024 * 1024
"""The size of an index that is rebuilt while others wait for what is new, which takes half a minute."""


class Summary(Totals, frozen=True, kw_only=True):
    """The results of a run, and the totals of the whole index."""

    files_seen: int
    files_changed: int
    files_opened: int
    bytes_read: int
    seconds: float
    files_behind: int = 0
    """Changed files that the run had no time for."""
    bytes_behind: int = 0
    index_bytes: int = 0
    """The size of the index."""
    no_logs: dict[str, str] = field(default_factory=dict)
    """The files that were named but aren't logs, with the reasons; they aren't kept fresh."""
    repaired: tuple[str, ...] = ()
    """Why the index was rebuilt, if it was, and what became of it, as sentences."""


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
    is free. Without the `archive`, which is emptied then, logs that are gone leave the index. With it, a damaged index
    is rebuilt, as is one of an older agtrace; if `seconds` limits the run, only a damaged one of at most `CHEAP` bytes.
    Raises `redact.UnusableRules` if the user's rules for secrets can't be read, since nothing that they
    might mask may be stored; `opening.NewerIndex` if a newer agtrace made the index or read its logs.
    """
    started = time.monotonic()
    compare = partial(
        _compare, roots=list(roots), otherwise=list(otherwise), rebuild=rebuild,
        deadline=started + (seconds or math.inf), keep_days=keep_days, archive=archive, tidy=seconds is None,
    )  # fmt: skip
    cheap = math.inf if seconds is None else CHEAP
    with _run(database, compare, report, patience, cheap) as (catalog, work, progress, repaired):
        opened = progress.files_opened if progress else 0
        return Summary(
            **asdict(catalog.totals()),
            files_seen=work.plan.seen,
            files_changed=opened,
            files_opened=opened,
            bytes_read=progress.bytes_read if progress else 0,
            seconds=round(time.monotonic() - started, 3),
            files_behind=len(work.plan.changed) if progress else 0,
            bytes_behind=work.plan.bytes_behind if progress else 0,
            index_bytes=catalog.size,
            no_logs=work.no_logs,
            repaired=repaired,
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
    compare = partial(_compare, otherwise=list(otherwise), changed=changed, keep_days=keep_days, archive=archive)
    with _run(database, compare, report, patience, CHEAP):
        pass


def decide(database: Path, decisions: Mapping[str, str], *, patience: float = 0) -> None:
    """Keep what the user decides about secrets, by their fingerprints; the next run has the index follow.

    It reads the logs again that have one that is allowed; what is to be masked may be elsewhere, too, so it reads all.
    Raises what `redact.decide` raises, and `lock.Busy` as `index` does.
    """
    with write_lock(database, patience), closing(Catalog(database)) as catalog:
        redact.use(database.parent)
        in_step = not versions.is_outdated(catalog)
        redact.decide(database.parent, decisions)
        if in_step and "mask" not in decisions.values():
            versions.note_going_on(catalog, decisions)


@contextmanager
def _run(
    database: Path,
    compare: Callable[[Catalog], Work],
    report: Callable[[Progress], None] | None,
    patience: float,
    cheap: float,
) -> Iterator[tuple[Catalog, Work, Progress | None, tuple[str, ...]]]:
    """Carry out the work that a comparison finds, as a context with the index that is still open.

    An index that turns out to be damaged is rebuilt first if it has at most `cheap` bytes, as is an older one if there
    is no such limit; the last value says so.
    """
    redact.use(database.parent)
    strings.start()
    repaired: tuple[str, ...] = ()
    while True:
        is_new = not database.exists()
        lock = write_lock(database, patience)
        with ExitStack() as stack:
            try:
                if is_new:
                    stack.enter_context(lock)
                catalog = stack.enter_context(closing(Catalog(database)))
                if not is_new:
                    state, work = catalog.state, compare(catalog)
                    if not work.needed:
                        yield catalog, work, None, repaired
                        return
                    stack.enter_context(lock)
                    if not catalog.is_in_place:
                        continue  # meanwhile a rebuild has put another file there
                remove_attempts(database)
                if _honour_tombstones(catalog) or is_new or catalog.state != state:  # another process has indexed
                    work = compare(catalog)
                progress = work.carry_out(report) if is_new or work.needed else None
            except (sqlite3.DatabaseError, TypeError, ValueError) as error:
                if not (is_damage(error) or isinstance(error, OlderIndex)):
                    raise
                stack.close()
                from agtrace_indexer.run.rebuild import rebuild_if_unusable

                if database.stat().st_size <= cheap and not (isinstance(error, OlderIndex) and cheap < math.inf):
                    repaired = () if repaired else rebuild_if_unusable(database, error, patience)
                if not repaired:
                    raise
                continue
            yield catalog, work, progress, repaired
            return


def _compare(
    catalog: Catalog,
    roots: Iterable[str] = (),
    otherwise: Iterable[str] = (),
    *,
    rebuild: bool = False,
    changed: Collection[str] | None = None,
    **limits: Any,
) -> Work:
    """Return the work to do: new roots, changed files, and whether everything is read again; with `limits` of it."""
    versions.refuse_newer_reading(catalog.meta("reading"))
    known_roots = set(catalog.roots())
    wanted = roots or ([] if known_roots or catalog.meta("root_forgotten") else otherwise)
    new_roots = set(map(os.path.abspath, wanted)) - known_roots
    outdated = versions.is_outdated(catalog)
    rereading = outdated and (rebuild or not versions.is_going_on(catalog))
    anew = rebuild or outdated or catalog.meta("built") != "1"
    archived: Iterable[LogFile] = ()
    if anew:
        from agtrace_indexer.logs.archive import Archive

        archived = Archive(catalog.path).logs()
    more_agents = versions.knows_more_agents(catalog)
    plan = make_plan(
        catalog,
        sorted(known_roots | new_roots),
        rebuild=rebuild or rereading,
        more_agents=more_agents,
        changed=None if new_roots or anew else changed,
        archived=archived,
    )
    rebuild = rebuild or outdated
    return Work(catalog, new_roots, plan, rebuild, more_agents=more_agents, rereading=rereading, **limits)


def _honour_tombstones(catalog: Catalog) -> bool:
    """Delete what was forgotten since the index was last written, and return whether there was any."""
    if not catalog.has_new_tombstones:
        return False
    from agtrace_indexer.forget import finish

    finish(catalog, time.time())
    return True
