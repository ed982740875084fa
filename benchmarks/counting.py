"""`python -m benchmarks.counting`: what counts and sorted lists take on the index in AGTRACE_DATA_DIR."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, get_args

from agtrace_schema.requests import GroupBy, Sort

from agtrace.answers.desk import Answers
from agtrace.commands.asking import answers
from agtrace.commands.errors import explained
from benchmarks.table import percentile, table

_RUNS = 15


def main() -> None:
    """Measure and print."""
    with explained():
        asking = answers()
        asking.ask("list_sessions", {})  # brings the index up to date
        rows = [_row(asking, tool, arguments) for tool, arguments in _calls()]
    sys.stdout.write(table(["call", "p50 ms", "p95 ms", "bytes"], rows) + "\n")


def _calls() -> Iterator[tuple[str, dict[str, Any]]]:
    for group in get_args(GroupBy):
        yield "count_events", {"group_by": group}
    for group in ("model", "session", "day"):
        yield "count_events", {"group_by": group, "measure": "tokens"}
    for sort in get_args(Sort):
        yield "list_sessions", {"sort": sort}


def _row(asking: Answers, tool: str, arguments: dict[str, Any]) -> list[str]:
    taken: list[float] = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        answer = asking.ask(tool, arguments)
        taken.append((time.perf_counter() - began) * 1000)
    call = f"{tool}({', '.join(f'{name}={value}' for name, value in arguments.items())})"
    return [call, f"{percentile(taken, 0.5):.0f}", f"{percentile(taken, 0.95):.0f}", f"{len(answer.text.encode()):,}"]


if __name__ == "__main__":
    main()
