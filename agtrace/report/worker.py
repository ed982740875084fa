"""A process that examines sessions for a report, which another process puts together.

`python -m agtrace.report.worker INDEX ENTRIES` answers each pickle on its input (what the report was asked for, and
the ids of sessions) with a pickle of the examined sessions. It ends when its input does. Only agtrace itself is at
the other end.
"""

from __future__ import annotations

import pickle
import signal
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

from agtrace_indexer import redact
from agtrace_indexer.index.opening import open_read_only

from agtrace.report.selection import families
from agtrace.report.survey import Examiner


def serve(database: Path, entries: int, portions: BinaryIO, answers: BinaryIO) -> None:
    """Examine one portion after the other, using the rules for secrets in the index's folder."""
    redact.use(database.parent)
    with closing(open_read_only(database)) as connection:
        known = None
        while True:
            asked, ids = pickle.load(portions)
            known = known or {family.row.id: family for family in families(connection, asked.selection)}
            seen = Examiner(connection, asked, [known[id] for id in ids if id in known], entries).all()
            pickle.dump(seen, answers)
            answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal: the parent decides
    with suppress(EOFError, BrokenPipeError):
        serve(Path(sys.argv[1]), int(sys.argv[2]), sys.stdin.buffer, sys.stdout.buffer)
