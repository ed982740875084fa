"""Hits as answers show them: a preview of each event, or of one event per session with its number of hits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from agtrace_indexer.index.questions import events as stored_events
from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.sessions import Session, people_of
from agtrace_indexer.index.questions.texts import with_texts
from agtrace_schema.answers import EventPreview, SessionMatches
from msgspec.structs import replace

from agtrace.search.hits import Hit
from agtrace.search.matching import Matcher
from agtrace.search.question import SessionHits
from agtrace.sessions.previews import preview
from agtrace.sessions.projects import labels
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line
from agtrace.times import iso


def previews(connection: sqlite3.Connection, hits: list[Hit], matcher: Matcher) -> list[EventPreview]:
    """Return previews of hits, centred on the match, each with its project."""
    names = labels(connection)
    return [
        replace(shown, project=names.get(session.project_id or 0))
        for session, shown in _previews(connection, hits, matcher)
    ]


def _previews(
    connection: sqlite3.Connection, hits: list[Hit], matcher: Matcher
) -> Iterator[tuple[Session, EventPreview]]:
    found = [stored_events.one(connection, hit.session_row, hit.event_index) for hit in hits]
    rows = {session.id: session for session in sessions.in_rows(connection, {hit.session_row for hit in hits})}
    for event in with_texts(connection, found):
        session = rows[event.row.session_row]
        yield session, preview(connection, session, event, matcher.matched(event.text))


def session_matches(connection: sqlite3.Connection, found: SessionHits, matcher: Matcher) -> list[SessionMatches]:
    """Return the sessions of a page, each with one of its hits."""
    rows = {session.id: session for session in sessions.in_rows(connection, (hit.session_row for hit in found.hits))}
    names, users = labels(connection), people_of(connection, [*rows])
    shown = (preview for _, preview in _previews(connection, found.hits, matcher))
    return [
        _session(
            rows[hit.session_row],
            names,
            users,
            preview,
            matches=found.counts[hit.session_row],
            exact=found.counts_exact,
        )
        for hit, preview in zip(found.hits, shown, strict=True)
    ]


def _session(
    session: Session,
    names: Mapping[int, str],
    users: Mapping[int, str],
    preview: EventPreview,
    *,
    matches: int,
    exact: bool,
) -> SessionMatches:
    title, snippet = session.title, session.snippet
    return SessionMatches(
        session_id=preview.session_id,
        user=users.get(session.id),
        provider=session.provider,
        title=title and one_line(title, 2 * LABEL),
        snippet=None if title else snippet and one_line(snippet, USER_MESSAGE // 2),
        project=names.get(session.project_id or 0),
        start_time=iso(session.started_at),
        matches=matches,
        matches_exact=None if exact else False,
        match=preview,
    )
