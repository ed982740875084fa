"""Finds the lines of a tool's output that report failures, and the tests that failed: a table of known output formats.

A word alone doesn't make such a line: `0 failed`, `"error": null`, a line of source code and a hit of grep are none.
Only the beginning of a long line is examined, and every pattern takes linear time: no line can hold up the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Literal

from agtrace_schema.patterns import later
from msgspec import Struct

LOOKED_AT = 2000
"""The characters of a line that are examined."""

Kind = Literal["verdict", "test", "error", "detail"]
"""The test runner's summary; a failed test; another error; a detail of a failure that another line reports."""


class Failing(Struct, frozen=True):
    """The failure that a line reports."""

    kind: Kind
    name: str | None = None
    """The failed test as the runner writes it, or the text of a verdict."""
    whole: bool = True
    """Whether the name identifies the test; one in a tree of tests doesn't."""


class Rule(Struct, frozen=True):
    """A format of line that contains one of these words (in lower case) and matches this pattern."""

    words: tuple[str, ...]
    kind: Kind
    expression: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when a line first has one of the words: most programs are never run."""
        return _compiled(self.expression)


_compiled = cache(re.compile)


def _rule(words: str, kind: Kind, pattern: str) -> Rule:
    return Rule(tuple(words.split("|")), kind, pattern)


_TIME = r"(?: \(?\[?[\d.]+ ?m?s\]?\)?)"
_MAYBE_TIME = f"{_TIME}?"
_NO_ERROR = r"(?!(?i:null|none|nil|no|false|0|ok|n/a|undefined|\"\"|''|\{\}|\[\]|\(none\))[\s,;.)}\]]*$)"

# fmt: off
RULES = (
    # -- verdicts: the summary of a runner --
    _rule(" fail| error", "verdict",  # pytest, ExUnit, minitest, RSpec, Gradle, Playwright, javac
        r"[=! ]*(?P<name>(?:\d+ [a-z]+(?: [a-z]+)?, ){0,12}[1-9]\d* (?:failed|failures?|errors?)"
        r"(?:,? \d++ [a-z]++| occurred outside of examples)*+(?: in [\d.]+ ?m?s\b[^=]*+)?)[=! ]*$"),
    _rule("failed (", "verdict", r"(?P<name>FAILED \([a-z ]+=\d.*\))$"),  # unittest
    _rule("failed", "verdict",
        r" *(?P<name>(?:Tests|Test Suites|Test Files):? +(?:\d++ \w++(?>,? ?\|? ?))*?[1-9]\d* failed\b.*)"),
    _rule("fail", "verdict", r" +(?P<name>[1-9]\d* fail(?:ing)?)$"),  # Mocha, Bun
    _rule("failed.", "verdict", r"(?P<name>test result: FAILED\..*)"),  # Cargo
    _rule("fail", "verdict", r"(?:# |ℹ )(?P<name>fail +[1-9]\d*)$"),  # node --test, tape
    _rule("failed", "verdict", r"(?P<name>Failed \d+/\d+ test.*)"),  # prove
    _rule("failed out of", "verdict", r"(?P<name>\d+% tests passed, [1-9]\d* tests? failed out of \d+)"),  # CTest
    _rule("failed  ]", "verdict", r"\[  FAILED  \] (?P<name>[1-9]\d* tests?), listed below:"),  # GoogleTest
    _rule("tests run:", "verdict",
        r"(?:\[\w+\] *)?(?P<name>Tests run: \d+, +(?:Failures: [1-9]|Failures: 0, +Errors: [1-9]).*)"),
    _rule("assertions:", "verdict", r"(?P<name>Tests: \d+, Assertions: \d+,.*(?:Failures|Errors): [1-9].*)"),  # PHPUnit
    _rule("failed:", "verdict", r"(?P<name>Failed! +- Failed: +[1-9].*|Test summary: .*failed: [1-9].*)"),  # dotnet
    _rule("executed", "verdict", r"\s*(?P<name>Executed \d+ tests?, with [1-9]\d* failures?.*)"),  # XCTest
    _rule("problem", "verdict", r"✖ (?P<name>\d+ problems? \([1-9]\d* errors?.*)"),  # ESLint
    _rule("found", "verdict", r"(?P<name>Found [1-9]\d* errors?\b.*)"),  # tsc, mypy, Ruff
    # -- failed tests --
    _rule("failed |error ", "test",  # pytest
        r"(?:FAILED|ERROR) (?P<name>[^\s:]+\.\w+(?:::[^\s\[]+(?:\[.*?\](?= - |$))?)?)(?: - .*)?$"),
    _rule(" failed| error", "test", r"(?P<name>[^\s:]+::\S.*?) (?:FAILED|ERROR)(?: +\[ *\d+%\])?$"),
    _rule("%] failed|%] error", "test", r"\[gw\d+\] \[ *\d+%\] (?:FAILED|ERROR) (?P<name>\S.*)"),  # pytest-xdist
    _rule("fail: |error: ", "test", r"(?:FAIL|ERROR): (?P<name>\w+ \([\w.<>]+\).*)"),  # unittest
    _rule("... fail|... error", "test", r"(?:test )?(?P<name>\S.*?) \.\.\. (?:FAILED|FAIL|ERROR)\b"),  # Cargo, Deno
    _rule("fail ", "test", r" *FAIL +(?:\|[^|]*\| )?(?P<name>\S+\.\w+ > .+?)" + _MAYBE_TIME + "$"),  # Vitest
    _rule("fail [", "test", r" +FAIL \[ *[\d.]+s\] (?:\([ \d/]+\) )?(?P<name>\S.*)"),  # cargo nextest
    _rule("(fail)", "test", r"\(fail\) (?P<name>\S.*?)" + _MAYBE_TIME + "$"),  # Bun
    _rule("●", "test", r" {0,2}● (?P<name>\S.*? › .+)"),  # Jest
    _rule("✕|✗|✘", "test",  # Jest, Bats, Playwright
        r"\s*(?P<tree>[✕✗✘]) +(?:\d+ +)?(?P<name>\S.*?)" + _MAYBE_TIME + "$"),
    _rule("✖|×", "test", r"\s*(?P<tree>[✖×]) +(?P<name>\S.*?)" + _TIME + "$"),  # Vitest, node --test
    _rule("×", "test", r"\s*(?P<tree>×) +(?P<name>\S+\.\w+ > .+)"),
    _rule("✖|×", "error", r"\s*[✖×] +(?!\d+ problem)\S"),  # Biome
    _rule("›", "test", r" +\d+\) (?P<name>\[[^\]]+\] › (?:.*[^ ─])?)[ ─]*$"),  # Playwright
    _rule("rspec ", "test", r"rspec (?P<name>\./\S+)"),
    _rule(") test ", "test", r" +\d+\) (?P<name>test .+ \(\S+\))$"),  # ExUnit
    _rule("\\", "test", r"\d+\) (?P<name>[\w\\]+::\w+.*)"),  # PHPUnit
    _rule("--- fail:", "test", r" *--- FAIL: (?P<name>\S+)"),  # Go
    _rule("not ok", "test",  # TAP
        r" *not ok\b(?: \d++(?! *#))?+(?: -(?! *#))?+(?! *#) *+(?P<name>(?:(?! # (?i:todo|skip)).)*+)$"),
    _rule("***", "test", r" *\d+/\d+ Test +#\d+: (?P<name>\S+) \.*\*\*\*(?:Failed|Exception|Timeout|Not Run)"),  # CTest
    _rule("(failed)|(timeout)", "test", r"\t? *\d+ - (?P<name>\S+) \((?:Failed|Timeout)\)"),
    _rule("failed  ]", "test", r"\[  FAILED  \] (?P<name>[\w/]+\.[\w/]+)"),  # GoogleTest
    _rule("<<<", "test",  # Maven
        r"(?:\[ERROR\] +)?(?P<name>(?:[\w.$][\w$]*+\.[\w.$]++|[\w.$]++\([\w.$]++)\)?)(?:\[\d+\])?"
        r" .*<<< (?:FAILURE|ERROR)!"),
    _rule(" failed", "test", r"(?P<name>[\w.$]+ > .+) FAILED$"),  # Gradle
    _rule("[fail]", "test", r"\[xUnit\.net [\d:.]+\] +(?P<name>\S.*?) \[FAIL\]"),
    _rule("failed ", "test", r" +Failed (?P<name>\S.*?) \[[<>\d .]+m?s\]$"),  # dotnet
    _rule("failed (", "test", r"Test Case '(?P<name>[^']+)' failed \("),  # XCTest
    # -- errors --
    _rule("error: ", "error",  # gcc, javac, mypy
        r"(?:[A-Za-z]:[\\/])?[^\s:]+:\d+(?::\d+)?: (?:fatal |internal )?error: \S"),
    _rule(" error ", "error",  # tsc, MSVC, C#
        r"\S.*?(?:\(\d+(?:,\d+)*\) ?:|:\d+:\d+ -| :) (?:fatal )?error [A-Z]+\d+\b"),
    _rule("error: |error[|error ts", "error",  # rustc, many programs
        r"(?i:error)(?:\[\w+\]| [A-Z]+\d+)?: " + _NO_ERROR + r"\S"),
    _rule("error: ", "error", r"(?!test )[\w./-]+: (?:fatal )?error: " + _NO_ERROR + r"\S"),  # ld, argparse
    _rule(" error ", "error", r"\s+\d+:\d+\s+error\s\s+\S"),  # ESLint
    _rule("error: |exception: |failure: |error [", "error",
        r" {0,6}(?:Uncaught |Unhandled )?[\w.$]*(?:Error|Exception|Failure)(?: \[\w+\])?: " + _NO_ERROR + r"\S"),
    _rule("exception", "error", r"Exception in thread |Unhandled exception\b"),
    _rule("caused by", "error", r"Caused by: \S"),
    _rule("[error]|[fatal]|[critical]|error:|fatal:|critical:", "error",
        r"(?:\[(?:ERROR|FATAL|error|CRITICAL)\]|(?:ERROR|FATAL|CRITICAL):) *(?=\S)" + _NO_ERROR),
    _rule(" error|[error|<error|fatal|critical", "error",
        r"\d{4}-\d\d-\d\d[T ][\d:.,+Z]+ +(?:\[?[\w.]+\]? )?[\[<]?(?:ERROR|FATAL|CRITICAL)\b"),
    _rule("fatal|panic: |parse error: ", "error",
        r"(?:PHP )?(?:[Ff]atal(?: error)?|FATAL(?: ERROR)?|[Pp]anic|Parse error): \S"),
    _rule("panicked at", "error", r"thread '[^']*' (?:\(\d+\) )?panicked at"),
    _rule("npm err", "error", r"npm (?:ERR!|error) \S"),
    _rule("error command|elifecycle|err_pnpm", "error", r"\W*(?:error Command failed|ELIFECYCLE\b|ERR_PNPM_)"),
    _rule("error in ", "error", r"ERROR in \S"),  # webpack
    _rule("error at ", "error", r"CMake Error at "),
    _rule("error collecting|error at ", "error", r"_{2,} ERROR (?:collecting|at \w+ of) \S"),  # pytest
    _rule("interrupted:|stopping after", "error", r"!{3,} (?:Interrupted: \d+ errors?|stopping after)"),
    _rule("[error]", "error", r"(?:\S+ )?##\[error\]"),
    _rule("tool_use_error", "error", r"<tool_use_error>"),
    _rule("fail", "error",  # Go, Jest, Vitest, coverage
        r" {0,1}FAIL(?:$|\t| +\S+\.\w+(?: \(.*\)| \[.*\])?$| Required )"),
    _rule("build fail|failure|failed: |failed *| failed|result: fail", "error",
        r"(?:\[\w+\] )?BUILD FAIL|FAILURE: |FAILURES!$|FAILED: |\*\* .* FAILED \*\*|> Task \S+ FAILED|Result: FAIL"),
    _rule("failed to run", "error", r" {0,2}● Test suite failed to run"),
    _rule("***", "error", r"(?:g?make|mingw32-make)(?:\[\d+\])?: \*\*\* "),
    _rule("build stopped", "error", r"ninja: build stopped"),
    _rule("undefined reference", "error", r"\S.*: undefined reference to "),
    _rule(".go:", "error", r"(?:vet: )?[\w./-]+\.go:\d+:\d+: \S"),
    _rule("|".join(f".py:{digit}" for digit in range(1, 10)), "error",  # Ruff, flake8
        r"[\w./-]+\.py:\d+:\d+: [A-Z]{1,4}\d{2,4} "),
    _rule(".rb:", "error", r"[\w./-]+\.rb:\d+:in .*\((?:\w+::)*\w*(?:Error|Exception)\)$"),
    _rule("segmentation fault|core dumped", "error",
        r"(?:\S+: )?(?:line \d+: ++)?(?:\d+ )?(?:Segmentation fault|Aborted|.*\(core dumped\))"),
    _rule("command not found|no such file|permission denied", "error",
        r"[\w./-]+:(?:\d+:)? .*(?:command not found(?:: \S.*)?|No such file or directory|Permission denied)\.?$"),
    _rule("exit code|exit status", "error",
        r"(?:\S+ )?(?:exited with |failed with )?(?:exit|Exit|EXIT)(?: code| status| Code):? -?[1-9]\d*\.?$"),
    _rule(" code | status | code: | status: ", "error",
        r".*\b(?:exited|failed|returned|terminated|completed)(?: with)?(?: an?)?(?: non-zero)?(?: exit)?"
        r" (?:code|status):? -?[1-9]\d*\.?$"),
    _rule("exit_code|exitcode", "error", r".*\"exit_?[cC]ode\": ?-?[1-9]"),
    # -- details --
    _rule("|".join(f".py:{digit}" for digit in range(1, 10)), "detail",
        r"[^\s:]+\.py:\d+: \w*(?:Error|Exception|Failed)$"),
)
# fmt: on
"""Tried in this order."""


_AT_ONCE = 128
"""The lines that are searched together, first for the words that any of them has."""

_ESCAPES = later(r"\x1b\[[0-?]*[ -/]*[@-~]")
_TRACEBACK = later(r"( *)Traceback \(most recent call last\):$")
_LONGEST_TRACEBACK = 1000
_NUMBERED = later(r" {2}(\d+\) \S.*?):?$")
_DETAIL = "E   "

_WORDS: dict[str, list[int]] = {}
for _number, _one in enumerate(RULES):
    for _word in _one.words:
        _WORDS.setdefault(_word, []).append(_number)

_COMMON = ("fail", "error", ".py:", "fatal", "critical", "exception", "code", "status")
_BY_ROOT: dict[str, list[str]] = {}
"""The words by a part that many of them have, or each by itself: a line without that part has none of them."""
for _word in _WORDS:
    _BY_ROOT.setdefault(next((part for part in _COMMON if part in _word), _word), []).append(_word)

_TELLING = (*_BY_ROOT, _DETAIL.lower(), "traceback (most")
"""A line that reports a failure whatever stands above it has one of these in lower case."""


def read(lines: Iterable[str]) -> Iterator[Failing | None]:
    """Yield for every line of an output, given without newlines, the failure it reports, or None."""
    reader = _Reader()
    rest = iter(lines)
    while block := list(islice(rest, _AT_ONCE)):
        some = _of_these(block, _TELLING)
        yield from (reader.told(line, some) for line in block)


def failing_lines_in(
    lines: Iterable[str], *, examining: Callable[[], None] = lambda: None
) -> Iterator[tuple[int, Failing]]:
    """Yield the lines that report a failure, by their index, as `read` has them; `examining` is called now and then."""
    for index, told in enumerate(read(lines)):
        if not index % 16:
            examining()
        if told:
            yield index, told


def lines_with(lines: Sequence[str], words: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the lines that contain one of these words, which are in lower case, in whatever case."""
    for start in range(0, len(lines), _AT_ONCE):
        block = lines[start : start + _AT_ONCE]
        if some := _of_these(block, words):
            yield from (
                at for at, line in enumerate(map(str.lower, block), start) if any(word in line for word in some)
            )


def _of_these(lines: Iterable[str], words: Iterable[str]) -> list[str]:
    """Return those of these words, in lower case, that any of the lines contains."""
    together = "\n".join(lines).lower()
    return [word for word in words if word in together]


class _Reader:
    """Reads lines in the context of those before."""

    def __init__(self) -> None:
        self._numbered = False
        self._traceback: str | None = None
        self._read = 0

    @property
    def waiting(self) -> bool:
        """Whether what the next line tells depends on those before."""
        return self._traceback is not None or self._numbered

    def told(self, line: str, words: Sequence[str]) -> Failing | None:
        """Return the failure that the next line reports; `words` are those of `_TELLING` that it may have."""
        line = line[:LOOKED_AT]
        lower = line.lower()
        having = [word for word in words if word in lower]
        if not having and not self.waiting:
            return None
        if "\x1b" in line:
            line = _ESCAPES.sub("", line)
        line = line.rstrip()
        return self._in_context(line) or _failing_line(line, having)

    def _in_context(self, line: str) -> Failing | None:
        """Recognize lines that depend on those above: the end of a traceback, the name of a test that Mocha counted."""
        if begun := _TRACEBACK.match(line):
            self._traceback, self._read = begun[1], 0
            return None
        if self._traceback is not None:
            self._read += 1
            assert self._traceback is not None
            rest, too_long = line.removeprefix(self._traceback), self._read > _LONGEST_TRACEBACK
            if (not rest or rest[0].isspace()) and not too_long:
                return None
            self._traceback = None
            return None if too_long else Failing("error")
        if self._numbered and (match := _NUMBERED.match(line)):
            return Failing("test", match[1])
        self._numbered = self._numbered or line.endswith(" failing")
        return None


def _failing_line(line: str, roots: Sequence[str]) -> Failing | None:
    if line.startswith(_DETAIL):
        return Failing("detail")
    lower = line.lower()
    words = [word for root in roots for word in _BY_ROOT.get(root, ()) if word in lower]
    for number in sorted({number for word in words for number in _WORDS[word]}):
        rule = RULES[number]
        if match := rule.pattern.match(line):
            name = match["name"] if "name" in rule.pattern.groupindex else None
            return Failing(rule.kind, name and name.strip(), _is_whole(match))
    return None


def _is_whole(match: re.Match[str]) -> bool:
    """Whether a name identifies the test: in a tree of tests it is only the last part."""
    return "tree" not in match.re.groupindex or any(mark in match["name"] for mark in (" > ", " › "))
