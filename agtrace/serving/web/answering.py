"""Answers of `agtrace open`: pages and parts of them, each made from the index at one moment; and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agtrace.answers.desk import Answers
from agtrace.problems import IndexUnavailable, Problem
from agtrace.report.web.pages import Pages
from agtrace.text.next_call import text_of
from agtrace.tools.tool import Context

_STATUS = {"session_not_found": 404, "invalid_event_index": 404, "index_unavailable": 503, "internal_error": 500}
_FEW = 3
"""Logs that the index may lack before a page says so: it is brought up to date while pages are read."""


class Answering:
    """Answers with pages. Safe to use from several threads."""

    def __init__(self, desk: Answers, pages: Pages) -> None:
        self.desk, self.pages = desk, pages

    def page(self, template: str, made: Callable[[Context], dict[str, Any]]) -> Response:
        """Return a template filled in with what is found in the index at one moment. Raises `Problem`."""

        def fill(context: Context) -> str:
            values = {"now": context.now, "lacking": _lacking(context), "asked": None, **made(context)}
            return self.pages.filled(template, **values)

        return HTMLResponse(self.desk.read(fill))

    def problem(self, request: Request, problem: Exception) -> Response:
        """Return a page that says why a request can't be answered, and what to do next."""
        assert isinstance(problem, Problem)
        hint = text_of(problem.hint) if problem.hint and isinstance(problem, IndexUnavailable) else ""
        return self._said(problem.message, _STATUS.get(problem.code, 400), hint)

    def missing(self, request: Request, problem: Exception) -> Response:
        """Return a page that says that there is no such page."""
        assert isinstance(problem, HTTPException)
        return self._said("There is no such page", problem.status_code)

    def _said(self, message: str, status: int, hint: str = "") -> Response:
        page = self.pages.filled("problem", message=message, hint=hint, status=status, lacking="", asked=None)
        return HTMLResponse(page, status)


def _lacking(context: Context) -> str:
    """Say what the index doesn't have yet; empty if that is nothing to speak of."""
    fresh = context.freshness
    if fresh.problem is not None:
        return f"{fresh.problem}; only what was indexed before is shown"
    if fresh.state == "building" or (fresh.files_behind or 0) > _FEW:
        return f"Indexing: {fresh.files_behind:,} files to go" if fresh.files_behind else "Indexing your logs"
    return ""
