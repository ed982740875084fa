"""The pages of many sessions: the list, projects, what was spent, and searches."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from agtrace_indexer.index.questions import sessions, upkeep
from starlette.requests import Request
from starlette.responses import Response

from agtrace.answers.running import DAY_MS, asks
from agtrace.problems import SessionNotFound
from agtrace.report.web import pages
from agtrace.report.web.pages import title
from agtrace.report.wording import AGENTS
from agtrace.serving.web.answering import PERIODS, Answering, Asked, behind
from agtrace.sessions.projects import labels
from agtrace.sessions.query import find_session
from agtrace.settings.limits import limits
from agtrace.tools.tool import Context

_FOUND = 20
"""The most hits of a search that are shown at once."""

_LONGEST_QUERY = 2_000

_TITLE = 100
"""The most characters of a session's title next to a hit."""


class Lists:
    """Answers requests for lists. Safe to use from several threads."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering

    def sessions(self, request: Request) -> Response:
        """Return the list of sessions, or the part of it after a place."""
        return self._answering.page("sessions", lambda context: _listed(context, request))

    def more(self, request: Request) -> Response:
        """Return the rows of such a part."""
        return self._answering.page("rows", lambda context: _listed(context, request))

    def projects(self, request: Request) -> Response:
        """Return the list of projects."""
        return self._answering.page(
            "projects", lambda context: {"projects": pages.projects(context.connection, context.prices)}
        )

    def costs(self, request: Request) -> Response:
        """Return what was spent, by group."""
        asked, dollars = Asked.of(request.query_params), self._answering.pages.dollars

        def made(context: Context) -> dict[str, Any]:
            selection = asked.selection(context)
            return {
                "ledger": pages.ledger(context.connection, selection, asked.group, context.prices, dollars=dollars),
                "groups": pages.GROUPS,
                **_choices(context, asked),
            }

        return self._answering.page("costs", made)

    def search(self, request: Request) -> Response:
        """Return the page of a search."""
        found = self._hits(request)
        return self._answering.page("search", lambda context: found)

    def found(self, request: Request) -> Response:
        """Return the hits of a search."""
        found = self._hits(request)
        return self._answering.page("found", lambda context: found)

    def _hits(self, request: Request) -> dict[str, Any]:
        """Return what the search tool answers, which is what agents and the command line get."""
        given = request.query_params
        query, cursor = given.get("q", "")[:_LONGEST_QUERY], given.get("cursor")
        order = "newest" if given.get("order") == "newest" or cursor else "best"
        shown: dict[str, Any] = {"query": query, "order": order, "session": given.get("session"), "answer": None}
        if not query.strip():
            return shown
        wanted = {
            "query": query, "order": order, "limit": _FOUND, "cursor": cursor, "session_id": given.get("session"),
            "provider": given.get("agent"), "project": given.get("project"),
        }  # fmt: skip
        asked = {name: value for name, value in wanted.items() if value}
        answer = self._answering.desk.ask("search_event_previews", asked).value
        return shown | {"answer": answer, "titles": self._answering.desk.read(lambda context: _titles(context, answer))}


def _titles(context: Context, answer: dict[str, Any]) -> dict[str, str]:
    hits = answer.get("data", {}).get("matches") or []
    with suppress(SessionNotFound):  # one was forgotten since
        return {id: title(find_session(context.connection, id), _TITLE) for id in {hit["session_id"] for hit in hits}}
    return {}


def _listed(context: Context, request: Request) -> dict[str, Any]:
    asked = Asked.of(request.query_params)
    page = pages.listed(
        context.connection, asked.filters(context), asked.order, behind(request.query_params), context.prices
    )
    shown = {"listed": page, "sorts": pages.SORTS, "asking": _asking(context, page)}
    return {**shown, **_choices(context, asked)}


def _asking(context: Context, page: pages.Listed) -> set[str]:
    """Return the ids of the sessions of a page that have asked the human something, as their logs here show."""
    if limits().settings.asked is not None:
        return set()  # the logs of a team's index are on other machines
    now, found = round(1000 * context.now), set()
    ends = sessions.ends(context.connection, (row for row, _ in page.rows_at))
    for row, id in page.rows_at:
        if now - ends.get(row, 0) < DAY_MS:
            (session,) = sessions.in_rows(context.connection, [row])
            if asks(context.connection, session, ends[row], now):
                found.add(id)
    return found


def _choices(context: Context, asked: Asked) -> dict[str, Any]:
    names = sorted(set(labels(context.connection).values()), key=str.lower)
    projects = [("", "All projects"), *((name, name) for name in names)]
    known = {one.provider for one in upkeep.providers(context.connection) if one.sessions} | {asked.agent}
    agents = {name: title for name, title in AGENTS.items() if name in known}
    return {"asked": asked, "periods": PERIODS, "agents": agents, "project_options": projects}
