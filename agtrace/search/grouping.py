"""Hits as answers show them: each event as a preview, or one event for each session with how many it has."""

from __future__ import annotations

import sqlite3

from agtrace_schema.answers import EventPreview, SessionMatches

from agtrace.search.hits import Hit
from agtrace.search.matching import Matcher
from agtrace.search.question import SessionHits
from agtrace.sessions import events
from agtrace.sessions.listing import SHORT_HASH
from agtrace.sessions.query import iso, sessions_where, short_id, with_texts
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line

_HIT = (
    "SELECT e.*, n.text AS name, s.uid FROM event e JOIN session s ON s.id = e.session_id "
    "LEFT JOIN name n ON n.id = e.name_id WHERE e.session_id = ? AND e.event_index = ?"
)


def previews(connection: sqlite3.Connection, hits: list[Hit], matcher: Matcher) -> list[EventPreview]:
    """Show hits around the place that matches."""
    rows = [connection.execute(_HIT, (hit.session_row, hit.event_index)).fetchone() for hit in hits]
    ids = {uid: short_id(connection, uid) for uid in {row["uid"] for row in rows}}
    return [
        events.preview(connection, ids[event.row["uid"]], event, matcher.matched(event.text))
        for event in with_texts(connection, rows)
    ]


def session_matches(connection: sqlite3.Connection, found: SessionHits, matcher: Matcher) -> list[SessionMatches]:
    """Show the sessions of a page, each with one of its hits."""
    rows = {
        row["id"]: row
        for hit in found.hits
        for row in sessions_where(connection, "s.id = :id", {"id": hit.session_row})
    }
    shown = previews(connection, found.hits, matcher)
    return [
        _session(rows[hit.session_row], preview, found.counts[hit.session_row], found.counts_exact)
        for hit, preview in zip(found.hits, shown, strict=True)
    ]


def _session(row: sqlite3.Row, preview: EventPreview, matches: int, exact: bool) -> SessionMatches:
    title, snippet = row["title"], row["snippet"]
    return SessionMatches(
        session_id=preview.session_id,
        provider=row["provider"],
        title=title and one_line(title, 2 * LABEL),
        snippet=None if title else snippet and one_line(snippet, USER_MESSAGE // 2),
        project_hash=row["project_hash"] and row["project_hash"][:SHORT_HASH],
        start_time=iso(row["started_at"]),
        matches=matches,
        matches_exact=None if exact else False,
        match=preview,
    )
