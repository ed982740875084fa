"""The labelled cases: texts, questions about them, and the lines that an answer needs (cases/README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import zstandard

CASES = Path(__file__).with_name("cases")

KINDS = (
    *("python", "typescript", "go", "rust", "java"),
    *("test_output", "build_log", "traceback", "json", "prose", "diff", "grep"),
)

LARGE = 100 * 1024
"""The characters of a large text."""


class CaseError(Exception):
    """A case is written wrongly; says which, and how."""


@dataclass(frozen=True)
class Case:
    """A question about a text."""

    half: str
    """The file that it is in."""
    id: str
    kind: str
    question: str
    text: str
    required: frozenset[int]
    """The numbers, from 1, of the lines that an agent needs for the answer."""
    lexical: bool
    """Whether the question and these lines have a useful word in common."""
    origin: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text; a final newline makes no further one."""
        return lines(self.text)


def lines(text: str) -> list[str]:
    """Return the lines of a text; a final newline makes no further one."""
    return text.removesuffix("\n").split("\n")


def read_cases(folder: Path = CASES) -> list[Case]:
    """Read the cases of all halves there are, as `*.jsonl` or `*.jsonl.zst`. Raises `CaseError`."""
    files = sorted(path for path in folder.iterdir() if path.name.endswith((".jsonl", ".jsonl.zst")))
    cases = [case for path in files for case in _of_file(path)]
    ids = [case.id for case in cases]
    if twice := {one for one in ids if ids.count(one) > 1}:
        raise CaseError(f"{', '.join(sorted(twice))}: more than one case has this id")
    return cases


def _of_file(path: Path) -> Iterator[Case]:
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    for number, line in enumerate(data.decode().split("\n"), 1):
        if line:
            yield _case(path.name.partition(".")[0], json.loads(line), f"{path.name}:{number}")


def _case(half: str, given: dict[str, Any], place: str) -> Case:
    case = Case(
        half=half,
        id=given["id"],
        kind=given["kind"],
        question=given["question"],
        text=given["text"],
        required=frozenset(given["required"]),
        lexical=given["lexical"],
        origin=given["from"],
    )
    if wrong := _wrong(case):
        raise CaseError(f"{place}, {case.id}: {wrong}")
    return case


def _wrong(case: Case) -> str | None:
    if case.kind not in KINDS:
        return f"unknown kind {case.kind!r}"
    if not case.required or not case.question:
        return "no question, or no line that is required"
    if outside := {number for number in case.required if not 1 <= number <= len(case.lines)}:
        return f"no such lines: {sorted(outside)}"
    if blank := {number for number in case.required if not case.lines[number - 1].strip()}:
        return f"blank lines are required: {sorted(blank)}"
    return None


def large_cases(cases: Sequence[Case], *, of_each_kind: int = 4) -> list[Case]:
    """Return cases of 100 KB: different texts of a kind one after the other, again from the first if they are short.

    The questions are those of the cases that they begin with, and so are the required lines. There are none of
    diffs, which nothing looks into.
    """
    made = []
    for kind in KINDS:
        some = [case for case in cases if case.kind == kind and kind != "diff"]
        step = max(1, len(some) // of_each_kind)
        made += [_large(some[start:] + some[:start]) for start in range(0, len(some), step)][:of_each_kind]
    return made


def _large(cases: Sequence[Case]) -> Case:
    texts = list(dict.fromkeys(case.text.removesuffix("\n") + "\n" for case in cases))
    text = "".join(texts) * (LARGE // sum(map(len, texts)) + 1)
    first = cases[0]
    return Case(
        *(first.half, first.id, first.kind, first.question, text[: text.rindex("\n", 0, LARGE) + 1]),
        *(first.required, first.lexical, first.origin),
    )
