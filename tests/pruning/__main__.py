"""`python -m tests.pruning`: what the built-in pruner keeps and loses of the labelled cases.

With `--lost` it also prints each required line that was lost, but never of `blind`: whoever improves the pruner by
looking at what it loses must not look there. With the name of a half, only that one is measured. It exits with 1 if a
goal of test_quality.py is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.pruning.evaluation import Pruned, faults, prune, quality, read_cases

LOST = "--lost"


def main() -> int:
    """Print the tables of each half and of both, then what is lost, then which goals are missed."""
    cases = [*read_cases()]
    asked = sys.argv[1:]
    if not {*asked} <= {LOST, *(case.half for case in cases)}:
        sys.exit(__doc__)
    cases = [case for case in cases if case.half in asked] or cases
    pruned = [prune(case) for case in cases]
    halves = sorted({case.half for case in cases})
    for half in halves:
        some = [one for one in pruned if one.case.half == half]
        _print(f"== {half}: {len(some)} cases ==", quality(some))
    if len(halves) > 1:
        _print(f"== all: {len(pruned)} cases ==", quality(pruned))
    if LOST in asked:
        _print(*_lost([one for one in pruned if one.case.half != "blind"]))
    found = faults(pruned)
    _print(*found, f"{len(found)} faults")
    return 1 if found else 0


def _lost(pruned: Sequence[Pruned]) -> list[str]:
    return [
        "\n".join(
            (
                f"{one.case.id} {one.case.kind}: {one.case.question}",
                *(f"  {number:>4}  {one.case.lines[number - 1].strip()[:100]}" for number in sorted(one.lost)),
            )
        )
        for one in pruned
        if one.lost
    ]


def _print(*texts: str) -> None:
    sys.stdout.write("\n\n".join(texts) + "\n\n")


if __name__ == "__main__":
    sys.exit(main())
