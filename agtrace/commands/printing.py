"""Printing an answer, as JSON for a program or rendered for a person; writing a file that quotes logs; and bars."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from agtrace.commands.errors import USAGE, fail

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

_SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def bar_of(*columns: ProgressColumn) -> Iterator[Progress]:
    """Show a bar with these columns on stderr, which goes when it is done."""
    from rich.console import Console
    from rich.progress import Progress

    from agtrace.serving.interruption import last_words

    console = Console(stderr=True)
    if not console.is_dumb_terminal:
        last_words.append(_SHOW_CURSOR)  # the bar hides it
    with Progress(*columns, console=console, transient=True) as bar:
        yield bar


@contextmanager
def sessions_bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """Lend a function that is told how many of how many sessions are done, and shows that at a terminal."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

    with bar_of(TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn("sessions")) as bar:
        task = bar.add_task(doing, total=None)

        def note(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield note


def write(path: Path, contents: Iterable[str] | Callable[[Path], None], *, replace: bool) -> Path:
    """Write a file, and return its resolved path; an existing file is an error unless it may be replaced.

    `contents` are pieces of a text, or write the file themselves.
    """
    from agtrace.serving.interruption import together

    target = path.expanduser().resolve()
    try:
        if target.exists() and not target.is_file():
            _fill(target, contents)  # a device or a pipe must not be replaced by a file
        else:
            with together:
                _put(target, contents, replace=replace)
    except FileExistsError:
        fail(f"{path} exists: use --force to replace it", USAGE)
    except OSError as error:
        fail(f"can't write {path}: {error.strerror or error}", USAGE)
    return target


def _fill(path: Path, contents: Iterable[str] | Callable[[Path], None]) -> None:
    if callable(contents):
        contents(path)
        return
    with path.open("w", encoding="utf-8") as file:
        file.writelines(contents)


def _put(target: Path, contents: Iterable[str] | Callable[[Path], None], *, replace: bool) -> None:
    import tempfile

    handle, written = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    os.close(handle)
    try:
        _fill(Path(written), contents)
        if replace:
            Path(written).replace(target)
        else:
            os.link(written, target)  # fails if there is such a file, even one that appeared just now
    finally:
        Path(written).unlink(missing_ok=True)


def leave_lines(value: Any, as_json: bool, lines: Iterable[str]) -> None:
    """Print a value as JSON, or these lines for a person."""
    if as_json:
        print_json(value)
    else:
        print_lines(lines)


def print_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines, by default on stdout."""
    stream = stream or sys.stdout
    for line in lines:
        stream.write(f"{line}\n")
    stream.flush()


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON, with every control character escaped, since some are commands to a terminal."""
    from agtrace.text.lines import UNSEEN

    has_all_letters = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    text = json.dumps(value, ensure_ascii=not has_all_letters, indent=indent)
    unseen = re.compile(f"[{UNSEEN}\u2028\u2029]")
    sys.stdout.write(unseen.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n")
    sys.stdout.flush()
