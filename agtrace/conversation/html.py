"""A conversation as HTML, for a page of `agtrace open`, the report's page and a file to pass on.

Texts of a log are only ever text between elements of ours: no element, attribute or name of one comes from a log. A
file fetches nothing, has no script, and its only style is named by its hash.
"""

from __future__ import annotations

import sqlite3
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import chain
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit

import nh3
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.reader.images import sizes_in
from agtrace_schema.analysis import ReportedSession
from agtrace_schema.patterns import later
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from agtrace.conversation.cleaning import Cleaner, home_in
from agtrace.conversation.code import CLASSES, Block, Whole, arguments_of, colouring_for, highlighted, result_shown
from agtrace.conversation.document import environment, source_hash, style
from agtrace.conversation.items import (
    Added,
    Answer,
    Call,
    Head,
    Item,
    Mark,
    Part,
    Request,
    Thought,
    Turn,
    items,
    masked,
    took,
    when,
)
from agtrace.problems import Problem
from agtrace.sessions.query import find_session, last_event_of
from agtrace.text.numbers import counted
from agtrace.times import iso

if TYPE_CHECKING:
    from agtrace_indexer.reader.images import Image

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


# -- entries -----------------------------------------------------------------------------------------

SHORT = 6_000
"""Characters of arguments and result that come with their call in a browser; others are loaded when it is unfolded."""

SHOWN = 20_000
"""The most characters of a result that an unfolded call shows in a browser."""

ADDED = 4_000
"""Characters of what the agent's program added; a page of its own has all of it."""


class View(NamedTuple):
    """Where a conversation is shown. In a browser, long texts are cut, and links lead to the rest of them."""

    agent: str
    session: str = ""
    """The id that addresses of a browser's pages have; empty for a file, which has no links."""
    running: frozenset[int] = frozenset()
    """The calls that may still be at work."""
    prefix: str = ""
    """What ids begin with on a page that has several conversations."""


class Words(NamedTuple):
    """A text of the user, the model, or the agent's program."""

    event: int
    time: int
    kind: str
    """request, answer, thought, mark, or added."""
    label: str
    shown: Markup
    chars: int | None = None
    """The length of the whole text if only its beginning is shown."""
    images: Sequence[str] = ()
    """Their addresses."""
    goes_on: bool = False
    """Whether the model spoke or acted just before, so that its name need not be repeated."""


class Unfolded(NamedTuple):
    """What a call unfolds to."""

    arguments: list[Block]
    result: Block | None
    images: Sequence[str]


class ShownCall(NamedTuple):
    """A call, and what it unfolds to; None if that is loaded later."""

    event: int
    call: Call
    took: str
    added: int
    """The lines that it adds to files; likewise the next one."""
    removed: int
    unfolded: Unfolded | None
    kind: str = "call"


class Begins(NamedTuple):
    """The beginning of a turn."""

    event: int
    turn: Turn
    kind: str = "turn"


Entry: TypeAlias = Words | ShownCall | Begins


class Writer:
    """Makes entries of items, one after the other. For one thread."""

    def __init__(self, view: View) -> None:
        self._view, self._goes_on = view, False
        self._most: int | None = LONGEST if view.session else None
        self._most_shown: int | None = SHOWN if view.session else None

    def entry(self, item: Item) -> Entry | None:
        """Return the entry of an item; None for a text that the program added, which `added` shows."""
        match item:
            case Turn():
                return Begins(item.event, item)
            case Call():
                self._goes_on = True
                return self._call(item)
            case Request():
                self._goes_on = False
                return self._words(item, "request", item.label, item.text.strip(), item.images)
            case Answer():
                goes_on, self._goes_on = self._goes_on, True
                shown = self._words(item, "answer", "", item.text, as_html=markdown_html)
                return shown._replace(goes_on=goes_on, images=())
            case Thought():
                return self._words(item, "thought", item.label, item.text.strip())
            case Mark():
                return Words(item.event, item.time, "mark", "", Markup.escape(item.text))
        return None

    def added(self, item: Added, text: str) -> Words:
        """Return the entry of a text that the program added."""
        return self._words(item, "added", item.label, text, most=ADDED)

    def unfolded(self, call: Call) -> Unfolded:
        """Return what a call unfolds to."""
        parts = [part.block(self._most_shown) for part in arguments_of(call.given)]
        text = (call.result or "").strip("\n")
        result = Whole("Result", text, result_shown).block(self._most_shown) if text.strip() else None
        images = self._images(call.result_event, text, call.images) if text.strip() or call.images else ()
        return Unfolded(parts, result, images)

    def _call(self, call: Call) -> ShownCall:
        unfolded = self.unfolded(call)
        size = sum(part.chars or len(part.shown) for part in unfolded.arguments) + len(call.result or "")
        is_short = size <= SHORT and (call.result_event is None or call.result is not None)
        return ShownCall(
            call.event,
            call,
            took(call.duration_ms),
            sum(part.added for part in unfolded.arguments),
            sum(part.removed for part in unfolded.arguments),
            unfolded if is_short or not self._view.session else None,
        )

    def _words(
        self,
        item: Request | Answer | Thought | Added,
        kind: str,
        label: str,
        text: str,
        images: Sequence[Image] = (),
        as_html: Callable[[str], Markup] = Markup.escape,
        most: int | None = None,
    ) -> Words:
        most = self._most if most is None else most
        chars = None if most is None or len(text) <= most else len(text)
        return Words(
            item.event, item.time, kind, label, as_html(text[:most]), chars, self._images(item.event, text, images)
        )

    def _images(self, event: int | None, text: str, images: Sequence[Image]) -> list[str]:
        """Return the addresses of the images of an event: in a browser those that its text names, in a file all."""
        if not self._view.session:
            return [f"data:{image.kind};base64,{b64encode(image.data).decode()}" for image in images]
        address = f"/s/{quote(self._view.session, safe='')}/image/{event}"
        return [f"{address}/{number}" for number in range(len(sizes_in(text)))]


# -- a file --------------------------------------------------------------------------------------------

HERE = Path(__file__).parent
_COLOURING_SECONDS = 3.0
"""The processor's time after which code in a conversation stays without colours."""


def head(about: Head, found: Mapping[str, int]) -> Iterator[str]:
    """Yield the beginning of the page, given what was masked."""
    styles = "\n".join((style("colours"), _style("file"), entry_styles()))
    policy = (
        "default-src 'none'", f"style-src {source_hash(styles)}", "img-src data:", "base-uri 'none'",
        "form-action 'none'",
    )  # fmt: skip
    facts = [*about.facts, masked(found)]
    yield _template("head.html").render(about=about, facts=facts, policy="; ".join(policy), style=Markup(styles))


def body(about: Head, items: Iterable[Item]) -> Iterator[str]:
    """Yield the conversation and the end of the page."""
    added = 0

    def counting() -> Iterator[Item]:
        nonlocal added
        for item in items:
            added += isinstance(item, Added)
            yield item

    yield from markup(View(about.agent), counting())
    left = f"{counted(added, 'text')} that {about.agent} itself added" if added else ""
    yield _template("foot.html").render(left=left) + "\n"


def markup(view: View, items: Iterable[Item]) -> Iterator[str]:
    """Yield the markup of the entries of a file; what the program added has none."""
    parts: Any = _template("entries.html").module
    until, writer = time.thread_time() + _COLOURING_SECONDS, Writer(view)
    for item in items:
        with colouring_for(until - time.thread_time()):
            entry = writer.entry(item)
        if entry is not None:
            yield str(parts.entry(entry, view))


def styles_within(element: str) -> str:
    """Return the style sheet of entries for a page that has other things, too: it applies within one element only."""
    return f"{element} {{\n{entry_styles()}\n}}"


def entry_styles() -> str:
    """Return the style sheet of entries."""
    return f"{_style('entries')}\n{_style('code')}"


def _style(name: str) -> str:
    return (HERE / "styles" / f"{name}.css").read_text(encoding="utf-8")


@cache
def _template(name: str) -> Any:
    found = environment(HERE / "templates")
    found.filters |= {"when": lambda time: when(iso(time)), "unmarked": unmarked}
    found.filters |= dict.fromkeys(("clock", "number", "path"), str)  # of links, which a file does not have
    return found.get_template(name)


# -- embedded --------------------------------------------------------------------------------------
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
        session.session_id: "".join(_conversation(connection, session.session_id, home, f"talk-{number}-"))
        for number, session in enumerate(worst)
    }


def _conversation(connection: sqlite3.Connection, session_id: str, home: str, prefix: str) -> Iterator[str]:
    try:
        session = find_session(connection, session_id)
    except Problem:
        return  # forgotten while the report was made
    cleaner = Cleaner((home, home_in(session.cwd), home_in(session.root_path)))
    every = items(connection, session, Part(0, last_event_of(connection, session), None), cleaner)
    yield from markup(View(AGENTS[session.provider].title, prefix=prefix), _embedded(every, session_id))


def _embedded(items: Iterator[Item], session_id: str) -> Iterator[Item]:
    size = 0
    for item in items:
        shown = item
        if isinstance(item, Call):
            shown = item._replace(given=_beginning(item.arguments), result=item.result and _beginning(item.result))
        size += sum(len(value) for value in chain(shown) if isinstance(value, str))
        if size > MOST_BYTES:
            rest = f"the rest was left out to keep this file small: agtrace show {session_id}"
            yield Mark(item.event, item.time, rest)
            return
        yield shown


def _beginning(text: str) -> str:
    left = len(text) - _LONGEST
    return text if left <= 0 else f"{text[:_LONGEST]}\n... {left:,} more characters"
