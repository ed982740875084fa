"""Whether tests and builds passed, by the words that their programs print.

Each pattern is looked for at the beginnings of lines unless it says otherwise; what fails outweighs what passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agtrace_schema.landmarks import LandmarkKind


def _any_of(*lines: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{line})" for line in lines), re.MULTILINE)


def _of_each_kind(*, tests: Iterable[str], builds: Iterable[str]) -> dict[LandmarkKind, re.Pattern[str]]:
    return {LandmarkKind.TEST_RUN: _any_of(*tests), LandmarkKind.BUILD: _any_of(*builds)}


_STOPPED = _any_of(
    r"^make(?:\[\d+\])?: \*\*\* ",
    r"\bERROR task failed\b",  # mise
    r"^(?:error: )?script \"[^\"\n]+\" exited with code [1-9]",  # bun
    r"^\s*(?:npm ERR!|npm error) (?:code ELIFECYCLE|Lifecycle script .* failed|Test failed|code 1\b|command failed)",
    r"\bELIFECYCLE\b.* (?:failed|exit code)",  # pnpm
    r"^error Command failed with exit code [1-9]",  # yarn
    r"^error: Recipe `[^`\n]+` failed",  # just
    r"^task: Failed to run task ",
    r"^(?:\[ERROR\] |\[INFO\] )?BUILD FAIL(?:ED|URE)\b",  # gradle, maven
)
"""What runners of tasks print when one of these fails, whichever."""

_FAILED = _of_each_kind(
    tests=(
        r"^\s*--- FAIL: ",  # go
        r"^FAIL(?:$|\t|:| \S+ )",
        r"^panic: ",
        r"^=* ?(?:\d+ \w+, ){0,4}[1-9]\d* (?:failed|errors?)\b[^\n]* in [\d.]+",  # pytest
        r"^(?:FAILED|ERROR) [\w./-]+\.py\b",
        r"^ERROR: (?:file or directory not found|not found: )",
        r"^FAILED \((?:failures|errors|skipped|unexpected)",  # unittest
        r"^\s*Tests?:? +(?:[1-9]\d* \w+[,|] *){0,4}[1-9]\d* failed",  # jest, vitest
        r"^\s*Test (?:Files|Suites):? +[1-9]\d* failed",
        r"^\s*[1-9]\d* (?:failing|failed)\s*$",  # mocha, playwright
        r"^\s*[1-9]\d* fail$",  # bun
        r"^\(fail\) ",
        r"^[#ℹ] fail [1-9]",  # node
        r"^FAILED \| ",  # deno
        r"^test result: FAILED",  # cargo
        r"^error: (?:test|could not compile|aborting)",
        r"^error\[E\d+\]",
        r"\b[1-9]\d* tests? failed out of ",  # ctest
        r"\b\d+ (?:examples?|tests?|runs?), (?:\d+ assertions, )?[1-9]\d* failures?",  # rspec, minitest
        r"\b\d+ (?:tests?|runs?), \d+ assertions, \d+ failures, [1-9]\d* errors?",
        r"^(?:FAILURES|ERRORS)!",  # phpunit
        r"\bTests run: \d+, +Failures: (?:[1-9]|\d+, +Errors: [1-9])",  # maven
        r"^\s*Failed! +- Failed: ",  # dotnet
        r"^Test Run Failed",
        r"\*\* TEST FAILED \*\*",  # xcodebuild
        r"^\s*Executed \d+ tests?, with [1-9]\d* failure",
        r"^\s*evaluation failed :\(",  # tox
        r"^nox > Session \S+ failed",
        r"^not ok \d",  # TAP
        r"^Result: FAIL",
    ),
    builds=(
        r"\.go:\d+:\d+: ",  # go
        r"^can't load package",
        r"\berror TS\d+",  # tsc
        r"^Found [1-9]\d* errors?",
        r"^error(?:\[E\d+\])?: ",  # cargo
        r": (?:fatal )?error: ",  # gcc, clang
        r"^ld: ",
        r"^collect2: error",
        r"\bundefined reference\b",
        r"^Failed to compile",  # next, webpack
        r"^ERROR in ",
        r"^\s*✘ \[ERROR\]",  # esbuild
        r"^\W*(?:Build|Compilation) failed",
        r"^x Build failed",  # vite
        r"^error during build",
        r"^(?:ERROR: )?failed to solve",  # docker
        r"^Build FAILED",
        r"\*\* (?:BUILD|ARCHIVE) FAILED \*\*",
        r"^ninja: (?:error|build stopped)",
        r": error (?:CS|MSB|NU)\d+",
    ),
)

_PASSED = _of_each_kind(
    tests=(
        r"^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)",  # go
        r"^PASS$",
        r"^\s*--- PASS: ",
        r"^=* ?(?:\d+ \w+, ){0,4}\d+ passed\b",  # pytest
        r"^OK(?: \(|$)",  # unittest, phpunit
        r"^\s*Tests?:? +(?:\d+ \w+[,|] *){0,4}\d+ passed",  # jest, vitest
        r"^\s*\d+ passing\b",  # mocha
        r"^\s*\d+ passed(?: \(|$)",  # playwright
        r"^\s*\d+ pass$",  # bun
        r"^[#ℹ] pass \d",  # node
        r"^ok \| \d+ passed",  # deno
        r"^test result: ok",  # cargo
        r"^\s*Summary \[[^\n]*\d+ passed",  # nextest
        r"^100% tests passed",  # ctest
        r"\b\d+ (?:examples?|tests?|runs?), (?:\d+ assertions, )?0 failures",  # rspec, minitest
        r"^(?:\[INFO\] )?BUILD SUCCESS",  # gradle, maven
        r"^\s*Passed! +- Failed: +0",  # dotnet
        r"^Test Run Successful",
        r"\*\* TEST SUCCEEDED \*\*",  # xcodebuild
        r"^\s*Executed \d+ tests?, with 0 failures",
        r"^\W{0,4}Test run with \d+ tests? [^\n]*passed",  # swift
        r"^\s*congratulations :\)",  # tox
        r"^nox > Session \S+ was successful",
        r"^All tests (?:passed|successful)",
        r"^Result: PASS",
    ),
    builds=(
        r"^\W*(?:Compiled (?:successfully|with)|Build (?:succeeded|complete|successful))",
        r"\bbuilt in [\d.]+ ?m?s",  # vite
        r"^\s*Finished [^\n]*(?:profile|target)",  # cargo
        r"^Successfully (?:built|tagged)",  # python, docker
        r"\*\* (?:BUILD|ARCHIVE) SUCCEEDED \*\*",
        r"\bcompiled (?:successfully|with \d+ warning)",  # webpack
        r"\bnaming to \S+ (?:\S+ )?done",  # docker
        r"^Found 0 errors",
        r"^Bundled \d+ modules",  # bun
        r"^(?:\[INFO\] )?BUILD SUCCESS",  # gradle, maven
        r"\bBuild completed successfully",  # bazel
    ),
)

_COUNTS = _any_of(
    r"^=* ?((?:\d+ (?:failed|passed|skipped|errors?|warnings?|xfailed|xpassed|deselected)(?:, )?){1,8} in [^\n=]*)",
    r"^\s*Tests?:? +((?:\d+ \w+(?:, | \| )?){1,6}[^\n]*)",
    r"^\s*(\d+ (?:passing|failing|passed|failed)\b[^\n]*)",
    r"^\s*(\d+ pass(?:\n\s*\d+ skip)?\n\s*\d+ fail)$",
    r"^test result: \w+\. ([^\n;]+;[^\n;]+)",
    r"\b(\d+ (?:examples?|tests?|runs?), [^\n]*failures?[^\n]*)",
    r"\b(\d+% tests passed, \d+ tests? failed out of \d+)",
    r"^(Ran \d+ tests? in [^\n]*)",
    r"^(?:OK|Tests:)[ (]*(\d+ tests?, [^\n)]*)",
    r"\b(Tests run: \d+, +Failures: \d+, +Errors: \d+)",
    r"^\s*(Executed \d+ tests?, with \d+ failures?)",
)
_LONGEST_COUNTS = 100

_NOT_RUN = _any_of(
    r"command not found",
    r"is not recognized as",
    r"[Mm]issing script",
    r"\bNo module named ['\"]?(?:pytest|tox|nox|unittest|build)\b",
    r"unrecognized subcommand",
    r"No rule to make target",
    r"\bno such (?:sub)?command",
    r"\b[Uu]nknown command",
    r"\bno such file or directory: ",
    r": No such file or directory$",
    r"could not determine executable to run",
    r": not found$",
)
_SHORT = 600
"""A program that isn't there says so in few characters."""

_SILENT = frozenset({"cargo check", "clang", "gcc", "go build", "go install", "go test -c", "javac", "tsc", "vue-tsc"})
"""Programs that say nothing if all is well."""


def failed(kind: LandmarkKind, output: str, *, of_anything: bool) -> bool:
    """Whether the output says that a test run or a build failed.

    `of_anything`: whether the words of a runner of tasks count, which may speak of another task of the same command.
    """
    return bool(_FAILED[kind].search(output) or (of_anything and _STOPPED.search(output)))


def passed(kind: LandmarkKind, output: str) -> bool:
    """Whether the output says that a test run or a build passed."""
    return _PASSED[kind].search(output) is not None


def is_silent(name: str | None) -> bool:
    """Whether a program prints nothing if all is well."""
    return name in _SILENT


def was_absent(output: str) -> bool:
    """Whether the output only says that the program, or its task, isn't there."""
    return len(output) < _SHORT and _NOT_RUN.search(output) is not None


def counts(output: str) -> str | None:
    """Return the counts of a test run as it printed them, on one line."""
    found = list(_COUNTS.finditer(output))
    said = next((group for group in found[-1].groups() if group), None) if found else None
    return said and " ".join(said.split())[:_LONGEST_COUNTS].strip(" =")
