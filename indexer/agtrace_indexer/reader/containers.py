"""The logs inside containers, listed like files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agtrace_indexer.index.catalog import Known
from agtrace_indexer.logs.containers import Container, grouped
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.providers.provider import Row
from agtrace_indexer.providers.registry import CONTAINERS, container_of, source_of

if TYPE_CHECKING:
    from agtrace_indexer.logs.archive import Rows

_WHY = "the logs in it are listed separately"


def look_into(found: Iterable[Found], known: Mapping[str, Known], *, rebuild: bool = False) -> tuple[list[Found], bool]:
    """Return the files together with the logs in their containers, and whether all containers were opened.

    Unless everything is read again, a container that hasn't changed isn't opened: its logs are those already known. So
    are those of one that can't be read now.
    """
    if not CONTAINERS:
        return list(found), True
    listed, containers = grouped(found, container_of)
    all_opened = True
    for container in containers:
        itself, logs = _looked_into(container, None if rebuild else known.get(container.path))
        all_opened = all_opened and logs is not None
        listed += [itself, *(_known_inside(container, known) if logs is None else logs)]
    return listed, all_opened


def _looked_into(container: Container, before: Known | None) -> tuple[Found, list[Found] | None]:
    """Return a container as a file that isn't read itself, and its logs; None if it wasn't or couldn't be opened."""
    size = sum(file.size for file in container.files)
    changed = max(file.mtime_ns for file in container.files)
    itself = Found(container.path, container.stamp, size, changed, _WHY, container.below, status="container")
    if before is not None and before.status == "container" and before.stamp == itself.stamp:
        return itself, None
    try:
        return itself, list(_logs_of(container, changed))
    except OSError as error:
        why = f"can't be read: {error.strerror or error}"
        return replace(itself, stamp="", oddity=why, status="unreadable"), None


def _logs_of(container: Container, changed: int) -> Iterator[Found]:
    """Yield the logs in a container. Raise `OSError`."""
    with _guarded():
        for log in source_of(container.path)[1].logs(container):
            path = os.path.join(container.path, log.name)
            yield Found(path, log.stamp, int(log.size), changed, None, container.below, container.path)


def rows_of(found: Found, position: Any) -> Iterator[Row]:
    """Yield the rows of a log inside a container after a position, or of one that is archived. Raise `OSError`."""
    with _guarded():
        if found.archived:
            from agtrace_indexer.logs.archive import records_in

            yield from (Row(number, data, None) for number, data in records_in(found))
            return
        yield from source_of(found.container)[1].rows(found, position)


def all_rows(found: Found) -> Rows:
    """Return all that a container says of a log. Raise `OSError`."""
    from agtrace_indexer.logs.archive import Rows

    rows = Rows(found)
    for row in rows_of(found, None):
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


def _known_inside(container: Container, known: Mapping[str, Known]) -> Iterator[Found]:
    """Yield the known logs in a container."""
    inside = os.path.join(container.path, "")
    for path, before in known.items():
        if path.startswith(inside) and not before.gone:
            yield Found(path, before.stamp, 0, 0, None, container.below, container.path)
