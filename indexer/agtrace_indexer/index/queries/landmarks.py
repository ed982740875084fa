"""Landmarks: what sessions did, in file order, without copies."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agtrace_schema.landmarks import LandmarkKind, Verdict

from agtrace_indexer.index.queries.base import (
    COUNTED,
    GIVEN,
    IS_COMMIT,
    IS_PULL_REQUEST,
    OWN_THEN,
    as_json,
    first,
    rows,
    tuples,
    value,
)
from agtrace_indexer.index.queries.events import Snapshot

_ONCE = """
NOT (coalesce(l.verdict, '') = 'linked' AND EXISTS (SELECT 1 FROM landmark o WHERE o.session_id = l.session_id
  AND o.kind = l.kind AND coalesce(o.name, '') = coalesce(l.name, '') AND o.verdict != 'linked'))
"""
"""A link says nothing new of a pull request with which the session did something."""

_OWN = f"FROM landmark l JOIN event e USING (session_id, event_index) WHERE {OWN_THEN} AND {_ONCE}"

_LANDMARKS = f"""
SELECT l.event_index, l.number, e.turn_index, l.kind, l.name, l.detail, l.verdict, l.evidence
{_OWN} AND (l.event_index, l.number) > (:event, :number) ORDER BY l.event_index, l.number LIMIT :most
"""

_DEEDS = f"""
SELECT l.session_id, sum(l.kind = 'commit'),
  group_concat(CASE WHEN l.kind = 'pull_request' AND l.verdict = 'created' THEN l.name END, ' '),
  (SELECT t.verdict FROM landmark t JOIN event e USING (session_id, event_index)
    WHERE t.session_id = l.session_id AND t.kind = 'test_run' AND {COUNTED}
    ORDER BY t.event_index DESC, t.number DESC LIMIT 1),
  sum(l.kind = 'release')
FROM landmark l JOIN event e USING (session_id, event_index)
WHERE l.session_id IN {GIVEN} AND {COUNTED} GROUP BY 1
"""

_MATCHING = f"""
SELECT l.session_id, l.event_index, l.number, e.turn_index, l.kind, l.name, l.detail, l.verdict, l.evidence
FROM landmark l JOIN event e USING (session_id, event_index)
WHERE l.session_id IN (SELECT value FROM json_each(:sessions)) AND {COUNTED} AND {_ONCE} AND e.id <= :newest
  AND ({IS_COMMIT} OR {IS_PULL_REQUEST})
ORDER BY l.session_id, l.event_index, l.number
"""

_WITHIN = f"""
SELECT l.session_id, l.event_index, l.number, e.turn_index, l.kind, l.name, l.detail, l.verdict, l.evidence
FROM landmark l JOIN event e USING (session_id, event_index)
WHERE l.session_id IN (SELECT value FROM json_each(:sessions)) AND {COUNTED} AND {_ONCE}
  AND l.kind IN ('commit', 'pull_request', 'release', 'test_run') AND coalesce(l.verdict, '') != 'linked'
  AND e.ts BETWEEN :since AND :until ORDER BY e.ts, e.id, l.number
"""

_SHORTEST_HASH = 7
"""As git abbreviates hashes."""

_COMMITTER = f"""
SELECT l.session_id, l.event_index FROM landmark l JOIN event e USING (session_id, event_index)
WHERE {IS_COMMIT} AND length(l.name) >= {_SHORTEST_HASH} AND {COUNTED} ORDER BY e.ts, e.id LIMIT 1
"""

_TOTALS = f"""
SELECT l.kind, count(*), sum(coalesce(l.verdict, '') = 'failed'), l.session_id
FROM landmark l JOIN event e USING (session_id, event_index)
WHERE l.session_id IN {GIVEN} AND {COUNTED} AND {_ONCE} GROUP BY l.kind, l.session_id
"""


class Landmark(NamedTuple):
    """Something that a session did."""

    event_index: int
    number: int
    """0, 1, 2 ... within the event."""
    turn_index: int | None
    kind: LandmarkKind
    name: str | None
    detail: str | None
    verdict: Verdict | None
    evidence: str
    """What tells of it, or decided its verdict (`agtrace_schema.landmarks.Evidence`)."""


def landmarks_then(
    connection: sqlite3.Connection, session_row: int, then: Snapshot, *, behind: tuple[int, int] | None, most: int
) -> list[Landmark]:
    """Return the landmarks of a session after an (event_index, number), in file order, at most `most`."""
    event, number = behind or (-1, -1)
    named = then.named(session_row, event=event, number=number, most=most)
    return list(rows(connection, _landmark, _LANDMARKS, named))


def count_landmarks_then(connection: sqlite3.Connection, session_row: int, then: Snapshot) -> int:
    """Return the number of landmarks of a session."""
    return int(value(connection, f"SELECT count(*) {_OWN}", then.named(session_row)))


def matching(
    connection: sqlite3.Connection, session_rows: Iterable[int], commit: str | None, pr: str | None, *, newest: int
) -> dict[int, list[Landmark]]:
    """Return the landmarks of each of these sessions that are a commit or a pull request as `SessionFilters` has them.

    Events behind the row `newest` don't count.
    """
    named = {"sessions": as_json(session_rows), "commit": commit, "pr": pr, "newest": newest}
    result: dict[int, list[Landmark]] = {}
    for session, landmark in rows(connection, lambda row, *rest: (row, _landmark(*rest)), _MATCHING, named):
        result.setdefault(session, []).append(landmark)
    return result


def within(
    connection: sqlite3.Connection, session_rows: Iterable[int], since: int, until: int
) -> Iterator[tuple[int, Landmark]]:
    """Yield the commits, pull requests, releases and test runs of these sessions in a period, in the order of time.

    Each comes with the row of its session; times are milliseconds since 1970 UTC, both ends included.
    """
    named = {"sessions": as_json(session_rows), "since": since, "until": until}
    return rows(connection, lambda row, *rest: (row, _landmark(*rest)), _WITHIN, named)


def committer(connection: sqlite3.Connection, commit: str) -> tuple[int, int] | None:
    """Return (session, event) of the first call that made a commit, given its full hash; None if there is none."""
    return first(connection, lambda *row: row, _COMMITTER, {"commit": commit})


def deeds(
    connection: sqlite3.Connection, session_rows: Iterable[int]
) -> Iterator[tuple[int, int, str | None, str | None, int]]:
    """Yield (session, commits, numbers of the pull requests it created, how its last test run ended, releases).

    The numbers are in order, with spaces between them; sessions that left no landmark are left out.
    """
    return tuples(connection, _DEEDS, (as_json(session_rows),))


def totals(connection: sqlite3.Connection, session_rows: Iterable[int]) -> Iterator[tuple[str, int, int, int]]:
    """Yield (kind, landmarks, failed test runs and builds, session) for the landmarks of each of these sessions."""
    return tuples(connection, _TOTALS, (as_json(session_rows),))


def _landmark(event: int, number: int, turn: int | None, kind: str, *rest: str | None) -> Landmark:
    name, detail, verdict, evidence = rest
    judged = None if verdict is None else Verdict(verdict)
    return Landmark(event, number, turn, LandmarkKind(kind), name, detail, judged, evidence or "")
