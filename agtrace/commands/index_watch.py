"""`agtrace index --watch`: print a line for each run that changed something, until it is stopped."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from types import FrameType

from agtrace_indexer.watch.loop import Change, watch
from msgspec.structs import asdict

from agtrace.commands.asking import usable
from agtrace.commands.errors import tell
from agtrace.commands.index import index_once, roots_of
from agtrace.commands.printing import print_json, print_lines
from agtrace.text.numbers import counted


def watch_index(paths: tuple[str, ...], *, rebuild: bool, as_json: bool) -> None:
    """Index, then keep the index fresh. SIGTERM ends it with exit code 0, Ctrl-C with 130."""
    signal.signal(signal.SIGTERM, _end)
    threading.excepthook = _lost
    chosen = usable()
    database = chosen.database
    summary = index_once(paths, rebuild=rebuild, as_json=as_json, indent=None)
    if not as_json:
        print_lines(["watching for changes; Ctrl-C stops"])
    with closing(watch(database, roots_of(paths), summary, tell, chosen.keep_days)) as changes:
        for change in changes:
            if as_json:
                print_json({**asdict(change.summary), "index": str(database)}, indent=None)
            else:
                print_lines([f"{datetime.now():%H:%M:%S}  {', '.join(_words(change))}"])


def _words(change: Change) -> Iterator[str]:
    """Yield what a person reads after a run."""
    if change.summary.files_changed:
        yield f"{counted(change.summary.files_changed, 'file')} read"
    if change.files < 0:
        yield f"{counted(-change.files, 'file')} gone"
    for more, what in ((change.events, "event"), (change.sessions, "session")):
        if more:
            yield f"{more:+,} {what}{'s' * (abs(more) != 1)}"


def _end(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _lost(failure: threading.ExceptHookArgs) -> None:
    """Report a failed thread of watchdog; its notifications are set up again."""
    tell(f"notifications of changed files failed ({failure.exc_value!r}); trying again")
