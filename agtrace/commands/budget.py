"""`agtrace budget`: every tool asked over sessions of the index, the size of its answers against what they may take."""

from __future__ import annotations

import sqlite3
import sys

from agtrace.commands import TROUBLE, answers, ask, print_json, unreadable_index, usable


def run(session: str | None, *, most: int, as_json: bool) -> None:
    """Ask, measure, print; exit 1 if an answer is larger than it may be."""
    from agtrace.index.reader import Reader
    from agtrace.upkeep.sizes import chosen, measure

    ask(*("list_sessions", {}) if session is None else ("get_session_details", {"session_id": session}))
    try:
        sizes = measure(answers(), chosen(Reader(usable()).connection, session, most))
    except (sqlite3.Error, OSError) as error:
        unreadable_index(error)
    if as_json:
        print_json(sizes.model_dump(mode="json", exclude_none=True))
    else:
        from agtrace import render

        render.sizes(sizes)
    sys.exit(TROUBLE if sizes.over_budget else 0)
