"""An index whose logs would be read otherwise now has all of them read again, however many runs that takes."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.run import index, refresh

from tests.conftest import copy_of_samples
from tests.contents import contents

SHORTEST = 1e-9
"""Seconds: a run reads one log in any case."""


@pytest.fixture
def outdated(tmp_path: Path, database: Path) -> tuple[Path, Path]:
    """The logs of the samples, and an index of them that an older version made."""
    logs = copy_of_samples(tmp_path / "logs")
    index(database, [str(logs)])
    age(database)
    return logs, database


def age(database: Path) -> None:
    with closing(Catalog(database)) as catalog:
        catalog.set_meta("reading", "1")


@pytest.mark.thorough
def test_short_runs_go_on_where_the_one_before_stopped(outdated: tuple[Path, Path]) -> None:
    _, database = outdated
    before = contents(database)
    behind = [index(database, [], seconds=SHORTEST).files_behind]
    while behind[-1]:
        behind.append(index(database, [], seconds=SHORTEST).files_behind)
        assert len(behind) < 500
    assert len(behind) > 10
    assert all(later < earlier for earlier, later in pairwise(behind))
    assert contents(database) == before
    assert index(database, []).files_changed == 0


@pytest.mark.thorough
def test_a_log_that_grows_meanwhile_is_whole(outdated: tuple[Path, Path], tmp_path: Path) -> None:
    logs, database = outdated
    index(database, [], seconds=SHORTEST)
    for log in sorted(logs.rglob("*.jsonl"))[:20]:
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join([*lines, *lines[-1:]]))
    refresh(database)
    fresh = tmp_path / "fresh" / "index.sqlite3"
    index(fresh, [str(logs)])
    assert contents(database)["events"] == contents(fresh)["events"]


def test_another_version_begins_anew(outdated: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _, database = outdated
    first = index(database, [], seconds=SHORTEST)
    monkeypatch.setattr("agtrace_indexer.run.versions.READING_VERSION", 1_000)
    assert index(database, [], seconds=SHORTEST).files_behind == first.files_behind


@pytest.mark.thorough
def test_a_rebuild_reads_everything_all_the_same(outdated: tuple[Path, Path]) -> None:
    _, database = outdated
    index(database, [], seconds=SHORTEST)
    everything = index(database, [], rebuild=True)
    assert everything.files_changed >= everything.files_seen - 5
    assert index(database, []).files_changed == 0
