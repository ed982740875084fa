"""What the built-in pruner makes of the labelled cases: what it keeps and what it loses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import zstandard
from msgspec import Struct

from agtrace.text import failing_lines
from agtrace.text.focus import Focused, Unfocused, focus

CASES = Path(__file__).with_name("cases")

KINDS = (
    *("python", "typescript", "go", "rust", "java"),
    *("test_output", "build_log", "traceback", "json", "prose", "diff", "grep"),
)


class Case(Struct, dict=True):
    """A question about a text."""

    id: str
    kind: str
    question: str
    text: str
    required: frozenset[int]
    """The numbers, from 1, of the lines that an agent needs for the answer."""
    lexical: bool
    """Whether the question and these lines have a useful word in common."""
    half: str = ""
    """The file that it is in."""

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text; a final newline makes no further one."""
        return self.text.removesuffix("\n").split("\n")


def read_cases() -> Iterator[Case]:
    """Yield the cases of both halves."""
    for path in sorted(CASES.glob("*.jsonl.zst")):
        data = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
        for line in data.splitlines():
            case = msgspec.json.decode(line, type=Case)
            case.half = path.name.partition(".")[0]
            yield case


RECALL, KEPT = 0.85, 0.40
"""The least mean recall over all cases, and the largest mean share of lines kept of all but diffs, to be good enough.

Diffs are never pruned, so all their lines are kept, whatever the pruner does.
"""

_FAILURES = {"verdict", "test", "error"}


@dataclass(frozen=True)
class Pruned:
    """A case, and what the pruner made of it."""

    case: Case
    given: Focused | Unfocused

    @cached_property
    def kept(self) -> set[int]:
        """The numbers of the lines that were kept."""
        if isinstance(self.given, Unfocused):
            return {*range(1, len(self.case.lines) + 1)}
        return {number for start, end in self.given.kept for number in range(start, end + 1)}

    @property
    def lost(self) -> set[int]:
        """The numbers of required lines that were left out."""
        return {*self.case.required} - self.kept

    @property
    def recall(self) -> float:
        """The share of the required lines that was kept."""
        return len(self.case.required & self.kept) / len(self.case.required)

    @property
    def lines_kept(self) -> float:
        """The share of lines that was kept."""
        return len(self.kept) / len(self.case.lines)

    @property
    def characters_kept(self) -> float:
        """The share of characters that is left, with those that tell of gaps; more than 1 if there are more."""
        return len(self.given.text) / len(self.case.text) if isinstance(self.given, Focused) else 1.0

    @cached_property
    def failing_lost(self) -> list[int]:
        """The numbers of lines that report a failure and were left out."""
        found = enumerate(failing_lines.read(self.case.lines), 1)
        return [number for number, one in found if one and one.kind in _FAILURES and number not in self.kept]

    @property
    def changed_diff(self) -> bool:
        """Whether this is a diff that was pruned."""
        return self.case.kind == "diff" and isinstance(self.given, Focused)


def prune(case: Case) -> Pruned:
    """Prune the text of a case. The clock stands still: a slow machine makes no difference to what is kept."""
    return Pruned(case, focus(case.text, case.question, clock=lambda: 0.0))


def mean(values: Iterable[float]) -> float:
    """Return the mean; NaN of nothing."""
    some = list(values)
    return sum(some) / len(some) if some else math.nan


def rows(pruned: Sequence[Pruned]) -> list[tuple[str, list[Pruned]]]:
    """Return the cases by kind, all, all but diffs, and those whose question has a word of the answer or hasn't."""
    named = [(kind, [one for one in pruned if one.case.kind == kind]) for kind in KINDS]
    named += [("all", list(pruned)), ("all but diffs", _but_diffs(pruned))]
    named += [("word shared", [one for one in pruned if one.case.lexical])]
    return [*named, ("no word shared", [one for one in pruned if not one.case.lexical])]


def _but_diffs(pruned: Iterable[Pruned]) -> list[Pruned]:
    return [one for one in pruned if one.case.kind != "diff"]


def quality(pruned: Sequence[Pruned]) -> str:
    """Return the table of what is kept and lost: means over all cases of a row."""
    table = ["                cases  recall  lines kept  chars kept  failing lost  not pruned because"]
    for name, some in rows(pruned):
        reasons = Counter(one.given.reason for one in some if isinstance(one.given, Unfocused))
        shares = mean(one.recall for one in some), mean(one.lines_kept for one in some)
        lost, why = sum(len(one.failing_lost) for one in some), ", ".join(f"{n} {why}" for why, n in reasons.items())
        chars = mean(one.characters_kept for one in some)
        table.append(f"{name:<15}{len(some):>6}{shares[0]:>8.3f}{shares[1]:>12.2f}{chars:>12.2f}{lost:>14}  {why}")
    return "\n".join(table)


def faults(pruned: Sequence[Pruned]) -> list[str]:
    """Return what isn't good enough: each goal that is missed, and each line that must never be lost."""
    recall, kept = mean(one.recall for one in pruned), mean(one.lines_kept for one in _but_diffs(pruned))
    found = [f"recall {recall:.3f} is below {RECALL}"] if recall < RECALL else []
    found += [f"{kept:.1%} of lines kept is above {KEPT:.0%}"] if kept > KEPT else []
    for one in pruned:
        found += [f"{one.case.id}: line {number} reports a failure and is lost" for number in one.failing_lost]
        found += [f"{one.case.id}: a diff was pruned"] if one.changed_diff else []
    return found
