"""Maintenance of the index: nothing is lost, and space is freed."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from agtrace_indexer.index import word_index
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.maintenance import optimize
from agtrace_indexer.index.opening import open_read_only
from agtrace_indexer.index.queries.matches import EventFilters
from agtrace_indexer.index.store import Store
from agtrace_indexer.run import index

from agtrace.search.matching import Contains, Deadline
from agtrace.search.scan import Hit, Question, snapshot_of
from tests.contents import contents
from tests.corpus import make

QUERIES = ("error", "the file", "def ", "import os", "nothing holds this", "é")


@pytest.fixture(scope="module")
def optimized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of a few megabytes, whose words are covered."""
    folder = tmp_path_factory.mktemp("optimized")
    make(folder / "logs", 5)
    index(folder / "index.sqlite3", [str(folder / "logs")])
    optimize(folder / "index.sqlite3")
    return folder / "index.sqlite3"


@pytest.fixture
def database(optimized: Path, tmp_path: Path) -> Path:
    """A copy of it for a test."""
    return Path(shutil.copyfile(optimized, tmp_path / "index.sqlite3"))


@contextmanager
def reading(database: Path) -> Iterator[sqlite3.Connection]:
    """A reader that waits for nothing."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def _hits(connection: sqlite3.Connection, query: str) -> list[Hit]:
    asked = Question(connection, Contains(query), EventFilters(), snapshot_of(connection))
    return asked.page(50, None, Deadline()).hits


def found(database: Path) -> dict[str, list[tuple[int, int]]]:
    """The newest hits of some queries."""
    with reading(database) as connection:
        return {query: [(hit.ts, hit.event_id) for hit in _hits(connection, query)] for query in QUERIES}


def asked(database: Path, sql: str) -> int:
    """The number that a question gives."""
    with reading(database) as connection:
        return int(connection.execute(sql).fetchone()[0])


def drop_half(database: Path) -> None:
    """Delete what was read of every other log."""
    with closing(Catalog(database)) as catalog:
        store = Store(catalog.connection)
        store.begin()
        for (file,) in catalog.connection.execute("SELECT id FROM file WHERE id % 2").fetchall():
            store.forget_contents(file)
        store.commit()


def free_pages(database: Path) -> int:
    return asked(database, "PRAGMA freelist_count")


def posted(database: Path) -> int:
    """How many blocks the word index names."""
    some = "'the OR a OR 1 OR session OR name OR text'"
    return asked(database, f"SELECT count(DISTINCT rowid / 32) FROM words WHERE words MATCH {some}")


def test_every_block_is_found_by_words_and_nothing_else_has_changed(database: Path) -> None:
    before, hits = contents(database), found(database)
    optimize(database)
    assert contents(database) == before
    assert found(database) == hits
    assert asked(database, "SELECT count(*) FROM block WHERE words != 2") == 0


def test_the_wal_is_empty_afterwards_and_free_pages_are_given_back(database: Path) -> None:
    drop_half(database)
    assert free_pages(database) > 0
    done = optimize(database)
    assert free_pages(database) == 0
    assert done.bytes_after < done.bytes_before
    wal = database.with_name(database.name + "-wal")
    assert not wal.exists() or wal.stat().st_size == 0


def test_words_of_blocks_that_are_gone_leave_the_word_index(database: Path) -> None:
    whole = posted(database)
    drop_half(database)
    assert posted(database) == whole
    hits = found(database)
    optimize(database)
    left = asked(database, "SELECT count(*) FROM block")
    assert posted(database) <= left < whole
    assert found(database) == hits


@pytest.mark.thorough
def test_an_index_whose_logs_were_all_read_again_is_as_large_as_before(
    optimized: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_index, "_LARGE", 10)
    for _ in range(2):
        with closing(Catalog(database)) as catalog:
            catalog.set_meta("reading", "1")
        index(database, [])
    assert database.stat().st_size < 1.1 * optimized.stat().st_size
    with reading(database) as connection:
        assert not word_index.is_stale(connection)
        assert [len(hits) for hits in found(database).values()] == [len(hits) for hits in found(optimized).values()]


def test_the_wal_stays_small_though_somebody_reads_at_every_moment(database: Path) -> None:
    """Two readers take turns, each beginning before the other ends; what is written is six times as much."""
    over, wal, largest = threading.Event(), database.with_name(f"{database.name}-wal"), 0

    def read() -> None:
        with closing(open_read_only(database)) as one, closing(open_read_only(database)) as other:
            for reader in itertools.cycle((one, other)):
                reader.commit()
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM event").fetchone()
                if over.wait(0.02):
                    return

    with closing(Catalog(database)) as catalog:
        store, texts = Store(catalog.connection), "UPDATE block_data SET text = CAST(text || zeroblob(100) AS BLOB)"
        reader = threading.Thread(target=read)
        reader.start()
        written = 0
        while written < 6 * 50_000_000:
            store.begin()
            store.connection.execute(texts)
            store.commit()
            largest, written = max(largest, wal.stat().st_size), written + database.stat().st_size
        over.set()
        reader.join()
    assert largest < 50_000_000
