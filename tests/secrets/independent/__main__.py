"""`python -m tests.secrets.independent [--corpus third] [--texts]`: what goes wrong in a corpus; takes seconds.

Exits with 1 if more goes wrong than `rates.GOALS` allow.
"""

from __future__ import annotations

import argparse
import sys

from tests.secrets.independent.rates import CORPORA, GOALS, Rate, by_group, by_kind, missed, rows


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and exit."""
    parser = argparse.ArgumentParser(prog="python -m tests.secrets.independent", description=__doc__)
    parser.add_argument("--corpus", choices=CORPORA, default=CORPORA[-1], help="the corpus; by default the newest")
    parser.add_argument("--texts", action="store_true", help="print the texts that went wrong, too")
    given = parser.parse_args(arguments)
    measured = rows(given.corpus)
    kinds = [rate for rate in by_kind(measured) if rate.wrong]
    groups = by_group(measured)
    _print(f"{'':44} {'rows':>6} {'wrong':>6} {'%':>6} {'goal':>6}")
    for rate in (*kinds, *groups):
        _print(_line(rate))
    for row in [row for rate in kinds for row in rate.wrong if given.texts]:
        _print(f"\n{row.id}: {row.text!r}")
    sys.exit(1 if missed(groups) else 0)


def _line(rate: Rate) -> str:
    goal = f"{GOALS[rate.name]:6.1f}" if rate.name in GOALS else ""
    return f"{rate.name:44} {rate.rows:6} {len(rate.wrong):6} {rate.percent:6.1f} {goal}".rstrip()


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
