"""The limits of this machine: `python -m benchmarks.limits CORPUS [--megabytes N] [--runs N]`.

Four steps over the same logs on one core, each including the ones before: read the bytes, split them into lines,
decode each line's JSON, and put the decoded strings into a full-text index. An indexer's speed means little without
them: it can't be faster than the last step whose work it does in full. Files are read from the page cache, after a
first pass that isn't measured.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

MEGABYTES = 100.0
"""The part of a corpus that is measured, in 10^6 bytes."""
RUNS = 5

TABLE = """
CREATE VIRTUAL TABLE words USING fts5(
  text, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_./-'"
)
"""
BULK = """
INSERT INTO words(words, rank) VALUES ('automerge', 0);
INSERT INTO words(words, rank) VALUES ('crisismerge', 64);
INSERT INTO words(words, rank) VALUES ('hashsize', 16777216);
"""
"""Makes FTS5 merge late and seldom, the fastest way to fill a new table."""
INSERT = "INSERT INTO words(rowid, text) VALUES (?, ?)"

Step = Callable[[Sequence[Path]], int]
"""Processes files and returns the number of bytes read."""


@dataclass(frozen=True)
class Limit:
    """The result of one step."""

    seconds: float
    """The median over the runs."""
    bytes: int
    """Bytes of logs that each run processed."""

    @property
    def rate(self) -> float:
        """10^6 bytes of logs per second."""
        return self.bytes / 1e6 / self.seconds


def logs(corpus: Path, megabytes: float) -> list[Path]:
    """Return some of the `.jsonl` logs below a folder, the same each time, with at least this many 10^6 bytes."""
    found = sorted(corpus.rglob("*.jsonl"))
    random.Random(1).shuffle(found)
    taken, size = [], 0
    for path in found:
        if size >= megabytes * 1e6:
            break
        taken.append(path)
        size += path.stat().st_size
    return taken


def read(files: Sequence[Path]) -> int:
    """Read each file in one go."""
    return sum(len(path.read_bytes()) for path in files)


def split(files: Sequence[Path]) -> int:
    """Read, and split into lines."""
    size = 0
    for path in files:
        content = path.read_bytes()
        content.split(b"\n")
        size += len(content)
    return size


def decode(files: Sequence[Path]) -> int:
    """Read, split, and decode each line that is JSON."""
    size = 0
    for path in files:
        content = path.read_bytes()
        for _ in _decoded(content):
            pass
        size += len(content)
    return size


def index(files: Sequence[Path]) -> int:
    """Read, split, decode, and index the strings of each line as one row, in one transaction, in a temporary file.

    A string that occurs twice in a line is indexed once, since Claude Code writes tool results twice. Keys aren't
    indexed.
    """
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "words.db", isolation_level=None)
        connection.executescript(TABLE + ";" + BULK)
        connection.execute("BEGIN")
        size = _fill(connection, files)
        connection.execute("COMMIT")
        connection.close()
    return size


STEPS: dict[str, Step] = {
    "read": read,
    "read, split lines": split,
    "read, split, decode (orjson)": decode,
    "read, split, decode, index (FTS5)": index,
}


def measure(step: Step, files: Sequence[Path], runs: int = RUNS) -> Limit:
    """Run a step several times over files that are in the page cache."""
    seconds = []
    size = read(files)
    for _ in range(runs):
        began = time.perf_counter()
        size = step(files)
        seconds.append(time.perf_counter() - began)
    return Limit(statistics.median(seconds), size)


def limits(corpus: Path, megabytes: float = MEGABYTES, runs: int = RUNS) -> dict[str, Limit]:
    """Measure every step over the same files, of about this many 10^6 bytes."""
    files = logs(corpus, megabytes)
    return {name: measure(step, files, runs) for name, step in STEPS.items()}


def _fill(connection: sqlite3.Connection, files: Sequence[Path]) -> int:
    size = row = 0
    for path in files:
        content = path.read_bytes()
        rows = [" ".join(dict.fromkeys(_strings(line))) for line in _decoded(content)]
        connection.executemany(INSERT, enumerate(rows, row))
        row += len(rows)
        size += len(content)
    return size


def _decoded(content: bytes) -> Iterator[Any]:
    for line in content.split(b"\n"):
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue


def _strings(value: Any) -> Iterator[str]:
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)


def _table(found: dict[str, Limit]) -> str:
    lines = [f"{'on one core':<36}{'MB':>8}{'seconds':>10}{'MB/s':>8}"]
    lines += [
        f"{name:<36}{limit.bytes / 1e6:>8.0f}{limit.seconds:>10.3f}{limit.rate:>8,.0f}" for name, limit in found.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.limits", description="Measure the limits of this machine."
    )
    parser.add_argument("corpus", type=Path, help="a folder with logs of coding agents, at any depth")
    parser.add_argument("--megabytes", type=float, default=MEGABYTES, help="how much of it, in 10^6 bytes")
    parser.add_argument("--runs", type=int, default=RUNS)
    wanted = parser.parse_args()
    sys.stdout.write(_table(limits(wanted.corpus, wanted.megabytes, wanted.runs)) + "\n")


if __name__ == "__main__":
    main()
