"""The time that a report takes: `python -m benchmarks.report FOLDER [ROUNDS]`, where FOLDER is a data folder.

The command is compared with the least that a program without an index must do: read the same logs line by line with
`json.loads`. In every round each runs once, in a process of its own, and a ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from benchmarks.table import number, ratio, table

ROUNDS = 3
AGTRACE = str(Path(sys.executable).with_name("agtrace"))

PLAIN = """
import json, sys
for path in json.load(sys.stdin):
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            try:
                json.loads(line)
            except ValueError:
                pass
"""

_LOGS = "SELECT path FROM file WHERE status = 'log' AND NOT gone AND path NOT LIKE '%.zst' AND path NOT LIKE '%#%'"
_SESSIONS = "SELECT count(*) FROM session WHERE kind != 'warmup'"


def main(folder: Path, rounds: int) -> None:
    """Measure and print."""
    with closing(sqlite3.connect(f"{(folder / 'index.sqlite3').absolute().as_uri()}?mode=ro", uri=True)) as index:
        logs = [path for (path,) in index.execute(_LOGS) if Path(path).is_file()]
        (sessions,) = index.execute(_SESSIONS).fetchone()
    megabytes = sum(Path(path).stat().st_size for path in logs) / 1e6
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "AGTRACE_DATA_DIR": str(folder)}
        commands = {
            "json.loads, line by line": [sys.executable, "-c", PLAIN],
            "agtrace report": [AGTRACE, "report"],
            "agtrace report --html": [AGTRACE, "report", "--html", str(Path(home) / "report.html")],
        }
        took: dict[str, list[float]] = defaultdict(list)
        for _ in range(rounds):
            for name, command in commands.items():
                took[name].append(_seconds(command, environment, json.dumps(logs)))
    reference = took["json.loads, line by line"]
    rows = [
        [name, number(statistics.median(times)), number(sessions / statistics.median(times), 0),
         ratio(statistics.median(one / other for one, other in zip(times, reference, strict=True)), 1)]
        for name, times in took.items()
    ]  # fmt: skip
    sys.stdout.write(f"{sessions:,} sessions; {len(logs):,} logs that still exist, {megabytes:,.0f} MB\n\n")
    sys.stdout.write(table(["", "seconds", "sessions/s", "of the reference"], rows) + "\n")


def _seconds(command: list[str], environment: dict[str, str], given: str) -> float:
    """Return the seconds that a command takes from start to end."""
    began = time.perf_counter()
    subprocess.run(
        command, env=environment, input=given.encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - began


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS)
