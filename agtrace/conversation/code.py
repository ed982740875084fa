"""Code, differences and the arguments of calls, set in colours for pages."""

from __future__ import annotations

import difflib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from html import escape as html_escape
from pathlib import PurePath
from typing import Any, NamedTuple

from agtrace_indexer.providers.registry import TOOLS
from agtrace_schema.patterns import later
from markupsafe import Markup, escape

from agtrace.conversation.items import arguments_text
from agtrace.health.facts.changes import patch_in
from agtrace.text.failing_lines import failing_lines_in as failures_in

# -- code ------------------------------------------------------------------------------------------
# Code and differences set in colours: as spans with classes, or without where a lexer would take long.

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
        return Markup(html_escape(text))
    if name == "diff":
        return diff(text)
    lexer = _lexer(name)
    until = min(time.thread_time() + _SECONDS, _until.get())
    pieces = []
    for kind, value in lexer.get_tokens(text):
        if time.thread_time() > until:
            return Markup(html_escape(text))
        told = str(kind).removeprefix("Token.")
        pieces.append(_span(next((name for begins, name in _KINDS if told.startswith(begins)), ""), value))
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
    return Markup('<span class="{}">{}</span>').format(name, text) if name else Markup(html_escape(text))


@cache
def _lexer(name: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # it has no types

    return get_lexer_by_name(name, stripnl=False)


# -- calls -------------------------------------------------------------------------------------------

_MARKED = 800
"""The most lines of a result in which those that report failures are marked."""

_A_DIFF = later(r"(?m)\A(?:diff --git |--- \S.*\n\+\+\+ )")


class Block(NamedTuple):
    """A part of what a call unfolds to, as it is shown."""

    title: str
    shown: Markup
    chars: int | None = None
    """The length of the whole text if only its beginning is shown."""
    added: int = 0
    """The lines that it adds to a file; likewise the next one."""
    removed: int = 0


class Whole(NamedTuple):
    """The whole text of such a part, and how it is shown."""

    title: str
    text: str
    show: Callable[[str], Markup]

    @property
    def is_change(self) -> bool:
        """Whether it is a change of a file, as the lines of a difference."""
        return self.show is diff

    def block(self, most: int | None = None) -> Block:
        """Return it as it is shown, of a long one so many characters."""
        cut = most is not None and len(self.text) > most
        block = Block(self.title, self.show(self.text[:most]), len(self.text) if cut else None)
        if not self.is_change:
            return block
        signs = Counter(line[:1] for line in self.text.split("\n"))
        return block._replace(added=signs["+"], removed=signs["-"])


def result_shown(text: str) -> Markup:
    """Return a text that a tool returned: a difference in colours, else with marks on lines that report failures."""
    if _A_DIFF.match(text):
        return diff(text)
    lines = text.split("\n")
    if len(lines) > _MARKED:
        return escape(text)
    failing = {number for number, _ in failures_in(lines)}
    marked = (
        Markup("<mark>{}</mark>").format(line) if number in failing and line.strip() else escape(line)
        for number, line in enumerate(lines)
    )
    return Markup("\n").join(marked)


# -- arguments -------------------------------------------------------------------------------------


def arguments_of(arguments: Any) -> Iterator[Whole]:
    """Yield the arguments of a call: patches and replaced texts as differences, contents and commands as code."""
    if not isinstance(arguments, dict):
        text = arguments_text(arguments)
        patch = patch_in(text)
        if text.strip():
            yield Whole("Input", text, escape) if patch is None else Whole("Patch", patch, diff)
        return
    rest = dict(arguments)
    yield from _changes(rest)
    for name in TOOLS.commands:
        command = rest.pop(name, None)
        if command is not None:
            yield Whole("Command", _command(command), partial(highlighted, language="bash"))
    text = arguments_text(rest)
    if text.strip():
        yield Whole("Arguments", text, escape)


def _path_in(arguments: Any) -> str:
    """Return the path of the file that arguments name; empty if they name none."""
    named = arguments if isinstance(arguments, dict) else {}
    return next((str(named[name]) for name in TOOLS.paths if isinstance(named.get(name), str)), "")


def _changes(rest: dict[str, Any]) -> Iterator[Whole]:
    """Yield what arguments say about changes of files, and take that out of them."""
    named = next((name for name in TOOLS.paths if isinstance(rest.get(name), str)), "")
    path = _path_in(rest)
    for name, value in list(rest.items()):
        patch = patch_in(value) if isinstance(value, str) else None
        if patch is not None:
            del rest[name]
            yield Whole("Patch", patch, diff)
    several, known = rest.get("edits"), len(rest)
    for edit in several if isinstance(several, list) else [rest]:
        if isinstance(edit, dict):
            before, after = _argument(edit, TOOLS.removed), _argument(edit, TOOLS.added)
            if before and after and before.endswith("\n") and after.endswith("\n"):
                before, after = before[:-1], after[:-1]
            if before or after:
                added = "\n".join(f"+{line}" for line in (after or "").split("\n"))
                yield Whole(path, difference(before, after or "") if before else added, diff)
    if isinstance(several, list) and not any(several):
        del rest["edits"]
    content = _argument(rest, TOOLS.contents) if path else None
    if content is not None:
        yield Whole(path, content, partial(highlighted, language=language_of(path)))
    if len(rest) < known:  # its change is titled by it
        rest.pop(named, None)


def _argument(arguments: dict[str, Any], names: tuple[str, ...]) -> str | None:
    name = next((name for name in names if isinstance(arguments.get(name), str)), None)
    return None if name is None else str(arguments.pop(name))


def _command(command: Any) -> str:
    if isinstance(command, list):
        words = list(map(str, command))
        return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return arguments_text(command)
