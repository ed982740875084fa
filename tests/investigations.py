"""Ten questions about the sample sessions, each answered by a first call and then only by following hints.

`python -m tests.investigations` (part of `make e2e`) prints the calls and the bytes that each of them takes.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.agtrace.asking import Asker, call_in
from tests.conftest import SAMPLES

MOST_CALLS = 8
"""The most calls of an investigation; most take at least three."""

Facts = Callable[[dict[str, Any]], bool]


class Question(NamedTuple):
    """A question, the first call, and what an agent has to see in the end."""

    text: str
    tool: str
    arguments: dict[str, Any]
    answered: Facts
    """Whether an answer's data contain it."""


class Investigation(NamedTuple):
    """The calls by which a question was answered."""

    question: Question
    calls: list[str]
    sizes: list[int]
    solved: bool


def holds(*facts: str) -> Facts:
    """Return a check whether all these texts are in the data."""
    return lambda data: all(fact in str(data) for fact in facts)


def _is_failure(data: dict[str, Any]) -> bool:
    return data.get("outcome") == "failed" and data["session_id"].startswith("d41f7a52")


QUESTIONS = (
    Question(
        "Which change fixed the failing import of lanternfish?",
        "search_event_previews", {"query": "lanternfish ModuleNotFoundError", "failed": True},
        holds("'name': 'Write'", "lanternfish/render/__init__.py"),
    ),
    Question(
        "The database was locked: what helped in the end?",
        "search_event_previews", {"query": "database is locked", "order": "newest"},
        holds("'name': 'Edit'", "BEGIN IMMEDIATE"),
    ),
    Question(
        "The database was locked: what was tried first?",
        "search_event_previews", {"query": "database is locked", "order": "oldest"},
        holds("apply_patch", "range(5)"),
    ),
    Question(
        "On which flaky test did an agent run in circles?",
        "list_sessions", {"query": "flaky"},
        holds("'lens': 'Loops'", "pytest -x -q tests/test_tides.py::test_high_water"),
    ),
    Question(
        "Why was test_high_water flaky?",
        "search_event_previews", {"query": "test_high_water is flaky"},
        holds("took the day from the clock"),
    ),
    Question(
        "What did the user refuse when an answer was to be cached?",
        "search_event_previews", {"query": "cache the answer dependency"},
        holds("pip install cachetools", "rejected"),
    ),
    Question(
        "Which edit of api.py failed, and which one did it in the end?",
        "search_event_previews", {"query": "", "path": "tidepool/api.py", "failed": True, "event_type": "ToolResult"},
        lambda data: data.get("outcome") == "ok" and "api.py" in str(data),
    ),
    Question(
        "What did the sub-agent find in map.js?",
        "list_sessions", {"query": "map.js"},
        holds("web/map.js:74"),
    ),
    Question(
        "What failed in the session of the October backfill?",
        "list_sessions", {"query": "October backfill"},
        _is_failure,
    ),
    Question(
        "Why did a test of the PNG export fail, and what mended it?",
        "list_sessions", {"query": "PNG"},
        holds("replace", "(width, height)"),
    ),
)  # fmt: skip


def investigate(asker: Asker, question: Question) -> Investigation:
    """Make the first call, then those of the hints, until the question is answered."""
    name, arguments = question.tool, question.arguments
    calls: list[str] = []
    sizes: list[int] = []
    while len(calls) < MOST_CALLS:
        given = asker.anything(name, **arguments)
        calls.append(f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})")
        sizes.append(len(given.text.encode()))
        if not given.is_error and question.answered(given.value["data"]):
            return Investigation(question, calls, sizes, True)
        name, arguments = call_in(given.value["hint"])
    return Investigation(question, calls, sizes, False)


def told(found: Investigation) -> str:
    """Return a line for the question and one for each call."""
    state = "answered" if found.solved else "NOT ANSWERED"
    head = f"{found.question.text}\n  {state}: {len(found.calls)} calls, {sum(found.sizes):,} bytes\n"
    return head + "".join(f"  {size:6,}  {call}\n" for size, call in zip(found.sizes, found.calls, strict=True))


def main() -> None:
    """Print every investigation, and the median of their sizes."""
    with tempfile.TemporaryDirectory() as folder:
        asker = Asker(Path(folder), SAMPLES)
        found = [investigate(asker, question) for question in QUESTIONS]
    for investigation in found:
        sys.stdout.write(told(investigation))
    totals = [sum(investigation.sizes) for investigation in found]
    answers = [size for investigation in found for size in investigation.sizes]
    calls = [len(investigation.calls) for investigation in found]
    sys.stdout.write(
        f"median: {statistics.median(totals):,.0f} bytes and {statistics.median(calls):.0f} calls a question, "
        f"{statistics.median(answers):,.0f} bytes an answer\n"
    )
    sys.exit(not all(investigation.solved for investigation in found))


if __name__ == "__main__":
    main()
