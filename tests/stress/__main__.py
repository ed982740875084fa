"""`python -m tests.stress --runs 20 --megabytes 150`: a line for each run, then the verdict, which is the exit code."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from agtrace.settings import load
from benchmarks import corpus
from benchmarks.ground import Machine
from tests.stress.clients import AT_ONCE, in_process, over_http, over_stdio
from tests.stress.questions import Question, questions

_LOGS_OF_INDEX = 3.4
"""Megabytes of logs per megabyte of the index."""
_SHOWN = 5
"""The most troubles of a run that are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and return the exit code."""
    wanted = _parser().parse_args(arguments)
    folder = wanted.folder or Path(tempfile.mkdtemp(prefix="agtrace-stress-"))
    machine, asked = _prepared(folder, wanted.megabytes)
    off = 0
    for run in range(1, wanted.runs + 1):
        off += _run(machine, folder / "stderr", asked, run, wanted.seconds)
    _say(f"{off} of {wanted.runs} runs were off" if off else f"{wanted.runs} runs, nothing is off")
    if not off and wanted.folder is None:
        shutil.rmtree(folder)
    return 1 if off else 0


def _prepared(folder: Path, megabytes: float) -> tuple[Machine, list[Question]]:
    """Make a machine with an index of about this size, and return it with the questions."""
    machine, logs = Machine(folder.absolute() / "machine"), folder / "logs"
    corpus.write(logs, _LOGS_OF_INDEX * megabytes)
    machine.agtrace("index", str(logs))
    asked = questions(load(machine.environment))
    _say(f"an index of {machine.index_bytes / 1e6:.0f} MB, {len(asked)} questions, {AT_ONCE} at once")
    return machine, asked


def _run(machine: Machine, log: Path, asked: list[Question], run: int, seconds: float) -> bool:
    """Ask in every way; print the result, and return whether there was trouble."""
    often, session = run % 2 == 0, asked[-1].arguments["id1"]
    began = time.monotonic()
    ways = {
        "stdio": over_stdio(machine.environment, log, asked, seconds, run, often=often),
        "http": over_http(machine.environment, log, asked, seconds, run, often=often),
        "answer_sizes": in_process(machine.environment, log, session, often=often),
    }
    counts = ", ".join(f"{way} {answered}" for way, (answered, _) in ways.items())
    _say(f"run {run}{' (threads change often)' if often else ''}: {counts}; {time.monotonic() - began:.0f} s")
    troubles = [f"{way}: {trouble}" for way, (_, found) in ways.items() for trouble in found]
    for trouble in troubles[:_SHOWN]:
        _say(f"OFF: {trouble}")
    return bool(troubles)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description="Ask everything at once.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--megabytes", type=float, default=150, help="size of the index, about")
    parser.add_argument("--seconds", type=float, default=10, help="for each transport of a run")
    parser.add_argument("--folder", type=Path, help="a new folder that is kept; default: one that goes if all is well")
    return parser


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
