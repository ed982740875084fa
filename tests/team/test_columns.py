"""The tables of a team's database have the columns of one's own index: no server is needed to see that."""

from __future__ import annotations

import re
import sqlite3

import pytest
from agtrace_indexer.index.table_roles import TABLES, Role
from agtrace_schema import database
from agtrace_team.migrations import steps

_MADE = re.compile(r"CREATE TABLE (\w+) \((.*?)\n\)", re.DOTALL)
_ADDED = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+)")

OF_READING = {
    "root": (),
    "sum_so_far": (),
    "file": ("anchor", "anchor_size", "head", "head_size", "read_to", "stamp", "state"),
    "session": ("clustered_to", "compared_to", "own_title", "pending", "replayed_to", "started_call", "title_rank"),
    "block": ("words",),
}
"""Tables and columns that only those need who read logs: a team's database has sessions that were read."""


def _of_a_team() -> dict[str, set[str]]:
    """The columns of each table that the migrations make."""
    found: dict[str, set[str]] = {}
    for step in steps():
        for name, body in _MADE.findall(step.sql):
            found[name] = {line.split()[0].strip('",') for line in body.splitlines() if line.split()}
        for name, column in _ADDED.findall(step.sql):
            found[name].add(column)
    return found


@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if table.role is not Role.WORDS])
def test_a_team_s_table_has_every_column_that_questions_may_name(table: str) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(database.TABLES)
    own = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    lacking = own - _of_a_team().get(table, set()) - {*OF_READING.get(table, ())}
    assert not lacking or OF_READING.get(table) == (), "a new column needs a new step in team/agtrace_team/migrations"
