"""`python -m benchmarks.corpus FOLDER MEGABYTES [--seed N | --logs LOGS]`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.corpus import repeated, write


def main() -> None:
    """Write a corpus and print its size and shares."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description="Write logs of coding agents.")
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    parser.add_argument("megabytes", type=float, help="about how much to write, in 10^6 bytes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logs", type=Path, help="a folder with real logs, to be repeated instead under other ids")
    wanted = parser.parse_args()
    began = time.perf_counter()
    try:
        if wanted.logs:
            written = repeated.write(wanted.folder, wanted.megabytes, wanted.logs)
        else:
            written = write(wanted.folder, wanted.megabytes, wanted.seed).bytes_by_agent
    except (FileExistsError, ValueError) as error:
        parser.error(str(error))
    seconds, size = time.perf_counter() - began, sum(written.values())
    shares = ", ".join(f"{agent} {part / size:.0%}" for agent, part in sorted(written.items()))
    sys.stdout.write(f"{size / 1e6:,.1f} MB ({shares}), {size / 1e6 / seconds:.0f} MB/s\n")


main()
