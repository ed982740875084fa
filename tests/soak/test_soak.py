"""Some seconds of ordinary use, and proof that the watchers would notice what goes wrong."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from agtrace_indexer.run import index

from tests.conftest import SAMPLES
from tests.soak.__main__ import main
from tests.soak.remains import Archive, behind, differences
from tests.soak.vitals import Look, Vital, Watch


def test_some_seconds_of_agents_writing_and_clients_asking_leave_nothing_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m tests.soak --minutes 60` is the same for an hour."""
    code = main(["--minutes", "0.07", "--clients", "4", "--megabytes", "1", "--folder", str(tmp_path / "soak")])
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert printed.endswith("nothing is off\n")
    for command in ("index --optimize", "report --json", "forget --dry-run", "doctor --json", "index --json"):
        assert f"\nagtrace {command}" in printed


@pytest.fixture
def indexed(tmp_path: Path, database: Path) -> Path:
    """A folder with the logs of one agent, which are indexed."""
    logs = tmp_path / "logs"
    for path in sorted((SAMPLES / "codex").rglob("*.jsonl")):
        (logs / path.name).parent.mkdir(exist_ok=True)
        (logs / path.name).write_bytes(path.read_bytes())
    index(database, [str(logs)])
    return logs


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(statement).rowcount


def test_a_row_that_is_not_a_fresh_index_s_is_seen(tmp_path: Path, database: Path, indexed: Path) -> None:
    fresh = tmp_path / "fresh" / "index.sqlite3"
    index(fresh, [str(indexed)])
    assert list(differences(database, fresh)) == []
    change(database, "UPDATE event SET ts = ts + 1 WHERE id = 7")
    [told] = differences(database, fresh)
    assert ": other events" in told


def test_a_log_that_is_not_indexed_as_it_is_is_seen(database: Path, indexed: Path) -> None:
    assert behind(database, [indexed]) == []
    log = next(indexed.iterdir())
    with log.open("ab") as file:
        file.write(b"\n")
    assert behind(database, [indexed]) == [str(log)]


def test_an_archived_log_that_changes_is_seen(database: Path, indexed: Path) -> None:
    archive = Archive(database)
    log = next(indexed.iterdir())
    log.unlink()
    index(database, [])
    archive.look()
    assert (len(archive), list(archive.changes(()))) == (1, [])
    change(database, f"UPDATE session SET title = 'x' WHERE file_id IN (SELECT id FROM file WHERE path = '{log}')")
    assert list(archive.changes(())) == [f"{log} is archived and changed: sessions"]
    change(database, f"DELETE FROM file WHERE path = '{log}'")
    archive.look()
    assert list(archive.changes(())) == [f"{log} was archived and is lost"]
    assert list(archive.changes({log.stem[-36:]})) == []


def test_what_grows_beyond_its_bounds_is_seen(database: Path) -> None:
    steady = Vital(resident=90_000_000, proportional=80_000_000, own=70_000_000, descriptors=12, threads=6)

    def troubles(last: Vital, wal: int = 0) -> list[str]:
        watch = Watch(database, dict)
        watch.looks = [Look(n, {"server": steady if n < 20 else last}, wal, 0) for n in range(30)]
        return list(watch.troubles())

    assert troubles(steady) == []
    assert troubles(steady._replace(own=120_000_000)) == ["server grew from 70 to 120 MB"]
    assert troubles(steady._replace(own=500_000_000))[0] == "server took 500 MB"
    assert troubles(steady._replace(descriptors=80)) == ["server had 12 open files, then 80"]
    assert troubles(steady._replace(threads=900)) == ["server had 900 threads"]
    assert troubles(steady, wal=200_000_000) == ["the WAL had 200 MB"]
