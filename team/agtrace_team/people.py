"""What the owner of a team's database does: its people, logins of the cluster, their rights; its state and upkeep."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from agtrace_team.migrations import waiting
from agtrace_team.problems import TeamProblem

_GIN = ("block_grams", "ranked_event_stems")
_PAGE = 8_192

_COUNTS = """
SELECT (SELECT count(*) FROM team.session) AS sessions,
  (SELECT coalesce(sum(event_count), 0)::bigint FROM team.session) AS events,
  pg_total_relation_size('team.event') + pg_total_relation_size('team.block')
    + pg_total_relation_size('team.block_data') + pg_total_relation_size('team.ranked_event') AS index_bytes,
  pg_database_size(current_database()) AS bytes
"""
_PEOPLE = """
SELECT p.login::text, p.shown AS name, p.may_push,
  (SELECT count(*) FROM team.session s WHERE s.person_id = p.id) AS sessions,
  (SELECT max(u.at) FROM team.push u JOIN team.machine m ON m.id = u.machine_id WHERE m.person_id = p.id) AS last_push
FROM team.person p ORDER BY p.login
"""
_GRANTS = """
SELECT p.login::text, r.name AS project, r.remote, m.by_name FROM team.may_read m
JOIN team.person p ON p.id = m.person_id JOIN team.repository r ON r.id = m.repository_id ORDER BY p.login, r.name, r.id
"""
_ASKED = "SELECT kind, count(*) FROM team.asked WHERE at > now() - interval '1 day' GROUP BY 1"


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
            sealed = connection.pgconn.encrypt_password(password.encode(), login.encode()).decode()
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, sql.Literal(sealed)))
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


def status(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return the people, what they pushed and may read, sizes and what waits, as JSON has it. Times are ISO 8601.

    A grant by a name ends when somebody else's folder joins the repository. Raises `TeamProblem` for anybody else.
    """
    owner = connection.execute(
        "SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'team'"
    ).fetchone()
    if owner is None:
        raise TeamProblem("that database has no tables of a team: agtrace team init")
    if not owner[0]:
        raise TeamProblem("only the owner of the team's database can see that")
    rows = connection.cursor(row_factory=dict_row)
    people = rows.execute(_PEOPLE).fetchall()
    for person in people:
        last = person["last_push"]
        person["last_push"] = last and last.astimezone().isoformat(timespec="seconds")
    return {
        **(rows.execute(_COUNTS).fetchone() or {}),
        "people": people,
        "grants": rows.execute(_GRANTS).fetchall(),
        "asked_today": dict(connection.execute(_ASKED).fetchall()),
        "waiting": [step.name for step in waiting(connection)],
        "pending_bytes": sum(_pending(connection, index) for index in _GIN),
    }


def _pending(connection: psycopg.Connection[Any], index: str) -> int:
    """Return the bytes of a search index's pending list; 0 where the server doesn't tell (it takes `pgstattuple`)."""
    there = connection.execute("SELECT 1 FROM pg_proc WHERE proname = 'pgstatginindex'").fetchone()
    if there is None:
        return 0
    row = connection.execute(f"SELECT pending_pages FROM pgstatginindex('team.{index}')").fetchone()
    return int(row[0]) * _PAGE if row else 0


def tend(connection: psycopg.Connection[Any]) -> int:
    """Empty the pending lists of the search indexes; return the number of their pages."""
    done = 0
    for index in _GIN:
        row = connection.execute("SELECT gin_clean_pending_list(%s::regclass)", (f"team.{index}",)).fetchone()
        done += int(row[0]) if row else 0
    return done
