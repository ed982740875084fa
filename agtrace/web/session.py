"""A session in the browser: its head, its turns, and its conversation in windows of events.

Each window is made by itself; they are disjoint and complete: an event is in one window, by its index, and a result is
part of its call. What the agent's program added, and figures of tokens, are there too, folded or as places to link to,
so that every event can be reached.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from agtrace_indexer.index.queries import calls, events, sessions, turns
from agtrace_indexer.index.queries.events import NOW, Placed, Snapshot
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.providers.registry import AGENTS as BY_NAME
from agtrace_indexer.reader.images import Image, images_of
from agtrace_schema.events import EventType
from agtrace_schema.model import dump
from markupsafe import Markup
from starlette.requests import Request

from agtrace.answers.doing import open_calls
from agtrace.answers.running import open_question
from agtrace.conversation.cleaning import Cleaner, home_in
from agtrace.conversation.code import colouring_for, result_shown
from agtrace.conversation.document import fit_for_the_page
from agtrace.conversation.html import SHORT, Begins, Entry, View, Words, Writer
from agtrace.conversation.items import Added, ItemReader, Turn, arguments_text, turn_of, typed_before, with_agents
from agtrace.problems import InvalidEventIndex, InvalidParameter
from agtrace.report.page.page import ROW, detail, row
from agtrace.report.report import ReportQuery, examine_all
from agtrace.report.selection import Family, Selection
from agtrace.report.wording import AGENTS
from agtrace.sessions.listing import session_head, shown_kind
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import find_event, find_session, last_event_of, resuming, short_id
from agtrace.sessions.terms import believable
from agtrace.settings.limits import limits
from agtrace.text.lines import LABEL, USER_MESSAGE, repeated
from agtrace.tools.tool import Context

# -- about -----------------------------------------------------------------------------------------

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
    asking: str | None
    """What it asked the human and waits to be told."""


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
    asking = None if limits().settings.asked else open_question(connection, session, ended, round(1000 * now))
    shown: Any = {"head": dump(head), "project": project, "resume": line, "why_not": why_not, "asking": asking}
    told: Any = fit_for_the_page(shown)
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
        asking=told["asking"],
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
    reader = ItemReader(connection, session, clean)
    shown = [
        OutlinedTurn(
            turn.turn_index, turn.first_event,
            clean.line(turn.request or typed_before(connection, session, reader, turn), LABEL * 2) or "(no request)",
            turn.tool_calls, turn.failed_calls, bool(turn.copied),
        )
        for turn in found[:TURNS]
    ]  # fmt: skip
    preceding = max(from_turn - TURNS, 0) if from_turn > 0 else None
    return Outline(shown, preceding, found[TURNS].turn_index if len(found) > TURNS else None)


# -- windows -----------------------------------------------------------------------------------------

WINDOW = 100
"""The events of a window."""

_NAMED = 3
"""The most kinds of texts named that the program added one after the other, which are one entry."""

_COLOURING = 0.4
"""Seconds of the processor's time for the colours of code in a window."""

_LONG_LINE = 3 * SHORT
"""Bytes of a result's line in the log from which its text isn't looked at before it is asked for."""


class Place(NamedTuple):
    """An event that has figures of tokens only, or is a part of the entry before: a place to link to."""

    event: int
    kind: str = "place"


class Window(NamedTuple):
    """A part of a conversation."""

    number: int
    last: int
    """The number of the last window of the session."""
    view: View
    entries: list[Entry | Place]


def windows(last_event: int) -> int:
    """Return how many windows a session has, given its last event; at least one."""
    return max(last_event, 0) // WINDOW + 1


def window_of(event_index: int) -> int:
    """Return the window in which an event is."""
    return event_index // WINDOW


def window(connection: sqlite3.Connection, session: Session, number: int, now: float) -> Window:
    """Return a window of a session as it is now; one that the session doesn't have is empty.

    `now` is seconds since 1970 UTC.
    """
    last = windows(events.last(connection, session.id) or 0) - 1
    first_event = number * WINDOW
    then = Snapshot(first_event + WINDOW - 1, NOW.newest_row)
    placed = list(events.of_session(connection, session.id, then, from_event=first_event, answers=False))
    firsts: dict[int, Placed] = {}
    for one in placed:
        if one.turn_index is not None:
            firsts.setdefault(one.turn_index, one)
    begun = (turn for turn in turns.several(connection, session.id, firsts) if turn.first_event >= first_event)
    begins = [turn_of(connection, firsts[turn.turn_index], turn.turn_index) for turn in begun]
    view = view_of(connection, session, now)
    with colouring_for(_COLOURING):
        entries = list(
            _gathered(list(_entries(connection, session, placed, {turn.event: turn for turn in begins}, Writer(view))))
        )
    return Window(number, last, view, entries)


def view_of(connection: sqlite3.Connection, session: Session, now: float) -> View:
    """Return how a session's conversation is shown at a time in seconds since 1970 UTC."""
    running: Iterable[int] = ()
    if is_active(session, now):
        latest = events.latest(connection, session.id, WINDOW)
        running = (call.event_index for call in open_calls(latest, BY_NAME[session.provider].tools))
    return View(AGENTS[session.provider], short_id(connection, session.uid), frozenset(running))


def _entries(
    connection: sqlite3.Connection,
    session: Session,
    placed: Iterable[Placed],
    begins: Mapping[int, Turn],
    writer: Writer,
) -> Iterator[Entry | Place]:
    reader = ItemReader(connection, session, cleaner_for(session), longest=_LONG_LINE)
    for one in placed:
        turn, item = begins.get(one.event.event_index), reader.item(one)
        if turn is not None:
            yield Begins(turn.event, turn)
        if isinstance(item, Added):
            yield writer.added(item, reader.added(one.event))
        else:
            yield (None if item is None else writer.entry(item)) or Place(one.event.event_index)


def _gathered(entries: Sequence[Entry | Place]) -> Iterator[Entry | Place]:
    """Make one entry of several that the program added one after the other and that aren't cut."""
    for is_added, group in groupby(
        entries, lambda one: isinstance(one, Words) and (one.kind, one.chars) == ("added", None)
    ):
        run = list(group)
        if not is_added or len(run) == 1:
            yield from run
            continue
        first, *others = (entry for entry in run if isinstance(entry, Words))
        kinds = list(dict.fromkeys(entry.label for entry in (first, *others)))
        more = f" and {len(kinds) - _NAMED} more" if len(kinds) > _NAMED else ""
        heads = Markup("{}\n{}") if len(kinds) > 1 else Markup("{1}")
        shown = Markup("\n\n").join(heads.format(entry.label, entry.shown) for entry in (first, *others))
        yield first._replace(label=f"{', '.join(kinds[:_NAMED])}{more}, {len(run)} times", shown=shown)
        yield from (Place(entry.event) for entry in others)


# -- examined --------------------------------------------------------------------------------------
# The health of a session and its timeline, as the report's page takes them.

_ENTRIES = 1_600
"""The most entries of the timeline."""


def examined(
    connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable, dollars: bool
) -> dict[str, Any]:
    """Return a session with its findings, score and timeline: `row`, by its columns, and `details` as on the page.

    `now` is seconds since 1970 UTC.
    """
    family = Family(session, sessions.with_agents(connection, session.id).ids)
    asked = ReportQuery(Selection(), now, prices, timelines=True)
    (seen,) = examine_all(connection, asked, [family], entries=_ENTRIES)
    texts, timeline = detail(seen.shown, _ENTRIES)
    shown: Any = fit_for_the_page({"row": dict(zip(ROW, row(seen.shown), strict=True)), "details": texts})
    if not dollars:
        shown["row"]["cost"] = None
    shown["details"]["timeline"] = timeline
    result: dict[str, Any] = shown
    return result


# -- pages -------------------------------------------------------------------------------------------
# What the template of a page is filled in with, given the request for it. They raise `Problem`.

PART = 100_000
"""The characters of a long text that a page shows at once."""


def session_page(context: Context, request: Request) -> dict[str, Any]:
    """Return a session, with the window of an event."""
    session = _session_in(context, request)
    head = about(context.connection, session, now=context.now, prices=context.prices)
    count = windows(head.last_event)
    place = min(window_of(_number(request, "at")), count - 1)
    return {
        "about": head,
        "window": window(context.connection, session, place, context.now),
        "windows": count,
        "size": WINDOW,
        "outline": outline(context.connection, session, 0),
    }


def place_of_session(context: Context, request: Request) -> str | None:
    """Return where the page of a session is that is named otherwise: `last`, or by an id longer than needed."""
    known = _short(context, _session_in(context, request))
    return None if known == request.path_params["session"] else f"/s/{quote(known, safe='')}"


def facts_page(context: Context, request: Request) -> dict[str, Any]:
    """Return what the head of a session's page tells of it."""
    session = _session_in(context, request)
    return {"about": about(context.connection, session, now=context.now, prices=context.prices)}


def window_page(context: Context, request: Request) -> dict[str, Any]:
    """Return a window of a conversation."""
    wanted, session = number(request.path_params["number"], "window"), _session_in(context, request)
    return {"window": window(context.connection, session, wanted, context.now)}


def outline_page(context: Context, request: Request) -> dict[str, Any]:
    """Return the turns of a session from one on."""
    first, session = _number(request, "from"), _session_in(context, request)
    return {"outline": outline(context.connection, session, first), "id": _short(context, session)}


def failure(context: Context, request: Request) -> int | None:
    """Return the first failed call from an event on, or the last one before it."""
    backwards = "before" in request.query_params
    event = _number(request, "before" if backwards else "from")
    return calls.failed_next(context.connection, _session_in(context, request).id, event, backwards=backwards)


def call_page(context: Context, request: Request) -> dict[str, Any]:
    """Return what a call unfolds to."""
    index, session = number(request.path_params["event"], "event"), _session_in(context, request)
    row, view = events.at(context.connection, session.id, index), view_of(context.connection, session, context.now)
    if row is None or row.type not in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
        raise InvalidEventIndex(view.session, index, last_event_of(context.connection, session))
    found = ItemReader(context.connection, session, cleaner_for(session)).call(row)
    return {"unfolded": Writer(view).unfolded(found), "view": view, "call": found}


def text_page(context: Context, request: Request) -> dict[str, Any]:
    """Return a part of the whole text of an event; of a call, of its arguments."""
    index, part = number(request.path_params["event"], "event"), _number(request, "part")
    session = _session_in(context, request)
    event, clean = find_event(context.connection, session, index), cleaner_for(session)
    is_call = event.type == EventType.TOOL_CALL
    text = arguments_text(clean.value(event.rest.get("arguments"))) if is_call else clean.text(event.text)
    shown = text[part * PART : (part + 1) * PART]
    return {
        "id": _short(context, session),
        "event": event,
        "name": clean.line(event.row.name or event.type, 2 * LABEL),
        "shown": result_shown(shown) if event.type == EventType.TOOL_RESULT else shown,
        "part": part,
        "last": max(len(text) - 1, 0) // PART,
        "chars": len(text),
    }


def image(context: Context, request: Request) -> Image | None:
    """Return an image of an event as its log has it; None if it can't be shown."""
    index, at = (number(request.path_params[name], name) for name in ("event", "number"))
    session, settings = _session_in(context, request), limits().settings
    event = find_event(context.connection, session, index)
    found = [] if settings.asked else images_of(settings.database, session.path, event)
    return found[at] if at < len(found) else None


def health(context: Context, request: Request, *, dollars: bool) -> dict[str, Any]:
    """Return the analysis of a session with its timeline."""
    session = _session_in(context, request)
    return examined(context.connection, session, now=context.now, prices=context.prices, dollars=dollars)


def _session_in(context: Context, request: Request) -> Session:
    """Return the session that the address names. Raises `SessionNotFound` or `AmbiguousSessionPrefix`."""
    return find_session(context.connection, request.path_params["session"])


def _short(context: Context, session: Session) -> str:
    return short_id(context.connection, session.uid)


def _number(request: Request, name: str) -> int:
    """Return a number of the query; 0 if it isn't given. Raises `InvalidParameter`."""
    return number(request.query_params.get(name, "0"), name)


def number(given: str, name: str) -> int:
    """Read a number that isn't negative. Raises `InvalidParameter`."""
    if not given.isascii() or not given.isdigit() or len(given) > 15:
        raise InvalidParameter(name, f"{name}: expected a number, got {repeated(given, 60)!r}")
    return int(given)
