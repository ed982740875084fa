"""`python -m tests.fuzz --logs 100000 --requests 20000 --seed N`: the long run, on all cores.

It prints a line for each batch and a summary, and exits with 1 if a law was broken. Findings are written below the
folder (default: `.fuzz`); the same command continues where it was stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.fuzz.campaign import batches, cores, run


def main() -> int:
    """Run the campaign that the arguments describe."""
    given = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    given.add_argument("--logs", type=int, default=100_000, help="mutated logs")
    given.add_argument("--requests", type=int, default=20_000, help="mutated requests")
    given.add_argument("--seed", default="1", help="the same seed yields the same mutants")
    given.add_argument("--only", help="only the batch of this name, as a finding or the journal names it")
    given.add_argument("--folder", type=Path, default=Path(".fuzz"), help="for the journal and the findings")
    given.add_argument("--processes", type=int, default=cores(), help="default: as many as there are processors")
    asked = given.parse_args()
    wanted = [*batches(asked.seed, asked.logs, asked.requests)]
    if asked.only:
        wanted = [batch for batch in wanted if batch.name == asked.only]
    if hasattr(os, "nice"):
        os.nice(19)
    broken = run(wanted, asked.folder, asked.processes, lambda line: print(line, flush=True))  # noqa: T201
    words = [f"{count} x {law}" for law, count in sorted(broken.items())] or ["no law was broken"]
    sys.stdout.write(f"{sum(batch.size for batch in wanted):,} logs and requests: {', '.join(words)}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
