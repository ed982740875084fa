"""Tern's sessions in `nest.db`: a table of lines, each with the time of its last change."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agtrace_indexer.logs.discovery import Container, LogFile
from agtrace_indexer.logs.foreign_database import ask
from agtrace_indexer.providers.provider import LogInside, Row

_FLIGHTS = "SELECT flight, max(changed), count(*), sum(length(line)) FROM line GROUP BY flight"
_LINES = "SELECT id, changed, line FROM line WHERE flight = ? AND changed >= ? ORDER BY changed, id"
_IDS = "SELECT id FROM line WHERE flight = ?"


def logs(container: Container) -> Iterable[LogInside]:
    """Yield a log for each flight, which has changed if a line has, or if there are more or fewer."""
    (flights,) = ask(container.path, (_FLIGHTS, ()))
    return [LogInside(name, f"{changed}/{count}", size) for name, changed, count, size in flights]


def rows(found: LogFile, position: Any) -> Iterable[Row]:
    """Yield a record of the lines that vanished, then the lines that changed since, in order of their changes."""
    newest, known = position or (0, {})
    flight = found.path.rpartition("/")[2]
    lines, ids = ask(found.container, (_LINES, (flight, newest)), (_IDS, (flight,)))
    gone = known.keys() - {str(id) for (id,) in ids}
    known = {id: changed for id, changed in known.items() if id not in gone}
    if gone:
        yield Row(0, json.dumps({"tern": "vanished", "at": None, "keys": sorted(gone)}).encode(), (newest, known))
    for id, changed, line in lines:
        if known.get(str(id)) != changed:
            known[str(id)] = changed
            yield Row(id, f'{{"key": "{id}", "line": {line}}}'.encode(), (changed, known))
