"""The people of a team: logins of the cluster, and what each may do. For the owner of the team's database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from agtrace_team.problems import TeamProblem


class Person(NamedTuple):
    """Somebody of the team."""

    login: str
    shown: str
    may_push: bool
    sessions: int
    last_push: Any
    """A `datetime`; None if there was none."""


class Grant(NamedTuple):
    """A person's right to read what is shared with a repository."""

    login: str
    project: str
    """What the repository is called."""
    remote: str | None
    by_name: bool
    """Whether the right was given by a name, and so ends when somebody else's folder joins."""


def add(
    connection: psycopg.Connection[Any], login: str, shown: str | None, password: str | None, *, push: bool
) -> None:
    """Make a login a person of the team, who may read, and push; a login that doesn't exist is made.

    Without a name to show, one that is there stays so, and a new person is shown by the login.
    """
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
            "INSERT INTO team.person AS p (login, shown, may_push) VALUES (%s, %s, %s) ON CONFLICT (login) "
            "DO UPDATE SET shown = coalesce(%s::text, p.shown), may_push = excluded.may_push",
            (login, shown or login, push, shown),
        )


def _must_be_known(connection: psycopg.Connection[Any], login: str) -> None:
    if connection.execute("SELECT 1 FROM team.person WHERE login = %s", (login,)).fetchone() is None:
        raise TeamProblem(f"nobody of the team is called {login!r}: agtrace team status lists who is")


def remove(connection: psycopg.Connection[Any], login: str) -> int:
    """Remove a person with all that they pushed; the login stays, and sees nothing. Return how many sessions went.

    Raises `TeamProblem` for nobody of the team.
    """
    _must_be_known(connection, login)
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


_MEANT = """
SELECT r.id, r.remote IS DISTINCT FROM %(project)s FROM team.repository r
WHERE r.remote = %(project)s OR (
  EXISTS (SELECT 1 FROM team.repository_folder f WHERE f.repository_id = r.id)
  AND NOT EXISTS (
    SELECT 1 FROM team.repository_folder f JOIN team.project p ON p.id = f.project_id
    WHERE f.repository_id = r.id AND NOT EXISTS (
      SELECT 1 FROM team.repository_name n WHERE n.repository_id = r.id AND n.person_id = p.person_id
        AND n.name = pg_catalog.lower(%(project)s))))
"""


def grant(connection: psycopg.Connection[Any], login: str, project: str, *, take_back: bool = False) -> int:
    """Let a person read what is shared with a project, by its name or remote; return how many repositories that is.

    What a repository is called is said by those who push: only a name that all with folders in it give it will do, and
    that right ends when somebody else's folder joins the repository. A right by the remote stays. Raises `TeamProblem`
    for nobody of the team.
    """
    _must_be_known(connection, login)
    found = connection.execute(_MEANT, {"project": project}).fetchall()
    for repository, by_name in found:
        given = (repository, login)
        if take_back:
            connection.execute(
                "DELETE FROM team.may_read WHERE repository_id = %s "
                "AND person_id = (SELECT id FROM team.person WHERE login = %s)",
                given,
            )
        else:
            connection.execute(
                "INSERT INTO team.may_read (repository_id, person_id, by_name) "
                "SELECT %s, id, %s FROM team.person WHERE login = %s "
                "ON CONFLICT (repository_id, person_id) DO UPDATE SET by_name = may_read.by_name AND excluded.by_name",
                (repository, by_name, login),
            )
    return len(found)


def grants(connection: psycopg.Connection[Any]) -> list[Grant]:
    """Return who may read what is shared with which repository."""
    return [
        Grant(*row)
        for row in connection.execute(
            "SELECT p.login::text, r.name, r.remote, m.by_name FROM team.may_read m "
            "JOIN team.person p ON p.id = m.person_id JOIN team.repository r ON r.id = m.repository_id "
            "ORDER BY p.login, r.name, r.id"
        )
    ]


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
