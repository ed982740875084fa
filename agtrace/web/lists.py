"""The lists of `agtrace open`: sessions with who worked where, when and for how much; projects; costs; searches."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

from agtrace_indexer.index.queries import sessions, upkeep
from agtrace_indexer.index.queries.sessions import SessionFilters
from agtrace_schema.model import dump
from agtrace_schema.patterns import later
from agtrace_schema.requests import CostBy
from msgspec import Struct
from msgspec.structs import replace
from starlette.datastructures import QueryParams
from starlette.requests import Request

from agtrace.answers.running import DAY_MS, open_question
from agtrace.answers.service import Service
from agtrace.conversation.document import fit_for_the_page
from agtrace.problems import InvalidParameter, SessionNotFound
from agtrace.report.costs import OVER_TIME, costs, left_of, missing_figures
from agtrace.report.selection import Selection
from agtrace.report.why import MOST_LINES, why
from agtrace.report.wording import AGENTS
from agtrace.report.worklog import worklog
from agtrace.sessions.listing import list_sessions
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels, list_projects
from agtrace.sessions.query import find_session
from agtrace.sessions.terms import ENDINGS, believable
from agtrace.sessions.usage import Order, Place, Snapshot, snapshot_now
from agtrace.settings.limits import limits
from agtrace.text.lines import repeated
from agtrace.tools.tool import Context
from agtrace.web.session import number, title

# -- what an address asks for ----------------------------------------------------------------------

PERIODS = {
    "": "any time", "today": "today", "yesterday": "since yesterday", "7d": "7 days", "30d": "30 days",
    "90d": "90 days", "365d": "a year",
}  # fmt: skip
"""The periods that filters offer, as a time understood by `--since`."""

_LONGEST = 200


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
_AFTER = later(r"-?[0-9]{1,18}(?:\.[0-9]{1,18}){3}")


class ListFilters(Struct, frozen=True):
    """The filters in an address, as typed; empty for none."""

    agent: str = ""
    project: str = ""
    since: str = ""
    until: str = ""
    query: str = ""
    failures: str = ""
    kind: str = ""
    sort: str = ""
    by: str = ""

    @classmethod
    def of(cls, given: QueryParams) -> ListFilters:
        """Read the query of an address. Raises `InvalidParameter` for an agent, order or group that doesn't exist."""
        result = cls(**{name: given.get(name, "").strip()[:_LONGEST] for name in cls.__struct_fields__})
        for name, value, allowed in (
            ("agent", result.agent, [*AGENTS]), ("sort", result.sort, [*SORTS]), ("by", result.by, [*GROUPS]),
            ("kind", result.kind, ["main", "subagent", "all"]),
        ):  # fmt: skip
            if value and value not in allowed:
                raise InvalidParameter(
                    name, f"{name}: expected one of {', '.join(allowed)}, got {repeated(value, 60)!r}"
                )
        return result

    @property
    def given(self) -> dict[str, str]:
        """The filters that aren't empty, as an address has them."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}

    @property
    def filtering(self) -> int:
        """How many of them leave something out."""
        return len(self.given.keys() - {"sort", "by"})

    @property
    def order(self) -> Order:
        """The order of the sessions."""
        return cast(Order, self.sort or "active")

    @property
    def group(self) -> CostBy:
        """The groups of what was spent."""
        return cast(CostBy, self.by or "day")

    def filters(self, context: Context) -> SessionFilters:
        """Return the filters of a list of sessions. Raises `Problem` for a project or a time that isn't understood."""
        kind = self.kind or "main"
        period = context.period(self.since or None, self.until or None)
        return SessionFilters(
            provider=self.agent or None,
            projects=context.projects(self.project or None),
            since=period.since,
            until=period.until,
            query=self.query or None,
            kind=None if kind == "all" else kind,
            has_failures=True if self.failures else None,
        )

    def selection(self, context: Context) -> Selection:
        """Return the sessions and the period whose costs are meant. Raises `Problem` as `filters` does."""
        period = context.period(self.since or None, self.until or None)
        return Selection(
            provider=self.agent or None,
            project=self.project or None,
            projects=context.projects(self.project or None),
            since=period.since,
            until=period.until,
        )


class After(NamedTuple):
    """Where a page of a list ended: after a session, in a list that was begun on a snapshot."""

    place: Place
    snapshot: Snapshot

    @classmethod
    def of(cls, given: QueryParams) -> After | None:
        """Read where the page before ended; None on the first one. Raises `InvalidParameter`."""
        written = given.get("after", "")
        if not written:
            return None
        if not _AFTER.fullmatch(written):
            raise InvalidParameter("after", "after: not a place in this list")
        key, row, session, event = map(int, written.split("."))
        return cls(Place(key, row), Snapshot(session, event))

    @property
    def written(self) -> str:
        """As an address has it."""
        return ".".join(map(str, (*self.place, *self.snapshot)))


# -- sessions, projects, costs ----------------------------------------------------------------------


class SessionPage(NamedTuple):
    """A page of a list of sessions."""

    rows: list[dict[str, Any]]
    """The fields of `SessionItem`, with `agent` and `ended_at`."""
    total: int
    failures: int
    after: str | None
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
    """Which figures the logs lack, and what is left of limits, as phrases."""


def session_page(
    connection: sqlite3.Connection, filters: SessionFilters, sort: Order, after: After | None, prices: PriceTable
) -> SessionPage:
    """Return a page of the sessions that these filters leave."""
    snapshot = snapshot_now(connection) if after is None else after.snapshot
    page = list_sessions(
        connection, filters, PAGE, sort=sort, snapshot=snapshot, behind=None if after is None else after.place,
        prices=prices,
    )  # fmt: skip
    rows: Any = fit_for_the_page([dump(item) | {"agent": AGENTS[item.provider]} for item in page.items])
    following = After(page.places[-1], snapshot).written if page.more else None
    rows_at = [(place.row, item.id) for place, item in zip(page.places, page.items, strict=True)]
    return SessionPage(rows, page.total, page.failures, following, rows_at, snapshot)


def projects(connection: sqlite3.Connection, prices: PriceTable) -> list[dict[str, Any]]:
    """Return the projects, the most recently active first, with the fields of `ProjectItem` and `agents`."""
    page = list_projects(connection, _PROJECTS, snapshot=snapshot_now(connection), behind=None, prices=prices)
    rows: Any = fit_for_the_page(
        [dump(item) | {"agents": [AGENTS[name] for name in item.providers]} for item in page.items]
    )
    result: list[dict[str, Any]] = rows
    return result


def ledger(
    connection: sqlite3.Connection, selection: Selection, by: CostBy, prices: PriceTable, *, now: float, dollars: bool
) -> Ledger:
    """Return what was spent in a selection, by group; bars are as long as costs, or tokens without dollars.

    `now` is seconds since 1970 UTC.
    """
    found = costs(connection, selection, by, prices=prices, dollars=dollars, now=now)
    told: Any = fit_for_the_page(dump(found))
    groups: Sequence[dict[str, Any]] = told["groups"]
    measure = "cost_usd" if any(group.get("cost_usd") for group in groups) else "total_tokens"
    most = max((group.get(measure) or 0 for group in groups), default=0) or 1
    if by == "agent":
        groups = [group | {"group": AGENTS.get(group["group"], group["group"])} for group in groups]
    bars = [Bar(group, (group.get(measure) or 0) / most) for group in groups]
    return Ledger(told, bars, by in OVER_TIME, [*missing_figures(found), *map(left_of, found.limits or ())])


# -- pages -------------------------------------------------------------------------------------------
# What the template of a page is filled in with, given the request for it. They raise `Problem`.

_FOUND = 20
"""The most hits of a search that are shown at once."""

_LONGEST_QUERY = 2_000

_TITLE = 100
"""The most characters of a session's title next to a hit."""


def projects_page(context: Context, request: Request) -> dict[str, Any]:
    """Return the list of projects."""
    return {"projects": projects(context.connection, context.prices)}


def costs_page(context: Context, request: Request, *, dollars: bool) -> dict[str, Any]:
    """Return what was spent, by group."""
    asked = ListFilters.of(request.query_params)
    found = ledger(
        context.connection, asked.selection(context), asked.group, context.prices, now=context.now, dollars=dollars
    )
    return {"ledger": found, "groups": GROUPS, **_choices(context, asked)}


def hits(service: Service, request: Request) -> dict[str, Any]:
    """Return what the search tool answers, which is what agents and the command line get."""
    given = request.query_params
    query, cursor = given.get("q", "")[:_LONGEST_QUERY], given.get("cursor")
    order = "newest" if given.get("order") == "newest" else "best"
    result: dict[str, Any] = {"query": query, "order": order, "session": given.get("session"), "answer": None}
    if not query.strip():
        return result
    wanted = {
        "query": query, "order": order, "cursor": cursor, "session_id": given.get("session"),
        "limit": _FOUND if order == "newest" else None, "provider": given.get("agent"), "project": given.get("project"),
    }  # fmt: skip
    asked = {name: value for name, value in wanted.items() if value}
    answer = service.ask("search_event_previews", asked).value
    return result | {"answer": answer, "titles": service.read(lambda context: _titles(context, answer))}


def _titles(context: Context, answer: dict[str, Any]) -> dict[str, str]:
    hits = answer.get("data", {}).get("matches") or []
    with suppress(SessionNotFound):  # one was forgotten since
        return {id: title(find_session(context.connection, id), _TITLE) for id in {hit["session_id"] for hit in hits}}
    return {}


WORK = {"today": "Today", "yesterday": "Yesterday", "this week": "This week"}
"""The periods of a worklog, as `--since` and `--until` take them."""


def work_page(context: Context, request: Request) -> dict[str, Any]:
    """Return the worklog of a period; if none is named, of the first in which something was done, or the last week."""
    asked = request.query_params.get("period", "")
    ends = [believable(session.ended_at) for session in sessions.newest(context.connection, 1)]
    active, now = [datetime.fromtimestamp(end / 1000) for end in ends if end], datetime.fromtimestamp(context.now)
    last = {f"{day:%G-W%V}": f"The week of {day:%Y-%m-%d}" for day in active}
    periods = WORK | {week: name for week, name in last.items() if week != f"{now:%G-W%V}"}
    if asked and asked not in periods:
        raise InvalidParameter("period", f"period: expected one of {', '.join(periods)}, got {repeated(asked, 60)!r}")
    for shown in [asked] if asked else periods:
        period = context.period(shown, shown)
        found = worklog(
            context.connection,
            Selection(since=period.since, until=period.until),
            now=context.now,
            prices=context.prices,
        )
        if found.projects:
            break
    return {
        "work": fit_for_the_page(dump(found)),
        "shown": shown,
        "periods": periods,
        "endings": ENDINGS,
        "titles": AGENTS,
    }


def why_page(context: Context, request: Request) -> dict[str, Any]:
    """Return who wrote lines of a file, which a session must have named, and which sessions wrote it."""
    file, first = (
        Path(request.query_params.get("file", "")),
        max(number(request.query_params.get("from", "1"), "from"), 1),
    )
    found = why(context.connection, file, None, named_only=True)
    last = min(first + MOST_LINES - 1, found.total_lines or 0)
    lines = why(context.connection, file, (first, last), named_only=True).lines if first <= last else None
    told: Any = fit_for_the_page(dump(replace(found, lines=lines)))
    return {
        "why": told,
        "file": str(file),
        "following": last + 1 if last < (found.total_lines or 0) else None,
        "titles": AGENTS,
    }


def sessions_page(context: Context, request: Request) -> dict[str, Any]:
    """Return the list of sessions, or the part of it after a place."""
    asked = ListFilters.of(request.query_params)
    page = session_page(
        context.connection, asked.filters(context), asked.order, After.of(request.query_params), context.prices
    )
    shown = {"listed": page, "sorts": SORTS, "asking": _asking(context, page)}
    return {**shown, **_choices(context, asked)}


def _asking(context: Context, page: SessionPage) -> set[str]:
    """Return the ids of the sessions of a page that have asked the human something, as their logs here show."""
    if limits().settings.asked is not None:
        return set()  # the logs of a team's index are on other machines
    now, found = round(1000 * context.now), set()
    ends = sessions.ends(context.connection, (row for row, _ in page.rows_at))
    for row, id in page.rows_at:
        if now - ends.get(row, 0) < DAY_MS:
            (session,) = sessions.in_rows(context.connection, [row])
            if open_question(context.connection, session, ends[row], now) is not None:
                found.add(id)
    return found


def _choices(context: Context, asked: ListFilters) -> dict[str, Any]:
    names = sorted(set(labels(context.connection).values()), key=str.lower)
    projects = [("", "All projects"), *((name, name) for name in names)]
    known = {one["provider"] for one in upkeep.providers(context.connection) if one["sessions"]} | {asked.agent}
    agents = {name: title for name, title in AGENTS.items() if name in known}
    return {"asked": asked, "periods": PERIODS, "agents": agents, "project_options": projects}
