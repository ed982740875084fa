"""`agtrace sessions`, `search`, `analyze`, `show` and `read`: ask as an agent would, print for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agtrace.commands import USAGE, ask, fail, print_json

_OF_SESSION = {
    "level": "--level", "turn_index": "--turn", "reasoning": "--reasoning", "sections": "--sections",
    "fields": "--fields",
}  # fmt: skip
_OF_EVENT = {"lines": "--lines", "mode": "--mode"}
_WITHOUT_SECTIONS = ("level", "turn_index", "reasoning")
_LONGEST_INDEX = 15
_LONGEST_PLACE = 200
"""Digits of an event's index."""

Answer = dict[str, Any]


def sessions(filters: dict[str, Any], *, as_json: bool) -> None:
    """List sessions."""
    _check_fields(filters, as_json=as_json)
    answer = ask("list_sessions", filters)
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    render.sessions(answer)


def search(query: str, filters: dict[str, Any], *, as_json: bool) -> None:
    """Find events, or the sessions that have them."""
    answer = ask("search_event_previews", {"query": query, **filters})
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    wanted = query.split() if filters["words"] else [] if filters["regex"] else [query]
    render.matches(answer, [word for word in wanted if word])


def analyze(session: str, *, as_json: bool) -> None:
    """Show the health of a session."""
    answer = ask("analyze_session", {"session_id": session, "include_loops": True})
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    render.analysis(answer)


def show(place: str, asked: dict[str, Any], *, as_json: bool) -> None:
    """Show a session at a level or by sections, or one event."""
    session_id, event_index = _place(place)
    given = {name for name, value in asked.items() if value is not None and value is not False}
    if event_index is not None:
        _refuse(given, _OF_SESSION, "goes with a session, not with one event")
        _show_event(session_id, event_index, asked, as_json=as_json)
        return
    _refuse(given, _OF_EVENT, f"goes with one event, SESSION:EVENT, or with `agtrace read ax://session/{session_id}`")
    _check_fields(asked, as_json=as_json)
    if "sections" in given:
        _refuse(given, {name: _OF_SESSION[name] for name in _WITHOUT_SECTIONS}, "doesn't go with --sections")
        _show_sections({"session_id": session_id, **_only(asked, "sections", "fields", "cursor")}, as_json=as_json)
        return
    level = asked["level"] or ("turns" if given & {"turn_index", "reasoning"} else "summary")
    _show_session(
        {
            "session_id": session_id, "detail_level": level, "include_reasoning": asked["reasoning"],
            **_only(asked, "turn_index", "fields", "cursor"),
        },
        as_json=as_json,
    )  # fmt: skip


def read(ref: str, asked: dict[str, Any], *, as_json: bool) -> None:
    """Print what a reference refers to, to its end."""
    _print_text("read_artifact", {"ref": ref, **_text_asked(asked)}, as_json=as_json)


def _place(place: str) -> tuple[str, int | None]:
    """The session and the event that are named, as SESSION:EVENT or as a reference."""
    if place.startswith("ax://"):
        from agtrace.problems import InvalidArtifactRef
        from agtrace.sessions.references import parse

        try:
            kind, session_id, event_index, _ = parse(place)
        except InvalidArtifactRef as problem:
            fail(str(problem), USAGE)
        if kind in ("session", "event"):
            return session_id, event_index if kind == "event" else None
        fail(f"{place} is no session and no event: `agtrace read {place}`", USAGE)
    session_id, colon, event = place.rpartition(":")
    if not colon:
        return place, None
    if not (event.isascii() and event.isdecimal() and len(event) <= _LONGEST_INDEX):
        from agtrace.text.lines import named

        fail(f"{named(place, _LONGEST_PLACE)} names no event: write SESSION:NUMBER, such as fb3cff44:42", USAGE)
    return session_id, int(event)


def _refuse(given: set[str], options: dict[str, str], why: str) -> None:
    for name, option in options.items():
        if name in given:
            fail(f"{option} {why}", USAGE)


def _check_fields(asked: dict[str, Any], *, as_json: bool) -> None:
    if asked["fields"] is not None and not as_json:
        fail("--fields goes with --json", USAGE)


def _only(asked: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: asked[name] for name in names}


def _text_asked(asked: dict[str, Any]) -> dict[str, Any]:
    first, last = asked["lines"] or (None, None)
    return {"start_line": first, "end_line": last, **_only(asked, "mode", "cursor")}


def _show_event(session_id: str, event_index: int, asked: dict[str, Any], *, as_json: bool) -> None:
    wanted = {"session_id": session_id, "event_index": event_index, **_text_asked(asked)}
    _print_text("get_event_details", wanted, as_json=as_json)


def _print_text(tool: str, wanted: dict[str, Any], *, as_json: bool) -> None:
    """Print a text from this chunk to its end."""
    pages = _pages(tool, wanted)
    answer = next(pages)
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    render.text_head(answer)
    render.text_body(answer)
    for following in pages:
        render.text_body(following)
    render.text_rest(answer)


def _show_session(wanted: dict[str, Any], *, as_json: bool) -> None:
    """Print a session from this page to its end: a pager folds better than pages do."""
    pages = _pages("get_session_details", wanted)
    answer = next(pages)
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    view = render.SessionView()
    view.page(answer, first=wanted["cursor"] is None)
    for following in pages:
        view.page(following, first=False)


def _show_sections(wanted: dict[str, Any], *, as_json: bool) -> None:
    """Print sections one below the other, each to its end."""
    answer = ask("get_session_details", wanted)
    if as_json:
        print_json(answer)
        return
    from agtrace import render

    names = list(dict.fromkeys(filter(None, map(str.strip, wanted["sections"].split(",")))))
    render.sections_head(answer)
    for name in names:
        render.section(name, answer if name in render.FACTS else _items(name, names, answer, wanted))


def _items(name: str, names: list[str], answer: Answer, wanted: dict[str, Any]) -> Any:
    """Every item of a section: those of the answer, if that has all of them."""
    items = answer["data"].get(name, [])
    if len(items) == answer["data"].get(f"total_{name}"):
        return items
    if len(names) > 1:
        wanted = {**wanted, "sections": [name]}
        answer = ask("get_session_details", wanted)
    return [item for page in _pages("get_session_details", wanted, answer) for item in page["data"].get(name, [])]


def _pages(tool: str, wanted: dict[str, Any], answer: Answer | None = None) -> Iterator[Answer]:
    """An answer, and what comes behind it by its cursors."""
    answer = answer or ask(tool, wanted)
    while True:
        yield answer
        following = (answer.get("pagination") or answer.get("chunk") or {}).get("next_cursor")
        if not following:
            return
        answer = ask(tool, {**wanted, "cursor": following})
