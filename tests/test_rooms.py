"""The plan of the house, held: how many rooms there are, and that their imports go in one direction."""

from __future__ import annotations

import ast

import pytest

from tests.rooms import KEEPERS_OF_SQL, arrows, asks, circle_in, modules, rooms, sql

MOST_ROOMS = {"agtrace_indexer": 14, "agtrace": 18}
MOST_ARROWS = {"agtrace_indexer": 45, "agtrace": 90}


@pytest.mark.parametrize("package", MOST_ROOMS)
def test_no_rooms_import_each_other_in_a_circle(package: str) -> None:
    assert circle_in(arrows(package)) == []


@pytest.mark.parametrize("package", MOST_ROOMS)
def test_a_package_has_few_rooms_and_few_ways_between_them(package: str) -> None:
    assert len(rooms(package)) <= MOST_ROOMS[package]
    assert sum(len(to) for to in arrows(package).values()) <= MOST_ARROWS[package]


def test_only_the_index_and_what_mends_it_have_sql_and_execute_it() -> None:
    having = {name for name, _ in sql()} | set(asks())
    assert {name for name in having if not name.startswith(KEEPERS_OF_SQL)} == set()


def test_agtrace_gets_rows_of_our_own_and_none_of_sqlite() -> None:
    rows = [name for name, tree in modules("agtrace").items() if "sqlite3.Row" in ast.unparse(tree)]
    assert rows == []


def test_the_rooms_of_logs_know_no_table_and_no_agent() -> None:
    found = arrows("agtrace_indexer")
    assert found.get("logs", {}) == {} and found.get("redact", {}) == {} and found.get("texts", {}) == {}
    assert set(found["events"]) == {"logs", "redact"} and set(found["providers"]) == {"events"}
