"""Sessions that share an id: all but one of them get a visible suffix."""

from __future__ import annotations

import sqlite3

from agtrace_indexer.index import lineage


def tell_apart(connection: sqlite3.Connection) -> None:
    """Give sessions that share an id their suffixes; the oldest one whose log still exists has none."""
    twins = lineage.twins(connection)
    wanted = {twin: twin.own_id if twin.number == 1 else f"{twin.own_id}~{twin.number}" for twin in twins}
    lineage.note_ids(connection, [(id, twin.session) for twin, id in wanted.items() if id != twin.uid])
