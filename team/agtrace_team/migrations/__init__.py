"""The tables of a team's database, as numbered steps: each is applied once, in order, in one transaction.

A step that was released never changes; what changes is a new step. PostgreSQL takes back a step that fails, tables and
all, so that there is nothing to repair.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, NamedTuple

import psycopg

from agtrace_team.problems import NewerTables

_LOCK = 0x6167_7472
"""Of two that migrate at once, one waits."""


class Step(NamedTuple):
    """A step."""

    name: str
    sql: str


def steps() -> list[Step]:
    """Return all steps, in order."""
    found = (one for one in files(__name__).iterdir() if one.name.endswith(".sql"))
    return [Step(one.name.removesuffix(".sql"), one.read_text()) for one in sorted(found, key=lambda one: one.name)]


def applied(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the names of the steps that a database has."""
    if connection.execute("SELECT to_regclass('agtrace_migration.step')").fetchone() == (None,):
        return []
    return [name for (name,) in connection.execute("SELECT name FROM agtrace_migration.step ORDER BY name")]


def waiting(connection: psycopg.Connection[Any]) -> list[Step]:
    """Return the steps that a database lacks. Raises `NewerTables`."""
    known, there = steps(), set(applied(connection))
    if unknown := there - {step.name for step in known}:
        raise NewerTables(f"a newer agtrace made the team's tables ({max(unknown)}): update agtrace")
    return [step for step in known if step.name not in there]


def migrate(connection: psycopg.Connection[Any]) -> list[str]:
    """Apply the steps that a database lacks, as its owner; return their names. Raises `NewerTables`."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute("CREATE SCHEMA IF NOT EXISTS agtrace_migration")
        connection.execute("REVOKE ALL ON SCHEMA agtrace_migration FROM PUBLIC")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS agtrace_migration.step ("
            'name text COLLATE "C" PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())'
        )
    done = []
    for step in waiting(connection):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            if step.name in applied(connection):
                continue  # somebody else was faster
            connection.execute(step.sql)
            connection.execute("RESET search_path")
            connection.execute("INSERT INTO agtrace_migration.step (name) VALUES (%s)", (step.name,))
            done.append(step.name)
    return done
