"""Which of the things that a command attempted really happened, judged by its exit code and its output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agtrace_schema.events import Outcome
from agtrace_schema.landmarks import Evidence, Landmark, LandmarkKind, Verdict
from agtrace_schema.patterns import later

from agtrace_indexer.landmarks import git, verdicts
from agtrace_indexer.landmarks.attempts import Attempt

_EXIT_CODES = later(r"\bexit_code\\?\"?: ?(-?\d{1,9})\b")
_PRINTED = later(r'"output": ?"')
_PUBLISHED = later(
    r"^\+ (?P<npm>(?:@[\w.-]+/)?[\w.-]+@\d[\w.+-]*)$"
    r"|^[^\S\n]*(?:Published|Uploaded) (?P<cargo>[\w-]+ v\d[\w.+-]*)"
    r"|^View at:\s*https?://\S+/project/(?P<twine>[\w.-]+/[\w.+-]+)/"
    r"|^Successfully registered gem: (?P<gem>\S+ \([\w.]+\))"
    r"|\bPublished (?P<vsce>[\w-]+\.[\w.-]+ v\d[\w.+-]*)",
    re.MULTILINE,
)

_RUNS = (LandmarkKind.TEST_RUN, LandmarkKind.BUILD)
_LONGEST = 200
_FIRST, _LAST = 20_000, 80_000


class _Evidence(NamedTuple):
    """What an output says of one attempt because of the others."""

    output: str
    """What may speak of it: the line with its counts if every test run of the command printed one, else everything."""
    succeeded: bool = False
    """Whether something ran that only runs if this succeeded."""
    began: bool = True
    """False if what had to succeed before it failed."""


def landmarks(attempts: Sequence[Attempt], output: str, outcome: Outcome, *, in_script: bool = False) -> list[Landmark]:
    """Return what the attempts of a command came to.

    `output` is what it printed, without secrets; `in_script`: whether a script ran it, so that the outcome is that of
    the script.
    """
    if outcome is Outcome.REJECTED:
        return []
    if in_script:
        output, outcome = _unescaped(output), _of_script(output, outcome)
    if len(output) > _FIRST + _LAST:
        output = f"{output[:_FIRST]}\n{output[-_LAST:]}"
    well = {Outcome.OK: True, Outcome.FAILED: False}.get(outcome)
    committing = [attempt for attempt in attempts if attempt.kind is LandmarkKind.COMMIT]
    found = [*_commits(committing, output, well)] if committing else []
    pushing = next((attempt for attempt in attempts if attempt.kind is LandmarkKind.PUSH), None)
    for attempt, said in zip(attempts, _said_of_each(attempts, output, well=well), strict=True):
        if attempt.kind in _RUNS:
            found += _run(attempt, output, said, well)
        elif attempt is pushing:
            found += [*git.pushes(output), *git.tags(output)]
        elif attempt.kind not in (LandmarkKind.COMMIT, LandmarkKind.PUSH):
            found += _of(attempt, output, well)
    return list(map(_short, found))


def _commits(attempts: Sequence[Attempt], output: str, well: bool | None) -> Iterator[Landmark]:
    ran = [one.place.succeeds or (one.place.runs and one.how == git.QUIET) for one in attempts]
    return git.commits([(one[:4], well is True and surely) for one, surely in zip(attempts, ran, strict=True)], output)


def _of(attempt: Attempt, output: str, well: bool | None) -> Iterator[Landmark]:
    """Yield what an attempt came to that is no run; commits and pushes are found together."""
    told, surely = attempt[:4], well is True and attempt.place.succeeds
    if attempt.kind is LandmarkKind.BRANCH:
        yield from git.branches(told, output, surely=surely)
    elif attempt.how:
        yield from git.of_forge(told, output, surely=surely)
    elif attempt.kind is LandmarkKind.RELEASE:
        yield from _publication(attempt, output, surely=surely)


def _publication(attempt: Attempt, output: str, *, surely: bool) -> Iterator[Landmark]:
    match = _PUBLISHED.search(output)
    if match or surely:
        named = match[match.lastgroup or 0] if match else None
        yield Landmark(LandmarkKind.RELEASE, named, attempt.name, Verdict.CREATED)


def _run(attempt: Attempt, output: str, said: _Evidence, well: bool | None) -> Iterator[Landmark]:
    """Yield a test run or a build, unless it may not have run at all."""
    place = attempt.place
    ran = place.runs or (well is True and place.runs_if_well)
    verdict, evidence = _verdict(attempt, output, said, well, ran=ran)
    absent = not said.began or (verdict is not Verdict.PASSED and verdicts.was_absent(output))
    if not absent and (ran or verdict is not Verdict.UNKNOWN):
        counts = verdicts.counts(said.output) if attempt.kind is LandmarkKind.TEST_RUN else None
        yield Landmark(attempt.kind, attempt.name, counts, verdict, evidence)


def _verdict(
    attempt: Attempt, output: str, said: _Evidence, well: bool | None, *, ran: bool
) -> tuple[Verdict, Evidence]:
    """Return how a test run or a build ended, and what tells; if the output doesn't, its exit code isn't known."""
    place = attempt.place
    if well and place.succeeds:
        return Verdict.PASSED, Evidence.EXIT_CODE
    if well is False and place.fails:
        return Verdict.FAILED, Evidence.EXIT_CODE
    code = _shown_code(place.shown, output)
    if code is not None:
        return (Verdict.FAILED if code else Verdict.PASSED), Evidence.EXIT_CODE
    if said.succeeded:
        return Verdict.PASSED, Evidence.OUTPUT
    output = verdicts.shown_of(said.output)
    if verdicts.failed(attempt.kind, output, of_anything=ran):
        return Verdict.FAILED, Evidence.OUTPUT
    if verdicts.passed(attempt.kind, output) or (ran and well is not None and attempt.name in verdicts.SILENT):
        return Verdict.PASSED, Evidence.OUTPUT
    return Verdict.UNKNOWN, Evidence.OUTPUT


def _shown_code(before: str | None, output: str) -> int | None:
    """Return the exit code that stands in the output behind a text."""
    found = None if before is None else re.search(rf"^{re.escape(before)}(\d{{1,3}})\b", output, re.MULTILINE)
    return int(found[1]) if found else None


def _said_of_each(attempts: Sequence[Attempt], output: str, *, well: bool | None) -> list[_Evidence]:
    """Return what an output says of each attempt of a command; `well`: whether the command succeeded, if known."""
    result = [_Evidence(output) for _ in attempts]
    tests = [number for number, attempt in enumerate(attempts) if attempt.kind is LandmarkKind.TEST_RUN]
    lines = verdicts.summaries(output) if len(tests) > 1 else []
    if len(lines) == len(tests):
        for number, line in zip(tests, lines, strict=True):
            result[number] = _Evidence(line)
    for number in range(len(attempts) - 1, 0, -1):
        one, other = attempts[number - 1 : number + 1]
        if not (other.place.behind and one.kind in _RUNS and other.kind in _RUNS) or (well and one.place.succeeds):
            continue
        if one.kind is other.kind:
            ran_alone = number in tests and 0 < len(lines) <= tests.index(number)
        else:
            if result[number].succeeded or verdicts.speaks(other.kind, output, besides=one.kind):
                result[number - 1] = result[number - 1]._replace(succeeded=True)
                continue
            ran_alone = True
        if ran_alone and verdicts.failed(one.kind, output, of_anything=False):
            result[number] = result[number]._replace(began=False)
    return result


def _of_script(output: str, outcome: Outcome) -> Outcome:
    """Return how the commands of a script ended, by the exit codes that it prints."""
    codes = set(map(int, _EXIT_CODES.findall(output)))
    if not codes:
        return Outcome.UNKNOWN if outcome is Outcome.OK else outcome
    return Outcome.OK if codes == {0} else Outcome.FAILED


def _unescaped(output: str) -> str:
    """Return the output of a script, with lines instead of their escapes if it printed JSON."""
    found = _PRINTED.subn("\n", output)
    return found[0].replace('\\"', '"').replace("\\n", "\n") if found[1] else output


def _short(landmark: Landmark) -> Landmark:
    name, detail = landmark.name or "", landmark.detail or ""
    if len(name) <= _LONGEST and len(detail) <= _LONGEST:
        return landmark
    return landmark._replace(name=name[:_LONGEST] or None, detail=detail[:_LONGEST] or None)
