"""`agtrace show`: a session at a level of detail or by sections, or one event in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from agtrace_schema.requests import MOST_AROUND

from agtrace.commands.asking import ask, pages
from agtrace.commands.errors import USAGE, fail
from agtrace.commands.options import LEVELS, SECTIONS, as_json, check_fields, cursor, fields, session_ids, text_options
from agtrace.commands.printing import leave
from agtrace.commands.texts import print_text, text_asked

if TYPE_CHECKING:
    from agtrace.shaping.shape import Answer

_OF_SESSION = {
    "level": "--level", "turn_index": "--turn", "reasoning": "--reasoning", "sections": "--sections",
    "fields": "--fields",
}  # fmt: skip
_OF_EVENT = {"around": "--around", "lines": "--lines", "mode": "--mode"}
_WITHOUT_SECTIONS = ("level", "turn_index", "reasoning", "focus")
_LONGEST_INDEX = 15
"""Digits of an event's index."""

_LONGEST_PLACE = 200


@click.command()
@click.argument("place", metavar="SESSION[:EVENT]", shell_complete=session_ids)
@click.option("--level", type=click.Choice(LEVELS), help="The level of detail; by default summary, with --turn turns.")
@click.option("--turns", "level", flag_value="turns", help="The same as --level turns: every step with its tool calls.")
@click.option("--turn", "turn_index", type=int, help="Show one turn only.")
@click.option("--reasoning", is_flag=True, help="Quote the thinking of each step (level turns).")
@click.option(
    "--sections", metavar="NAME,NAME",
    help=f"Only these parts, in full: {', '.join(SECTIONS)}.",
)  # fmt: skip
@click.option(
    "--around",
    type=click.IntRange(1, MOST_AROUND),
    help="Also show this many events before and after it, one line each.",
)
@text_options
@fields
@cursor
@as_json
def show(place: str, as_json: bool, **asked: Any) -> None:
    """Show a session turn by turn, or one event in full.

    Levels: summary (one line per turn), turns (every step and its tool calls), steps (thinking, messages, tool calls
    and results, each shortened), full (everything, verbatim).

    \b
      agtrace show last
      agtrace show fb3cff44 --turn 3
      agtrace show fb3cff44 --sections failures,files
      agtrace show fb3cff44:42 --lines 1:50
      agtrace show fb3cff44:42 --mode minimal
      agtrace show fb3cff44:42 --focus "Which test fails, and why?"
      agtrace show fb3cff44:42 --around 5
    """
    session_id, event_index = _place(place)
    given = {name for name, value in asked.items() if value is not None and value is not False}
    if event_index is not None:
        _refuse(given, _OF_SESSION, "is for a session, not for one event")
        wanted = {"session_id": session_id, "event_index": event_index, **text_asked(asked)}
        if asked["around"] is not None:
            found = ask("get_event_details", wanted | {"around": asked["around"]})

            def for_person() -> None:
                from agtrace.render.matches import around

                around(found.value, event_index, found.next_calls)

            leave(found.value, as_json, for_person)
            return
        print_text("get_event_details", wanted, as_json=as_json)
        return
    _refuse(given, _OF_EVENT, f"is for one event, SESSION:EVENT, or for `agtrace read ax://session/{session_id}`")
    check_fields(asked["fields"], as_json=as_json)
    if "sections" in given:
        options = {**_OF_SESSION, "focus": "--focus"}
        _refuse(given, {name: options[name] for name in _WITHOUT_SECTIONS}, "can't be combined with --sections")
        _show_sections({"session_id": session_id, **_only(asked, "sections", "fields", "cursor")}, as_json=as_json)
        return
    level = asked["level"] or ("turns" if given & {"turn_index", "reasoning"} else "summary")
    if "focus" in given:
        level = asked["level"] or "full"
    _show_session(
        {
            "session_id": session_id, "detail_level": level, "include_reasoning": asked["reasoning"],
            **_only(asked, "turn_index", "fields", "cursor"), "context_focus_question": asked["focus"],
        },
        as_json=as_json,
    )  # fmt: skip


def _place(place: str) -> tuple[str, int | None]:
    """Return the session, and the event or None, from SESSION, SESSION:EVENT or a reference."""
    if place.startswith("ax://"):
        from agtrace.sessions.references import parse

        kind, session_id, event_index, *_ = parse(place)
        if kind in ("session", "event"):
            return session_id, event_index if kind == "event" else None
        fail(f"{place} is neither a session nor an event; try `agtrace read {place}`", USAGE)
    session_id, colon, event = place.rpartition(":")
    if not colon:
        return place, None
    if not (event.isascii() and event.isdecimal() and len(event) <= _LONGEST_INDEX):
        from agtrace.text.lines import named

        fail(f"expected SESSION:NUMBER, such as fb3cff44:42, got {named(place, _LONGEST_PLACE)}", USAGE)
    return session_id, int(event)


def _refuse(given: set[str], options: dict[str, str], why: str) -> None:
    for name, option in options.items():
        if name in given:
            fail(f"{option} {why}", USAGE)


def _only(asked: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: asked[name] for name in names}


def _show_session(wanted: dict[str, Any], *, as_json: bool) -> None:
    """Print a session from this page to its end: a terminal's pager is handier than cursors."""
    following = pages("get_session_details", wanted)
    answer = next(following)

    def for_person() -> None:
        from agtrace.render.session import SessionView
        from agtrace.render.text import text_rest

        view = SessionView()
        view.page(answer.value, first=wanted["cursor"] is None)
        for page in following:
            view.page(page.value, first=False)
        text_rest(answer.value, answer.next_calls)

    leave(answer.value, as_json, for_person)


def _show_sections(wanted: dict[str, Any], *, as_json: bool) -> None:
    """Print sections one after the other, each to its end."""
    answer = ask("get_session_details", wanted)
    names = list(dict.fromkeys(filter(None, map(str.strip, wanted["sections"].split(",")))))

    def for_person() -> None:
        from agtrace.render.sections import FACTS, section, sections_head

        sections_head(answer.value)
        for name in names:
            section(name, answer.value if name in FACTS else _items(name, names, answer, wanted))

    leave(answer.value, as_json, for_person)


def _items(name: str, names: list[str], answer: Answer, wanted: dict[str, Any]) -> Any:
    """Return every item of a section, asking for more pages unless the answer has all of them."""
    items = answer.value["data"].get(name, [])
    if len(items) == answer.value["data"].get(f"total_{name}"):
        return items
    if len(names) > 1:
        wanted = {**wanted, "sections": [name]}
        answer = ask("get_session_details", wanted)
    return [item for page in pages("get_session_details", wanted, answer) for item in page.value["data"].get(name, [])]
