"""Looking into containers: the logs that a database or a folder holds, listed like files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from agtrace_indexer.index.catalog import Known
from agtrace_indexer.logs.containers import Container, grouped
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.providers.registry import CONTAINERS, container_of, source_of

_WHY = "the logs in it are listed by their own names"


def look_into(found: Iterable[Found], known: Mapping[str, Known]) -> tuple[list[Found], bool]:
    """The files with the logs that their containers hold, and whether all containers were opened.

    One that didn't change since the index knows it isn't opened: the logs that are known to be in it are in it. Nor
    does one that can't be read now lose any.
    """
    if not CONTAINERS:
        return list(found), True
    listed, containers = grouped(found, container_of)
    all_opened = True
    for container in containers:
        itself, logs = _looked_into(container, known.get(container.path))
        all_opened = all_opened and logs is not None
        listed += [itself, *(_known_inside(container, known) if logs is None else logs)]
    return listed, all_opened


def _looked_into(container: Container, before: Known | None) -> tuple[Found, list[Found] | None]:
    """A container as a file that isn't read, and its logs; None where it wasn't opened, or can't be."""
    size = sum(file.size for file in container.files)
    changed = max(file.mtime_ns for file in container.files)
    itself = Found(container.path, container.stamp, size, changed, _WHY, container.below, status="container")
    if before is not None and before.status == "container" and before.stamp == itself.stamp:
        return itself, None
    try:
        logs = list(source_of(container.path)[1].logs(container))
    except OSError as error:
        why = f"can't be read: {error.strerror or error}"
        return itself._replace(stamp="", oddity=why, status="unreadable"), None
    return itself, [
        Found(
            os.path.join(container.path, log.name), log.stamp, log.size, changed, None, container.below, container.path
        )
        for log in logs
    ]


def _known_inside(container: Container, known: Mapping[str, Known]) -> Iterator[Found]:
    inside = os.path.join(container.path, "")
    for path, before in known.items():
        if path.startswith(inside) and not before.gone:
            yield Found(path, before.stamp, 0, 0, None, container.below, container.path)
