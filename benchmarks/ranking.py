"""What the ranking index costs: `python -m benchmarks.ranking LOGS [ROUNDS]`.

The logs are indexed once, by one process. Then the ranking index alone is made anew, in one transaction that is rolled
back, and again with an FTS5 table of the same form that gets the same words without looking for them: the difference
is what finding the words takes, which workers do beside each other. Times are processor times, the best of the rounds.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agtrace_indexer import redact
from agtrace_indexer.index import ranking
from agtrace_indexer.run import index

from benchmarks.table import table

ROUNDS = 5

_PAGES = "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE name LIKE 'ranked%')"


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    if not arguments or not Path(arguments[0]).is_dir():
        sys.exit("python -m benchmarks.ranking LOGS [ROUNDS]: LOGS is a folder of logs")
    logs, rounds = Path(arguments[0]).absolute(), int(arguments[1]) if len(arguments) > 1 else ROUNDS
    redact.redact("compile the rules")
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "index.sqlite3"
        index(database, [str(logs)], otherwise=[])
        connection = sqlite3.connect(database, isolation_level=None)
        sys.stdout.write(report(connection, sum(path.stat().st_size for path in _files(logs)), rounds) + "\n")
        connection.close()


def report(connection: sqlite3.Connection, size: int, rounds: int) -> str:
    """Return the table for an index of logs of so many bytes."""
    sessions = [id for (id,) in connection.execute("SELECT id FROM session")]
    found = [event for session in sessions for event in ranking.ranked_events(connection, session, {})]
    rows = [(event.id, event.text) for event in found]
    taken = int(connection.execute(_PAGES).fetchone()[0])

    def whole() -> None:
        ranking.make_anew(connection)

    def without_finding() -> None:
        connection.execute("INSERT INTO ranked(ranked) VALUES ('delete-all')")
        connection.executemany("INSERT INTO ranked (rowid, words) VALUES (?, ?)", rows)

    both = [min(_seconds(connection, do) for _ in range(rounds)) for do in (whole, without_finding)]
    whole_us, inserting_us = (seconds / len(found) * 1e6 for seconds in both)
    return table(
        [f"{size / 1e6:,.0f} MB of logs", ""],
        [
            ["ranked events", f"{len(found):,}"],
            ["ranking index, MB", f"{taken / 1e6:.2f}"],
            ["of the logs, %", f"{taken / size * 100:.2f}"],
            ["made anew, us an event", f"{whole_us:.1f}"],
            ["of it FTS5, us an event", f"{inserting_us:.1f}"],
        ],
    )


def _seconds(connection: sqlite3.Connection, do: Callable[[], None]) -> float:
    connection.execute("BEGIN IMMEDIATE")
    began = time.process_time()
    do()
    took = time.process_time() - began
    connection.execute("ROLLBACK")
    return took


def _files(logs: Path) -> list[Path]:
    return [path for path in logs.rglob("*") if path.is_file()]


if __name__ == "__main__":
    main(sys.argv[1:])
