"""A conversation as one HTML file: it fetches nothing, has no script, and its only style is named by its hash.

Texts of a log are only ever text between elements of ours: no element, attribute or name of one comes from a log.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from agtrace.report.conversation.head import Head, masked, took, when
from agtrace.report.conversation.telling import Execution, Folded, Item, Mark, Passed, Request, Said, Turn
from agtrace.report.page.document import environment, source_hash, style
from agtrace.report.web import markdown
from agtrace.report.web.calls import arguments_of
from agtrace.report.web.code import colouring_for
from agtrace.text.numbers import counted

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
                    said = markdown.html(item.text.strip("\n"))
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
    found.filters["when"] = when
    return found.get_template(name)
