"""`python -m tests.secrets`: plants the corpus in the logs of three agents, and prints what leaked; half an hour.

Exits with 1 if a secret leaked or was found, or if more than 2 % of the near-misses were masked. With `--quick` it does
what the tests do.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from tests.secrets.corpus import Case
from tests.secrets.measuring import Score, measure

MOST_MASKED = 0.02
"""The largest share of the near-misses that may be masked."""


def main() -> None:
    """Measure, print, and exit."""
    parser = argparse.ArgumentParser(prog="python -m tests.secrets", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one agent a case, the questions shared out")
    given = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HOME": folder, "AGTRACE_DATA_DIR": f"{folder}/data"}
        score = measure(Path(folder), whole=not given.quick)
    show(score, _print)
    _print(f"{score.characters / 1e6:.0f} MB were looked at in {time.monotonic() - started:.0f} s")
    bad = score.leaks or score.hits or len(score.masked) > MOST_MASKED * len(score.near_misses)
    sys.exit(1 if bad else 0)


def show(score: Score, line: Callable[[str], None]) -> None:
    """Print the score line by line: a row for each kind, then every case that went wrong."""
    line(f"{'secrets':28} planted  came out  found")
    out = score.leaks.keys()
    for kind, (planted, leaked, hit) in _by_kind(score.secrets, out, score.hits).items():
        line(f"{kind:28} {planted:7} {leaked:9} {hit:6}")
    line(_total(score.secrets, "came out", out))
    line(f"\n{'near-misses':28} planted    masked")
    for kind, (planted, masked, _) in _by_kind(score.near_misses, score.masked, ()).items():
        line(f"{kind:28} {planted:7} {masked:9}")
    line(_total(score.near_misses, "were masked", score.masked))
    texts = {case.id: case.text for case in score.near_misses}
    for id, places in sorted(score.leaks.items()):
        line(f"\n{id} came out:")
        for where, run in list(places.items())[:8]:
            line(f"    {where}: {run!r}")
    for id, question in sorted(score.hits.items()):
        line(f"\n{id} was found: {question}")
    for id in sorted(score.masked):
        line(f"\n{id} was masked: {texts[id][:200]!r}")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


def _by_kind(cases: Sequence[Case], first: Collection[str], second: Collection[str]) -> dict[str, tuple[int, int, int]]:
    """Return kind -> (number of cases, how many are in `first`, how many in `second`)."""
    all_of = Counter(case.kind for case in cases)
    counts = [Counter(case.kind for case in cases if case.id in ids) for ids in (first, second)]
    return {kind: (number, counts[0][kind], counts[1][kind]) for kind, number in all_of.items()}


def _total(cases: Sequence[Case], what: str, ids: Collection[str]) -> str:
    held_out = [case for case in cases if case.held_out]
    of_these = sum(case.id in ids for case in held_out)
    share = 100 * len(ids) / len(cases)
    return (
        f"{len(ids)} of {len(cases)} {what} ({share:.1f} %); of those held out {of_these} of {len(held_out)}; "
        f"{len({case.kind for case in cases})} kinds"
    )


if __name__ == "__main__":
    main()
