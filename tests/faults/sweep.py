"""Damages every page of an index, one after another: the answers, what is noticed, what a repair brings back.

`python -m tests.faults.sweep [STEP]` overwrites every STEP-th page (default: 1), and flips a bit in it; it prints what
broke the rules of `test_database.py` and how often each outcome occurred, and exits with 1 if any rule was broken.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from agtrace_indexer.repair.repair import NotRepaired, examine, repair

from tests.faults import damage
from tests.faults.damage import Undisturbed


def main() -> None:
    """Sweep and print."""
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    counts: Counter[str] = Counter()
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Undisturbed.make(Path(folder))
        for page in range(1, undisturbed.pages + 1, step):
            for how in (damage.overwrite_page, damage.flip_bit):
                for what in _broken_rules(undisturbed, Path(folder) / "damaged", page, how, counts):
                    broken += 1
                    sys.stdout.write(f"page {page}, {how.__name__}: {what}\n")
    for what, count in counts.most_common():
        sys.stdout.write(f"{count:6} {what}\n")
    sys.exit(broken > 0)


def _broken_rules(
    undisturbed: Undisturbed, folder: Path, page: int, how: Callable[[Path, int], None], counts: Counter[str]
) -> Iterator[str]:
    expected = damage.ask(undisturbed.copy(folder))
    database = undisturbed.copy(folder)
    how(database, page)
    noticed = bool(examine(database))
    counts["damages noticed" if noticed else "damages not noticed"] += 1
    for number, given in damage.ask(database).items():
        right, clear = damage.same(given, expected[number]), damage.is_clear_error(given)
        counts["answers right" if right else "clear errors" if clear else "answers changed"] += 1
        if not (right or clear) and how is damage.overwrite_page:
            yield f"{damage.QUESTIONS[number]} got {str(given)[:200]}"
    if not noticed:
        if how is damage.overwrite_page:
            yield "not noticed"
        return
    try:
        done = repair(database, [str(undisturbed.logs)])
    except NotRepaired as error:
        counts["not repaired"] += 1
        yield str(error)
        return
    counts["repairs that lost nothing" if not done.lost and not done.others_lost else "repairs that named losses"] += 1
    found = damage.differences(undisturbed.database, database, done)
    yield from (what for what in found if how is damage.overwrite_page or "are there" in what)


if __name__ == "__main__":
    main()
