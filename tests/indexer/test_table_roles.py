"""The roles of the tables, compared with the tables of an index."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from agtrace_indexer.index.table_roles import TABLES, Role, delete_session, of_role, pointers, unused
from agtrace_indexer.index.word_index import prepared
from agtrace_indexer.run import index

from tests.conftest import SAMPLES

_OF_LIBRARIES = ("sqlite_", "_sqlite_")
_OF_FTS5 = re.compile(r"(?:words|vocabulary_part|ranked)_(?:config|content|data|docsize|idx)")


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    database = tmp_path_factory.mktemp("data") / "index.sqlite3"
    index(database, [str(SAMPLES)])
    with closing(sqlite3.connect(database)) as opened:
        prepared(opened)  # a small index has no words yet
        yield opened


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def test_every_table_of_an_index_has_a_role_and_no_other_is_listed(connection: sqlite3.Connection) -> None:
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    ours = {name for name in there if not name.startswith(_OF_LIBRARIES) and not _OF_FTS5.fullmatch(name)}
    assert ours == TABLES.keys()


def test_every_column_that_is_named_is_there(connection: sqlite3.Connection) -> None:
    for name, table in TABLES.items():
        named = {*table.ids, *(["id"] if table.numbered else []), *filter(None, [table.told_by])}
        assert named <= columns(connection, name), name


def test_every_column_that_ends_in_id_names_a_row_or_is_told_why_not(connection: sqlite3.Connection) -> None:
    of_logs = {"own_id", "parent_id", "response_id", "agent_id"}  # as logs write them
    for name in TABLES:
        found = {column for column in columns(connection, name) if column.endswith("_id")} - of_logs
        assert found == {column for column in TABLES[name].ids if column.endswith("_id")}, name


def test_every_row_that_is_named_is_there(connection: sqlite3.Connection) -> None:
    for name, column, other in pointers():
        lost = f"SELECT count(*) FROM {name} WHERE {column} NOT IN (SELECT id FROM {other})"
        assert connection.execute(lost).fetchone() == (0,), (name, column)
    for shared in of_role(Role.SHARED):
        assert connection.execute(f"SELECT count(*) FROM {shared} WHERE {unused(shared)}").fetchone() == (0,)


def test_of_a_session_that_is_deleted_no_row_is_left_in_any_table(connection: sqlite3.Connection) -> None:
    try:
        for (session,) in connection.execute("SELECT id FROM session").fetchall():
            delete_session(connection, session)
        left = {
            name: count
            for name in of_role(Role.SESSION, Role.EVENT, Role.BLOCK, Role.DERIVED)
            if (count := connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0])
        }
        assert left == {}
    finally:
        connection.rollback()
