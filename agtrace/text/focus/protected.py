"""The lines of an output that are kept whatever the question: failures, with their frames, verdicts, both ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.text.failing_lines import Failing

FIRST, LAST = 2, 4
"""The lines kept at both ends of an output."""

MOST_DETAILS = 6
"""The lines kept after a line with a failure that belong to it."""

FIRST_FRAMES, LAST_FRAMES = 7, 14
"""The lines kept of a traceback."""

MOST_VERDICTS = 12

_TRACEBACK = later(r"\W*Traceback \(most recent call last\):")
_LONGEST_TRACEBACK = 1000
_BELONGS = later(r"\s+(?:at |-->|\||\d+ +\||\^|\.{3} \d+ more|File \")|\tat |E  |> |\s*\^|Caused by: |\s+raise ")
_VERDICT = later(
    r"[=\s]*\d+ (?:passed|passing|tests? passed)\b|test result: |Tests?:? +\d+ passed|BUILD SUCCESS|Ran \d+ tests? in"
    r"|Found 0 errors|Success: no issues|All checks passed|\s*OK$|ok +\t|Finished `?\w+|\[INFO\] BUILD|PASS$"
    r"|Successfully |exit code:? \d|Process exited"
)


_LOGGED = later(
    r"\W*(?:\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)\b|time=|\w{3} [ \d]\d \d\d:)"
)
_SAMPLE = 200


class Protected(Struct, frozen=True):
    """Lines by how certainly they are kept."""

    failing: dict[int, int]
    """The lines that report a failure, each with its rank: 0 a verdict, 1 a failed test, 2 an error."""
    around: list[int]
    """Verdicts of what went well, both ends: kept as far as there is room, in this order."""
    details: list[int]
    """Frames, and what else belongs to failures: those of failures that the question is about come first."""


_RANKS = {"verdict": 0, "test": 1, "error": 2}


def protected(
    lines: Sequence[str], failures: Sequence[tuple[int, Failing]], looked: Sequence[tuple[int, int]]
) -> Protected:
    """Return the protected lines of an output, given the failures in it, and the stretches to find others in."""
    failing = {index: _RANKS[told.kind] for index, told in failures if told.kind != "detail"}
    details = [index for index, told in failures if told.kind == "detail"]
    verdicts: list[int] = []
    tracebacks: list[int] = []
    for start, end in looked:
        for index in range(start, end):
            line = lines[index][:200]
            if "Traceback" in line and _TRACEBACK.match(line):
                tracebacks.append(index)
            elif index not in failing and _VERDICT.match(line):
                verdicts.append(index)
    frames = [line for index in tracebacks for line in _frames(index, lines, failing)]
    after = [line for index in failing for line in _after(index, lines)]
    ends = _ends(lines) if failing or verdicts or _is_log(lines) else []
    return Protected(failing, [*verdicts[-MOST_VERDICTS:], *ends], [*frames, *details, *after])


def _is_log(lines: Sequence[str]) -> bool:
    sample = lines[:_SAMPLE]
    return sum(_LOGGED.match(line[:100]) is not None for line in sample) * 2 > len(sample)


def _ends(lines: Sequence[str]) -> list[int]:
    """Return the last and the first lines, the last one first."""
    return [*range(len(lines) - 1, max(len(lines) - 1 - LAST, -1), -1), *range(min(FIRST, len(lines)))]


def _frames(index: int, lines: Sequence[str], failing: dict[int, int]) -> list[int]:
    """Return the first and last lines of the traceback that begins at this line."""
    indented = index + 1
    last = min(index + _LONGEST_TRACEBACK, len(lines))
    while indented < last and indented not in failing and "Traceback (" not in lines[indented]:
        indented += 1
    whole = list(range(index, indented))
    return whole if len(whole) <= FIRST_FRAMES + LAST_FRAMES else whole[:FIRST_FRAMES] + whole[-LAST_FRAMES:]


def _after(index: int, lines: Sequence[str]) -> Iterator[int]:
    for line in range(index + 1, min(index + 1 + MOST_DETAILS, len(lines))):
        if not _BELONGS.match(lines[line][:200]):
            return
        yield line
