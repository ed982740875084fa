"""Tern's sessions in `feathers`: a folder for each, a file for each line."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from pathlib import PurePath
from typing import Any

from agtrace_indexer.logs.discovery import Container, LogFile, walk
from agtrace_indexer.logs.files import open_regular
from agtrace_indexer.providers.provider import LogInside, Row


def logs(container: Container) -> Iterable[LogInside]:
    """Yield a log for each folder."""
    flights: dict[str, list[LogFile]] = {}
    for file in container.files:
        flights.setdefault(PurePath(file.path).parent.name, []).append(file)
    return [LogInside(name, f"{len(files)}/{max(file.mtime_ns for file in files)}") for name, files in flights.items()]


def rows(found: LogFile, position: Any) -> Iterable[Row]:
    """Yield the lines in the files after the last one."""
    for file in sorted(walk([found.path]), key=attrgetter("path")):
        number = int(PurePath(file.path).stem)
        if number > (position or 0):
            with open_regular(file) as opened:
                yield Row(number, opened.read(), number)
