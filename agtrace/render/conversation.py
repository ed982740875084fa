"""A session as a conversation, for people: on a terminal, answers are set as Markdown; elsewhere, they are plain text.

Each item is printed when it comes, so that a long session begins at once. Texts of a log are escaped before Rich sees
them: nothing in them is HTML, an image or a link of the terminal's.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT, STYLES, plain, plain_line, when
from agtrace.report.conversation.as_markdown import OF_THE_PROGRAM, left_out
from agtrace.report.conversation.telling import Execution, Folded, Head, Item, Mark, Passed, Request, Said, Turn, took
from agtrace.sessions.query import Resuming
from agtrace.text.numbers import counted

_NONE = ("", "cat")


@contextmanager
def paged(program: str, environment: Mapping[str, str]) -> Iterator[Console]:
    """Yield a console that prints through a pager if stdout is a terminal, else the usual one.

    `program` is a shell command, run in an environment; empty for no pager. The block ends early, and silently, when
    the user leaves the pager.
    """
    if not (OUT.is_terminal and program not in _NONE and _found(program)):
        yield OUT
        return
    before = signal.signal(signal.SIGINT, _left_to_the_pager)
    process = subprocess.Popen(program, shell=True, stdin=subprocess.PIPE, env=environment)
    entry: Any = process.stdin
    try:
        with suppress(_Left), _Pipe(entry, errors="replace", encoding=sys.stdout.encoding) as pipe:
            yield _console(pipe)
    finally:
        process.wait()
        signal.signal(signal.SIGINT, before)


def _found(program: str) -> bool:
    """Whether the first word of a command is a program; what only a shell understands is taken to be."""
    try:
        first = next(iter(shlex.split(program)), "")
    except ValueError:
        return True
    return "=" in first or shutil.which(first) is not None


def _left_to_the_pager(_signal: int, _frame: object) -> None:
    """Do nothing at Ctrl-C: the pager gets it, too, and decides."""


def _console(pipe: TextIOWrapper) -> Console:
    colours: Any = OUT.color_system
    return Console(
        file=pipe, force_terminal=True, color_system=colours, width=OUT.width, no_color=OUT.no_color,
        highlight=False, markup=False, emoji=False,
    )  # fmt: skip


class _Left(Exception):
    """The user left the pager."""


class _Pipe(TextIOWrapper):
    """The pager's input, raising `_Left` when it reads no more."""

    def write(self, text: str, /) -> int:
        """Write a text. Raises `_Left`."""
        try:
            return super().write(text)
        except BrokenPipeError as error:
            raise _Left from error

    def flush(self) -> None:
        """Write what is buffered. Raises `_Left`."""
        try:
            super().flush()
        except BrokenPipeError as error:
            raise _Left from error

    def close(self) -> None:
        """Close the pipe, whose other end may be closed already."""
        with suppress(BrokenPipeError, _Left):
            super().close()


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
    page = _Page(out, about.agent, unfolded)
    for item in items:
        page.item(item)
    page.end()


def _dim(out: Console, line: str) -> None:
    if line:
        out.print(Text(line, style="dim"), soft_wrap=not out.is_terminal)


class _Page:
    """A printer of items, which counts what it folds away."""

    def __init__(self, out: Console, agent: str, unfolded: Unfolded) -> None:
        self._out, self._agent, self._unfolded = out, agent, unfolded
        self._left = Counter[str]()
        self._calling = False

    def item(self, item: Item) -> None:
        """Print an item; calls that follow each other have no space between them."""
        if isinstance(item, Passed):
            self._left[OF_THE_PROGRAM] += 1
            return
        calling = isinstance(item, (Execution, Folded)) and not (self._unfolded.tools or self._unfolded.thinking)
        if not (calling and self._calling):
            self._out.print()
        self._calling = calling
        match item:
            case Turn():
                copied = "copied" if item.copied else ""
                said = "  ".join(filter(None, (f"turn {item.number}", when(item.time), copied)))
                self._out.print(
                    Rule(Text(said, style="dim"), align="left", style="dim") if self._out.is_terminal else said
                )
            case Request():
                self._request(item)
            case Said():
                shown = plain(item.text).strip("\n")
                if self._out.is_terminal and len(shown) <= _MOST_MARKDOWN:
                    from agtrace.render.markdown import as_markdown  # 60 ms with what it loads, for terminals only

                    self._out.print(Padding(as_markdown(shown), (0, 0, 0, _OF_MODEL)))
                else:
                    self._indented(shown, _OF_MODEL)
            case Folded():
                lines = item.text.strip("\n").count("\n") + 1
                self._line(Text(f"{item.event:>7}  {item.label}, {counted(lines, 'line')}", style="dim"))
                if self._unfolded.thinking:
                    self._quote(item.text, "dim italic")
                else:
                    self._left["thought" if item.label == "Thinking" else "summary"] += 1
            case Execution():
                self._call(item)
            case Mark():
                self._line(Text(plain_line(item.text), style="yellow"))

    def end(self) -> None:
        """Print what was folded away, and how to see it."""
        said = left_out(self._left)
        if said:
            self._out.print()
            shown = "" if all(self._unfolded) else ": --all shows thoughts and results"
            _dim(self._out, f"left out: {said}{shown}")

    def _request(self, request: Request) -> None:
        label = "" if request.label == "Request" else f"{request.label}: "
        text = Text(label, style="dim").append(plain(request.text).strip("\n"), style="not dim bold")
        if not self._out.is_terminal:
            self._out.print("\n".join(f"> {line}" for line in text.plain.split("\n")), soft_wrap=True)
            return
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(style="bold cyan", no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(">", text)
        self._out.print(grid)

    def _call(self, call: Execution) -> None:
        """Print a call on one line, of which what it is about is cut on a terminal, and why it failed on another."""
        ended = ", ".join(filter(None, (
            f"exit code {call.exit_code}" if call.exit_code else "", took(call.duration_ms),
            f"sub-agent {plain_line(call.agent)}" if call.agent else "",
        )))  # fmt: skip
        tail = Text("  ").append(call.outcome, style=STYLES.get(call.outcome, ""))
        tail.append(f"  {ended}" if ended else "", style="dim")
        line = Text(f"{call.event:>7}", style="dim").append(f"  {plain_line(call.tool)}", style="not dim cyan")
        line.append(f"  {plain_line(call.about)}" if call.about else "", style="not dim")
        if self._out.is_terminal:
            line.truncate(max(self._out.width - tail.cell_len, _DEEP * 2), overflow="ellipsis")
        self._line(line + tail)
        if call.error:
            self._line(Text(f"{'':{_DEEP}}{plain_line(call.error)}", style="red"))
        if call.objection:
            self._quote("\n".join(f"> {line}" for line in plain(call.objection).strip().split("\n")), "bold")
        if self._unfolded.tools:
            self._quote(call.arguments, "dim")
            self._quote(call.result or "", "")
        else:
            self._left["line of tools"] += sum(map(_lines, (call.arguments, call.result or "")))

    def _line(self, line: Text) -> None:
        """Print one line, which is cut on a terminal only."""
        if self._out.is_terminal:
            self._out.print(line, no_wrap=True, overflow="ellipsis")
        else:
            self._out.print(line, soft_wrap=True)

    def _quote(self, text: str, style: str) -> None:
        shown = plain(text).strip("\n")
        if not shown.strip():
            return
        if self._out.is_terminal:
            self._out.print(Padding(Text(shown, style=style, overflow="fold"), (0, 0, 0, _DEEP)))
        else:
            self._indented(shown, _DEEP)

    def _indented(self, text: str, deep: int) -> None:
        """Print a text in full, so that no line of it can pass for one of ours."""
        self._out.print(Text("\n".join(f"{'':{deep}}{line}" for line in text.split("\n"))), soft_wrap=True)


def _lines(text: str) -> int:
    return text.strip("\n").count("\n") + 1 if text.strip() else 0
