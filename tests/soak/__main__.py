"""`python -m tests.soak --minutes 60 [--seed N]`: a line per minute, then the verdict; exits with 1 on any trouble."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.soak.course import Course, Wanted

_SHOWN = 40
"""The most troubles that are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and return the exit code."""
    wanted = _parser().parse_args(arguments)
    folder = wanted.folder or Path(tempfile.mkdtemp(prefix="agtrace-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    seconds = 60 * wanted.minutes
    course = Course(
        Wanted(
            minutes=wanted.minutes,
            seed=wanted.seed,
            clients=wanted.clients,
            megabytes=wanted.megabytes or max(1.0, 2.5 * wanted.minutes),
            samples=3 if wanted.minutes >= 1 else 1,
            pace=min(6.0, seconds / 60),
            pause=wanted.pause,
            chores=min(45.0, seconds / 8),
            term=min(90.0, seconds / 4),
            line=min(60.0, max(2.0, seconds / 20)),
        ),
        folder,
        _say,
    )
    troubles = course.run()
    for line in course.summary():
        _say(line)
    for trouble in troubles[:_SHOWN]:
        _say(f"OFF: {trouble}")
    _say(f"{len(troubles)} things are off" if troubles else "nothing is off")
    if not troubles and wanted.folder is None:
        shutil.rmtree(folder)
    return 1 if troubles else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Live with agtrace for a while.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--megabytes", type=float, help="logs that are written in all; default 2.5 a minute")
    parser.add_argument("--pause", type=float, default=0.7, help="seconds between two questions of a client")
    parser.add_argument("--folder", type=Path, help="a new folder that is kept; default: one that goes if all is well")
    return parser


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
