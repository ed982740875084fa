"""Ranked search on real logs, by queries that were written before any search was run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agtrace.asking import Asker
from tests.conftest import LOGS, copy_index
from tests.finding.ranking import QUERIES, WAYS, confident, indexed, places, rank

pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="the folder of real logs (shared/logs) is not here")


@pytest.fixture(scope="module")
def real(indexed_logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Asker:
    """An index of the real logs."""
    return indexed(copy_index(indexed_logs, tmp_path_factory.mktemp("real") / "index.sqlite3").parent)


def test_the_right_session_is_the_first_one(real: Asker) -> None:
    found = places(real, QUERIES["ranked"], WAYS[0])
    assert found.first >= 0.9 * found.of and found.among_three >= 0.95 * found.of
    assert found.bytes <= 1_792


def test_words_that_stand_together_nowhere_find_their_session(real: Asker) -> None:
    found = places(real, QUERIES["scattered"], WAYS[0])
    assert found.first >= 0.9 * found.of


def test_without_an_event_that_contains_a_text_their_list_is_empty_and_names_the_search_by_words(real: Asker) -> None:
    query = QUERIES["scattered"][0]
    answer = real.ask("search_event_previews", query=query["query"], order="newest")
    assert answer["summary"].startswith("Found 0 events containing") and answer["data"]["matches"] == []
    assert rank(real.run(answer["hint"]), (query["session"],)) in (1, 2, 3)


def test_what_is_not_there_is_never_claimed_to_be_found(real: Asker) -> None:
    assert [query for query in QUERIES["negative"] if confident(real, query)] == []
