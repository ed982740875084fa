"""Templates filled in: whole pages and their parts. Every text is escaped by the template that shows it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args
from urllib.parse import quote, urlencode

from agtrace_indexer.index.questions import sessions, turns
from agtrace_indexer.index.questions.sessions import Session, SessionFilters
from agtrace_schema.model import dump
from agtrace_schema.patterns import later
from agtrace_schema.requests import CostBy
from jinja2 import ChainableUndefined

from agtrace.health.finding import SEVERITIES
from agtrace.report import wording
from agtrace.report.conversation.cleaning import Cleaner, home_in
from agtrace.report.conversation.telling import Telling, typed_before, with_agents
from agtrace.report.costs import OVER_TIME, costs, lacking
from agtrace.report.page.document import (
    as_script,
    bundled,
    chart_library,
    environment,
    fit_for_the_page,
    scripts,
    style,
)
from agtrace.report.page.session_data import KINDS, ROW, detail, row
from agtrace.report.selection import Family, Selection, believable
from agtrace.report.survey import Asked, Examiner
from agtrace.report.web.conversation import clock, date_and_time, unmarked
from agtrace.report.wording import AGENTS, ENDINGS, why_at_least
from agtrace.sessions.listing import list_sessions, session_head, shown_kind
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels, list_projects
from agtrace.sessions.query import last_event_of, resuming, short_id
from agtrace.sessions.said import line_of
from agtrace.sessions.usage import Order, Place, Snapshot, snapshot_now
from agtrace.text.lines import LABEL, USER_MESSAGE
from agtrace.text.numbers import counted, percent, seconds, short

# -- examined --------------------------------------------------------------------------------------
# The health of a session and its timeline, as the report's page takes them.

_ENTRIES = 1_600
"""The most entries of the timeline."""

FACTS = {"severities": SEVERITIES, "kinds": KINDS, "endings": ENDINGS, "providers": AGENTS, "charts": []}
"""What the scripts of the report's page need to know."""


def examined(
    connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable, dollars: bool
) -> dict[str, Any]:
    """Return a session with its findings, score and timeline: `row`, by its columns, and `details` as on the page.

    `now` is seconds since 1970 UTC. It takes about a second for 40,000 events.
    """
    family = Family(session, sessions.with_agents(connection, session.id).ids)
    asked = Asked(Selection(), now, prices, timelines=True)
    (seen,) = Examiner(connection, asked, [family], _ENTRIES).all()
    texts, timeline = detail(seen.shown, _ENTRIES)
    shown: Any = fit_for_the_page({"row": dict(zip(ROW, row(seen.shown), strict=True)), "details": texts})
    if not dollars:
        shown["row"]["cost"] = None
    shown["details"]["timeline"] = timeline
    found: dict[str, Any] = shown
    return found


# -- templates ---------------------------------------------------------------------------------------

_HERE = Path(__file__).parent
_REPORT_STYLES = ("colours", "page", "session", "timeline")
_STYLES = ("frame", "lists", "conversation", "code", "narrow")
_SCRIPTS = (
    *scripts("dom", "words", "look", "unpack", "charts", "scale"),
    _HERE / "scripts" / "references.js", *scripts("timeline", "session", "pressing"),
    *(_HERE / "scripts" / f"{name}.js" for name in (
        "fetching", "copying", "lists", "finding", "calls", "windows", "outline", "health", "live", "keys", "main")),
)  # fmt: skip
_UNITS = ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400 * 7, "w"), (86_400, "d"), (3_600, "h"), (60, "min"))


class Pages:
    """Fills in templates. Safe to use from several threads.

    `dollars`: whether costs are shown, which mean little to those who pay by subscription.
    """

    def __init__(self, *, dollars: bool) -> None:
        self.dollars = dollars
        self._templates = environment(_HERE / "templates")
        self._templates.undefined = ChainableUndefined  # answers leave out what isn't known
        self._templates.filters |= {
            "short": short, "number": wording.plain, "dollars": wording.shown_dollars, "percent": percent,
            "duration": seconds, "clock": clock, "when": date_and_time, "moment": _moment,
            "path": lambda text: quote(str(text), safe=""), "unmarked": unmarked, "as_line": line_of,
        }  # fmt: skip
        self._templates.globals |= {
            "counted": counted, "ago": ago, "address": address, "with_dollars": dollars, "version": static_version(),
            "why_at_least": why_at_least, "facts": as_script({**FACTS, "dollars": dollars}),
        }  # fmt: skip

    def filled(self, template: str, **values: Any) -> str:
        """Return a template filled in with these values."""
        return self._templates.get_template(f"{template}.html").render(values)


# -- addresses and times ---------------------------------------------------------------------------


def address(path: str, given: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Return an address of ours with a query: what was given, with what replaces it; empty values are left out."""
    query = {name: value for name, value in {**(given or {}), **more}.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(query)}" if query else path


def _moment(iso: str | None) -> int:
    """Return an ISO time as milliseconds since 1970 UTC; 0 for none."""
    return round(datetime.fromisoformat(iso).timestamp() * 1000) if iso else 0


def ago(moment: int, now: float) -> str:
    """Return how long ago a moment in milliseconds since 1970 UTC is: `now`, `5 min ago`; empty if it is unknown."""
    if not moment:
        return ""
    passed = now - moment / 1000
    return next((f"{int(passed // size)} {unit} ago" for size, unit in _UNITS if passed >= size), "now")


# -- what pages load -------------------------------------------------------------------------------


@cache
def styles() -> str:
    """Return the style sheet of all pages."""
    own = ((_HERE / "styles" / f"{name}.css").read_text(encoding="utf-8") for name in _STYLES)
    return "\n".join([*map(style, _REPORT_STYLES), *own])


@cache
def script() -> str:
    """Return the script of all pages."""
    return bundled(_SCRIPTS)


@cache
def theme_script() -> str:
    """Return the script that runs before anything is shown."""
    return (_HERE / "scripts" / "theme.js").read_text(encoding="utf-8")


@cache
def icon() -> str:
    """Return the icon."""
    return (_HERE / "styles" / "icon.svg").read_text(encoding="utf-8")


@cache
def static_version() -> str:
    """Return what changes with any of these files."""
    whole = "\0".join((styles(), script(), theme_script(), chart_library()))
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


# -- listing ---------------------------------------------------------------------------------------
# The lists: sessions, with who worked where, when and for how much; projects; what was spent.

PAGE = 50
"""The sessions of a page of a list."""

SORTS: dict[str, str] = {
    "active": "last active", "newest": "started, newest first", "oldest": "started, oldest first", "cost": "cost",
    "failed_calls": "failed calls", "duration": "length", "turns": "turns", "total_tokens": "tokens",
    "tool_calls": "tool calls",
}  # fmt: skip
"""The orders of a list of sessions, and what they are called."""

GROUPS: tuple[CostBy, ...] = get_args(CostBy)
_PROJECTS = 500
_BEHIND = later(r"-?[0-9]{1,18}(?:\.[0-9]{1,18}){3}")


class Behind(NamedTuple):
    """Where a page of a list ended: after a session, in a list that was begun on a snapshot."""

    place: Place
    snapshot: Snapshot

    @property
    def written(self) -> str:
        """As an address has it."""
        return ".".join(map(str, (*self.place, *self.snapshot)))


class Listed(NamedTuple):
    """A page of a list of sessions."""

    rows: list[dict[str, Any]]
    """The fields of `SessionItem`, with `agent` and `ended_at`."""
    total: int
    failures: int
    behind: str | None
    """Where the next page begins; None if this is the last one."""
    rows_at: list[tuple[int, str]]
    """Row id and shown id of each session."""
    state: Snapshot
    """Of which state of the index the list tells, as an open page is told of a later one."""


class Bar(NamedTuple):
    """A group of what was spent, and how long its bar is, from 0 to 1."""

    spent: dict[str, Any]
    share: float


class Ledger(NamedTuple):
    """What was spent, by group."""

    costs: dict[str, Any]
    """The fields of `Costs`."""
    bars: list[Bar]
    in_time: bool
    lacking: list[str]
    """Which figures the logs lack, as phrases."""


def behind_in(written: str) -> Behind | None:
    """Read where a page ended; None for what isn't such a place."""
    if not _BEHIND.fullmatch(written):
        return None
    key, row, session, event = map(int, written.split("."))
    return Behind(Place(key, row), Snapshot(session, event))


def listed(
    connection: sqlite3.Connection, filters: SessionFilters, sort: Order, behind: Behind | None, prices: PriceTable
) -> Listed:
    """Return a page of the sessions that these filters leave."""
    snapshot = snapshot_now(connection) if behind is None else behind.snapshot
    page = list_sessions(
        connection, filters, PAGE, sort=sort, snapshot=snapshot, behind=None if behind is None else behind.place,
        prices=prices,
    )  # fmt: skip
    rows: Any = fit_for_the_page([dump(item) | {"agent": AGENTS[item.provider]} for item in page.items])
    following = Behind(page.places[-1], snapshot).written if page.more else None
    rows_at = [(place.row, item.id) for place, item in zip(page.places, page.items, strict=True)]
    return Listed(rows, page.total, page.failures, following, rows_at, snapshot)


def projects(connection: sqlite3.Connection, prices: PriceTable) -> list[dict[str, Any]]:
    """Return the projects, the most recently active first, with the fields of `ProjectItem` and `agents`."""
    page = list_projects(connection, _PROJECTS, snapshot=snapshot_now(connection), behind=None, prices=prices)
    rows: Any = fit_for_the_page(
        [dump(item) | {"agents": [AGENTS[name] for name in item.providers]} for item in page.items]
    )
    found: list[dict[str, Any]] = rows
    return found


def ledger(
    connection: sqlite3.Connection, selection: Selection, by: CostBy, prices: PriceTable, *, dollars: bool
) -> Ledger:
    """Return what was spent in a selection, by group; bars are as long as costs, or tokens without dollars."""
    found = costs(connection, selection, by, prices=prices, dollars=dollars)
    told: Any = fit_for_the_page(dump(found))
    groups: Sequence[dict[str, Any]] = told["groups"]
    measure = "cost_usd" if any(group.get("cost_usd") for group in groups) else "total_tokens"
    most = max((group.get(measure) or 0 for group in groups), default=0) or 1
    if by == "agent":
        groups = [group | {"group": AGENTS.get(group["group"], group["group"])} for group in groups]
    bars = [Bar(group, (group.get(measure) or 0) / most) for group in groups]
    return Ledger(told, bars, by in OVER_TIME, list(lacking(found)))


# -- about -----------------------------------------------------------------------------------------
# What a page shows of a session beside its conversation: its head, its family, its turns as an outline.

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
