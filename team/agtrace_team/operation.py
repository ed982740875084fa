"""Looking after a team's database, as its owner: its state, and the pending lists of its search indexes."""

from __future__ import annotations

from typing import Any

import psycopg

from agtrace_team.migrations import waiting
from agtrace_team.people import grants, people
from agtrace_team.problems import TeamProblem

_GIN = ("block_grams", "ranked_event_stems")
_PAGE = 8_192


def status(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return what an owner wants to know, as JSON has it. Times are ISO 8601, UTC.

    Raises `TeamProblem` for anybody else.
    """
    owner = connection.execute(
        "SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'team'"
    ).fetchone()
    if owner is None:
        raise TeamProblem("that database has no tables of a team: agtrace team init")
    if not owner[0]:
        raise TeamProblem("only the owner of the team's database can see that")
    steps = [step.name for step in waiting(connection)]
    counts = connection.execute(
        "SELECT (SELECT count(*) FROM team.session), (SELECT coalesce(sum(event_count), 0)::bigint FROM team.session), "
        "pg_total_relation_size('team.event') + pg_total_relation_size('team.block') + "
        "pg_total_relation_size('team.block_data') + pg_total_relation_size('team.ranked_event'), "
        "pg_database_size(current_database())"
    ).fetchone()
    assert counts is not None
    asked = connection.execute("SELECT kind, count(*) FROM team.asked WHERE at > now() - interval '1 day' GROUP BY 1")
    return {
        "sessions": counts[0],
        "events": counts[1],
        "index_bytes": counts[2],
        "bytes": counts[3],
        "people": [
            {
                "login": one.login, "name": one.shown, "may_push": one.may_push, "sessions": one.sessions,
                "last_push": one.last_push and one.last_push.astimezone().isoformat(timespec="seconds"),
            }
            for one in people(connection)
        ],
        "grants": [one._asdict() for one in grants(connection)],
        "asked_today": dict(asked.fetchall()),
        "waiting": steps,
        "pending_bytes": sum(_pending(connection, index) for index in _GIN),
    }  # fmt: skip


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
