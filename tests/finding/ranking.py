"""`python -m tests.finding.ranking [LOGS]`: how high a search puts the right session, beside the other ways to search.

The queries (queries.json) were written from the logs by somebody who had run none: 60 sessions drawn at random, words
that stand together nowhere, and things that aren't there. All ways ask the same tool over the same index.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from agtrace_indexer.redact import redact

from tests.agtrace.asking import Asker
from tests.conftest import LOGS

AGENTS = ("claude", "codex", "gemini")
QUERIES = json.loads((Path(__file__).parent / "queries.json").read_text())


class Way(NamedTuple):
    """A way to search."""

    name: str
    arguments: dict[str, Any]


WAYS = (
    Way("ranked (default)", {}),
    Way("literal, newest first", {"order": "newest", "group_by": "session"}),
)


class Places(NamedTuple):
    """How high the right sessions stood, and what the answers cost."""

    first: int
    among_three: int
    of: int
    seconds: float
    """The median."""
    bytes: int
    """The median."""


def indexed(folder: Path, logs: Path = LOGS) -> Asker:
    """Return an index of the real logs of the three agents."""
    return Asker(folder, *(logs / agent for agent in AGENTS), still=True)


def places(asker: Asker, queries: list[dict[str, Any]], way: Way) -> Places:
    """Ask all queries in one way."""
    ranks, seconds, sizes = [], [], []
    for query in queries:
        began = time.perf_counter()
        value = asker.ask("search_event_previews", query=query["query"], **way.arguments)
        seconds.append(time.perf_counter() - began)
        sizes.append(len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()))
        ranks.append(rank(value, (query["session"], *query.get("also", ()))))
    first, three = (sum(0 < one <= most for one in ranks) for most in (1, 3))
    return Places(first, three, len(ranks), median(seconds), int(median(sizes)))


def rank(value: dict[str, Any], right: tuple[str, ...]) -> int:
    """Return the place of the first of these sessions in an answer, counted from 1; 0 if it isn't there."""
    for place, session in enumerate(found(value), 1):
        if any(one.startswith(session) for one in right):
            return place
    return 0


def found(value: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of the sessions in an answer, the first one first; matches by words don't count as literal ones."""
    data = value["data"]
    yield from dict.fromkeys(item["session_id"] for item in data["matches"])
    yield from (other[0] for other in data.get("others", ()))


def confident(asker: Asker, query: str) -> bool:
    """Whether a search claims to have found what it was asked for."""
    summary = asker.ask("search_event_previews", query=query)["summary"]
    return not summary.startswith(("Found 0", "Only weak", "Only partial", "Not found literally; only "))


def main(arguments: list[str]) -> None:
    """Print the table."""
    redact("compile the rules")
    with tempfile.TemporaryDirectory() as folder:
        asker = indexed(Path(folder), Path(arguments[0]) if arguments else LOGS)
        _print(f"{'way':37} {'first':>8} {'of three':>9} {'scattered':>10} {'p50 ms':>7} {'p50 bytes':>10}")
        for way in WAYS:
            drawn, scattered = (places(asker, QUERIES[kind], way) for kind in ("ranked", "scattered"))
            _print(
                f"{way.name:37} {drawn.first:>5}/{drawn.of} {drawn.among_three:>6}/{drawn.of}"
                f" {scattered.first:>7}/{scattered.of} {drawn.seconds * 1000:>7.1f} {drawn.bytes:>10}"
            )
        claims = [query for query in QUERIES["negative"] if confident(asker, query)]
        _print(f"things that aren't there: {len(claims)} of {len(QUERIES['negative'])} claimed to be found {claims}")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
