"""`agtrace sessions`, `show`, `search` and `analyze`: ask as an agent would, print for a person."""

from __future__ import annotations

from typing import Any

from agtrace.commands import USAGE, ask, fail, print_json


def sessions(filters: dict[str, Any], *, as_json: bool) -> None:
    """List sessions."""
    answer = ask("list_sessions", filters)
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    render.sessions(answer)


def search(query: str, filters: dict[str, Any], *, as_json: bool) -> None:
    """Find events."""
    answer = ask("search_event_previews", {"query": query, **filters})
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    render.matches(answer, query)


def analyze(session: str, *, as_json: bool) -> None:
    """Show the health of a session."""
    answer = ask("analyze_session", {"session_id": session, "include_loops": True})
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    render.analysis(answer)


def show(
    session: str, *, level: str | None, turn_index: int | None, reasoning: bool, cursor: str | None, as_json: bool
) -> None:
    """Show a session at a level, or one event whole."""
    session_id, colon, event = session.rpartition(":")
    if colon and event.isdecimal():
        _show_event(session_id, int(event), cursor, as_json=as_json)
        return
    if colon:
        fail(f"{event!r} is no event index: write SESSION:NUMBER, such as fb3cff44:42", USAGE)
    wanted = {
        "session_id": session,
        "detail_level": level or ("summary" if turn_index is None and not reasoning else "turns"),
        "turn_index": turn_index, "include_reasoning": reasoning, "cursor": cursor,
    }  # fmt: skip
    answer = ask("get_session_details", wanted)
    if as_json:
        print_json(answer)
        return
    _show_pages(answer, wanted)


def _show_pages(answer: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Print a session from this page to its end: a pager folds better than pages do."""
    from agtrace import render

    view, first = render.SessionView(), wanted["cursor"] is None
    while True:
        view.page(answer, first=first)
        following = (answer.get("pagination") or answer.get("chunk") or {}).get("next_cursor")
        if not following:
            return
        answer, first = ask("get_session_details", {**wanted, "cursor": following}), False


def _show_event(session_id: str, event_index: int, cursor: str | None, *, as_json: bool) -> None:
    wanted = {"session_id": session_id, "event_index": event_index, "cursor": cursor}
    answer = ask("get_event_details", wanted)
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    render.event_head(answer)
    while True:
        render.event_body(answer)
        following = answer.get("chunk", {}).get("next_cursor")
        if not following:
            return
        answer = ask("get_event_details", {**wanted, "cursor": following})
