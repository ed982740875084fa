"""A conversation as one HTML file: it fetches nothing, has no script, and its only style is named by its hash.

Texts of a log are only ever text between elements of ours: no element, attribute or name of one comes from a log.
"""

from __future__ import annotations

import sqlite3
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.analysis import ReportedSession
from markupsafe import Markup

from agtrace.problems import Problem
from agtrace.report.conversation.cleaning import Cleaner, home_in
from agtrace.report.conversation.telling import (
    Execution,
    Folded,
    Head,
    Item,
    Mark,
    Part,
    Passed,
    Request,
    Said,
    Turn,
    masked,
    told,
    took,
    when,
)
from agtrace.report.page.document import environment, source_hash, style
from agtrace.report.web import conversation
from agtrace.report.web.calls import arguments_of, colouring_for
from agtrace.sessions.query import find_session, last_event_of
from agtrace.text.numbers import counted

if TYPE_CHECKING:
    from agtrace_indexer.reader.images import Image

_HERE = Path(__file__).parent
_COLOURING_SECONDS = 3.0
"""The processor's time after which code in a conversation stays without colours."""


def head(about: Head, found: Mapping[str, int]) -> Iterator[str]:
    """Yield the beginning of the page, given what was masked."""
    styles = "\n".join((style("colours"), _style("conversation"), _turns()))
    policy = (
        "default-src 'none'", f"style-src {source_hash(styles)}", "img-src data:", "base-uri 'none'",
        "form-action 'none'",
    )  # fmt: skip
    facts = [*about.facts, masked(found)]
    yield _template("head.html").render(about=about, facts=facts, policy="; ".join(policy), style=Markup(styles))


def body(about: Head, items: Iterable[Item]) -> Iterator[str]:
    """Yield the conversation and the end of the page."""
    passed = 0

    def without_passed() -> Iterator[Item]:
        nonlocal passed
        for item in items:
            if isinstance(item, Passed):
                passed += 1
            else:
                yield item

    yield from turns(about.agent, without_passed())
    left = f"{counted(passed, 'text')} that {about.agent} itself added" if passed else ""
    yield _template("foot.html").render(left=left) + "\n"


def turns(agent: str, items: Iterable[Item], prefix: str = "") -> Iterator[str]:
    """Yield the markup of a conversation, a section for each turn.

    `prefix` makes their ids unique on a page with several conversations.
    """
    parts: Any = _template("parts.html").module
    until = time.thread_time() + _COLOURING_SECONDS
    yield str(parts.begin(None, prefix))
    for item in items:
        match item:
            case Turn():
                yield str(parts.end())
                yield str(parts.begin(item, prefix))
            case Request():
                yield str(parts.request(item))
            case Said():
                with colouring_for(until - time.thread_time()):
                    said = conversation.markdown_html(item.text.strip("\n"))
                yield str(parts.said(agent, said))
            case Folded():
                yield str(parts.folded(item))
            case Execution():
                with colouring_for(until - time.thread_time()):
                    arguments = [part.block() for part in arguments_of(item.given)]
                yield str(parts.call(item, arguments, took(item.duration_ms)))
            case Mark():
                yield str(parts.mark(item))
            case Passed():
                pass
    yield str(parts.end())


def styles_within(element: str) -> str:
    """Return the style sheet of `turns` for a page that has other things, too: it applies within one element only."""
    return f"{element} {{\n{_turns()}\n}}"


def _turns() -> str:
    return f"{_style('turns')}\n{_style('code', _HERE.parent / 'web')}"


def _style(name: str, room: Path = _HERE) -> str:
    return (room / "styles" / f"{name}.css").read_text(encoding="utf-8")


@cache
def _template(name: str) -> Any:
    found = environment(_HERE / "templates")
    found.filters |= {"when": when, "data_uri": _data_uri}
    return found.get_template(name)


def _data_uri(image: Image) -> str:
    return f"data:{image.kind};base64,{b64encode(image.data).decode()}"


# -- within ----------------------------------------------------------------------------------------
# Conversations within a report's page: those of its worst sessions, each cut to a size.

MOST_CONVERSATIONS = 10
"""The most conversations in a page; those of the sessions with the lowest scores."""

MOST_BYTES = 300_000
"""The largest size of one conversation in a page."""

_LONGEST = 4_000
"""Characters of a call's arguments, and of its result, that are shown."""


def conversations(connection: sqlite3.Connection, sessions: Sequence[ReportedSession], home: str) -> dict[str, str]:
    """Return the markup of the conversations of the worst sessions, by the sessions' ids; `home` is the user's folder.

    Sessions are given the worst first, and those without a score have none.
    """
    worst = [session for session in sessions if session.score is not None][:MOST_CONVERSATIONS]
    return {
        session.session_id: "".join(_told(connection, session.session_id, home, f"talk-{number}-"))
        for number, session in enumerate(worst)
    }


def _told(connection: sqlite3.Connection, session_id: str, home: str, prefix: str) -> Iterator[str]:
    try:
        session = find_session(connection, session_id)
    except Problem:
        return  # forgotten while the report was made
    cleaner = Cleaner((home, home_in(session.cwd), home_in(session.root_path)))
    items = told(connection, session, Part(0, last_event_of(connection, session), None), cleaner)
    yield from turns(AGENTS[session.provider].title, _within(items, session_id), prefix)


def _within(items: Iterator[Item], session_id: str) -> Iterator[Item]:
    size = 0
    for item in items:
        shown = item
        if isinstance(item, Execution):
            shown = item._replace(given=_beginning(item.arguments), result=item.result and _beginning(item.result))
        size += sum(len(value) for value in chain(shown) if isinstance(value, str))
        if size > MOST_BYTES:
            yield Mark(f"the rest was left out to keep this file small: agtrace show {session_id}")
            return
        yield shown


def _beginning(text: str) -> str:
    left = len(text) - _LONGEST
    return text if left <= 0 else f"{text[:_LONGEST]}\n... {left:,} more characters"
