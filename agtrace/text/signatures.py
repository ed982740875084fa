"""The signature of an error: its most telling line, without what varies from one time to the next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice

import orjson
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.text.failing_lines import failing_lines_in as failures_in
from agtrace.text.failing_lines import read
from agtrace.text.lines import without_controls

LOOKED_AT = 400
"""The most characters of a line that are examined."""

_MOST_LINES = 60
"""The most lines of the beginning, and of the end, of a text that are examined whatever they say."""

_MOST_BETWEEN, _WITH = 20, 3
"""Of the lines in between, so many that report failures, each with what follows it."""

_LONGEST_PART = 100_000
"""The most characters of the beginning, and of the end, of a text that are examined."""

_FEW_LINES = 3
"""A text with more lines than this, none of which mentions an error, has no signature."""

_FEWEST_WORDS = 2

_FILE_NAMES = (
    "c|cc|cfg|cpp|cs|css|csv|env|exs?|go|h|hpp|html|ini|java|js|json|jsx|kt|lock|log|md|mjs|php|py|rb|rs|scala|scss|sh|sql"
    "|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|ya?ml"
)
_VARIES = later(
    r"(?P<quoted>(?<!named )(?<!module )(?<!package )"  # what is missing, which is the error
    r"(?:(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`|[“„«][^“”»\n]*[“”»]|(?<!\w)‘[^‘’\n]*’))"
    r"|(?P<time>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d\d?:\d\d:\d\d(?:[.,]\d+)?)"
    r"|(?P<path>\bhttps?://[^\s)>\]]+"
    r"|(?<![\w.~@+-])(?:[A-Za-z]:(?=[\\/]))?[\w.~@+-]*[\\/][\w.@+~/\\-]*(?::\d+(?=\b))*"
    rf"|(?<![\w.~@+-])[\w.+-]+\.(?:{_FILE_NAMES})\b(?::\d+)*)"
    r"|(?P<id>\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?=[a-f]*\d)[0-9a-f]{7,64}\b|(?<![\w.])[+-]?\d+(?:[.,:]\d+)*(?:(?:ms|[smhKMG]i?B?)\b)?)"
)
_STANDS_FOR = {"quoted": "'...'", "time": "", "path": "<path>", "id": "#"}

_WORD = later(r"[^\W\d_][\w]+")
_PLACEHOLDER = later(r"'\.\.\.'|<path>|#")
_SAYS_NOTHING = frozenset(
    """
    assert assertion assertionerror build code command compilation could due err error errors exception exit exited
    fail failed failing failure failures fatal found has have in make non non-zero npm of operation output process
    returned run status test tests the to traceback was with zero
    """.split()  # noqa: SIM905
)
"""Words that are common to all kinds of failures."""

_PREFIX = later(
    r"(?:E {2,}|<tool_use_error>|(?:Output|Stdout|Stderr): (?!$)|\[?(?:ERROR|FATAL)\]?:? (?=\S*(?:Error|Exception)\b))"
)
_GENERIC = later(
    r"(?:Error: )?Exit code:? -?\d+$|Command: |Directory: |Wall time:? [\d.]+ sec|Chunk ID: |Original token count: "
    r"|(?:Output|Error|Stdout|Stderr|Exit Code|Signal): \(?(?:none|empty)\)?$"
    r"|Total output lines: |Process exited with code|Output:$|Process Group PGID: |Background PIDs: |Signal: "
    r"|(?:\[[^\]]+\] )?(?:\S+: |ERROR |🏁 +)?(?:command|process|script|build|job|task|tests?)\b"
    r".{0,40}?\b(?:failed|exited)"
    r"(?: (?:with|on|in|due to|because of)\b.{0,30}?(?:code|status|signal|exit)?:? ?-?\d*)?\.?$"
    r"|(?:error: )?(?:could not compile|aborting due to|test failed, to rerun|\d+ targets? failed)\b"
    r"|error Command failed with|error: Recipe `|\W*Some errors were emitted while\b|FAIL\t\S+ \[\w+ failed\]$"
    r"|(?:\[[^\]]+\] )?exitcode '\d+': failure$"
    r"|npm (?:ERR!|error) (?:code|errno|path|command|A complete log|\S+@[\d.]+ |Exit status|Test failed|lifecycle|$)"
    r"|(?:\S+: )?\*\*\* \[|FAILURE: |FAILED: |BUILD FAIL|ninja: |\W*ELIFECYCLE|\S*##\[error\]Process completed"
    r"|Script (?:completed|failed|running)\b"
    r"|(?:PASS|PASSED|✓|✔)(?: |$)|ok \d+ |<shellId: |\(no output\)$|=== (?:RUN|PAUSE|CONT)\b|\*\* \w"
    r"|> \S+@\S+ \S+|> \S+$"
    r"|error: failed to push some refs|! *==> Fatal error occurred|husky - |(?:\S+: )?error: script \"|Failed tasks:$"
    r"|- [\w:-]+$|Reinitialized existing|\(?[Uu]se (?:\"git|--)|hint: "
    r"|Command (?:was manually backgrounded|running in background)|npm (?:warn|WARN)\b"
    r"|(?:added|up to date|changed|audited) \d+ packages?\b"
    r"|\d+ (?:errors?|failed|failing|failures?)\b[^:]*$|!{3,} |={3,}|-{3,}|_{3,}"
    r"|Traceback \(most recent call last\)|During handling of |The above exception was|Caused by:$",
    re.I,
)
"""Lines that say that something failed, but not what: they are skipped."""

_IN_JSON = later(
    r"(?:Script completed\n[^{]{0,200})?\s*"
    r'\{(?:"\w+": ?"?[\w.-]+"?, ?)*"(?:output|stdout|stderr|error|message)": ?"((?:[^"\\]|\\.)+)'
)
"""An output as a program hands it on, perhaps cut."""

_LABEL = later(
    r"\[[^\]\n]{1,80}\](?: {1,4}\| | {1,4}(?=[❌🏁]))"
    r"|^[^\t\n]{1,80}\t[^\t\n]{1,80}\t\ufeff?\d{4}-\d\d-\d\dT[\d:.]{8,18}Z "
)
"""What a program that runs or shows several jobs writes before each line of one (`act`, `gh run view --log`)."""

_SPINNER = later(r"(?:[-\\|/⠁-⣿] ?\w+\.\.\. ?){2,}")
"""What a program draws again and again while it waits."""

_FRAME = later(r"\s+at \S|\s*File \"|\s*\d+ \||\s*\| |\s*--> |\s*\^|\s*~|goroutine \d|\s+from \S+:\d+:in ")
"""Positions in code, which vary between occurrences of the same error."""

_GO_DETAIL = later(r"\s+\w+_test\.go:\d+: \S")
"""What Go prints below a failed test; also what a test that passes logs."""

_NAMED = later(r"[A-Za-z](?:Error|Exception|Failure)\b")

_SPEAKS_OF_ERRORS = later(
    r"\b(?:error|errno|exception|fatal|failed|failure|cannot|can't|couldn't|could not|unable to|not found|no such"
    r"|denied|forbidden|unauthorized|invalid|illegal|missing|unexpected|unknown|unsupported|unrecognized|undefined|refused|blocked"
    r"|timed out|timeout|expired|must be|is required|rejected|requires approval|not allowed|not permitted|not exist"
    r"|not supported|already exists|conflict)\b",
    re.I,
)


class Signature(Struct, frozen=True):
    """The characteristic line of an error."""

    key: str
    """Equal for equal errors."""
    line: str
    """The line as in the text, without control characters."""
    sure: bool = True
    """Whether the line speaks of an error; else it is only what a short text says."""


def signatures_in(text: str) -> Iterator[Signature]:
    """Yield the signatures of a failed result's lines, the most telling first; none if it only says that it failed.

    First come the lines that compilers, test runners and programs print for an error, then those that mention one, the
    last first, then those of a short text.
    """
    for _, line, sure in _error_lines(_lines(text)):
        if found := _signature(line):
            yield found if sure else Signature(found.key, found.line, sure=False)


def telling_text(text: str) -> str:
    """Return what to quote of a failed result: the line with the error, else the lines that aren't generic."""
    found = _quotable(_lines(text))
    if found:
        return found[1]
    said = (line.strip() for line in _lines(text))
    return " ".join(line for line in said if line and not _GENERIC.match(line)) or text


def telling_failure(text: str) -> str:
    """Return what to quote of a failed result, behind the first test that it names as failed, if it does."""
    names = [told.name for told in read(_lines(text)) if told is not None and told.kind == "test" and told.name]
    inner = names[:1]
    for name in names[1:]:
        if not name.startswith(f"{inner[-1]}/"):
            break
        inner.append(name)
    test, line = (inner[-1] if inner else None), telling_text(text)
    return line if test is None or test in line else f"{test}: {line}"


def from_telling_line(text: str) -> str:
    """Return a failed result's text from the line with the error on; without one, the lines that aren't generic."""
    lines = _lines(text)
    if found := _quotable(lines):
        return "\n".join((found[1], *lines[found[0] + 1 :]))
    return "\n".join(line for line in lines if not _GENERIC.match(line.strip())).strip() or text


def _quotable(lines: Sequence[str]) -> tuple[int, str] | None:
    """The place and text of the first line with a signature; else of one that only names an error: `KeyError: 3`."""
    result = None
    for number, line, _ in _error_lines(lines):
        if found := _signature(line):
            return number, found.line
        said = _bare(line)
        if result is None and _NAMED.search(said) and not _GENERIC.match(said):
            result = number, said
    return result


def _error_lines(lines: Sequence[str]) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines that describe an error, the most telling first, with their place, and whether they surely do."""
    by_kind: dict[str, list[tuple[int, str]]] = {"error": [], "detail": [], "test": []}
    for number, (line, told) in enumerate(zip(lines, read(lines), strict=True)):
        if told is not None and told.kind in by_kind and (told.kind != "detail" or _NAMED.search(line, 0, LOOKED_AT)):
            by_kind[told.kind].append((number, _whole(lines, number)))
        elif by_kind["test"] and _GO_DETAIL.match(line):
            by_kind["detail"].append((number, _whole(lines, number)))
    for kind in ("error", "detail", "test"):
        yield from ((number, line, True) for number, line in by_kind[kind])
    left = [(number, line) for number, line in enumerate(lines) if line.strip() and not _FRAME.match(line)]
    yield from ((*told, True) for told in reversed(left) if _SPEAKS_OF_ERRORS.search(told[1], 0, LOOKED_AT))
    said = [(number, line) for number, line in left if not _GENERIC.match(line.strip())]
    if len(said) <= _FEW_LINES:
        yield from ((*told, False) for told in said)


def _whole(lines: Sequence[str], number: int) -> str:
    """A line, with the next one if it ends with a colon."""
    line = lines[number]
    return f"{line} {lines[number + 1].strip()}" if line.endswith(":") and number + 1 < len(lines) else line


def _lines(text: str) -> list[str]:
    """The lines that are examined: those at the beginning and at the end, and in between those that report failures.

    Of an output within JSON, its own lines.
    """
    if wrapped := _IN_JSON.match(text):
        with suppress(orjson.JSONDecodeError):
            text = str(orjson.loads(f'"{wrapped[1]}"'))
    if len(text) > 2 * _LONGEST_PART:
        text = f"{text[:_LONGEST_PART]}\n{text[-_LONGEST_PART:]}"
    lines = [_LABEL.sub("", line, count=1) for line in without_controls(text).split("\n")]
    if len(lines) > 2 * _MOST_LINES:
        between = lines[_MOST_LINES:-_MOST_LINES]
        told = islice(failures_in(between), _MOST_BETWEEN)
        kept = sorted({near for at, _ in told for near in range(at, at + _WITH) if near < len(between)})
        lines = [*lines[:_MOST_LINES], *(between[at] for at in kept), *lines[-_MOST_LINES:]]
    return [line[:LOOKED_AT] for line in lines]


@lru_cache(maxsize=4_096)
def _signature(line: str) -> Signature | None:
    said = _bare(line)
    if not said or _GENERIC.match(said):
        return None
    key = " ".join(_VARIES.sub(lambda found: _STANDS_FOR[found.lastgroup or "id"], said).split())
    return Signature(key, said) if _says_enough(_WORD.findall(_PLACEHOLDER.sub(" ", key))) else None


def _bare(line: str) -> str:
    """A line without what programs and agents write before and after an error."""
    said = _SPINNER.sub("", line).strip()
    while prefix := _PREFIX.match(said):
        said = said[prefix.end() :].lstrip()
    return said.removesuffix("</tool_use_error>").rstrip()


def _says_enough(words: Iterable[str]) -> bool:
    known = [word.lower() for word in words]
    return len(known) >= _FEWEST_WORDS and any(word not in _SAYS_NOTHING for word in known)
