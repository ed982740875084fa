"""Several test runs and builds in one command: which words of its output speak of which, and which of them ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agtrace_schema.landmarks import LandmarkKind

from agtrace_indexer.landmarks import verdicts
from agtrace_indexer.landmarks.attempts import Attempt

RUNS = (LandmarkKind.TEST_RUN, LandmarkKind.BUILD)


class Said(NamedTuple):
    """What an output says of one attempt because of the others."""

    output: str
    """What may speak of it: the line with its counts if every test run of the command printed one, else everything."""
    succeeded: bool = False
    """Whether something ran that only runs if this succeeded."""
    began: bool = True
    """False if what had to succeed before it failed."""


def said_of_each(attempts: Sequence[Attempt], output: str, *, well: bool | None) -> list[Said]:
    """Return what an output says of each attempt of a command; `well`: whether the command succeeded, if known."""
    said = [Said(output) for _ in attempts]
    tests = [number for number, attempt in enumerate(attempts) if attempt.kind is LandmarkKind.TEST_RUN]
    lines = verdicts.summaries(output) if len(tests) > 1 else []
    if len(lines) == len(tests):
        for number, line in zip(tests, lines, strict=True):
            said[number] = Said(line)
    for number in range(len(attempts) - 1, 0, -1):
        one, other = attempts[number - 1 : number + 1]
        if not (other.place.behind and one.kind in RUNS and other.kind in RUNS) or (well and one.place.succeeds):
            continue
        if one.kind is other.kind:
            ran_alone = number in tests and 0 < len(lines) <= tests.index(number)
        else:
            if said[number].succeeded or verdicts.speaks(other.kind, output, besides=one.kind):
                said[number - 1] = said[number - 1]._replace(succeeded=True)
                continue
            ran_alone = True
        if ran_alone and verdicts.failed(one.kind, output, of_anything=False):
            said[number] = said[number]._replace(began=False)
    return said
