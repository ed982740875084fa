"""The plan of the house, enforced: the number of rooms, and imports in one direction only."""

from __future__ import annotations

import pytest

from tests.rooms import (
    KEEPERS_OF_SQL,
    OF_OTHER_PROGRAMS,
    SOURCES,
    arrows,
    asks,
    circle_in,
    excepts,
    modules,
    rooms,
    sql,
)

MOST_ROOMS = {"agtrace_indexer": 14, "agtrace": 20}
MOST_ARROWS = {"agtrace_indexer": 45, "agtrace": 108}


@pytest.mark.parametrize("package", MOST_ROOMS)
def test_no_rooms_import_each_other_in_a_circle(package: str) -> None:
    assert circle_in(arrows(package)) == []


@pytest.mark.parametrize("package", MOST_ROOMS)
def test_a_package_has_few_rooms_and_few_ways_between_them(package: str) -> None:
    assert len(rooms(package)) <= MOST_ROOMS[package]
    assert sum(len(to) for to in arrows(package).values()) <= MOST_ARROWS[package]


def test_only_the_index_and_what_mends_it_have_sql_and_execute_it() -> None:
    outside = {name for name in {name for name, _ in sql()} | set(asks()) if not name.startswith(KEEPERS_OF_SQL)}
    assert {name for name in outside if not name.startswith(OF_OTHER_PROGRAMS)} == set()
    assert {name for name in asks() if name in outside} <= {"agtrace_indexer.logs.foreign_database"}


def test_errors_of_commands_are_explained_in_one_place() -> None:
    assert excepts(SOURCES["agtrace"] / "commands") <= 10


def test_agtrace_gets_rows_of_our_own_and_none_of_sqlite() -> None:
    rows = [name for name, path in modules("agtrace").items() if "sqlite3.Row" in path.read_text(encoding="utf-8")]
    assert rows == []


ORDER = ("logs", "redact", "events", "landmarks", "texts", "providers", "index", "families", "reader", "parallel",
         "forget", "run", "watch")  # fmt: skip
"""The rooms of the indexer as `indexer/README.md` lists them: each imports only those before it."""


def test_the_rooms_of_the_indexer_import_only_those_above_them() -> None:
    assert rooms("agtrace_indexer") == set(ORDER)
    found = arrows("agtrace_indexer")
    assert [
        modules for here, to in found.items() for there, modules in to.items() if ORDER.index(there) > ORDER.index(here)
    ] == []


def test_the_rooms_of_logs_know_no_table_and_no_agent() -> None:
    found = arrows("agtrace_indexer")
    assert found.get("logs", {}) == {} and found.get("redact", {}) == {} and found.get("texts", {}) == {}
    assert set(found["events"]) == {"logs", "redact"} and set(found["providers"]) == {"events", "logs"}
