"""The cost of masking: `python -m benchmarks.redaction [--logs FOLDER] [--data FOLDER] [--megabytes N] [--rounds N]`.

It is measured on the logs below a folder, by default `../shared/logs`, or on a small corpus if that is missing.
Reading: the share of a worker's time, for each agent (`reading.py`). Answers: from the index of a data folder, or of
the logs, each question is answered alternately with and without masking on the way out, in one process. Texts: those
of the logs are masked, and for comparison searched by a simple loop over all patterns with Python's `re`. The scanner:
its work, and the time that a new process takes to set it up.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from agtrace_indexer import redact
from agtrace_indexer.redact import engine, rules
from agtrace_indexer.run import index

from agtrace.answers.service import Service
from agtrace.settings.model import Settings
from benchmarks import reading
from benchmarks.masking import MEGABYTES, by_agent, joined, log_folder, texts, up_to, without_masking
from benchmarks.table import number, ratio, table

ROUNDS = 7
_SESSIONS = 8
"""The number of sessions, the largest ones, about which everything is asked."""
_MOST = 20_000_000
"""The most characters of texts that are masked."""
_FEW = 100_000
"""The most characters of texts for the plain loop, which is slow."""
_FEW_TEXTS = 1000
_CACHE = 8 * 1024 * 1024
"""More bytes than a core's own cache holds."""
_NO_WORK = bytearray()

Question = tuple[str, dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    given = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        folder = log_folder(given.logs, Path(made))
        logs = by_agent(folder)
        found = texts(logs, _MOST)
        for block in (
            reading.report(logs, given.megabytes),
            _answers(given.data or _indexed(folder, Path(made)), given.rounds),
            _throughput(found),
            _scanner(found),
            _started(given.rounds),
        ):
            sys.stdout.write(f"{block}\n\n")
            sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redaction", description=__doc__)
    parser.add_argument("--logs", type=Path, help="a folder of logs")
    parser.add_argument("--data", type=Path, help="a data folder with an index to ask")
    parser.add_argument(
        "--megabytes", type=float, default=MEGABYTES, help="how much of each agent's logs to read each way"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    return parser


def _indexed(logs: Path, temporary: Path) -> Path:
    """Index the logs, and return the data folder."""
    index(temporary / "data" / "index.sqlite3", [str(logs)], otherwise=[])
    return temporary / "data"


def _opened(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{(folder / 'index.sqlite3').absolute().as_uri()}?mode=ro", uri=True)


def _questions(connection: sqlite3.Connection) -> list[Question]:
    """Return a mix of calls of all tools on the largest sessions."""
    sessions = connection.execute(
        "SELECT s.uid, p.hash, (SELECT max(event_index) FROM event WHERE session_id = s.id) AS last FROM session s "
        f"LEFT JOIN project p ON p.id = s.project_id WHERE s.kind = 'main' ORDER BY last DESC LIMIT {_SESSIONS}"
    ).fetchall()
    ids = [uid for uid, _, _ in sessions]
    asked: list[Question] = [("list_sessions", {}), ("get_project_info", {})]
    asked += [("search_event_previews", {"query": word}) for word in ("test", "import", "token", "error")]
    asked += [("compare_sessions", {"id1": one, "id2": other}) for one, other in pairwise(ids)]
    for uid, project, last in sessions:
        asked += [("get_session_details", {"session_id": uid, "detail_level": level}) for level in ("summary", "full")]
        asked += [("analyze_session", {"session_id": uid}), ("list_sessions", {"project_hash": project})]
        for at in range(0, last, max(1, last // 4)):
            asked.append(("get_event_details", {"session_id": uid, "event_index": at}))
        asked.append(("get_reasoning_chain", {"session_id": uid}))
        asked.append(("read_artifact", {"ref": f"ax://session/{uid}"}))
    return asked


def _answers(folder: Path, rounds: int) -> str:
    """Measure the median time of an answer with and without masking on the way out."""
    with closing(_opened(folder)) as connection:
        questions = _questions(connection)
    answers = Service(Settings(data_dir=folder, environment={"HOME": str(folder / "nobody")}), log=lambda _: None)
    answered = [question for question in questions if not answers.ask(*question).is_error]
    pairs = [_pair(partial(answers.ask, *question), rounds) for question in answered]
    masked, plain = map(list, zip(*pairs, strict=True))
    times = statistics.median(one / other for one, other in pairs)
    rows = [
        ["with masking", number(1000 * statistics.median(masked), 2), ratio(times, 1), ratio(sum(masked), sum(plain))],
        ["without", number(1000 * statistics.median(plain), 2), ratio(1, 1), ratio(1, 1)],
    ]
    tools = len({name for name, _ in answered})
    head = ["answers", "median ms", "of without, median", "all together"]
    return f"{len(answered)} questions to {tools} tools\n\n" + table(head, rows)


def _pair(ask: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the shortest times of an answer with and without masking, measured alternately."""
    masked, plain = [], []
    for _ in range(rounds):
        masked.append(_seconds(ask))
        with without_masking():
            plain.append(_seconds(ask))
    return min(masked), min(plain)


def _throughput(texts: Sequence[str]) -> str:
    """Measure the megabytes per second of masking, and of the plain loop."""
    patterns = [re.compile(form.bounded) for form in rules.forms()]
    patterns += [re.compile(carrier.pattern) for carrier in rules.CARRIERS]
    redact.redact("")
    rates = {
        "redact()": _rate(redact.redact, texts),
        "suspicious(), joined": _rate(redact.suspicious, joined(texts)),
        "every pattern with re": _rate(
            lambda text: [pattern.search(text) for pattern in patterns], up_to(texts, _FEW), runs=1
        ),
    }
    rows = [[name, number(rate, 2), ratio(rate, rates["every pattern with re"])] for name, rate in rates.items()]
    head = f"{len(texts):,} texts of {sum(map(len, texts)) / 1e6:,.1f} million characters, {len(patterns)} patterns"
    return f"{head}\n\n" + table(["texts", "MB/s", "of the loop"], rows)


def _rate(look: Callable[[str], object], texts: Sequence[str], runs: int = 5) -> float:
    """Return the megabytes per second of the best run."""
    megabytes = sum(map(len, texts)) / 1e6
    return megabytes / min(_seconds(lambda: [look(text) for text in texts], time.process_time) for _ in range(runs))


def _scanner(texts: Sequence[str]) -> str:
    """Describe the scanner and its hits, each of which Python then examines."""
    compiled = engine._built_in(None)
    compiled.found("")
    megabytes = sum(map(len, texts)) / 1e6
    hits = [len(compiled._scanner.hits(text)) for text in texts]
    masks = sum(redact.redact(text).count("[redacted: ") - text.count("[redacted: ") for text in texts)
    rows = [
        ["kinds of secrets", number(len(rules.kinds()), 0)],
        ["first looks", number(len(compiled._scanner._sparse), 0)],
        ["compiled, KB", number(compiled._scanner._database.size() / 1e3, 0)],
        ["hits a MB", number(sum(hits) / megabytes, 0)],
        ["texts without a hit, %", number(100 * hits.count(0) / len(hits))],
        ["masks a MB", number(masks / megabytes)],
        ["a text, us, one after the other", number(1e6 * _scan_seconds(compiled, texts[:_FEW_TEXTS]))],
        ["a text, us, after other work", number(1e6 * _scan_seconds(compiled, texts[:_FEW_TEXTS], bytearray(_CACHE)))],
    ]
    return table(["the scanner", ""], rows)


def _scan_seconds(compiled: engine._BuiltIn, texts: Sequence[str], other: bytearray = _NO_WORK) -> float:
    """Return the mean seconds per text; before each, other memory is read to displace the scanner from the cache."""
    seconds = 0.0
    for text in texts:
        other.count(1)
        seconds += _seconds(partial(compiled.found, text), time.process_time)
    return seconds / len(texts)


_STEPS = {
    "import hyperscan": "import hyperscan",
    "import the rules": "from agtrace_indexer.redact import engine",
    "compile them": "engine._built_in(None)",
    "mask the first text": "engine.Redactor(engine.Own()).redact('password = \"Tr0ub4dor-and-3\"')",
}


def _started(rounds: int) -> str:
    """Measure the cost before a process's first text; a process without texts pays nothing."""
    command = [sys.executable, "-c", "import time; began = time.perf_counter()\n"]
    command[-1] += "\n".join(f"{step}; print(time.perf_counter() - began)" for step in _STEPS.values())
    runs = [[0.0, *map(float, subprocess.check_output(command, text=True).split())] for _ in range(rounds)]
    steps = zip(*([after - before for before, after in pairwise(run)] for run in runs), strict=True)
    rows = [[name, number(1000 * statistics.median(took))] for name, took in zip(_STEPS, steps, strict=True)]
    return table(["a new process", "ms"], [*rows, ["all", number(1000 * statistics.median(run[-1] for run in runs))]])


def _seconds(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    run()
    return clock() - start


if __name__ == "__main__":
    main()
