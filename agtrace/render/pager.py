"""What is longer than a screen goes through the user's pager."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any

from rich.console import Console

from agtrace.render.terminal import OUT

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
