"""All measurements in one run: `python -m benchmarks [MEGABYTES]`, with tables on stdout and progress on stderr.

Everything is measured on real logs first, where there are any, and then on generated ones. Corpora are made once and
kept in a folder; indexes are rebuilt in every run. Everything that is compared is measured in the same run.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from agtrace_indexer.parallel.pool import cores

from benchmarks import alike, freshness, growth, indexing, searching, together
from benchmarks.ground import Ground

FOLDER = Path(".bench")
LOGS = Path(__file__).resolve().parents[2] / "shared" / "logs"
"""Real logs, where they are beside the project."""
NO_LOGS = Path("-")
MEGABYTES = 1000
ROUNDS = 5
TOPICS = {
    "alike": "Generated logs compared with real ones",
    "index": "Cold index",
    "fresh": "Freshness",
    "search": "Search",
    "together": "One writer and four readers",
    "growth": "Growth",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    wanted = _parser().parse_args(arguments)
    began = time.monotonic()

    def say(text: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began:7.1f} s  {text}\n")

    generated = Ground(wanted.folder, wanted.rounds, say)
    logs = wanted.logs or (LOGS if LOGS.exists() else NO_LOGS)
    real = None if logs == NO_LOGS else Ground(wanted.folder / "real", wanted.rounds, say, logs.absolute())
    _print(_machine())
    for topic, title in TOPICS.items():
        if topic in wanted.only or (not wanted.only and (topic != "growth" or wanted.growth)):
            _print(f"\n## {title}")
            for block in _blocks(topic, real, generated, wanted):
                _print(f"\n{block}")
    say("done")


def _blocks(topic: str, real: Ground | None, generated: Ground, wanted: argparse.Namespace) -> Iterator[str]:
    if topic == "alike":
        return alike.report(real, generated, wanted.megabytes) if real else iter(("There are no real logs.",))
    kinds = {"Real logs": real, "Generated logs": generated}
    measured = ((name, _report(topic, ground, wanted)) for name, ground in kinds.items() if ground)
    return chain.from_iterable(chain((f"**{name}**",), blocks) for name, blocks in measured)


def _report(topic: str, ground: Ground, wanted: argparse.Namespace) -> Iterator[str]:
    if topic == "index":
        return indexing.report(ground, wanted.megabytes, wanted.folder / "peers" if wanted.peers else None)
    if topic == "growth":
        return growth.report(ground, wanted.growth or growth.SIZES)
    reports: dict[str, Callable[[Ground, int], Iterator[str]]] = {
        "fresh": freshness.report,
        "search": searching.report,
        "together": together.report,
    }
    return reports[topic](ground, wanted.megabytes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure agtrace on real and generated logs."
    )
    parser.add_argument("megabytes", nargs="?", type=int, default=MEGABYTES, help="size of the logs, in 10^6 bytes")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder for corpora, which are kept, and indexes")
    parser.add_argument(
        "--only", action="append", choices=TOPICS, default=[], help="measure only this topic; can be repeated"
    )
    parser.add_argument(
        "--logs", type=Path, help="a folder with real logs, to be repeated to that size; - for none [../shared/logs]"
    )
    parser.add_argument("--peers", action="store_true", help="also index with agentsview, from PyPI")
    parser.add_argument(
        "--growth", type=_sizes, metavar="MB,MB,...", help=f"measure at these sizes: {growth.SIZES} with --only growth"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each query is timed")
    return parser


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


def _machine() -> str:
    return (
        f"{cores()} cores{_processor()}, {platform.system()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, load {os.getloadavg()[0]:.1f}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
