"""A session as a conversation to scroll through: windows of its events, each made by itself, disjoint and complete.

An event is in one window, by its index; a result is part of its call. What the agent's program added, and figures of
tokens, are there too, folded or as places to link to, so that every event can be reached.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from html import escape
from itertools import groupby
from threading import local
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import nh3
from agtrace_indexer.index.questions import events, turns
from agtrace_indexer.index.questions.events import NOW, Placed, Snapshot
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import text_reader
from agtrace_indexer.reader.images import sizes_in
from agtrace_schema.events import EventType
from agtrace_schema.patterns import later
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from agtrace.report.conversation.cleaning import Cleaner
from agtrace.report.conversation.telling import Folded, Mark, Request, Said, Telling
from agtrace.report.web.calls import CLASSES, Call, Calls, colouring_for, highlighted
from agtrace.sessions.query import short_id
from agtrace.text.lines import LABEL

# -- markdown --------------------------------------------------------------------------------------
# Markdown of a log as HTML of ours: nothing in it runs, loads anything, or looks like a part of the page. HTML in a
# text stays text, images become text, links lead to web pages only, open a new tab and show where they lead. What
# comes out is cleaned once more, by a list of the elements that are allowed.

LONGEST = 30_000
"""Characters of a text beyond which it is shown as it is: reading Markdown takes a second a megabyte."""

_REL = "noopener noreferrer nofollow"
_TARGET = 80
"""The most characters that are shown of where a link leads."""

_HEADINGS = {"h1": "h4", "h2": "h5", "h3": "h6", "h4": "h6", "h5": "h6", "h6": "h6"}
"""A text's headings come below those of the page."""

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a", "span", "bdi", "div"),
    *("table", "thead", "tbody", "tr", "th", "td", "h4", "h5", "h6"),
}
_ATTRIBUTES = {"a": {"href", "target"}, "ol": {"start"}, "span": {"class"}, "pre": {"class"}, "div": {"class"},
               "p": {"dir"}, "h4": {"dir"}, "h5": {"dir"}, "h6": {"dir"}, "li": {"dir"}}  # fmt: skip
_OURS = frozenset({"leads", "image", "block", "scrolls", *CLASSES})
"""The classes that our own rendering gives."""

_MARKS = later(
    r"(?<![\w*/])\*\*(?=[^\s*/])(?P<strong>[^*]+)(?<=[^\s*/])\*\*(?![\w*/])"  # no globs, powers or **arguments
    r"|(?<!\S)#{2,6} (?=\S)|\A# (?=\S)"
    r"|(?<![\w\])])\[(?P<link>[^\[\]]+)\]\(https?://[^()\s]+\)"
    r"|</?[a-z]+(?:[_-][a-z]+)+(?: [^<>]*)?>"  # tags of an agent's own, as HTML has none
)
"""What is Markdown, or a tag around what an agent was told, in a text on one line."""

_kept = local()


def markdown_html(text: str) -> Markup:
    """Return the HTML of a Markdown text, or of a very long one as it is."""
    if len(text) > LONGEST:
        return Markup('<pre class="block">{}</pre>').format(text)
    if not hasattr(_kept, "reader"):
        reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        for name, rule in _RULES.items():
            reader.add_render_rule(name, rule)
        _kept.reader = reader
    found: MarkdownIt = _kept.reader
    rendered: str = found.render(text)
    return Markup(
        nh3.clean(
            rendered, tags=_TAGS, attributes=_ATTRIBUTES, attribute_filter=_allowed, url_schemes={"http", "https"},
            link_rel=_REL, clean_content_tags={"script", "style"}, strip_comments=True,
        )
    )  # fmt: skip


def unmarked(text: str) -> str:
    """Return a text on one line without the marks of Markdown and the tags that agents put around texts."""
    return _MARKS.sub(lambda found: found["strong"] or found["link"] or "", text).strip() or text


def _allowed(tag: str, name: str, value: str) -> str | None:
    """Return the value that an attribute may have; None if it may not be there."""
    if name == "class":
        return " ".join(filter(_OURS.__contains__, value.split())) or None
    if name == "target":
        return "_blank"
    return value


# -- how elements are written ----------------------------------------------------------------------

_Rule = Callable[[RendererHTML, Sequence[Token], int, Any, Any], str]


def _image(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, ___: Any) -> str:
    """Write an image as text: its description, and where it would come from."""
    token = tokens[at]
    source = str(token.attrGet("src") or "")
    return f'<span class="image">[image: {escape(token.content or "no description")}{_leads(source)}]</span>'


def _link(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, ___: Any) -> str:
    target = str(tokens[at].attrGet("href") or "")
    return f'<a href="{escape(target)}" target="_blank">' if _is_page(target) else "<bdi>"


def _link_end(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, ___: Any) -> str:
    """End a link, and say where it leads unless its text does."""
    opening = next(place for place in range(at, -1, -1) if tokens[place].type == "link_open")
    target = str(tokens[opening].attrGet("href") or "")
    text = "".join(token.content for token in tokens[opening + 1 : at])
    return ("</a>" if _is_page(target) else "</bdi>") + ("" if text == target else _leads(target))


def _leads(target: str) -> str:
    shown = target if len(target) <= _TARGET else target[: _TARGET - 1] + "…"
    return f' <span class="leads">({escape(shown)})</span>' if target else ""


def _is_page(target: str) -> bool:
    """Whether a link leads to a web page."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _code(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, ___: Any) -> str:
    token = tokens[at]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    return f'<pre class="block"><code>{highlighted(token.content.rstrip(chr(10)), language)}</code></pre>'


def _heading(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, ___: Any) -> str:
    token = tokens[at]
    tag = _HEADINGS[token.tag]
    return f'<{tag} dir="auto">' if token.nesting == 1 else f"</{tag}>\n"


def _directed(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, ___: Any) -> str:
    return "" if tokens[at].hidden else f'<{tokens[at].tag} dir="auto">'


def _table(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, ___: Any) -> str:
    return '<div class="scrolls"><table>' if tokens[at].nesting == 1 else "</table></div>"


def _cell(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, ___: Any) -> str:
    return f"<{tokens[at].tag}>"  # without a style for its alignment


_RULES: dict[str, _Rule] = {
    "image": _image, "link_open": _link, "link_close": _link_end, "fence": _code, "code_block": _code,
    "heading_open": _heading, "heading_close": _heading, "paragraph_open": _directed,
    "list_item_open": _directed, "table_open": _table, "table_close": _table, "th_open": _cell,
    "td_open": _cell,
}  # fmt: skip


# -- windows -----------------------------------------------------------------------------------------

WINDOW = 100
"""The events of a window."""

_MANY_ADDED = 3
"""From so many on, texts of one kind that the program added one after the other are one entry."""
_ADDED = 4_000
"""Characters that a window shows of what the agent's program added; a page of its own has all of it."""

_COLOURING = 0.4
"""Seconds of the processor's time for the colours of code in a window."""

_CALLS = (EventType.TOOL_CALL, EventType.TOOL_RESULT)


class Place(NamedTuple):
    """An event of another session."""

    session: str
    event_index: int


class Begins(NamedTuple):
    """The beginning of a turn."""

    event_index: int
    time: int
    number: int
    copied: bool
    """Whether all of it is copied from another session."""
    original: Place | None
    """Where it is copied from, if that is known."""
    kind: str = "turn"


class Words(NamedTuple):
    """A text of the user, the model, or the agent's program."""

    event_index: int
    time: int
    kind: str
    """request, answer, thought, mark, or added."""
    label: str
    shown: Markup
    chars: int | None = None
    """The length of the whole text if only its beginning is shown."""
    images: int = 0
    goes_on: bool = False
    """Whether the model spoke, thought or acted just before, so that its name need not be repeated."""


class Figures(NamedTuple):
    """An event that has figures of tokens only, or is a part of the entry before: a place to link to."""

    event_index: int
    time: int
    kind: str = "figures"


Entry: TypeAlias = Begins | Words | Call | Figures


class Window(NamedTuple):
    """A part of a conversation."""

    number: int
    last: int
    """The number of the last window of the session."""
    entries: list[Entry]


def windows(last_event: int) -> int:
    """Return how many windows a session has, given its last event; at least one."""
    return max(last_event, 0) // WINDOW + 1


def window_of(event_index: int) -> int:
    """Return the window in which an event is."""
    return event_index // WINDOW


def window(connection: sqlite3.Connection, session: Session, number: int, cleaner: Cleaner) -> Window:
    """Return a window of a session as it is now; one that the session doesn't have is empty."""
    last = windows(events.last(connection, session.id) or 0) - 1
    first_event = number * WINDOW
    then = Snapshot(first_event + WINDOW - 1, NOW.newest_row)
    placed = list(events.of_session(connection, session.id, then, from_event=first_event, answers=False))
    firsts: dict[int, Placed] = {}
    for one in placed:
        if one.turn_index is not None:
            firsts.setdefault(one.turn_index, one)
    found = {turn.turn_index: turn for turn in turns.several(connection, session.id, firsts)}
    begins = {
        one.event.event_index: Begins(
            one.event.event_index, one.event.ts, turn, one.copied_turn, _original(connection, one)
        )
        for turn, one in firsts.items()
        if turn in found and found[turn].first_event >= first_event
    }
    making = _Making(connection, session, cleaner)
    with colouring_for(_COLOURING):
        entries = [entry for one in placed for entry in making.entries(one, begins.get(one.event.event_index))]
    return Window(number, last, list(_gathered(entries)))


def _gathered(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Make one entry of several that the program added one after the other, of the same kind and not cut."""
    for label, group in groupby(entries, _added):
        run = list(group)
        if label is None or len(run) < _MANY_ADDED:
            yield from run
            continue
        first, *others = (entry for entry in run if isinstance(entry, Words))
        shown = Markup("\n\n").join(entry.shown for entry in (first, *others))
        yield first._replace(label=f"{label}, {len(run)} times", shown=shown)
        yield from (Figures(entry.event_index, entry.time) for entry in others)


def _added(entry: Entry) -> str | None:
    return entry.label if isinstance(entry, Words) and entry.kind == "added" and entry.chars is None else None


def _original(connection: sqlite3.Connection, placed: Placed) -> Place | None:
    row = placed.event.copy_of
    found = events.address(connection, row) if row and placed.copied_turn else None
    return None if found is None else Place(short_id(connection, found[0]), found[1])


class _Making:
    def __init__(self, connection: sqlite3.Connection, session: Session, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._telling, self._calls = Telling(connection, session, cleaner), Calls(connection, session, cleaner)
        self._read = text_reader(connection)
        self._goes_on = False

    def entries(self, placed: Placed, begins: Begins | None) -> Iterator[Entry]:
        if begins is not None:
            yield begins
        event = placed.event
        if event.type == EventType.TOKEN_USAGE:
            yield Figures(event.event_index, event.ts)
        elif event.type in _CALLS:
            self._goes_on = True
            yield self._calls.call(event)
        else:
            yield self._words(placed)

    def _words(self, placed: Placed) -> Entry:
        event = placed.event
        made = self._telling.item(placed)
        match made:
            case Request():
                self._goes_on = False
                return self._cut(placed, "request", made.label, made.text.strip())
            case Said():
                goes_on, self._goes_on = self._goes_on, True
                return self._cut(placed, "answer", "", made.text, as_markdown=True)._replace(goes_on=goes_on)
            case Folded():
                return self._cut(placed, "thought", made.label, made.text.strip())
            case Mark():
                return Words(event.event_index, event.ts, "mark", "", Markup.escape(made.text))
            case None:
                return Figures(event.event_index, event.ts)
            case _:
                text = self._cleaner.text(self._read(event).text).strip("\n")
                label = self._cleaner.line(event.name or "notification", LABEL)
                return self._cut(placed, "added", label, text, most=_ADDED)

    def _cut(
        self, placed: Placed, kind: str, label: str, text: str, *, as_markdown: bool = False, most: int = LONGEST
    ) -> Words:
        beginning = text[:most]
        shown = markdown_html(beginning) if as_markdown else Markup.escape(beginning)
        event = placed.event
        chars = len(text) if len(text) > most else None
        return Words(event.event_index, event.ts, kind, label, shown, chars, len(sizes_in(text)))


def clock(moment: int) -> str:
    """Return the local time of day of a moment in milliseconds since 1970 UTC; empty if it is unknown."""
    local = _local(moment)
    return "" if local is None else f"{local:%H:%M}"


def date_and_time(moment: int) -> str:
    """Return a moment in milliseconds since 1970 UTC as local date and time; empty if it is unknown."""
    local = _local(moment)
    return "" if local is None else f"{local:%Y-%m-%d %H:%M}"


def _local(moment: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(moment / 1000) if moment else None
    except (OverflowError, ValueError, OSError):
        return None
