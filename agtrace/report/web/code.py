"""Code and differences set in colours: as spans with classes, or without where a lexer would take long."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from html import escape
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

LONGEST = 20_000
"""Characters of a text beyond which it stays without colours."""

_LONGEST_LINE = 400
_SECONDS = 0.06
"""The processor's time for one text: lexers look ahead as far as a text lets them, so that some take minutes."""

_MOST_LINES = 1_500
"""The most lines of a text that is compared with another."""

_LEXERS = {
    ending: lexer
    for lexer, endings in {
        "bash": "bash sh shell zsh console", "python": "python py pyi", "javascript": "javascript js jsx mjs",
        "typescript": "typescript ts tsx", "json": "json jsonc", "yaml": "yaml yml", "toml": "toml", "go": "go",
        "rust": "rust rs", "c": "c h", "cpp": "cpp cc hpp", "java": "java", "kotlin": "kotlin kt", "ruby": "ruby rb",
        "php": "php", "css": "css", "html": "html", "xml": "xml svg", "sql": "sql", "diff": "diff patch",
        "make": "make makefile", "docker": "dockerfile docker", "ini": "ini", "swift": "swift", "lua": "lua",
    }.items()
    for ending in endings.split()
}  # fmt: skip
"""Languages and endings of file names -> lexers of Pygments. Others stay without colours."""

_KINDS = (
    ("Comment", "c"), ("Keyword", "k"), ("Literal.String", "s"), ("Literal.Number", "n"), ("Name.Function", "f"),
    ("Name.Class", "f"), ("Name.Decorator", "f"), ("Name.Tag", "k"), ("Name.Attribute", "f"), ("Name.Builtin", "b"),
    ("Operator.Word", "k"), ("Generic.Inserted", "add"), ("Generic.Deleted", "del"), ("Generic.Heading", "hunk"),
    ("Generic.Subheading", "hunk"),
)  # fmt: skip
"""Kinds of tokens, by the beginning of their names, and their classes."""

CLASSES = frozenset({name for _, name in _KINDS})
"""Every class of a span in code."""

_until: ContextVar[float] = ContextVar("until", default=float("inf"))

_SIGNS = {"+": "add", "-": "del", "@": "hunk"}


def highlighted(text: str, language: str) -> Markup:
    """Return a code in a language, or in that of a file with this ending; unchanged if it isn't known, or too long."""
    name = _LEXERS.get(language.lower().lstrip("."))
    if name is None or len(text) > LONGEST or max(map(len, text.split("\n"))) > _LONGEST_LINE:
        return Markup(escape(text))
    if name == "diff":
        return diff(text)
    lexer = _lexer(name)
    until = min(time.thread_time() + _SECONDS, _until.get())
    pieces = []
    for kind, value in lexer.get_tokens(text):
        if time.thread_time() > until:
            return Markup(escape(text))
        pieces.append(_span(_class(str(kind)), value))
    return Markup("".join(pieces).rstrip("\n"))


@contextmanager
def colouring_for(seconds: float) -> Iterator[None]:
    """Leave texts without colours in the block once so much of the processor's time is used in this thread."""
    token = _until.set(time.thread_time() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def language_of(path: str) -> str:
    """Return what tells the language of a file: the ending of its name, or a name without one."""
    name = PurePath(path.replace("\\", "/")).name.lower()
    return PurePath(name).suffix or name


def diff(text: str) -> Markup:
    """Return a difference between files, with a colour for each kind of line."""
    return Markup("\n").join(_span(_kind(line), line) for line in text.split("\n"))


def difference(before: str, after: str) -> str:
    """Return the difference between two texts as lines that begin with a sign; all of both if they are long."""
    old, new = before.split("\n"), after.split("\n")
    if max(len(old), len(new)) > _MOST_LINES:
        return "\n".join([*(f"-{line}" for line in old), *(f"+{line}" for line in new)])
    lines = list(difflib.unified_diff(old, new, n=3, lineterm=""))[2:]
    return "\n".join(lines[1:] if sum(line.startswith("@@") for line in lines) == 1 else lines)


def _kind(line: str) -> str:
    if line.startswith(("diff ", "index ", "+++", "---", "***")):
        return "hunk"
    return _SIGNS.get(line[:1], "")


def _span(name: str, text: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(name, text) if name else Markup(escape(text))


def _class(kind: str) -> str:
    told = kind.removeprefix("Token.")
    return next((name for beginning, name in _KINDS if told.startswith(beginning)), "")


@cache
def _lexer(name: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # it has no types

    return get_lexer_by_name(name, stripnl=False)
