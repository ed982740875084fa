"""The plan of the house, held: how many rooms there are, and that their imports go in one direction."""

from __future__ import annotations

import pytest

from tests.rooms import KEEPERS_OF_SQL, arrows, asks, circle_in, rooms, sql

MOST_ROOMS = {"agtrace_indexer": 14, "agtrace": 18}
MOST_ARROWS = {"agtrace_indexer": 45, "agtrace": 90}


@pytest.mark.parametrize("package", MOST_ROOMS)
def test_no_rooms_import_each_other_in_a_circle(package: str) -> None:
    assert circle_in(arrows(package)) == []


@pytest.mark.parametrize("package", MOST_ROOMS)
def test_a_package_has_few_rooms_and_few_ways_between_them(package: str) -> None:
    assert len(rooms(package)) <= MOST_ROOMS[package]
    assert sum(len(to) for to in arrows(package).values()) <= MOST_ARROWS[package]


def test_the_rooms_of_logs_know_no_table_and_no_agent() -> None:
    found = arrows("agtrace_indexer")
    assert found.get("logs", {}) == {} and found.get("redact", {}) == {} and found.get("texts", {}) == {}
    assert set(found["events"]) == {"logs", "redact"} and set(found["providers"]) == {"events"}


def test_sql_stands_only_where_the_index_is_written_asked_and_mended() -> None:
    assert {name for name, _ in sql() if not name.startswith(KEEPERS_OF_SQL)} == set()
    assert {name for name in asks() if not name.startswith(KEEPERS_OF_SQL)} == set()
