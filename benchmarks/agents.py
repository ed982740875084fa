"""The speed of reading each agent's logs: `python -m benchmarks.agents [FOLDER ...] [--kilobytes N]`.

The logs are those below the folders, by default `../shared/logs` and `../shared/logs_more`, and the samples. Each agent
is measured alternately with Claude Code on files of the same sizes, as small files take longer by the byte; a database
with a session for each of its own. First on the files as they are, for which Claude Code's are cut at the same sizes;
then on long sessions: each log again and again in one file, under other ids, until it has this many kilobytes. Times
are processor times of `index()` in one process, into a new index, for the text that was read.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from agtrace_indexer.events import strings
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.run import index

from benchmarks.corpus.repeated import other_id
from benchmarks.table import number, ratio, table

SAMPLES = Path(__file__).resolve().parents[1] / "sample_sessions"
SHARED = SAMPLES.parents[1] / "shared"
KILOBYTES = 500
ROUNDS = 5
_LONG = 8
"""Long sessions of each agent: of twice as many bytes an index run would start workers, whose times aren't measured."""
_FEWEST = 40
"""Files of a corpus of files as they are: an agent's few are read under several names, as copies count as well."""
_YARDSTICK = "claude_code"
_HEAD = [
    *("agent", "files", "KB of a file", "MB/s", "Claude Code, MB/s", "of its speed"),
    *("1,000 events/s", "Claude Code", "of its speed"),
]
_ID = re.compile(rb'(?<=")(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}|[a-z]{2,8}[_-][\w-]{6,64})(?=")')
"""What is an id in the records of these agents; some words are taken for ids as well, which changes no length."""
_ROWS = {"opencode": ("message", "part"), "goose": ("messages", "usage_ledger")}
"""The tables with a session's rows, in the databases of agents that keep their sessions in one."""


class Log(NamedTuple):
    """A log in memory."""

    name: str
    content: bytes


class Run(NamedTuple):
    """How long it took to read logs, and what was in them."""

    seconds: float
    events: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    given = _parser().parse_args(arguments)
    folders = given.folders or [
        folder for folder in (SHARED / "logs", SHARED / "logs_more", SAMPLES) if folder.is_dir()
    ]
    size, rounds = given.kilobytes * 1000, given.rounds
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        logs, databases = found(folders, place)
        claude = sorted(logs.pop(_YARDSTICK), key=lambda log: -len(log.content))
        plain = [
            _compared(AGENTS[agent].title, _as_they_are(own), claude, place, rounds) for agent, own in logs.items()
        ]
        sys.stdout.write(f"The files as they are\n\n{table(_HEAD, plain)}\n\n")
        rows = [_compared(AGENTS[agent].title, _grown(own, size), claude, place, rounds) for agent, own in logs.items()]
        rows += [_of_a_database(agent, path, size, claude, place, rounds) for agent, path in databases.items()]
        sys.stdout.write(f"Sessions of {given.kilobytes} KB\n\n{table(_HEAD, rows)}\n")


def found(folders: Sequence[Path], place: Path) -> tuple[dict[str, list[Log]], dict[str, Path]]:
    """Return the line logs by the agent that wrote them, recognised by their content, and a database of each agent.

    Of several databases of an agent the first is taken.
    """
    index(place / "known.sqlite3", [str(folder) for folder in folders])
    with closing(sqlite3.connect(place / "known.sqlite3")) as connection:
        known = connection.execute(
            "SELECT provider, path FROM file WHERE status = 'log' ORDER BY provider, size DESC, path"
        ).fetchall()
    logs: dict[str, list[Log]] = {}
    databases: dict[str, Path] = {}
    for agent, name in known:
        path = Path(name)
        if path.suffix == ".jsonl":
            logs.setdefault(agent, []).append(Log("/".join(path.parts[-3:]), path.read_bytes()))
        elif agent in _ROWS and path.parent.suffix == ".db":
            databases.setdefault(agent, path.parent)
    return {agent: logs[agent] for agent in AGENTS if agent in logs}, databases


def _as_they_are(logs: Sequence[Log]) -> list[Log]:
    """Return an agent's logs, again and again as other sessions if there are few."""
    copies = -(-_FEWEST // len(logs))
    return [Log(f"{copy}/{log.name}", _renewed(log.content, copy, b"")) for copy in range(copies) for log in logs]


def _grown(logs: Sequence[Log], size: int) -> list[Log]:
    """Return long logs of an agent, made of its longest ones."""
    longest = cycle(sorted(logs, key=lambda log: -len(log.content))[:_LONG])
    return [_long(log, size, number) for number, log in enumerate(islice(longest, _LONG))]


def _long(log: Log, size: int, number: int) -> Log:
    """Return a log with its records again and again, each time under other ids but for the session's own."""
    own = _renewed(log.content, number, b"")
    first, newline, others = own.partition(b"\n")
    parts = [first + newline]
    length = len(parts[0])
    for copy in range(1, size):
        if length >= size or not others:
            break
        parts.append(_renewed(others, number * size + copy, first))
        length += len(parts[-1])
    return Log(f"{number}/{log.name}", b"".join(parts))


def _renewed(content: bytes, copy: int, kept: bytes) -> bytes:
    """Return records with other ids of the same shape, but for those that are in the kept ones as well."""
    return _ID.sub(lambda match: match[0] if match[0] in kept else other_id(match[0], copy), content)


def _cut(logs: Sequence[Log], sizes: Sequence[int]) -> list[Log]:
    """Return logs cut to these sizes, at the ends of lines; long ones are made of several copies."""
    largest = cycle(logs[:12])
    made = []
    for count, size in enumerate(sizes):
        log = next(largest)
        whole = _long(log, size, count).content if size > len(log.content) else log.content[:size]
        end = whole.rfind(b"\n", 0, size) + 1
        made.append(Log(f"{count}/{log.name}", whole[: end or whole.find(b"\n", size) + 1 or len(whole)]))
    return made


def _compared(title: str, logs: Sequence[Log], claude: Sequence[Log], place: Path, rounds: int) -> list[str]:
    """Measure logs of an agent beside Claude Code's of the same sizes."""
    sizes = [len(log.content) for log in logs]
    own, others = _written(place / "own", logs), _written(place / "claude", _cut(claude, sizes))
    return _row(title, len(logs), sum(sizes), own, others, rounds)


def _of_a_database(agent: str, path: Path, size: int, claude: Sequence[Log], place: Path, rounds: int) -> list[str]:
    """Measure a database with long sessions beside Claude Code's logs of the same sizes."""
    folder = place / "own"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(path, folder / path.name)
    with closing(sqlite3.connect(folder / path.name)) as connection, connection:
        sizes = _lengthened(connection, agent, size)
    others = _written(place / "claude", _cut(claude, sizes))
    return _row(f"{AGENTS[agent].title}, database", len(sizes), sum(sizes), folder, others, rounds)


def _lengthened(connection: sqlite3.Connection, agent: str, size: int) -> list[int]:
    """Repeat the rows of each session under other ids; return the bytes of each session's rows."""
    sizes = []
    for (session,) in connection.execute(f"SELECT DISTINCT session_id FROM {_ROWS[agent][0]}").fetchall():
        rows = {
            table_name: connection.execute(f"SELECT * FROM {table_name} WHERE session_id = ?", [session]).fetchall()
            for table_name in _ROWS[agent]
        }
        once = sum(len(str(value)) for found in rows.values() for row in found for value in row)
        copies = max(1, round(size / once))
        for table_name, found in rows.items():
            for copy in range(1, copies):
                for row in found:
                    again = [_again(value, copy, session) for value in row]
                    places = ", ".join("?" * len(again))
                    connection.execute(f"INSERT INTO {table_name} VALUES ({places})", again)
        sizes.append(once * copies)
    return sizes


def _again(value: object, copy: int, session: str) -> object:
    """Return a column's value for a copy of its row: another id, other ids in a record, none for a counted row."""
    if isinstance(value, int):
        return None if value < 1_000_000 else value
    if not isinstance(value, str) or value == session:
        return value
    return _renewed(f'"{value}"'.encode(), copy, session.encode())[1:-1].decode()


def _written(folder: Path, logs: Sequence[Log]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    for log in logs:
        path = folder / log.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(log.content)
    return folder


def _row(name: str, files: int, size: int, own: Path, others: Path, rounds: int) -> list[str]:
    """Read both alternately; the best times count, as the processor is shared with others."""
    runs: list[list[Run]] = [[], []]
    for _ in range(rounds):
        for folder, taken in zip((own, others), runs, strict=True):
            taken.append(_read(folder))
    best = [min(taken) for taken in runs]
    mine, theirs = (size / 1e6 / run.seconds for run in best)
    by_event = [run.events / run.seconds / 1000 for run in best]
    return [
        name,
        number(files, 0),
        number(size / files / 1000),
        number(mine),
        number(theirs),
        ratio(mine, theirs),
        number(by_event[0]),
        number(by_event[1]),
        ratio(*by_event),
    ]


def _read(folder: Path) -> Run:
    strings.start()
    with tempfile.TemporaryDirectory() as place:
        start = time.process_time()
        told = index(Path(place) / "index.sqlite3", [str(folder)])
        return Run(time.process_time() - start, told.events)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agents", description="Measure reading by agent.")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="folders with logs of agents")
    parser.add_argument("--kilobytes", type=int, default=KILOBYTES, help=f"of a long session (default: {KILOBYTES})")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"runs, of which the best counts (default: {ROUNDS})"
    )
    return parser


if __name__ == "__main__":
    main()
