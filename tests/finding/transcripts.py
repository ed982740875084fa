"""Investigations, scored: which questions (questions.json) were answered rightly, in how many calls and bytes.

A transcript is a file of JSON lines: a call of an investigator is `{"question", "call", "bytes"}`, what it
answered in the end is `{"question", "answer"}`. The questions were written from the logs alone, and their answers
verified by scripts that read the logs, without an index; an answer is right if every expression of `must` is
found in it, and none of `must_not`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

QUESTIONS: tuple[Mapping[str, Any], ...] = tuple(json.loads((Path(__file__).parent / "questions.json").read_text()))


class Investigation(NamedTuple):
    """What became of one question."""

    question: str
    """Its id."""
    kind: str
    right: bool | None
    """None if it wasn't answered."""
    calls: int
    bytes: int
    """Of all that the investigator was shown in answer to its calls."""


class Score(NamedTuple):
    """What became of many questions."""

    right: int
    of: int
    calls: int
    bytes: int
    median_calls: float
    median_bytes: float


def is_right(question: Mapping[str, Any], answer: str) -> bool:
    """Whether an answer says what it must, and nothing that it must not."""
    said = answer.strip()
    return all(is_found(one, said) for one in question["must"]) and not any(
        is_found(one, said) for one in question["must_not"]
    )


def investigations(lines: Iterable[str]) -> list[Investigation]:
    """Return the investigations that the lines of a transcript are about, in the order of the questions."""
    answers: dict[str, str] = {}
    sizes: dict[str, list[int]] = {}
    for line in lines:
        record = json.loads(line)
        sizes.setdefault(record["question"], [])
        if "answer" in record:
            answers[record["question"]] = record["answer"]
        else:
            sizes[record["question"]].append(record["bytes"])
    return [
        Investigation(
            question["id"],
            question["kind"],
            is_right(question, answers[question["id"]]) if question["id"] in answers else None,
            len(sizes[question["id"]]),
            sum(sizes[question["id"]]),
        )
        for question in QUESTIONS
        if question["id"] in sizes
    ]


def score(found: list[Investigation]) -> Score:
    """Sum up investigations; a question without an answer isn't right."""
    return Score(
        sum(one.right is True for one in found),
        len(found),
        sum(one.calls for one in found),
        sum(one.bytes for one in found),
        median(one.calls for one in found),
        median(one.bytes for one in found),
    )


def table(found: list[Investigation]) -> str:
    """Return the scores by kind of question and in total, as lines of text."""
    kinds = dict.fromkeys(one.kind for one in found)
    groups = {kind: [one for one in found if one.kind == kind] for kind in kinds} | {"all": found}
    lines = [f"{'kind':10} {'right':>7} {'calls':>6} {'median':>7} {'bytes':>9} {'median':>7}"]
    for name, group in groups.items():
        all_of_it = score(group)
        lines.append(
            f"{name:10} {all_of_it.right:>4}/{all_of_it.of:<2} {all_of_it.calls:>6} {all_of_it.median_calls:>7.1f}"
            f" {all_of_it.bytes:>9,} {all_of_it.median_bytes:>7,.0f}"
        )
    wrong = [one.question for one in found if one.right is not True]
    return "\n".join([*lines, f"not right: {', '.join(wrong) or 'none'}"])


def is_found(expression: str, text: str) -> bool:
    """Whether a regular expression is found in a text, whatever the case."""
    return re.search(expression, text, re.IGNORECASE | re.MULTILINE) is not None
