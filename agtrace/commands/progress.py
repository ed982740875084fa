"""A bar on stderr while a command works through many sessions; none where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def sessions_bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """Lend a function that is told how many of how many sessions are done, and shows that at a terminal."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from agtrace.serving.interruption import last_words

    console = Console(stderr=True)
    if not console.is_dumb_terminal:
        last_words.append(_SHOW_CURSOR)  # the bar hides it
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn("sessions"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def note(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield note
