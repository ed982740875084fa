"""Overview: lists of sessions, and the facts about one session."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from agtrace_indexer.index.queries import calls, events, files, landmarks, sessions, turns, usage
from agtrace_indexer.index.queries.events import NOW, with_texts
from agtrace_indexer.index.queries.sessions import Child, Session, SessionFilters, people_of
from agtrace_indexer.index.queries.usage import Among, largest_request
from agtrace_indexer.redact import redact
from agtrace_schema.answers import ChildItem, Copied, SessionHead, SessionItem, SessionStats, WithChildren
from agtrace_schema.events import Outcome, OutcomeSource
from msgspec import Struct
from msgspec.structs import replace

from agtrace.problems import Problem
from agtrace.sessions.landmarks import done_by, titled_landmarks
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import SHORT_HASH, labels
from agtrace.sessions.query import find_session, short_id
from agtrace.sessions.terms import failures_known, known_failures
from agtrace.sessions.usage import FIELDS, KINDS, Order, Place, Snapshot, Usage, sorted_page, usage_by, usage_of
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line, shown_path
from agtrace.times import iso

MODELS_SHOWN = 3
"""The most models of a session or project that an overview names."""

_CHILDREN = 10
_LANDMARKS = 3
"""The most landmarks of a session that a list by commit or pull request shows."""

_LOOKED_AT = 200
"""The most failed calls that are told apart by how that is known."""

_IN_STATS = ("failure_run", "edits", "compactions", "human_requests")

_SHOWN_IF_SORTED_BY = frozenset({"output_tokens", "failure_run", "compactions", "edits", "files"})
"""The measures that an item of a list has only if the list is sorted by them."""


class SessionPage(Struct, frozen=True):
    """A page of sessions."""

    items: list[SessionItem]
    places: list[Place]
    """The position after each item."""
    total: int
    failures: int
    """How many of the `total` sessions have failed tool calls."""
    sub_agents: int
    """How many of them are part of another session."""
    more: bool
    measured: float | None
    """The measure of the whole list (`usage.SortedPage.total`)."""
    at_least: bool
    """Whether it is a lower bound."""


def list_sessions(
    connection: sqlite3.Connection,
    filters: SessionFilters,
    limit: int,
    *,
    sort: Order = "newest",
    snapshot: Snapshot,
    behind: Place | None,
    prices: PriceTable,
    with_deeds: bool = False,
) -> SessionPage:
    """Return the sessions active in the window; warm-ups don't count as sessions.

    `with_deeds`: whether each comes with what it did.
    """
    page = sorted_page(connection, filters, sort, limit, snapshot=snapshot, behind=behind, prices=prices)
    total, failures, sub_agents = sessions.count(connection, filters, newest=snapshot.session)
    rows = [session.id for session in page.sessions]
    used = usage_of(connection, prices, rows)
    deeds, names = done_by(connection, rows) if with_deeds else {}, labels(connection)
    matching = {}
    if filters.commit or filters.pr:
        matching = landmarks.matching(connection, rows, filters.commit, filters.pr, newest=snapshot.event)
    touched = files.in_sessions(connection, rows, filters.path, newest=snapshot.event) if filters.path else {}
    shown_only = FIELDS[sort] if sort in _SHOWN_IF_SORTED_BY else None
    users = people_of(connection, rows)
    items = []
    for session in page.sessions:
        reads, writes = touched.get(session.id, (None, None))
        more: dict[str, Any] = {"done": deeds.get(session.id), "path_reads": reads, "path_writes": writes}
        more["user"] = users.get(session.id)
        more["landmarks"] = titled_landmarks(connection, session.id, matching.get(session.id, ())[:_LANDMARKS]) or None
        more |= {shown_only: page.measured.get(session.id)} if shown_only else {}
        item = session_item(connection, session, used.get(session.id, Usage()), names.get(session.project_id or 0))
        items.append(replace(item, **more))
    return SessionPage(items, page.places, total, failures, sub_agents, page.more, page.total, page.at_least)


def session_item(connection: sqlite3.Connection, session: Session, usage: Usage, project: str | None) -> SessionItem:
    """Return a session as a list shows it, with the name of its project."""
    title, snippet = session.title, session.snippet
    return SessionItem(
        id=short_id(connection, session.uid),
        provider=session.provider,
        project=project,
        kind=None if shown_kind(session) == "main" else shown_kind(session),
        parent_id=_shown_parent(connection, session),
        title=title and one_line(title, LABEL * 2),
        snippet=snippet and one_line(snippet, USER_MESSAGE),
        start_time=iso(session.started_at),
        duration_seconds=_duration(session.started_at, session.ended_at),
        turn_count=session.turn_count,
        tool_calls=session.tool_calls,
        failed_calls=known_failures(session.provider, session.tool_calls, session.failed_calls),
        **usage.totals,
        copied_turns=session.copied_turns or None,
    )


def shown_kind(session: Session | Child) -> str:
    """Return the kind of a session: main, subagent, fork (repeats another's beginning) or continuation of another."""
    if session.kind != "main" or session.parent_session is None:
        return session.kind
    return "fork" if session.copied_events else "continuation"


def session_head(connection: sqlite3.Connection, session: Session, prices: PriceTable) -> SessionHead:
    """Return the facts about a session that every level shows."""
    children, parent = sessions.children(connection, session), _shown_parent(connection, session)
    return SessionHead(
        session_id=session.uid,
        user=people_of(connection, [session.id]).get(session.id),
        provider=session.provider,
        kind=shown_kind(session),
        parent_id=parent,
        parent_missing=True if session.parent_id and parent is None else None,
        started_by=session.started_by,
        children=[child_item(connection, child) for child in children[:_CHILDREN]] or None,
        total_children=len(children) if len(children) > _CHILDREN else None,
        agent_type=session.agent_type and one_line(session.agent_type, LABEL),
        description=session.description and one_line(session.description, USER_MESSAGE),
        title=session.title and one_line(session.title, USER_MESSAGE),
        project_hash=session.project_hash and session.project_hash[:SHORT_HASH],
        root_path=session.root_path and shown_path(session.root_path),
        model=session.model and one_line(session.model, LABEL),
        version=session.version and one_line(session.version, LABEL),
        branch=session.branch and one_line(session.branch, USER_MESSAGE),
        start_time=iso(session.started_at),
        end_time=iso(session.ended_at),
        log=shown_path(session.path.partition("#replaced-")[0]),
        log_gone=True if session.gone else None,
        stats=_stats(connection, session, prices),
    )


def child_item(connection: sqlite3.Connection, child: Child) -> ChildItem:
    """Return a session that derives from another, as an answer shows it."""
    return ChildItem(id=short_id(connection, child.uid), kind=shown_kind(child), started_by=child.started_by)


def _stats(connection: sqlite3.Connection, session: Session, prices: PriceTable) -> SessionStats:
    usage = usage_of(connection, prices, [session.id]).get(session.id, Usage())
    peak, window = largest_request(connection, session.id)
    known = failures_known(session.provider, session.tool_calls)
    counted = (usage.total or 0) + session.copied_tokens
    copied = Copied(
        turns=session.copied_turns,
        events=session.copied_events,
        tool_calls=session.copied_tool_calls,
        failed_calls=session.copied_failed_calls,
        total_tokens=session.copied_tokens,
    )
    return SessionStats(
        total_turns=session.turn_count,
        total_events=session.event_count,
        tool_calls=session.tool_calls,
        failed_calls=known_failures(session.provider, session.tool_calls, session.failed_calls),
        failed_by_text=_failed_by_text(connection, session) or None,
        cancelled_calls=calls.count_cancelled(connection, session.id, NOW) or None,
        **{name: _measure(connection, session, name) or None for name in _IN_STATS if name != "failure_run" or known},
        responses=usage.responses,
        total_tokens=usage.total,
        tokens={kind: usage.tokens[kind] for kind in KINDS if usage.tokens.get(kind)} or None,
        tokens_made=usage.tokens_made,
        tokens_outside_turns=max(counted - turns.tokens(connection, session.id), 0) or None,
        incomplete_responses=usage.incomplete or None,
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
        models=usage.by_model(MODELS_SHOWN) if len(usage.models) > 1 else None,
        peak_context_tokens=peak or None,
        context_window=window or prices.window(session.model) if peak else None,
        duration_seconds=_duration(session.started_at, session.ended_at),
        active_seconds=session.active_ms // 1000 if session.started_at is not None else None,
        done=done_by(connection, [session.id]).get(session.id),
        copied=copied if session.copied_events else None,
        with_children=_with_children(connection, session, prices),
    )


def _failed_by_text(connection: sqlite3.Connection, session: Session) -> int:
    found = calls.failures(connection, session.id, NOW, behind=-1, most=_LOOKED_AT)
    failed = [one.shown for one in found if one.outcome is Outcome.FAILED]
    shown = with_texts(connection, events.several(connection, session.id, failed))
    return sum(one.rest.get("outcome_source") == OutcomeSource.TEXT for one in shown)


def _measure(connection: sqlite3.Connection, session: Session, measure: str) -> int:
    found = usage.of_sessions(connection, [session.id], measure, newest_event=NOW.newest_row)
    return found[session.id] or 0


def _with_children(connection: sqlite3.Connection, session: Session, prices: PriceTable) -> WithChildren | None:
    """Return the sums that include all sub-agents below; None if there are none."""
    family = sessions.with_agents(connection, session.id)
    if len(family.ids) < 2:
        return None
    usage = usage_by(connection, prices, Among("all", sessions=family.ids)).get(0, Usage())
    return WithChildren(
        sessions=family.sessions,
        tool_calls=family.tool_calls,
        failed_calls=known_failures(session.provider, family.tool_calls, family.failed_calls),
        **usage.totals,
        output_tokens=usage.tokens.get("output_tokens"),
    )


def _shown_parent(connection: sqlite3.Connection, session: Session) -> str | None:
    """Return the id of the parent if it is indexed, so that every id shown can be opened."""
    found = sessions.parent_id(connection, session)
    return None if found is None else short_id(connection, found)


def _duration(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else (end - start) // 1000


class Described(Struct, frozen=True):
    """What a person wants to know of a session beside an answer."""

    session_id: str
    """Its whole id."""
    provider: str
    user: str | None
    """Who pushed it, in a team's index."""
    project: str | None
    title: str | None
    """Whole; the beginning of the first request if it has none."""
    started: str | None
    """When it began, in ISO 8601."""
    started_at: int | None
    """Milliseconds since 1970 UTC, as the next one."""
    ended_at: int | None
    cost_usd: float | None
    cost_made: str | None
    """How it was made (`usage.Usage.cost_made`)."""


def described(connection: sqlite3.Connection, prices: PriceTable, ids: Iterable[str]) -> dict[str, Described]:
    """Return sessions by the ids that an answer gives them; those that have been forgotten since are left out."""
    rows = {}
    for id in dict.fromkeys(ids):
        try:
            rows[id] = find_session(connection, id)
        except Problem:
            continue
    names, users = labels(connection), people_of(connection, [session.id for session in rows.values()])
    used = usage_of(connection, prices, [session.id for session in rows.values()])
    return {
        id: Described(
            session_id=session.uid,
            provider=session.provider,
            user=users.get(session.id),
            project=names.get(session.project_id or 0),
            title=redact(session.title or session.snippet or "") or None,
            started=iso(session.started_at),
            started_at=session.started_at,
            ended_at=session.ended_at,
            cost_usd=used.get(session.id, Usage()).cost,
            cost_made=used.get(session.id, Usage()).cost_made,
        )
        for id, session in rows.items()
    }
