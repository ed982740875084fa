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
    """Read the cases of all halves there are, as `*.jsonl` or `*.jsonl.zst`."""
    files = sorted(path for path in folder.iterdir() if path.name.endswith((".jsonl", ".jsonl.zst")))
    return [case for path in files for case in _of_file(path)]


def _of_file(path: Path) -> Iterator[Case]:
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    for line in data.decode().split("\n"):
        if line:
            yield _case(path.name.partition(".")[0], json.loads(line))


def _case(half: str, given: dict[str, Any]) -> Case:
    return Case(
        half=half,
        id=given["id"],
        kind=given["kind"],
        question=given["question"],
        text=given["text"],
        required=frozenset(given["required"]),
        lexical=given["lexical"],
        origin=given["from"],
    )


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
