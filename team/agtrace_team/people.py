"""The people of a team: logins of the cluster, and what each may do. For the owner of the team's database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg
from psycopg import sql


class Person(NamedTuple):
    """Somebody of the team."""

    login: str
    shown: str
    may_push: bool
    sessions: int
    last_push: Any
    """A `datetime`; None if there was none."""


def add(connection: psycopg.Connection[Any], login: str, shown: str, password: str | None, *, push: bool) -> None:
    """Make a login a person of the team, who may read, and push; a login that doesn't exist is made."""
    with connection.transaction():
        role = sql.Identifier(login)
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (login,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        if password is not None:
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, sql.Literal(password)))
        connection.execute(sql.SQL("GRANT agtrace_read TO {}").format(role))
        if push:
            connection.execute(sql.SQL("GRANT agtrace_push TO {}").format(role))
        connection.execute(
            "INSERT INTO team.person (login, shown, may_push) VALUES (%s, %s, %s) "
            "ON CONFLICT (login) DO UPDATE SET shown = excluded.shown, may_push = excluded.may_push",
            (login, shown, push),
        )


def remove(connection: psycopg.Connection[Any], login: str) -> int:
    """Remove a person with all that they pushed; the login stays, and sees nothing. Return how many sessions went."""
    with connection.transaction():
        of_person = "(SELECT id FROM team.person WHERE login = %s)"
        gone = connection.execute(f"DELETE FROM team.session WHERE person_id = {of_person}", (login,)).rowcount
        for table in ("project", "repository_name"):
            connection.execute(f"DELETE FROM team.{table} WHERE person_id = {of_person}", (login,))
        machines = f"(SELECT id FROM team.machine WHERE person_id = {of_person})"
        for table in ("file", "push"):
            connection.execute(f"DELETE FROM team.{table} WHERE machine_id IN {machines}", (login,))
        connection.execute(f"DELETE FROM team.machine WHERE person_id = {of_person}", (login,))
        connection.execute("DELETE FROM team.person WHERE login = %s", (login,))
    return gone


def grant(connection: psycopg.Connection[Any], login: str, project: str, *, take_back: bool = False) -> int:
    """Let a person read what is shared with a project, by its name or remote; return how many repositories that is."""
    found = connection.execute(
        "SELECT DISTINCT r.id FROM team.repository r LEFT JOIN team.repository_name n ON n.repository_id = r.id "
        "WHERE pg_catalog.lower(%(project)s) IN (pg_catalog.lower(r.name), r.remote, n.name)",
        {"project": project},
    ).fetchall()
    for (repository,) in found:
        given = (repository, login)
        if take_back:
            connection.execute(
                "DELETE FROM team.may_read WHERE repository_id = %s "
                "AND person_id = (SELECT id FROM team.person WHERE login = %s)",
                given,
            )
        else:
            connection.execute(
                "INSERT INTO team.may_read SELECT %s, id FROM team.person WHERE login = %s ON CONFLICT DO NOTHING",
                given,
            )
    return len(found)


def people(connection: psycopg.Connection[Any]) -> Iterable[Person]:
    """Return everybody of the team."""
    return [
        Person(*row)
        for row in connection.execute(
            "SELECT p.login::text, p.shown, p.may_push, "
            "(SELECT count(*) FROM team.session s WHERE s.person_id = p.id), "
            "(SELECT max(u.at) FROM team.push u JOIN team.machine m ON m.id = u.machine_id WHERE m.person_id = p.id) "
            "FROM team.person p ORDER BY p.login"
        )
    ]
