"""The plan of a run: the files below the roots compared with those in the index, by stat alone; containers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from agtrace_schema.patterns import later
from msgspec import Struct, field
from msgspec.structs import replace

from agtrace_indexer.index.catalog import Catalog, FileStamp, KnownFile
from agtrace_indexer.index.tombstones import hidden
from agtrace_indexer.logs.discovery import (
    REPEATS,
    Container,
    LogFile,
    described,
    described_at,
    grouped,
    has_forms,
    in_pieces,
    is_sidecar,
    preferred,
    walk,
)
from agtrace_indexer.providers.provider import Row
from agtrace_indexer.providers.registry import AGENTS, CONTAINERS, FORMS, SIDECARS, container_of, source_of

if TYPE_CHECKING:
    from agtrace_indexer.logs.archive import Rows

KNOWN_AGENTS = frozenset(AGENTS)
"""The agents whose logs this version recognizes. If there are more than before, files that were no known logs are
looked at again."""

_SET_ASIDE = frozenset({"skipped", "duplicate", "container"})
"""The statuses of files that discovery excludes; any other file that isn't read was opened to find that out."""
_NOT_ALONE = _SET_ASIDE | {"forgotten"}
_NOT_RECOGNIZED = frozenset({"unrecognized", "waiting"})
"""The statuses of files that may be logs of an agent that isn't known yet."""

_NAMED = later(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-|(?:agent|session|rollout)-|events|transcript|\d{8}_|\d{4}-\d\d-\d\dT")
"""Matches the beginning of the names of logs that agents keep side by side."""


class Plan(Struct):
    """The changes that a run has to process."""

    seen: int = 0
    """The number of files, unless only some were looked at."""
    changed: list[tuple[LogFile, KnownFile | None]] = field(default_factory=list)
    odd: list[tuple[LogFile, KnownFile | None]] = field(default_factory=list)
    """Directory entries that can't be read as logs, and logs that repeat another one."""
    gone: list[KnownFile] = field(default_factory=list)

    @property
    def bytes_behind(self) -> int:
        """Bytes of changed files that haven't been indexed."""
        return sum(max(found.size - (row.read_to if row else 0), 0) for found, row in self.changed)

    @property
    def empty(self) -> bool:
        """Whether the index is up to date."""
        return not (self.changed or self.odd or self.gone)


def make_plan(
    catalog: Catalog,
    roots: list[str],
    *,
    rebuild: bool = False,
    more_agents: bool = False,
    changed: Iterable[str] | None = None,
    archived: Iterable[LogFile] = (),
) -> Plan:
    """Compare the files below the roots with those in the index, by stat alone.

    If the paths of all files that may have changed are given, only these are looked at, unless others depend on them.
    If more agents are known than before, files that weren't recognized count as changed. Of the `archived` logs, those
    are read that are nowhere else and not in the index as they are read now.
    """
    plan = None if changed is None or rebuild or more_agents else _plan_of(catalog, roots, changed)
    if plan is not None:
        return plan
    return _plan_of_all(catalog, roots, rebuild, _NOT_RECOGNIZED if more_agents else frozenset(), archived)


def _plan_of(catalog: Catalog, roots: list[str], changed: Iterable[str]) -> Plan | None:
    """Return the plan for files that were read before; None if one is new or gone, or is part of something larger."""
    plan = Plan()
    for path in changed:
        above = [root for root in roots if _below(path, [root])]
        file = described_at(path, above[0], SIDECARS) if len(above) == 1 else None
        if file is None or is_sidecar(path, SIDECARS) or container_of(path):
            return None
        if has_forms(path, FORMS):
            return None
        before = catalog.file(path)
        if before is None or before.gone or before.status in _NOT_ALONE:
            return None
        if before.stamp != file.stamp:
            plan.changed.append((file, before))
    return plan


def _plan_of_all(
    catalog: Catalog, roots: list[str], rebuild: bool, again: frozenset[str], archived: Iterable[LogFile]
) -> Plan:
    known_once = cache(catalog.known)
    listed = walk(roots, follow=True, is_log=lambda path: _may_be_log(path, known_once()))
    files = described([file for file in listed if not file.path.startswith(catalog.own_files)], SIDECARS)
    if not (rebuild or again or archived) and catalog.stamps() == {file.path: file.stamp for file in files}:
        return Plan(seen=len(files))
    known = known_once()
    found, all_looked_into = look_into(files, known, rebuild=rebuild)
    hides = bool(catalog.meta("forgotten")) and all_looked_into
    plan = Plan(seen=len(found))
    there = {file.path for file in found}
    found += (file for file in archived if file.path not in there)
    instead = preferred(found, FORMS)
    indexed = (path for path, before in known.items() if before.status == "log")
    logs = in_pieces([file for file in found if file.path not in instead], FORMS, indexed)
    instead |= {piece.path: log.path for log in logs for piece in log.pieces}
    joined = {log.path for log in logs}
    deleted: list[tuple[LogFile, KnownFile | None]] = []
    for file in [*logs, *(file for file in found if file.path not in joined)]:
        if file.archived:
            row = catalog.file(file.path)
            if (rebuild or row is None or not row.stamp) and (file.pieces or file.path not in instead):
                deleted.append((file, row))
            continue
        before = known.pop(file.path, None) or (known.pop(hidden(file.path), None) if hides else None)
        if file.path in instead and not file.pieces:
            file = replace(file, oddity=REPEATS.format(instead[file.path]), status="duplicate")
        same = before is not None and not before.gone and before.status not in again and _unchanged(file, before)
        if same and not rebuild and not (file.status == "unreadable" and _for_another_reason(catalog, file)):
            continue
        (plan.odd if file.oddity else plan.changed).append((file, catalog.file(file.path) if before else None))
    present = [
        root for root in roots if os.path.exists(root) or (root in known and os.path.isdir(os.path.dirname(root)))
    ]
    hides = hides and len(present) == len(roots)  # else one that isn't seen may be below an absent root
    vanished = [
        path
        for path, before in known.items()
        if not before.gone and (_below(path, present) or (hides and before.status == "forgotten"))
    ]
    plan.gone = [row for path in vanished if (row := catalog.file(path)) is not None]
    plan.changed.sort(key=lambda change: -change[0].mtime_ns)
    plan.changed += deleted
    return plan


def _may_be_log(path: str, known: Mapping[str, FileStamp]) -> bool:
    """Whether a file is a log in the index, or has a name as agents give them to logs."""
    before = known.get(path)
    if (before is not None and before.status == "log") or _NAMED.match(os.path.basename(path)) is not None:
        return True
    return has_forms(path, FORMS) or container_of(path) is not None


def _unchanged(file: LogFile, before: FileStamp) -> bool:
    if before.status == "forgotten":
        return before.stamp == file.stamp
    set_aside = before.status in _SET_ASIDE or (file.oddity is not None and before.status == file.status)
    return before.stamp == file.stamp and (file.oddity is not None) == set_aside


def _for_another_reason(catalog: Catalog, file: LogFile) -> bool:
    """Whether a file that can't be read couldn't be for another reason before."""
    before = catalog.file(file.path)
    return before is not None and before.reason != file.oddity


def _below(path: str, roots: list[str]) -> bool:
    return any(path == root or path.startswith(os.path.join(root, "")) for root in roots)


class Archived:
    """The vanished logs by their beginnings: one of them may have been moved, and be a new file now."""

    def __init__(self, catalog: Catalog, plan: Plan) -> None:
        candidates = [*plan.gone, *(row for _, row in plan.odd if row is not None)]
        candidates += catalog.gone_files()
        self._by_head: dict[tuple[int, bytes], list[KnownFile]] = {}
        for row in candidates:
            if row.status == "log" and row.head_size:
                self._by_head.setdefault((row.head_size, row.head), []).append(row)
        self._sizes = sorted({size for size, _ in self._by_head}, reverse=True)

    def beginning_with(self, head: bytes) -> list[KnownFile]:
        """Return the logs that begin with the same bytes as a file, the longest first."""
        from agtrace_indexer.reader.log import digest

        found = [row for n in self._sizes if n <= len(head) for row in self._by_head.get((n, digest(head[:n])), ())]
        return sorted(found, key=lambda row: -row.read_to)

    def may_have(self, file: LogFile) -> bool:
        """Whether a file may be one of them, judging by its first bytes."""
        from agtrace_indexer.logs.files import head_of
        from agtrace_indexer.reader.recognition import HEAD

        if not self._by_head or file.container:
            return False
        try:
            return bool(self.beginning_with(head_of(file, HEAD)))
        except OSError:
            return True


# -- containers ---------------------------------------------------------------------------------------

_WHY = "the logs in it are listed separately"


def look_into(
    files: Iterable[LogFile], known: Mapping[str, FileStamp], *, rebuild: bool = False
) -> tuple[list[LogFile], bool]:
    """Return the files together with the logs in their containers, and whether all containers were opened.

    Unless everything is read again, a container that hasn't changed isn't opened: its logs are those already known. So
    are those of one that can't be read now.
    """
    if not CONTAINERS:
        return list(files), True
    listed, containers = grouped(files, container_of)
    all_opened = True
    for container in containers:
        itself, logs = _looked_into(container, None if rebuild else known.get(container.path))
        all_opened = all_opened and logs is not None
        listed += [itself, *(_known_inside(container, known) if logs is None else logs)]
    return listed, all_opened


def _looked_into(container: Container, before: FileStamp | None) -> tuple[LogFile, list[LogFile] | None]:
    """Return a container as a file that isn't read itself, and its logs; None if it wasn't or couldn't be opened."""
    size = sum(file.size for file in container.files)
    changed = max(file.mtime_ns for file in container.files)
    itself = LogFile(container.path, container.stamp, size, changed, _WHY, container.below, status="container")
    if before is not None and before.status == "container" and before.stamp == itself.stamp:
        return itself, None
    try:
        return itself, list(_logs_of(container, changed))
    except OSError as error:
        why = f"can't be read: {error.strerror or error}"
        return replace(itself, stamp="", oddity=why, status="unreadable"), None


def _logs_of(container: Container, changed: int) -> Iterator[LogFile]:
    """Yield the logs in a container. Raise `OSError`."""
    with _guarded():
        for log in source_of(container.path)[1].logs(container):
            path = os.path.join(container.path, log.name)
            yield LogFile(path, log.stamp, int(log.size), changed, None, container.below, container.path)


def rows_of(file: LogFile, position: Any) -> Iterator[Row]:
    """Yield the rows of a log inside a container after a position, or of one that is archived. Raise `OSError`."""
    with _guarded():
        if file.archived:
            from agtrace_indexer.logs.archive import records_in

            yield from (Row(number, data, None) for number, data in records_in(file))
            return
        yield from source_of(file.container)[1].rows(file, position)


def all_rows(file: LogFile) -> Rows:
    """Return all that a container says of a log. Raise `OSError`."""
    from agtrace_indexer.logs.archive import Rows

    rows = Rows(file)
    for row in rows_of(file, None):
        rows.add(row.number, row.data)
    return rows


@contextmanager
def _guarded() -> Iterator[None]:
    """Raise every error of a source as `OSError`: formats change faster than we do, and no error may end the run."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # see above
        raise OSError(0, f"its format isn't understood ({type(error).__name__}: {error})") from error


def _known_inside(container: Container, known: Mapping[str, FileStamp]) -> Iterator[LogFile]:
    """Yield the known logs in a container."""
    inside = os.path.join(container.path, "")
    for path, before in known.items():
        if path.startswith(inside) and not before.gone:
            yield LogFile(path, before.stamp, 0, 0, None, container.below, container.path)
