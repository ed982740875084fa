"""What texts of hostile sessions can't do: run, load, lead away, leave their place, or show a secret."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import escape, unescape
from html.parser import HTMLParser

import pytest

from agtrace.conversation.code import colouring_for, diff, difference, highlighted
from agtrace.conversation.html import markdown_html as html
from tests.web.hostile_sessions import EVIL, LINES, SECRET, SESSIONS, TEXTS
from tests.web.opening import Site

_ALLOWED = {
    "html", "head", "meta", "title", "link", "script", "body", "a", "header", "svg", "rect", "path", "circle",
    "span", "nav", "div", "kbd", "button", "main", "article", "h1", "h2", "h3", "h4", "h5", "h6", "p", "b",
    "bdi", "small", "details", "summary", "section", "ul", "ol", "li", "code", "pre", "mark", "table", "thead",
    "tbody", "tr", "th", "td", "caption", "form", "label", "input", "select", "option", "dialog", "dl", "dt",
    "dd", "time", "blockquote", "em", "strong", "s", "hr", "br", "aside",
}  # fmt: skip
_LOADING = {"src", "srcset", "poster", "data", "background", "action", "formaction", "ping", "style", "srcdoc"}


class Seen(HTMLParser):
    """The elements of a page, as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))


def pages(site: Site) -> Iterator[str]:
    """Every page and part of the hostile sessions."""
    yield from map(site.page, ("/?kind=all", "/projects", "/costs?by=project", "/costs?by=model", "/search?q=window"))
    yield from map(site.page, ("/found?q=pwned", "/found?q=evil&order=newest", "/found?q=%3Cscript%3E&order=newest"))
    for session in SESSIONS:
        page = site.page(f"/s/{session.id}")
        yield page
        yield from map(site.page, re.findall(r'data-load="(/s/[^"]+/call/\d+)"', page))
        yield from map(site.page, sorted(set(re.findall(r'href="(/s/[^"]+/text/\d+)"', page))))
        yield site.page(f"/s/{session.id}/outline")


@pytest.fixture(scope="module")
def every_page(hostile: Site) -> list[str]:
    return list(pages(hostile))


@pytest.mark.thorough
def test_no_element_attribute_or_address_comes_from_a_session(every_page: list[str]) -> None:
    for page in every_page:
        for tag, attributes in Seen(page).elements:
            assert tag in _ALLOWED, (tag, attributes)
            assert not any(name.startswith("on") for name in attributes), (tag, attributes)
            loading = {name: value for name, value in attributes.items() if name in _LOADING}
            assert all(value.startswith("/") and not value.startswith("//") for value in loading.values()), (
                tag,
                loading,
            )
            assert "style" not in attributes


def test_links_lead_to_our_pages_or_in_a_new_tab_to_web_pages(every_page: list[str]) -> None:
    away = 0
    for page in every_page:
        for tag, attributes in Seen(page).elements:
            if tag != "a":
                assert "href" not in attributes or attributes["href"].startswith("/static/")
                continue
            target = attributes["href"]
            if target.startswith(("/", "#", "?")) and not target.startswith(("//", "/\\")):
                continue
            assert re.match(r"https?://", target), target
            assert attributes["rel"] == "noopener noreferrer nofollow" and attributes["target"] == "_blank"
            away += 1
    assert away >= 4


def test_ids_of_the_page_are_given_once(every_page: list[str]) -> None:
    for page in every_page:
        found = [attributes["id"] for _, attributes in Seen(page).elements if "id" in attributes]
        assert len(found) == len(set(found))


def test_no_secret_and_no_character_that_commands_or_hides_comes_out(every_page: list[str], hostile: Site) -> None:
    health = [hostile.client.get(f"/s/{session.id}/health").text for session in SESSIONS]
    for page in [*every_page, *health]:
        assert SECRET not in page
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]", page)
    assert any("[redacted: github-token]" in page for page in every_page)


@pytest.mark.thorough
def test_huge_texts_come_in_parts_that_add_up(hostile: Site) -> None:
    page = hostile.page(f"/s/{SESSIONS[8].id}")
    assert len(page) < 400_000 and len(hostile.page(f"/s/{SESSIONS[7].id}")) < 400_000
    loads = re.findall(r'data-load="(/s/[^"]+/call/\d+)"', page)
    unfolded = "".join(hostile.page(path) for path in loads)
    (event,) = {int(found) for found in re.findall(r"/text/(\d+)\"", unfolded)}
    parts, path = [], f"/s/{SESSIONS[8].id}/text/{event}"
    while path:
        shown = hostile.page(path)
        parts.append(shown.partition('tabindex="0">\n')[2].partition("</pre>")[0])
        onward = re.search(r'rel="next" href="(\?part=\d+)"', shown)
        path = f"/s/{SESSIONS[8].id}/text/{event}{onward[1]}" if onward else ""
    assert "".join(parts).split("\n") == [f"line {n}" for n in range(LINES)]


@pytest.mark.parametrize("text", [text for text in TEXTS if text])
def test_markdown_code_and_differences_escape_everything(text: str) -> None:
    for made in (
        html(text),
        highlighted(text, "html"),
        highlighted(text, "python"),
        diff(text),
        diff(difference("", text)),
    ):
        for tag, attributes in Seen(made).elements:
            assert tag in _ALLOWED - {"script", "link", "meta", "form", "input", "svg", "dialog"}
            assert set(attributes) <= {"class", "href", "rel", "target", "dir", "start"}
            assert not attributes.get("href", "https://").lower().startswith(("javascript", "data", "vbscript", "file"))
    assert EVIL not in "".join(f"{a.get('src', '')}" for _, a in Seen(html(text)).elements)


def test_markdown_says_what_it_said() -> None:
    shown = html("# One\n\nTwo **three** `4` [five](https://a.example/x) ![six](http://b.example/y.png)\n\n- seven\n")
    words = "One Two three 4 five (https://a.example/x) [image: six (http://b.example/y.png)] seven"
    assert " ".join(re.sub(r"<[^>]+>", "", shown).split()) == words
    assert 'href="https://a.example/x"' in shown and "<img" not in shown and "<h4" in shown


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("\n" * 20_000, "java"),
        (("a " * 200 + "\n") * 50, "java"),
        ('\\"' * 10_000, "javascript"),
        (('\\"' * 199 + "\n") * 50, "css"),
        ("a\n" * 10_000, "c"),
    ],
)
def test_no_text_keeps_a_lexer_busy(text: str, language: str) -> None:
    began = time.thread_time()
    assert unescape(re.sub(r"<[^>]+>", "", highlighted(text, language))).rstrip("\n") == text.rstrip("\n")
    assert time.thread_time() - began < 0.5


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text", ["[" * 30_000, "*_" * 15_000, "a|b\n-|-\n" + "x|y\n" * 7_000, "> " * 15_000, "`" * 30_000]
)
def test_no_text_keeps_the_reader_of_markdown_busy(text: str) -> None:
    began = time.thread_time()
    assert html(text)
    assert time.thread_time() - began < 3


@pytest.mark.parametrize(("before", "after"), [("a\n" * 1400, "a\nb\n" * 700), ("x\n" * 9_000, "y\n" * 9_000)])
def test_no_difference_takes_long(before: str, after: str) -> None:
    began = time.thread_time()
    shown = difference(before, after)
    assert {line[:1] for line in shown.split("\n")} <= {"+", "-", " ", "@"} and time.thread_time() - began < 2


def test_a_window_has_time_for_so_many_colours_and_no_more() -> None:
    code = "def f(x): return x\n" * 20
    assert "<span" in highlighted(code, "python")
    with colouring_for(-1):
        assert highlighted(code, "python") == escape(code)
    assert "<span" in highlighted(code, "python")
