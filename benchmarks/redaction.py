"""What masking costs: `python -m benchmarks.redaction [FOLDER] [--rounds N]`, FOLDER being a data folder with an index.

Without a folder a small corpus is made and indexed first. Answers: the same questions are answered with masking on the
way out and without it, in turns, in one process; a ratio is the median over the rounds. Texts: the texts of the index
are masked, and looked at with what one would write instead, a loop over all patterns with Python's `re`.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from agtrace_indexer import redact
from agtrace_indexer.blocks import unpack
from agtrace_indexer.redact import fields
from agtrace_indexer.redact.carriers import ALL
from agtrace_indexer.redact.rules import forms
from agtrace_indexer.run import index

from agtrace.answers import Answers
from agtrace.settings import ABSOLUTE_MAX_BYTES, Settings
from benchmarks.corpus import write
from benchmarks.table import number, ratio, table

ROUNDS = 7
MEGABYTES = 10
"""Of the corpus that is made where none is given."""
_SESSIONS = 8
"""The largest, of which everything is asked."""
_MOST = 20_000_000
"""Characters of texts that are masked."""
_FEW = 500_000
"""Characters of texts that the plain loop looks at: it is slow."""

Question = tuple[str, dict[str, Any]]


class _Nothing:
    """Masks nothing: what an answer would cost without masking."""

    def redact(self, text: str) -> str:
        return text

    def suspicious(self, text: str) -> bool:
        return False

    def allows(self, secret: str) -> bool:
        return True


@contextmanager
def _without_masking() -> Iterator[None]:
    """No text and no value is masked on its way out; there is no such switch in the product."""
    kept: Any = redact._redactor, fields.redact_json
    redact._redactor, fields.redact_json = _Nothing, lambda _, value: value  # type: ignore[assignment]
    try:
        yield
    finally:
        redact._redactor, fields.redact_json = kept


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redaction", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or _made(Path(made))
        with closing(_opened(folder)) as connection:
            questions, texts = _questions(connection), _texts(connection)
        sys.stdout.write(_answers(folder, questions, given.rounds) + "\n\n" + _throughput(texts) + "\n")


def _made(folder: Path) -> Path:
    """A data folder with the index of a small corpus."""
    write(folder / "logs", MEGABYTES)
    index(folder / "data" / "index.sqlite3", [str(folder / "logs")], otherwise=[])
    return folder / "data"


def _opened(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{(folder / 'index.sqlite3').absolute().as_uri()}?mode=ro", uri=True)


def _questions(connection: sqlite3.Connection) -> list[Question]:
    """A mix of all tools over the largest sessions."""
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


def _answers(folder: Path, questions: Sequence[Question], rounds: int) -> str:
    """The median of an answer with and without masking on the way out."""
    answers = Answers(Settings(folder, ABSOLUTE_MAX_BYTES, 3600, {"HOME": str(folder / "nobody")}), log=lambda _: None)
    answered = [question for question in questions if not answers.ask(*question).is_error]
    masked, plain = [], []
    for _ in range(rounds):
        masked.append(_median(answers, answered))
        with _without_masking():
            plain.append(_median(answers, answered))
    times = statistics.median(one / other for one, other in zip(masked, plain, strict=True))
    rows = [
        ["with masking", number(1000 * statistics.median(masked), 3), ratio(times, 1)],
        ["without", number(1000 * statistics.median(plain), 3), ratio(1, 1)],
    ]
    tools = len({name for name, _ in answered})
    return f"{len(answered)} questions to {tools} tools\n\n" + table(["answers", "median ms", "of without"], rows)


def _median(answers: Answers, questions: Sequence[Question]) -> float:
    return statistics.median(_seconds(partial(answers.ask, *asked)) for asked in questions)


def _texts(connection: sqlite3.Connection) -> list[str]:
    """Texts of events as they are stored, up to so many characters."""
    texts: list[str] = []
    size = 0
    for (packed,) in connection.execute("SELECT text FROM block_data ORDER BY block_id"):
        texts += unpack(packed).decode("utf-8", "replace").split("\0")
        size += len(packed)
        if sum(map(len, texts[-500:])) and sum(map(len, texts)) > _MOST:
            break
    return texts


def _throughput(texts: Sequence[str]) -> str:
    """Megabytes a second of masking, and of the plain loop."""
    patterns = [re.compile(rule.pattern) for rules in (forms(), ALL) for rule in rules]
    few = _up_to(texts, _FEW)
    redact.redact("")
    rates = {
        "redact()": _rate(redact.redact, texts),
        "every pattern with re": _rate(lambda text: [pattern.search(text) for pattern in patterns], few),
    }
    rows = [[name, number(rate), ratio(rate, rates["every pattern with re"])] for name, rate in rates.items()]
    head = f"{len(texts):,} texts of {sum(map(len, texts)) / 1e6:,.1f} million characters, {len(patterns)} patterns"
    return f"{head}\n\n" + table(["texts", "MB/s", "of the loop"], rows)


def _up_to(texts: Sequence[str], most: int) -> list[str]:
    taken, size = [], 0
    for text in texts[:: max(1, sum(map(len, texts)) // most)]:
        taken.append(text)
        size += len(text)
    return taken


def _rate(look: Callable[[str], object], texts: Sequence[str]) -> float:
    """The best of three."""
    megabytes = sum(map(len, texts)) / 1e6
    return megabytes / min(_seconds(lambda: [look(text) for text in texts]) for _ in range(3))


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
