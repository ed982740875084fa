"""Creating an index, and comparing files with it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from agtrace_indexer.index.catalog import open_database
from agtrace_indexer.index.opening import open_read_only
from agtrace_schema.database import VERSION


def test_a_new_index_has_all_tables_at_once(tmp_path: Path) -> None:
    open_database(tmp_path / "new" / "index.sqlite3").close()
    with closing(open_read_only(tmp_path / "new" / "index.sqlite3")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (0,)


def test_comparing_files_reads_an_index_of_four_columns_and_no_states(database: Path) -> None:
    with closing(open_database(database)) as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT path, stamp, status, gone FROM file").fetchall()
    assert [row[-1] for row in plan] == ["SCAN file USING COVERING INDEX file_seen"]
