"""What a page shows of a session beside its conversation: its head, its family, its turns as an outline."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.index.questions import sessions, turns
from agtrace_indexer.index.questions.sessions import Session
from agtrace_schema.model import dump

from agtrace.report.conversation.cleaning import Cleaner, home_in
from agtrace.report.conversation.head import with_agents
from agtrace.report.conversation.telling import Telling, typed_before
from agtrace.report.page.visible_text import fit_for_the_page
from agtrace.report.selection import believable
from agtrace.report.wording import AGENTS
from agtrace.sessions.listing import session_head, shown_kind
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import last_event_of, short_id
from agtrace.sessions.resuming import resuming
from agtrace.text.lines import LABEL, USER_MESSAGE

TURNS = 200
"""The turns of a page of the outline."""

_RELATIVES = 200

_ACTIVE_SECONDS = 600
"""A session in which something happened so recently may still be at work."""

_KINDS = {"subagent": "Sub-agent", "fork": "Fork", "continuation": "Continuation"}


class Relative(NamedTuple):
    """A session that another one comes from."""

    relation: str
    """Such as `Sub-agent of`, or `Fork`."""
    session: str
    title: str
    event_index: int | None
    """The call that started it, in the other session."""


class OutlinedTurn(NamedTuple):
    """A turn in the outline."""

    number: int
    first_event: int
    request: str
    calls: int
    failed: int
    copied: bool


class Outline(NamedTuple):
    """A page of the outline."""

    turns: list[OutlinedTurn]
    preceding: int | None
    """The turn from which on those before are a page."""
    following: int | None
    """The turn with which the next page begins."""


class About(NamedTuple):
    """A session as its page introduces it."""

    id: str
    """As short as it can be."""
    title: str
    agent: str
    project: str | None
    """By the name that filters take."""
    head: dict[str, Any]
    """The fields of `SessionHead`."""
    with_agents: str
    """What stands before the sums of `stats.with_children`."""
    parents: list[Relative]
    children: list[Relative]
    more_children: int
    resume: str | None
    """The line for a shell that continues it."""
    why_not: str | None
    """Why there is no such line, as a sentence."""
    last_event: int
    ended_at: int
    """When something happened last, in milliseconds since 1970 UTC; 0 if unknown."""
    active: bool
    """Whether it may still be at work."""


def cleaner_for(session: Session) -> Cleaner:
    """Return what cleans the texts of a session for a page."""
    return Cleaner((str(Path.home()), home_in(session.cwd), home_in(session.root_path)))


def about(connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable) -> About:
    """Return the head of a session; `now` is seconds since 1970 UTC."""
    found = sessions.children(connection, session)
    head = session_head(connection, session, prices)
    ended = believable(session.ended_at)
    continued = resuming(connection, session)
    why_not = continued.obstacle
    line = None if why_not else continued.line
    project = labels(connection).get(session.project_id or 0)
    told: Any = fit_for_the_page({"head": dump(head), "project": project, "resume": line, "why_not": why_not})
    return About(
        id=short_id(connection, session.uid),
        title=title(session),
        agent=AGENTS[session.provider],
        project=told["project"],
        head=told["head"],
        with_agents=with_agents(head.stats.with_children) if head.stats.with_children else "",
        parents=list(_parents(connection, session)),
        children=_children(connection, [child.id for child in found][:_RELATIVES]),
        more_children=max(len(found) - _RELATIVES, 0),
        resume=told["resume"],
        why_not=told["why_not"],
        last_event=last_event_of(connection, session),
        ended_at=ended,
        active=is_active(session, now),
    )


def is_active(session: Session, now: float) -> bool:
    """Whether a session may still be at work; `now` is seconds since 1970 UTC."""
    return now - believable(session.ended_at) / 1000 < _ACTIVE_SECONDS


def title(session: Session, most: int = USER_MESSAGE) -> str:
    """Return the title of a session, or the beginning of its first request, on one line of so many characters."""
    return cleaner_for(session).line(session.title or session.snippet or "", most) or "(no request)"


def _parents(connection: sqlite3.Connection, session: Session) -> Iterator[Relative]:
    """Yield the session that one comes from, with the call that started it."""
    uid = sessions.parent_id(connection, session)
    parent = None if uid is None else sessions.with_id(connection, uid)
    if parent is not None:
        relation = f"{_KINDS.get(shown_kind(session), 'Continuation')} of"
        yield Relative(relation, short_id(connection, parent.uid), title(parent), session.started_by)


def _children(connection: sqlite3.Connection, ids: Iterable[int]) -> list[Relative]:
    return [
        Relative(
            _KINDS.get(shown_kind(child), "Continuation"), short_id(connection, child.uid),
            title(child), child.started_by,
        )
        for child in sessions.in_rows(connection, ids)
    ]  # fmt: skip


# -- outline ---------------------------------------------------------------------------------------


def outline(connection: sqlite3.Connection, session: Session, from_turn: int) -> Outline:
    """Return the turns of a session from one on, as many as a page of the outline has."""
    clean, last = cleaner_for(session), last_event_of(connection, session)
    found = turns.page(connection, session.id, from_turn=from_turn, last_event=last, most=TURNS + 1)
    telling = Telling(connection, session, clean)
    shown = [
        OutlinedTurn(
            turn.turn_index, turn.first_event,
            clean.line(turn.request or typed_before(connection, session, telling, turn), LABEL * 2) or "(no request)",
            turn.tool_calls, turn.failed_calls, bool(turn.copied),
        )
        for turn in found[:TURNS]
    ]  # fmt: skip
    preceding = max(from_turn - TURNS, 0) if from_turn > 0 else None
    return Outline(shown, preceding, found[TURNS].turn_index if len(found) > TURNS else None)
