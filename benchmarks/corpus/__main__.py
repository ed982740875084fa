"""`python -m benchmarks.corpus FOLDER MEGABYTES [--seed N]`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.corpus import write


def main() -> None:
    """Write a corpus and print its size and shares."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description="Write logs of coding agents.")
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    parser.add_argument("megabytes", type=float, help="about how much to write, in 10^6 bytes")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    began = time.perf_counter()
    try:
        corpus = write(wanted.folder, wanted.megabytes, wanted.seed)
    except FileExistsError as error:
        parser.error(str(error))
    seconds = time.perf_counter() - began
    shares = ", ".join(f"{agent} {size / corpus.size:.0%}" for agent, size in sorted(corpus.bytes_by_agent.items()))
    sys.stdout.write(
        f"{corpus.size / 1e6:,.1f} MB in {corpus.sessions:,} sessions ({shares}), "
        f"{corpus.size / 1e6 / seconds:.0f} MB/s\n"
    )


main()
