"""A conversation in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.conversation.items import (
    Added,
    Answer,
    Call,
    Head,
    Item,
    Mark,
    Request,
    Thought,
    Turn,
    masked,
    took,
    when,
)
from agtrace.text.lines import cut
from agtrace.text.numbers import counted
from agtrace.times import iso

# -- safe Markdown -------------------------------------------------------------------------------------
# Texts of a log within Markdown: as they are, but nothing in them is HTML, fetches anything, or ends its container. A
# text that is Markdown itself is put in a quote, which no text can end. In it, code stays as it is; elsewhere, what
# would begin HTML, an image, or a link to anything but a page is written with entities, which look the same. Where
# code begins and ends is decided as CommonMark does; where that isn't plain, nothing counts as code.

_FENCE = later(r"(?P<indent> *)(?P<marks>`{3,}(?=[^`|]*$)|~{3,}(?=[^|]*$))")
"""The beginning of a block of code; a line with | may be the head of a table instead."""

_LIKE_A_FENCE = later(r"[\s>*+\-\d.)]*(?:`{3,}|~{3,})")
_TICKS = later("`+")
_ENTITY = later(
    r"<(?=[A-Za-z/!?])"  # HTML, and links in angle brackets
    r"|(?<=!)\["  # images
    r"|(?<=\])\((?!https?://|mailto:|#|[\w./#~%?=+-]+[)\s])"  # links to scripts and programs
    r"|(?<=\]):"  # what defines links and footnotes
)
_ENTITIES = {"<": "&lt;", "[": "&#91;", "(": "&#40;", ":": "&#58;"}
_ESCAPED = later(r"([\\`*_{}\[\]<>&~!|#$^@])")


def quoted(text: str) -> str:
    """Return a Markdown text as a quote."""
    return "\n".join(f"> {line}" if line else ">" for line in harmless(text.strip("\n")).split("\n"))


def fenced(text: str, language: str = "text") -> str:
    """Return a text as a block of code, with a fence that is longer than any in it."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = text if text.endswith("\n") else f"{text}\n"
    return f"{fence}{language}\n{body}{fence}"


def code(line: str) -> str:
    """Return a line as a span of code; empty for an empty one."""
    if not line.strip():
        return ""
    runs = set(map(len, _TICKS.findall(line)))
    ticks = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    space = " " if line.startswith(("`", " ")) or line.endswith(("`", " ")) else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def escaped(line: str) -> str:
    """Return a line as plain text in Markdown."""
    return _ESCAPED.sub(r"\\\1", line)


class _Fence(Struct, frozen=True):
    """The fence that code begins with."""

    indent: int
    mark: str
    length: int

    def ends(self, line: str) -> bool:
        """Whether a line is a fence that may end the code."""
        bare = line.strip()
        return set(bare) == {self.mark} and len(bare) >= self.length

    def surely_ends(self, line: str) -> bool:
        """Whether it does so for certain: what is indented may be in a list, whose margin isn't known."""
        return _indent(line) == self.indent or (not self.indent and _indent(line) < 4)


def harmless(text: str) -> str:
    """Return a Markdown text in which nothing is HTML, an image, or a link to a script."""
    return "\n".join(_harmless_lines(text.split("\n")))


def _harmless_lines(lines: list[str]) -> Iterator[str]:
    fence: _Fence | None = None
    certain = True  # whether it is known where blocks of code begin and end
    whole = True  # whether every span of code in this paragraph ended on its line
    blank = True  # whether the line before was
    for line in lines:
        if fence is not None and line.strip() and _indent(line) < fence.indent:
            fence, certain = None, False
        if fence is not None:
            if fence.ends(line) and (fence.indent or fence.surely_ends(line)):
                certain = fence.surely_ends(line)
                fence = None
            yield line
            continue
        opened = _FENCE.match(line)
        if certain and opened and (len(opened["indent"]) < 4 or blank):
            fence = _Fence(len(opened["indent"]), opened["marks"][0], len(opened["marks"]))
            whole, blank = True, False
            yield _with_entities(line)
            continue
        certain = certain and not _LIKE_A_FENCE.match(line)
        blank = not line.strip()
        shown, whole = _outside_code(line) if certain and (whole or blank) else (_with_entities(line), False)
        yield shown


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _outside_code(line: str) -> tuple[str, bool]:
    """Write entities outside of the spans of code on a line; return whether all of them end on it."""
    if "\\`" in line:
        return _with_entities(line), False
    runs = list(_TICKS.finditer(line))
    parts, at, number = [], 0, 0
    while number < len(runs):
        run = runs[number]
        closing = next((k for k in range(number + 1, len(runs)) if len(runs[k][0]) == len(run[0])), None)
        if closing is None:
            return _with_entities(line), False
        if "|" in line[run.start() : runs[closing].end()]:  # the end of a cell, if this is a table
            return _with_entities(line), True
        parts += [_with_entities(line[at : run.start()]), line[run.start() : runs[closing].end()]]
        at, number = runs[closing].end(), closing + 1
    return "".join([*parts, _with_entities(line[at:])]), True


def _with_entities(text: str) -> str:
    return _ENTITY.sub(lambda found: _ENTITIES[found[0]], text)


# -- a conversation ----------------------------------------------------------------------------------

_LINES = 6
"""The most lines that are shown of what a tool returned, unless all are wanted."""

_CHANGED_LINES = 40
"""The same of what a call changes in files."""

_LINE = 240
"""The most characters of each of them."""

OF_THE_PROGRAM = "message of the agent's program"
"""What the program of an agent added."""

_PLURALS = {
    OF_THE_PROGRAM: "messages of the agent's program",
    "line of tools": "lines of tools",
    "summary": "summaries",
}


def head(about: Head, found: Mapping[str, int]) -> Iterator[str]:
    """Yield the head, given what was masked."""
    yield f"# {escaped(about.title)}\n\n"
    for fact in (*about.facts, masked(found)):
        yield f"- **{fact.name}:** {' '.join(filter(None, (escaped(fact.says), code(fact.quoted))))}\n"


def body(about: Head, items: Iterable[Item], *, thinking: bool, tools: bool) -> Iterator[str]:
    """Yield the conversation; `thinking` and `tools` tell whether thoughts, and calls in full, are part of it."""
    left = Counter[str]()
    speaking = False
    for item in items:
        match item:
            case Added():
                left[OF_THE_PROGRAM] += 1
                continue
            case Thought() if not thinking:
                left["thought" if item.label == "Thinking" else "summary"] += 1
                continue
            case Answer():
                yield "" if speaking else f"\n**{about.agent}**\n"
                yield f"\n{quoted(item.text)}\n"
            case Call():
                yield from _call(item, tools, left)
            case Turn():
                time = f" · {when(iso(item.time))}" if item.time else ""
                yield f"\n## Turn {item.number}{time}{' · copied' * item.copied}\n"
            case Mark():
                yield f"\n*{escaped(item.text)}*\n"
            case Request() | Thought():
                yield f"\n**{item.label}**\n\n{quoted(item.text)}\n"
        speaking = isinstance(item, (Answer, Call, Thought))
    said = left_out(left)
    if said:
        yield f"\n---\n\n*Left out: {said}.*\n"


def _call(call: Call, full: bool, left: Counter[str]) -> Iterator[str]:
    exit_code = f"exit code {call.exit_code}" if call.exit_code else ""
    ended = ", ".join(filter(None, (call.outcome, exit_code, took(call.duration_ms))))
    agent = f", sub-agent {code(call.agent)}" if call.agent else ""
    yield f"\n{code(call.tool)} {code(call.about)}".rstrip() + f": {ended}{agent}\n"
    if call.error:
        yield f"\nError: {code(call.error)}\n"
    if call.objection:
        yield f"\n**Refused**\n\n{quoted(call.objection)}\n"
    if full:
        yield from (f"\n{fenced(text)}\n" for text in (call.arguments, call.result or "") if text.strip())
        return
    from agtrace.conversation.code import arguments_of  # `agtrace show` needs none of it

    parts = list(arguments_of(call.given))
    change, unchanged = _first("\n".join(part.text for part in parts if part.is_change), _CHANGED_LINES)
    if change:
        yield f"\n{fenced(change, 'diff')}\n"
        arguments = sum(part.text.strip().count("\n") + 1 for part in parts if not part.is_change)
    else:
        arguments = call.arguments.strip().count("\n")  # beside the one that is shown
    lines, more = _first(call.result or "", 0 if change and call.outcome is Outcome.OK else _LINES)
    if lines:
        yield f"\n{fenced(lines)}\n"
    left_here = (
        (unchanged, "more line", "the change"),
        (more, "more line" if lines else "line", "the result"),
        (arguments, "line", "arguments"),
    )
    said = [f"{counted(number, what)} of {of}" for number, what, of in left_here if number]
    if said:
        yield f"\n*{' and '.join(said)} left out*\n"
    left["line of tools"] += unchanged + more + arguments


def _first(text: str, most: int) -> tuple[str, int]:
    if not text.strip():
        return "", 0
    lines = text.strip("\n").split("\n")
    return "\n".join(cut(line, _LINE) for line in lines[:most]), max(len(lines) - most, 0)


def left_out(left: Mapping[str, int]) -> str:
    """Say how much a conversation doesn't show, given the numbers by noun; empty if that is nothing."""
    named = (
        counted(number, what) if what not in _PLURALS or number == 1 else f"{number:,} {_PLURALS[what]}"
        for what, number in left.items()
        if number
    )
    return ", ".join(named)
