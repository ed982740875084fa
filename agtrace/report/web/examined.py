"""The health of a session and its timeline, as the report's page takes them."""

from __future__ import annotations

import sqlite3
from typing import Any

from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.sessions import Session

from agtrace.report.page.session_data import KINDS, ROW, SEVERITIES, detail, row
from agtrace.report.page.visible_text import fit_for_the_page
from agtrace.report.page.wording import ENDINGS
from agtrace.report.selection import Family, Selection
from agtrace.report.survey import Asked, Examiner
from agtrace.report.wording import AGENTS
from agtrace.sessions.prices import PriceTable

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
