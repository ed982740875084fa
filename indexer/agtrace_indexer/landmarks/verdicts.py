"""Whether tests and builds passed, by the words that their programs print: what fails outweighs what passes."""

from __future__ import annotations

import re
from itertools import pairwise

from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.commands import Command


def _line(*beginnings: str) -> re.Pattern[str]:
    """Return a pattern for lines with any of these beginnings: it is tried nowhere else, which is fast."""
    return later(f"^(?:{'|'.join(beginnings)})", re.MULTILINE)


_TESTS, _BUILDS = LandmarkKind.TEST_RUN, LandmarkKind.BUILD

_STOPPED = _line(
    r"make(?:\[\d+\])?: \*\*\* ",
    r"(?:\[[^\]\n]*\] )?ERROR task failed\b",  # mise
    r"(?:error: )?script \"[^\"\n]+\" exited with code [1-9]",  # bun
    r"[ \t]*npm (?:ERR!|error) (?:code ELIFECYCLE|Lifecycle script [^\n]* failed|Test failed|code 1\b|command failed)",
    r"[^\w\n]*ELIFECYCLE\W",  # pnpm
    r"error Command failed with exit code [1-9]",  # yarn
    r"error: Recipe `[^`\n]+` failed",  # just
    r"task: Failed to run task ",
    r"(?:\[\w+\] )?BUILD FAIL(?:ED|URE)\b",  # gradle, maven
)
"""What runners of tasks print when one of these fails, whichever."""

_CHECK = later(
    r"\b(?:lint|eslint|biome|ruff|flake8|pylint|mypy|pyright|clippy|golangci-lint|stylelint|typecheck|check)\b"
)
_FILTERED = later(r"\|&?\s*(?:tail|head|e?grep|rg|sed|awk|tee|cat|less|sort|uniq|cut)\b[^|;&\n]*\Z")
_SHOWING = frozenset({"cat", "echo", "find", "git", "grep", "head", "less", "ls", "rg", "sed", "tail"})
"""Programs that may print what a check printed before."""

_NAMING = 4
"""The first words of a command, of which one names a check: `uv run ruff check`."""

_CHECK_FAILED = _line(
    r"✖ [1-9]\d* problems? \([1-9]",  # eslint, stylelint
    r"Found [1-9]\d* errors?\b",  # ruff, mypy, biome
    r"[1-9]\d* errors?, ",  # pyright
    r"[1-9]\d* issues:$",  # golangci-lint
    r"error: (?:could not compile|aborting)",  # clippy
)
"""What checks print that are neither tests nor builds."""

_FAILED = {
    _TESTS: _line(
        r"[ \t]*--- FAIL: ",  # go
        r"FAIL(?:$|\t|:| \S+ )",
        r"panic: ",
        r"=* ?(?:\d+ \w+, ){0,4}[1-9]\d* (?:failed|errors?)\b[^\n]* in [\d.]+",  # pytest
        r"(?:FAILED|ERROR) [\w./-]+\.py\b",
        r"ERROR: (?:file or directory not found|not found: )",
        r"FAILED \((?:failures|errors|skipped|unexpected)",  # unittest
        r"[ \t]*Tests?:? +(?:[1-9]\d* \w+[,|] *){0,4}[1-9]\d* failed",  # jest, vitest
        r"[ \t]*Test (?:Files|Suites):? +[1-9]\d* failed",
        r"[ \t]*Errors +[1-9]\d* errors?$",  # vitest: outside of tests
        r"[ \t]*[1-9]\d* (?:failing|failed)\s*$",  # mocha, playwright
        r"[ \t]*[1-9]\d* fail$",  # bun
        r"\(fail\) ",
        r"[#ℹ] fail [1-9]",  # node
        r"FAILED \| ",  # deno
        r"test result: FAILED",  # cargo
        r"error: (?:test|could not compile|aborting)",
        r"error\[E\d+\]",
        r"\d+% tests passed, [1-9]",  # ctest
        r"(?:\d+ \w+, ){0,3}\d+ (?:examples?|tests?|runs?), (?:\d+ assertions, )?[1-9]\d* failures?",  # rspec, minitest
        r"\d+ (?:tests?|runs?), \d+ assertions, \d+ failures, [1-9]\d* errors?",
        r"(?:FAILURES|ERRORS)!",  # phpunit
        r"(?:\[\w+\] +)?Tests run: \d+, +Failures: (?:[1-9]|\d+, +Errors: [1-9])",  # maven
        r"[ \t]*Failed! +- Failed: ",  # dotnet
        r"Test Run Failed",
        r"\*\* TEST FAILED \*\*",  # xcodebuild
        r"[ \t]*Executed \d+ tests?, with [1-9]\d* failure",
        r"[ \t]*evaluation failed :\(",  # tox
        r"nox > Session \S+ failed",
        r"not ok \d",  # TAP
        r"Result: FAIL",
    ),
    _BUILDS: _line(
        r"[^\s:]{1,200}\.go:\d+:\d+: ",  # go
        r"can't load package",
        r"(?:[^\n]{1,250} - |[^\n:]{1,250}: )?error TS\d",  # tsc
        r"Found [1-9]\d* errors?",
        r"error(?:\[E\d+\])?: ",  # cargo
        r"[^\s:]{1,200}:(?:\d+:){0,2} (?:fatal )?error: ",  # gcc, clang
        r"ld: ",
        r"collect2: error",
        r"[^\n]{1,250}: undefined reference ",
        r"Failed to compile",  # next, webpack
        r"ERROR in ",
        r"[ \t]*✘ \[ERROR\]",  # esbuild
        r"[^\w\n]*(?:Build|Compilation) failed",
        r"x Build failed",  # vite
        r"error during build",
        r"(?:ERROR: )?failed to solve",  # docker
        r"Build FAILED",
        r"\*\* (?:BUILD|ARCHIVE) FAILED \*\*",
        r"ninja: (?:error|build stopped)",
        r"[^\n:]{1,250}: error (?:CS|MSB|NU)\d",
    ),
}

_PASSED = {
    _TESTS: _line(
        r"ok\s+\S+\s+(?:\(cached\)|[\d.]+s)",  # go
        r"PASS$",
        r"[ \t]*--- PASS: ",
        r"=* ?(?:\d+ \w+, ){0,4}\d+ passed\b",  # pytest
        r"OK(?: \(|$)",  # unittest, phpunit
        r"[ \t]*Tests?:? +(?:\d+ \w+[,|] *){0,4}\d+ passed",  # jest, vitest
        r"[ \t]*\d+ passing\b",  # mocha
        r"[ \t]*\d+ passed(?: \(|$)",  # playwright
        r"[ \t]*\d+ pass$",  # bun
        r"[#ℹ] pass \d",  # node
        r"ok \| \d+ passed",  # deno
        r"test result: ok",  # cargo
        r"[ \t]*Summary \[[^\n]*\d+ passed",  # nextest
        r"100% tests passed",  # ctest
        r"(?:\d+ \w+, ){0,3}\d+ (?:examples?|tests?|runs?), (?:\d+ assertions, )?0 failures",  # rspec, minitest
        r"(?:\[\w+\] )?BUILD SUCCESS",  # gradle, maven
        r"[ \t]*Passed! +- Failed: +0",  # dotnet
        r"Test Run Successful",
        r"\*\* TEST SUCCEEDED \*\*",  # xcodebuild
        r"[ \t]*Executed \d+ tests?, with 0 failures",
        r"\W{0,4}Test run with \d+ tests? [^\n]*passed",  # swift
        r"[ \t]*congratulations :\)",  # tox
        r"nox > Session \S+ was successful",
        r"All tests (?:passed|successful)",
        r"Result: PASS",
    ),
    _BUILDS: _line(
        r"[^\w\n]*(?:Compiled (?:successfully|with)|Build (?:succeeded|complete|successful))",
        r"[^\w\n]*built in [\d.]+ ?m?s",  # vite
        r"[ \t]*Finished [^\n]*(?:profile|target)",  # cargo
        r"Successfully (?:built|tagged)",  # python, docker
        r"\*\* (?:BUILD|ARCHIVE) SUCCEEDED \*\*",
        r"(?:[^\n]{0,80} )?compiled (?:successfully|with \d+ warning)",  # webpack
        r"\[100%\] Built target ",  # cmake
        r"[#=>\d. ]*naming to \S+ (?:\S+ )?done",  # docker
        r"Found 0 errors",
        r"Bundled \d+ modules",  # bun
        r"(?:\[\w+\] )?BUILD SUCCESS",  # gradle, maven
        r"INFO: Build completed successfully",  # bazel
    ),
}

_COUNTS = _line(
    r"=* ?((?:\d+ (?:failed|passed|skipped|errors?|warnings?|xfailed|xpassed|deselected)(?:, )?){1,8} in [^\n=]*)",
    r"[ \t]*Tests?:? +((?:\d+ \w+(?:, | \| )?){1,6}[^\n]*)",
    r"[ \t]*(\d+ (?:passing|failing|passed|failed)\b[^\n]*)",
    r"[ \t]*(\d+ pass(?:\n\s*\d+ skip)?\n\s*\d+ fail)$",
    r"test result: \w+\. ([^\n;]+;[^\n;]+)",
    r"((?:\d+ \w+, ){0,3}\d+ (?:examples?|tests?|runs?), [^\n]*failures?[^\n]*)",
    r"(\d+% tests passed, \d+ tests? failed out of \d+)",
    r"(Ran \d+ tests? in [^\n]*)",
    r"(?:OK|Tests:)[ (]*(\d+ tests?, [^\n)]*)",
    r"(?:\[\w+\] +)?(Tests run: \d+, +Failures: \d+, +Errors: \d+)",
    r"[ \t]*(Executed \d+ tests?, with \d+ failures?)",
)
_LONGEST_COUNTS = 100

_NOT_RUN = later(
    r"command not found|is not recognized as|[Mm]issing script|unrecognized subcommand|No rule to make target"
    r"|\bNo module named ['\"]?(?:pytest|tox|nox|unittest|build)\b|\bno such (?:sub)?command|\b[Uu]nknown command"
    r"|\bno such file or directory: |: No such file or directory$|could not determine executable to run"
    r"|npx canceled due to missing packages|: not found$",
    re.MULTILINE,
)
_SHORT = 600
"""A program that isn't there says so in few characters."""

SILENT = frozenset({"cargo check", "clang", "gcc", "go build", "go install", "go test -c", "javac", "tsc", "vue-tsc"})
"""Programs that say nothing if all is well."""


_LINE = later(r"^([^\n]{400})[^\n]+", re.MULTILINE)
_LAST = 10_000


def shown_of(output: str) -> str:
    """Return the part of an output in which words are looked for: the beginnings of its lines."""
    return _LINE.sub(r"\1", output)


def failed(kind: LandmarkKind, output: str, *, of_anything: bool) -> bool:
    """Whether the output says that a test run or a build failed.

    `of_anything`: whether the words of a runner of tasks count, which may speak of another task of the same command.
    """
    return bool(_FAILED[kind].search(output) or (of_anything and _STOPPED.search(output)))


def passed(kind: LandmarkKind, output: str) -> bool:
    """Whether the output says that a test run or a build passed."""
    return _PASSED[kind].search(output) is not None


def hides_check(command: Command) -> bool:
    """Whether a command that is neither a test nor a build runs a check whose exit code a filter behind it hides."""
    if "|" not in command.text or not _CHECK.search(command.text) or not _FILTERED.search(command.text.rstrip()):
        return False
    return any(
        behind.after in ("|", "|&") and part.program not in _SHOWING and any(map(_CHECK.search, part.words[:_NAMING]))
        for part, behind in pairwise(command.parts)
    )


def check_failed(output: str) -> bool:
    """Whether the output says that such a check failed."""
    said = shown_of(output)
    return bool(_CHECK_FAILED.search(said) or _STOPPED.search(said))


def was_absent(output: str) -> bool:
    """Whether the output only says that the program, or its task, isn't there."""
    return len(output) < _SHORT and _NOT_RUN.search(output) is not None


def speaks(kind: LandmarkKind, output: str, *, besides: LandmarkKind) -> bool:
    """Whether the output has words of a test run, or of a build, that aren't those of the other one."""
    theirs = (_FAILED[besides], _PASSED[besides])
    return any(
        not any(other.match(output, match.start()) for other in theirs)
        for pattern in (_FAILED[kind], _PASSED[kind])
        for match in pattern.finditer(output)
    )


def summaries(output: str) -> list[str]:
    """Return the lines near the end of an output in which test runs print their counts."""
    return [match[0] for match in _COUNTS.finditer(shown_of(output[-_LAST:]))]


def counts(output: str) -> str | None:
    """Return the counts of a test run as it printed them near its end, on one line."""
    found = summaries(output)
    last = _COUNTS.match(found[-1]) if found else None
    said = next((group for group in last.groups() if group), None) if last else None
    return said and " ".join(said.split())[:_LONGEST_COUNTS].strip(" =")
