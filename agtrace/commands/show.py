"""Commands about one session: `show`, also for a reference, `analyze`, and `compare` for two."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import ExitStack, closing
from itertools import takewhile
from typing import TYPE_CHECKING, Any, get_args

import click
from agtrace_schema.patterns import later
from agtrace_schema.requests import MOST_AROUND, Level, Section

from agtrace.commands.asking import (
    Filters,
    ask,
    open_index,
    pages,
    print_text,
    selected,
    text_asked,
    usable,
    with_index,
)
from agtrace.commands.errors import TROUBLE, USAGE, fail
from agtrace.commands.options import Span, as_json, cursor, one_of, session_ids, text_options
from agtrace.commands.printing import print_json, print_lines

if TYPE_CHECKING:
    from agtrace.shaping.shape import Answer


@click.command()
@click.argument("session", shell_complete=session_ids)
@click.option(
    "--wrong", type=click.IntRange(0), multiple=True, metavar="N",
    help="The finding with this number is wrong: it is neither shown nor counted from now on; 0 takes that back.",
)  # fmt: skip
@as_json
def analyze(session: str, wrong: tuple[int, ...], as_json: bool) -> None:
    """Show what went wrong in a session: failed tools, repeated calls, token use, each with its events."""
    asked = {"session_id": session, "include_loops": True}
    answer = ask("analyze_session", asked)
    if wrong:
        _call_wrong(answer.value["data"], wrong)
        answer = ask("analyze_session", asked)
    if as_json:
        print_json(answer.value)
    else:
        from agtrace.render.comparison import analysis

        analysis(answer.value)


def _call_wrong(data: dict[str, Any], wrong: tuple[int, ...]) -> None:
    """Keep which of the findings shown are wrong, by their numbers from 1 on; 0 takes back what was said so far."""
    from agtrace.report.report import put_away

    settings = usable()
    if settings.asked is not None:
        fail("findings are called wrong in one's own index alone: leave out --index", USAGE)
    if max(wrong) > len(data["insights"]):
        fail(f"there are {len(data['insights'])} findings", USAGE)
    with closing(open_index()) as connection:
        if 0 in wrong:
            put_away(connection, data["session_id"], [])
        put_away(connection, data["session_id"], [data["insights"][number - 1] for number in wrong if number])


@click.command()
@click.argument("id1", metavar="SESSION", shell_complete=session_ids)
@click.argument("id2", metavar="SESSION", shell_complete=session_ids)
@as_json
def compare(id1: str, id2: str, as_json: bool) -> None:
    """Compare two sessions, even of different agents: tools, files, failures, tokens, time and outcome."""
    answer = ask("compare_sessions", {"id1": id1, "id2": id2})
    if as_json:
        print_json(answer.value)
    else:
        from agtrace.render.comparison import comparison

        comparison(answer.value)


_OF_CONVERSATION = ("tools", "everything")
_OF_SESSION = ("level", "turns", "sections", "thinking", *_OF_CONVERSATION)
_OF_EVENT = ("around", "lines", "mode", "raw")
_WITHOUT_SECTIONS = ("level", "turns", "thinking", "focus", *_OF_CONVERSATION)
_OF_LEVELS = ("level", "focus", "cursor")
_OF_ALL = ("level", "turns", "sections", "focus", "cursor")
_EVENTS = later(r"(\d{1,15})(?:-(\d{1,15}))?", re.ASCII)


@click.command()
@click.argument("place", metavar="SESSION[:EVENT[-EVENT]]|REF", shell_complete=session_ids)
@click.option("--tools", is_flag=True, help="Show arguments and results of tool calls in full.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
@click.option("--all", "everything", is_flag=True, help="Show both.")
@click.option("--turns", type=Span("turns", 0), help="Only these turns, counted from 0: 2:5, 2:, :5 or 2.")
@click.option("--no-pager", is_flag=True, help="Print to the terminal directly, not through $PAGER or less.")
@click.option("--level", type=one_of(Level), help="Not the conversation, but an outline at this level.")
@click.option(
    "--sections", metavar="NAME,NAME",
    help=f"Only these parts, in full: {', '.join(get_args(Section))}.",
)  # fmt: skip
@click.option(
    "--around",
    type=click.IntRange(1, MOST_AROUND),
    help="Also show this many events before and after it, one line each.",
)
@click.option(
    "--raw", type=click.IntRange(1), is_flag=False, flag_value=1, metavar="[N]",
    help="Write the event's image, the first or this one, as the log has it.",
)  # fmt: skip
@text_options
@cursor
@as_json
def show(place: str, as_json: bool, **asked: Any) -> None:
    """Show a session as a conversation, one event in full, or what a reference (ax://...) in an answer points to.

    The conversation has requests, answers, and a line for each tool call, after the number of its event. On a terminal
    it goes through a pager. With --level: summary (one line per turn), turns (every step and its tool calls), steps
    (thinking, messages, tool calls and results, each shortened) or full (everything, verbatim). With --json, the
    level is summary, and for one turn it is turns.

    \b
      agtrace show last
      agtrace show fb3cff44 --turns 2:5 --tools
      agtrace show fb3cff44 --sections failures,files
      agtrace show fb3cff44:29-40
      agtrace show fb3cff44:42 --lines 1:50
      agtrace show fb3cff44:42 --focus "Which test fails, and why?"
      agtrace show fb3cff44:42 --around 5
      agtrace show fb3cff44:42 --raw > image.png
      agtrace show ax://session/fb3cff44 --lines 1:200
    """
    given = {name for name, value in asked.items() if value is not None and value is not False}
    if place.startswith("ax://event/") and not (given or as_json):
        place = ":".join(place.removeprefix("ax://event/").rsplit("/", 1))
    if place.startswith("ax://"):
        _refuse(given, (*_OF_SESSION, "around", "raw"), "is for a session or an event, not for a reference")
        print_text("read_artifact", {"ref": place, **text_asked(asked)}, as_json=as_json)
        return
    session_id, span = _place(place)
    if span is not None and span[0] == span[1]:
        _refuse(given, _OF_SESSION, "is for a session, not for one event")
        _show_event(session_id, span[0], asked, as_json=as_json)
        return
    _refuse(given, _OF_EVENT, f"is for one event, SESSION:EVENT, or for `agtrace show ax://session/{session_id}`")
    if span is not None:
        _refuse(given | ({"json"} if as_json else set()), (*_OF_ALL, "json"), "is for a whole session")
    if "sections" in given:
        _refuse(given, _WITHOUT_SECTIONS, "can't be combined with --sections")
        _show_sections({"session_id": session_id, **_only(asked, "sections", "cursor")}, as_json=as_json)
    elif as_json or given.intersection(_OF_LEVELS):
        _refuse(given, _OF_CONVERSATION, "is for the conversation; `agtrace export --jsonl` has all of it as JSON")
        wanted = _at_level(session_id, given, asked)
        following = pages("get_session_details", wanted)
        answer = next(following)
        if as_json:
            print_json(answer.value)
        else:
            from agtrace.render.session import SessionView
            from agtrace.render.text import text_rest

            view = SessionView()
            view.page(answer.value, first=wanted["cursor"] is None)
            for page in following:
                view.page(page.value, first=False)
            text_rest(answer.value, answer.next_calls)
    else:
        show_conversation(session_id, span, asked)


def _show_event(session_id: str, event_index: int, asked: dict[str, Any], *, as_json: bool) -> None:
    if asked["raw"] is not None:
        _write_image(session_id, event_index, asked["raw"])
        return
    wanted = {"session_id": session_id, "event_index": event_index, **text_asked(asked)}
    if asked["around"] is None:
        shown = print_text("get_event_details", wanted, as_json=as_json)
        result = shown.value["data"].get("result_event")
        if result is not None and not as_json and not any(text_asked(asked).values()):
            print_lines(["", f"result, event {result}:"])
            print_text("get_event_details", {"session_id": session_id, "event_index": result}, as_json=False)
        return
    found = ask("get_event_details", wanted | {"around": asked["around"]})
    if as_json:
        print_json(found.value)
    else:
        from agtrace.render.lists import around

        around(found.value, event_index, found.next_calls)


def _write_image(session_id: str, event_index: int, number: int) -> None:
    """Write an image of an event, or of the result of a call, to stdout, unless that is a terminal."""
    from agtrace_indexer.reader.images import images_of
    from agtrace_schema.events import EventType

    from agtrace.sessions.query import find_event, find_session

    with selected(Filters()) as (connection, *_):
        session = find_session(connection, session_id)
        event = find_event(connection, session, event_index)
        if event.row.type == EventType.TOOL_CALL and event.row.link is not None:
            event = find_event(connection, session, event.row.link)
        found = images_of(with_index().database, session.path, event)
    image = found[number - 1] if number <= len(found) else None
    if image is None:
        fail(
            f"event {event_index} has {'no image' if number == 1 else f'no image {number}'} that can be shown", TROUBLE
        )
    if sys.stdout.isatty():
        fail(f"this is {image.kind}: write it to a file, with > image.{image.kind[6:]}", USAGE)
    sys.stdout.buffer.write(image.data)


def _at_level(session_id: str, given: set[str], asked: dict[str, Any]) -> dict[str, Any]:
    turn, last = asked["turns"] or (None, None)
    if turn != last:
        fail("--turns A:B is for the conversation: use --turns N, or `agtrace export --jsonl --turns A:B`", USAGE)
    by_turn = turn is not None or "thinking" in given
    level = asked["level"] or ("full" if "focus" in given else "turns" if by_turn else "summary")
    return {
        "session_id": session_id, "detail_level": level, "include_reasoning": asked["thinking"],
        "turn_index": turn, "cursor": asked["cursor"], "context_focus_question": asked["focus"],
    }  # fmt: skip


def show_conversation(
    session_id: str, span: tuple[int, int] | None, asked: dict[str, Any], *, stays: bool = False
) -> None:
    """Print a session as a conversation, on a terminal through a pager, which holds no moment of the index.

    `stays`: whether the pager waits for a key though everything fits on the screen.
    """
    from agtrace.conversation.cleaning import Cleaner
    from agtrace.conversation.items import head, items, part_of
    from agtrace.render.conversation import Unfolded, conversation, paged
    from agtrace.sessions.query import find_event, find_session, resuming
    from agtrace.settings.environment import pager

    unfolded = Unfolded(asked["tools"] or asked["everything"], asked["thinking"] or asked["everything"])
    with ExitStack() as reading, selected(Filters()) as (connection, _, now, prices, _):
        session = find_session(connection, session_id)
        part, cleaner = part_of(connection, session, asked["turns"] or (None, None)), Cleaner(())
        if span is not None:
            part = part._replace(first_event=find_event(connection, session, span[0]).event_index)
        last = part.last_event if span is None else span[1]
        about = head(connection, session, part.turns, cleaner, now=now, prices=prices)
        continued = resuming(connection, session)
        out = reading.enter_context(paged(*(("", {}) if asked["no_pager"] else pager(stays=stays))))
        shown = takewhile(lambda one: one.event <= last, items(connection, session, part, cleaner))
        conversation(out, about, continued, shown, unfolded)


def _place(place: str) -> tuple[str, tuple[int, int] | None]:
    """Return the session, and the first and the last event or None, from SESSION, SESSION:EVENT or SESSION:A-B."""
    session_id, colon, event = place.rpartition(":")
    if not colon:
        return place, None
    match = _EVENTS.fullmatch(event)
    span = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if span[0] > span[1]:
        from agtrace.text.lines import name_in_sentence

        fail(f"expected SESSION:NUMBER, such as fb3cff44:42 or :29-40, got {name_in_sentence(place, 200)}", USAGE)
    return session_id, span


def _refuse(given: set[str], options: Iterable[str], why: str) -> None:
    for name in options:
        if name in given:
            fail(f"--{name.replace('everything', 'all')} {why}", USAGE)


def _only(asked: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: asked[name] for name in names}


def _show_sections(wanted: dict[str, Any], *, as_json: bool) -> None:
    answer = ask("get_session_details", wanted)
    names = list(dict.fromkeys(filter(None, map(str.strip, wanted["sections"].split(",")))))
    if as_json:
        print_json(answer.value)
    else:
        from agtrace.render.session import FACTS, section
        from agtrace.render.terminal import summary

        summary(answer.value)
        for name in names:
            section(name, answer.value if name in FACTS else _items(name, names, answer, wanted))


def _items(name: str, names: list[str], answer: Answer, wanted: dict[str, Any]) -> Any:
    """Return every item of a section, asking for more pages unless the answer has all of them."""
    items = answer.value["data"].get(name, [])
    if len(items) == answer.value["data"].get(f"total_{name}"):
        return items
    if len(names) > 1:
        wanted = {**wanted, "sections": [name]}
        answer = ask("get_session_details", wanted)
    return [item for page in pages("get_session_details", wanted, answer) for item in page.value["data"].get(name, [])]
