"""Relations between sessions: who started whom, who was copied from whom, and what counts where.

Logs are read one by one, in any order and in pieces, so whatever depends on several of them is computed at
the end of a run, as a function of the logs that still exist: `join_families` looks at the
sessions that changed (`session.pending`) and at their relatives. Rows of vanished logs stay as they
were; they neither own the events of existing logs nor lose theirs to these.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Set
from typing import NamedTuple

from agtrace_indexer.families.copies import attribute_copies, attribute_replays, find_kin
from agtrace_indexer.index import kin, lineage
from agtrace_indexer.index.lineage import ToBeLinked
from agtrace_indexer.providers.registry import AGENTS

_DEEPEST = 64


def join_families(connection: sqlite3.Connection) -> Set[int] | None:
    """Bring copies, parents, children and titles up to date with the sessions that changed.

    Return these sessions if they only grew; None if some are new or relatives have vanished.
    """
    pending = lineage.changed(connection)
    if not pending:
        return frozenset()
    related = attribute_copies(connection, find_kin(connection, pending))
    for session, original in lineage.logged_twice(connection, related | {*pending}):
        kin.note_repetition(connection, session, original)
    to_link = related | {near for session in pending for near in lineage.near(connection, session)}
    changed = set(pending)
    to_link |= {session for session, origin in lineage.continuing(connection) if origin in changed}
    _link(connection, to_link)
    attribute_replays(connection, to_link)
    only_grown = all(pending.values())
    _name(connection, related | changed if only_grown else None)
    lineage.note_joined(connection, pending)
    return changed if only_grown else None


def _link(connection: sqlite3.Connection, sessions: set[int]) -> None:
    """Find the parents of sessions, and the calls that started them."""
    found = _origins(connection, sessions)
    parents: dict[int, int | None] = dict.fromkeys((origin.session for origin in found), None)
    for origin in found:
        parent, started_by = origin.parent, origin.started_by
        if parent is not None and _descends(connection, parents, parent, origin.session):
            parent, started_by = None, None
        parents[origin.session] = parent
        if (parent, started_by) != origin.before:
            lineage.note_parent(connection, origin.session, parent, started_by)


def _origins(connection: sqlite3.Connection, sessions: set[int]) -> list[_Origin]:
    """Return the origins of sessions according to the logs, by path, and of all sessions they come or came from.

    If logs contradict each other, the origins can form a cycle, and which link is left out depends on the order: so
    all links of a cycle are made anew as soon as one of them may change.
    """
    found: dict[int, _Origin] = {}
    while sessions:
        for session in lineage.to_be_linked(connection, sessions):
            before = session.parent_session, session.started_by
            found[session.id] = _Origin(
                (session.path, session.thread), session.id, *_parent(connection, session), before
            )
        near = {near for asked in sessions & found.keys() for near in found[asked].near}
        sessions = {other for other in near if other is not None and other not in found} - sessions
    return sorted(found.values())


class _Origin(NamedTuple):
    """The origin of a session according to its log and others."""

    place: tuple[str, str]
    session: int
    parent: int | None
    started_by: int | None
    before: tuple[int | None, int | None]
    """The parent and the starting event that the index has so far."""

    @property
    def near(self) -> tuple[int | None, int | None]:
        """The current parent and the previous one."""
        return self.parent, self.before[0]


def _parent(connection: sqlite3.Connection, session: ToBeLinked) -> tuple[int | None, int | None]:
    """Return the parent and the starting event: named by a result, else by the session's log, else found by copies."""
    found = lineage.parent_by(connection, lineage.STARTED_BY, session)
    if found is None and session.parent_id is not None:
        found = lineage.parent_by(connection, lineage.NAMED_PARENT, session)
    copied = session.copied_events > 0 and session.kind in ("main", "fork")
    if found is None and copied and not AGENTS[session.provider].replays_items:
        found = lineage.parent_by(connection, lineage.COPIED_FROM, session)
    if found is None and session.kind == "subagent" and AGENTS[session.provider].replays_items:
        found = lineage.parent_by(connection, lineage.REPEATED_BY, session)
    if found is None and session.line is not None:
        found = lineage.parent_by(connection, lineage.CONTINUED, session)
    if found is None:
        return None, None
    return found.session, session.started_call if found.started_by is None else found.started_by


def _descends(connection: sqlite3.Connection, parents: dict[int, int | None], session: int, ancestor: int) -> bool:
    """Whether a session is another one or comes from it; `parents` are the links that this run has found so far."""
    for _ in range(_DEEPEST):
        if session == ancestor:
            return True
        if session in parents:
            found = parents[session]
        else:
            found = lineage.parent_of(connection, session)
        if found is None:
            return False
        session = found
    return True


def _name(connection: sqlite3.Connection, grown: set[int] | None) -> None:
    """Give sessions the titles that logs attach to their lines, unless they have better ones.

    If sessions only grew, only theirs and those of the sessions that they name can have changed.
    """
    concerned = None if grown is None else grown.union(lineage.named_by(connection, grown))
    titles = lineage.given_titles(connection, concerned)
    named_before = lineage.retitled(connection) if concerned is None else concerned
    lineage.retitle(connection, {session: titles.get(session) for session in {*titles, *named_before}})


def tell_apart(connection: sqlite3.Connection, grown: Set[int] | None = None) -> None:
    """Give sessions that share an id their suffixes; the oldest one whose log still exists has none.

    If some sessions have grown, and nothing else happened, only those that share an id with them are looked at.
    """
    twins = lineage.twins(connection, grown)
    wanted = {twin: twin.own_id if twin.number == 1 else f"{twin.own_id}~{twin.number}" for twin in twins}
    lineage.note_ids(connection, [(id, twin.session) for twin, id in wanted.items() if id != twin.uid])
