"""Markdown of a log as HTML of ours: nothing in it runs, loads anything, or looks like a part of the page.

HTML in a text stays text, images become text, links lead to web pages only, open a new tab and show where they lead.
What comes out is cleaned once more, by a list of the elements that are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from threading import local
from typing import Any
from urllib.parse import urlsplit

import nh3
from agtrace_schema.patterns import later
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from agtrace.report.web.code import CLASSES, highlighted

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


def html(text: str) -> Markup:
    """Return the HTML of a Markdown text, or of a very long one as it is."""
    if len(text) > LONGEST:
        return Markup('<pre class="block">{}</pre>').format(text)
    rendered: str = _reader().render(text)
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


def _reader() -> MarkdownIt:
    """Return this thread's reader of Markdown."""
    if not hasattr(_kept, "reader"):
        reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        for name, rule in _RULES.items():
            reader.add_render_rule(name, rule)
        _kept.reader = reader
    found: MarkdownIt = _kept.reader
    return found


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
    opening = _opening(tokens, at)
    target = str(tokens[opening].attrGet("href") or "")
    text = "".join(token.content for token in tokens[opening + 1 : at])
    return ("</a>" if _is_page(target) else "</bdi>") + ("" if text == target else _leads(target))


def _opening(tokens: Sequence[Token], closing: int) -> int:
    return next(at for at in range(closing, -1, -1) if tokens[at].type == "link_open")


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
