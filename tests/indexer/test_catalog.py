"""Opening an index: what is made if there is none, and what happens to one of another version."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from agtrace_indexer.index.catalog import open_database
from agtrace_indexer.index.opening import OlderIndex, open_read_only
from agtrace_indexer.run import index
from agtrace_schema.database import VERSION

from tests.agtrace.terminal import agtrace
from tests.conftest import SAMPLES
from tests.contents import contents

LATER_COLUMNS = {
    7: {},
    6: {},
    5: {},
    4: {"event": {"program_id"}},
    3: {"event": {"own"}},
    2: {"block": {"types", "words"}},
    1: {"session": {"pending", "compared_to", "copied_events", "own_title"}, "event": {"identity", "copy_of"}},
}
LATER_TABLES = {
    7: (),
    6: ("sum_so_far",),
    5: ("clue", "repository", "repository_folder", "repository_name"),
    4: ("landmark",),
    3: (),
    2: ("block_tool", "words", "vocabulary_part", "vocabulary"),
    1: ("kin", "touched", "model_usage"),
}
"""What is taken away from an index to have one of an earlier version."""


def as_version(database: Path, version: int) -> None:
    """Make an index what it was when its tables had this version."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for earlier in range(VERSION - 1, version - 1, -1):
            for table in LATER_TABLES[earlier]:
                connection.execute(f"DROP TABLE IF EXISTS {table}")
            for table, later in LATER_COLUMNS[earlier].items():
                columns = [
                    name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})") if name not in later
                ]
                connection.execute(f"CREATE TABLE before AS SELECT {', '.join(columns)} FROM {table} ORDER BY id")
                connection.execute(f"DROP TABLE {table}")
                connection.execute(f"ALTER TABLE before RENAME TO {table}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.fixture
def archived(tmp_path: Path, database: Path) -> Path:
    """An index of logs of which one is gone."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for path in sorted((SAMPLES / "claude").rglob("*.jsonl"))[:3]:
        (logs / path.name).write_bytes(path.read_bytes())
    index(database, [str(logs)])
    sorted(logs.iterdir())[0].unlink()
    index(database, [])
    return database


def test_a_new_index_has_all_tables_at_once(tmp_path: Path) -> None:
    open_database(tmp_path / "new" / "index.sqlite3").close()
    with closing(open_read_only(tmp_path / "new" / "index.sqlite3")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (0,)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_index_of_the_time_before_the_first_release_is_named_and_not_touched(version: int, archived: Path) -> None:
    as_version(archived, version)
    before = archived.read_bytes()
    for opened in (open_database, open_read_only):
        with pytest.raises(OlderIndex, match=f"tables {version}, this one needs {VERSION}"):
            opened(archived)
    said = agtrace("sessions")
    assert said.code != 0 and "an early version of agtrace made the index" in said.err and "agtrace index" in said.err
    assert archived.read_bytes() == before


def test_agtrace_index_makes_it_anew_with_what_the_logs_do_not_hold_any_more(archived: Path) -> None:
    expected = contents(archived)
    as_version(archived, 3)
    said = agtrace("index")
    assert said.code == 0 and "kept from the old index: 1 log whose files are gone" in said.err
    found = contents(archived)
    assert found["texts"] == expected["texts"] and found["turns"] == expected["turns"]


@pytest.mark.parametrize("version", [1, 2])
def test_what_cannot_be_taken_out_of_the_oldest_ones_stays_in_their_file(version: int, archived: Path) -> None:
    as_version(archived, version)
    said = agtrace("index")
    assert said.code == 0
    (kept,) = archived.parent.glob("index.damaged-*.sqlite3")
    assert str(kept) in said.err.replace("\n", "")
    with closing(sqlite3.connect(kept)) as connection:
        assert connection.execute("SELECT count(*) FROM file WHERE gone").fetchone() == (1,)
    assert agtrace("sessions").code == 0 and agtrace("doctor").code == 0


def test_comparing_files_reads_an_index_of_four_columns_and_no_states(database: Path) -> None:
    with closing(open_database(database)) as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT path, stamp, status, gone FROM file").fetchall()
    assert [row[-1] for row in plan] == ["SCAN file USING COVERING INDEX file_seen"]
