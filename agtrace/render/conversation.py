"""A session as a conversation, for people: on a terminal, answers are set as Markdown; elsewhere, they are plain text.

Each item is printed when it comes, so that a long session begins at once. Texts of a log are escaped before Rich sees
them: nothing in them is HTML, an image or a link of the terminal's. `agtrace watch` shows the same items.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from io import TextIOWrapper
from queue import SimpleQueue
from typing import IO, Any, ClassVar, NamedTuple

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from agtrace.conversation.items import Added, Answer, Call, Head, Item, Mark, Request, Thought, Turn, took
from agtrace.conversation.markdown import OF_THE_PROGRAM, harmless, left_out
from agtrace.render.terminal import OUT, STYLES, plain, plain_line
from agtrace.sessions.query import Resuming
from agtrace.text.numbers import counted
from agtrace.times import iso, when

_NONE = ("", "cat")


@contextmanager
def paged(program: str, environment: Mapping[str, str]) -> Iterator[Console]:
    """Yield a console that prints through a pager if stdout is a terminal, else the usual one.

    `program` is a shell command, run in an environment; empty for no pager. The block ends early, and silently, when
    the user leaves the pager.
    """
    if not (OUT.is_terminal and program not in _NONE and _is_program(program)):
        yield OUT
        return
    before = signal.signal(signal.SIGINT, _left_to_the_pager)
    process = subprocess.Popen(program, shell=True, stdin=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    try:
        with suppress(_PagerClosed), closing(_Pipe(process.stdin)) as pipe:
            yield _console(pipe)
    finally:
        process.wait()
        signal.signal(signal.SIGINT, before)


def _is_program(program: str) -> bool:
    """Whether the first word of a command is a program; what only a shell understands is taken to be."""
    try:
        first = next(iter(shlex.split(program)), "")
    except ValueError:
        return True
    return "=" in first or shutil.which(first) is not None


def _left_to_the_pager(_signal: int, _frame: object) -> None:
    """Do nothing at Ctrl-C: the pager gets it, too, and decides."""


def _console(pipe: Any) -> Console:
    colours: Any = OUT.color_system
    return Console(
        file=pipe, force_terminal=True, color_system=colours, width=OUT.width, no_color=OUT.no_color,
        highlight=False, markup=False, emoji=False,
    )  # fmt: skip


class _PagerClosed(Exception):
    """The user left the pager."""


class _Pipe:
    """The pager's input, which takes any length at once: a thread waits for the reader in the place of the writer."""

    def __init__(self, entry: IO[bytes]) -> None:
        self.encoding = sys.stdout.encoding
        self._texts: SimpleQueue[str | None] = SimpleQueue()
        self._entry = TextIOWrapper(entry, errors="replace", encoding=self.encoding)
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        with suppress(BrokenPipeError), self._entry:
            self._entry.writelines(iter(self._texts.get, None))

    def write(self, text: str, /) -> int:
        """Write a text. Raises `_Left` when nobody reads any more."""
        if not self._thread.is_alive():
            raise _PagerClosed
        self._texts.put(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: what is written is on its way."""

    def close(self) -> None:
        """End the input."""
        self._texts.put(None)


_FACTS = ("User", "Project", "Agent", "Model", "Part of", "Began", "Lasted", "Cost", "Size")
_MOST_MARKDOWN = 40_000
"""The characters of an answer beyond which it is printed as it is: setting it would take seconds."""

_OF_MODEL = 2
"""The columns before what the model says."""

_DEEP = 9
"""The columns before what belongs to an event, whose index is there."""


class Unfolded(NamedTuple):
    """What is shown in full."""

    tools: bool = False
    """Arguments and results of tool calls."""
    thinking: bool = False
    """Thoughts, and the summaries of compactions."""


def conversation(out: Console, about: Head, continued: Resuming, items: Iterable[Item], unfolded: Unfolded) -> None:
    """Print a conversation, with which session it is above, and below it what is folded away."""
    facts = {fact.name: " ".join(filter(None, (fact.says, fact.quoted))) for fact in about.facts}
    facts["Began"] = when(about.began)
    out.print(Text(plain_line(about.title), style="bold"), soft_wrap=not out.is_terminal)
    named = (plain_line(facts[name]) for name in _FACTS if facts.get(name))
    _dim(out, "  ".join(named))
    _dim(out, "  ".join(filter(None, (f"ended: {facts['Ended']}", facts.get("Done"), facts.get("Shown")))))
    out.print(Text(plain_line(facts["Session"]), style="cyan"), soft_wrap=True)
    why = continued.obstacle
    line = Text(f"can't be continued: {why}", style="dim") if why else Text(plain_line(continued.line), style="cyan")
    out.print(line, soft_wrap=True)
    left, after_call = Counter[str](), False
    for item in items:
        left += _folded(item, unfolded)
        if isinstance(item, Added):
            continue
        is_call = isinstance(item, (Call, Thought)) and not any(unfolded)
        if not (is_call and after_call):  # calls that follow each other have no space between them
            out.print()
        after_call = is_call
        for part in rendered(item, unfolded, out.width if out.is_terminal else None):
            out.print(part, soft_wrap=not out.is_terminal)
    if said := left_out(left):
        out.print()
        _dim(out, f"left out: {said}{'' if all(unfolded) else ': --all shows thoughts and results'}")


def _dim(out: Console, line: str) -> None:
    if line:
        out.print(Text(line, style="dim"), soft_wrap=not out.is_terminal)


def _folded(item: Item, unfolded: Unfolded) -> Counter[str]:
    """Return what isn't shown of an item, by noun."""
    match item:
        case Added():
            return Counter({OF_THE_PROGRAM: 1})
        case Thought() if not unfolded.thinking:
            return Counter({"thought" if item.label == "Thinking" else "summary": 1})
        case Call() if not unfolded.tools:
            return Counter({"line of tools": sum(map(_lines, (item.arguments, item.result or "")))})
    return Counter()


def _lines(text: str) -> int:
    return text.strip("\n").count("\n") + 1 if text.strip() else 0


def on_screen(item: Item, width: int) -> RenderableType:
    """Return an item of a session that goes on, as a screen of this width shows it."""
    return Group(*rendered(item, Unfolded(), width, goes_on=True))


def rendered(item: Item, unfolded: Unfolded, width: int | None, *, goes_on: bool = False) -> Iterator[RenderableType]:
    """Yield the parts of an item, each on lines of its own: for a terminal of a width, or without one as plain text.

    Plain text is indented so that no line of a log can pass for one of ours. `goes_on`: whether a call without a
    result may still get one.
    """
    match item:
        case Turn():
            copied = "copied" if item.copied else ""
            said = "  ".join(filter(None, (f"turn {item.number}", when(iso(item.time)), copied)))
            yield said if width is None else Rule(Text(said, style="dim"), align="left", style="dim")
        case Request():
            yield _request(item, width)
        case Answer():
            text = plain(item.text).strip("\n")
            if width is not None and len(text) <= _MOST_MARKDOWN:
                yield Padding(_markdown(text), (0, 0, 0, _OF_MODEL))
            else:
                yield _indented(text, _OF_MODEL)
        case Thought():
            lines = item.text.strip("\n").count("\n") + 1
            yield _line(Text(f"{item.event:>7}  {item.label}, {counted(lines, 'line')}", style="dim"))
            if unfolded.thinking:
                yield from _quote(item.text, "dim italic", width)
        case Call():
            yield from _call(item, unfolded, width, goes_on=goes_on)
        case Mark():
            yield _line(Text(plain_line(item.text), style="yellow"))


def _request(request: Request, width: int | None) -> RenderableType:
    label = "" if request.label == "Request" else f"{request.label}: "
    text = Text(label, style="dim").append(plain(request.text).strip("\n"), style="not dim bold")
    if width is None:
        return "\n".join(f"> {line}" for line in text.plain.split("\n"))
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(">", text)
    return grid


def _call(call: Call, unfolded: Unfolded, width: int | None, *, goes_on: bool) -> Iterator[RenderableType]:
    """Yield a call on one line, of which what it is about is cut on a terminal, and why it failed on another."""
    ended = ", ".join(filter(None, (
        f"exit code {call.exit_code}" if call.exit_code else "", took(call.duration_ms),
        f"sub-agent {plain_line(call.agent)}" if call.agent else "",
    )))  # fmt: skip
    waits = goes_on and call.outcome == "unknown" and call.result_event is None
    tail = Text("  ").append("no result yet" if waits else call.outcome, style=STYLES.get(call.outcome, ""))
    tail.append(f"  {ended}" if ended else "", style="dim")
    line = Text(f"{call.event:>7}", style="dim").append(f"  {plain_line(call.tool)}", style="not dim cyan")
    line.append(f"  {plain_line(call.about)}" if call.about else "", style="not dim")
    if width is not None:
        line.truncate(max(width - tail.cell_len, _DEEP * 2), overflow="ellipsis")
    yield _line(line + tail)
    if call.error:
        yield _line(Text(f"{'':{_DEEP}}{plain_line(call.error)}", style="red"))
    if call.objection:
        quoted = "\n".join(f"> {line}" for line in plain(call.objection).strip().split("\n"))
        yield from _quote(quoted, "bold", width)
    if unfolded.tools:
        yield from _quote(call.arguments, "dim", width)
        yield from _quote(call.result or "", "", width)


def _line(text: Text) -> Text:
    """Return a line that a terminal cuts instead of wrapping it."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _quote(text: str, style: str, width: int | None) -> Iterator[RenderableType]:
    shown = plain(text).strip("\n")
    if shown.strip():
        padded = Padding(Text(shown, style=style, overflow="fold"), (0, 0, 0, _DEEP))
        yield _indented(shown, _DEEP) if width is None else padded


def _indented(text: str, deep: int) -> Text:
    return Text("\n".join(f"{'':{deep}}{line}" for line in text.split("\n")))


def _markdown(text: str) -> RenderableType:
    """Return a text without control characters as Markdown to print; links are followed by their addresses."""
    from rich.markdown import Heading, Markdown  # 60 ms with what it loads, for terminals only

    class LeftHeading(Heading):
        LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}

    class LeftMarkdown(Markdown):
        elements: ClassVar = {**Markdown.elements, "heading_open": LeftHeading}

    return LeftMarkdown(harmless(text), code_theme="ansi_dark", hyperlinks=False)
