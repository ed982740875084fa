"""What rows belong to a file and refer to, compared with an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from agtrace_indexer.index.references import COLUMNS, OWNED, REFERENCES, SHARED, delete_session, unused
from agtrace_indexer.run import index

from tests.conftest import SAMPLES


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    database = tmp_path_factory.mktemp("data") / "index.sqlite3"
    index(database, [str(SAMPLES)])
    with closing(sqlite3.connect(database)) as opened:
        yield opened


def test_the_columns_are_those_of_an_index(connection: sqlite3.Connection) -> None:
    there = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in COLUMNS}
    assert there == COLUMNS
    assert all("id" in COLUMNS[other] for to in REFERENCES.values() for other in to.values())
    assert all(told_by in COLUMNS[table] for table, told_by in SHARED.items())


def test_every_row_that_is_named_is_there(connection: sqlite3.Connection) -> None:
    for name, column, other in ((name, *to) for name, ids in REFERENCES.items() for to in ids.items()):
        lost = f"SELECT count(*) FROM {name} WHERE abs({column}) NOT IN (SELECT id FROM {other})"
        assert connection.execute(lost).fetchone() == (0,), (name, column)
    for shared in SHARED:
        assert connection.execute(f"SELECT count(*) FROM {shared} WHERE {unused(shared)}").fetchone() == (0,)


def test_of_a_session_that_is_deleted_no_row_is_left_in_any_table(connection: sqlite3.Connection) -> None:
    try:
        for (session,) in connection.execute("SELECT id FROM session").fetchall():
            delete_session(connection, session)
        left = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in OWNED}
        assert {name for name, count in left.items() if count} <= {"file", "file_state", "record_type"}
    finally:
        connection.rollback()
