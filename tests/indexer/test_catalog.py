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
