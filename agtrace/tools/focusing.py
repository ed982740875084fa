"""The lines of a long text that a question is about, in place of its first chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from agtrace_indexer.redact import redact
from agtrace_schema.answers import Pruning
from agtrace_schema.model import dump
from msgspec.structs import replace

from agtrace.sessions.long_texts import lines_of, told_lines
from agtrace.settings.limits import limits
from agtrace.shaping.digest import of_mode
from agtrace.shaping.failures import Failures
from agtrace.shaping.focusing import MOST_CHARS, applied, cut_lines, focused, gaps, nothing, refused
from agtrace.shaping.replies import Body, Digest, Made
from agtrace.text.chunking import escaped_size, line_count
from agtrace.text.failing_lines import Failing
from agtrace.text.focus import Focused
from agtrace.text.next_call import NextCall
from agtrace.tools.long_text import LongText, TextArguments, ToldLines, body_or_digest, check_range
from agtrace.tools.tool import EVENT_AROUND, kilobytes

_AIM = 2_400
"""Bytes of the lines in an answer whose size nobody chose, beside those that report failures."""

_FOR_A_LINE = 40
"""The most bytes that a line takes in addition to its own: a gap before it."""

_LONG = 500
"""The most bytes that are counted for a line."""

_PATHS, _FOR_PATHS = 2, 90
"""The cut lines that are named, and the bytes for that."""

_AROUND = 1_700
"""Bytes around the lines in an answer."""

_LEAST = 300
"""The least bytes of the lines."""


def asked_part(
    given: LongText,
    asked: TextArguments,
    read_cursor: Callable[[str], tuple[int, ...]],
    make_cursor: Callable[..., str],
) -> Body | Digest:
    """Return the part of a text in memory that a request is about: by its question, or as `body_or_digest` does."""
    if asked.context_focus_question is None:
        return body_or_digest(given, asked, read_cursor, make_cursor)
    redacted = redact(given.text)
    start, end = check_range(asked, line_count(redacted), given.call)
    lines = told_lines(lines_of(redacted)[start - 1 : end], output=given.output)
    found = lines_asked(given, asked.context_focus_question, lines, start, max_bytes=asked.max_bytes)
    if isinstance(found, Digest):
        return found
    ordinary = body_or_digest(given, asked, read_cursor, make_cursor)
    return replace(ordinary, pruning=dump(found))


def lines_asked(
    given: LongText,
    question: str,
    lines: ToldLines,
    start: int,
    *,
    max_bytes: int | None = None,
    check: Callable[[int], None] | None = None,
) -> Digest | Pruning:
    """Return those of some lines that a question is about, or why not.

    The first of the lines has the number `start`; `check` gets the count of all. `max_bytes` are those that the user
    wants the answer to take.
    """
    taken = refused(0) or _taken(lines)
    if isinstance(taken, Pruning):
        return taken
    if check:
        check(len(taken.lines))
    failing = _Failing.of(taken, start)
    aim = min(max(_AIM, failing.size + _AIM // 2), limits().usual)
    room = max(max_bytes - _AROUND, _LEAST) if max_bytes else aim
    text = "".join(f"{line}\n" for line in taken.lines)
    first = focused(text, question, room, first_line=start)
    if isinstance(first, Pruning):
        return first

    def make(most_bytes: int) -> Made:
        found: Focused | Pruning = first
        more = most_bytes - _FOR_PATHS > room and failing.lost(first)
        if more or escaped_size(first.text) > most_bytes - _FOR_PATHS:
            found = focused(text, question, most_bytes - _FOR_PATHS, first_line=start)
        if isinstance(found, Pruning):
            found = nothing(text, start)
        lost, cut = failing.lost(found), cut_lines(found, taken.lines, start)
        told = {"reason": "focus", "shown": found.kept_lines, "total": found.total_lines}
        told |= {"omitted_failures": lost} if failing.failures.count else {}
        told |= {"paths": cut[:_PATHS]} if cut else {}
        hint = _failures_hint(given, failing.failures) if lost else _gap_hint(given, taken.lines, found, start)
        return Made(found.text, told, hint, applied(found.kept_lines, found.total_lines))

    total = len(taken.lines)
    frame = {**given.frame, **({"failures": failing.failures.counts()} if failing.failures.count else {})}
    return Digest(make, frame, given.key, given.within, pruning=applied(total, total))


class _Taken(NamedTuple):
    """Lines in memory, each with the failure it reports."""

    lines: list[str]
    told: list[Failing | None]


def _taken(lines: Iterable[tuple[str, Failing | None]]) -> _Taken | Pruning:
    """Return lines that may be read one after the other, unless they are too many to be looked through."""
    taken, chars = _Taken([], []), 0
    for line, failing in lines:
        chars += len(line) + 1
        if chars > MOST_CHARS:
            break
        taken.lines.append(line)
        taken.told.append(failing)
    return refused(chars) or taken


class _Failing(NamedTuple):
    """The lines that report failures."""

    failures: Failures
    numbers: frozenset[int]
    """Without those that only belong to one."""
    size: int
    """The bytes that these take."""

    @classmethod
    def of(cls, taken: _Taken, start: int) -> _Failing:
        """Find them among lines of which the first has this number."""
        failures, numbers, size = Failures(), [], 0
        for number, (line, failing) in enumerate(zip(*taken, strict=True), start):
            if failing:
                failures.note(number, line, failing)
                if failing.kind != "detail":
                    numbers.append(number)
                    size += min(escaped_size(line), _LONG) + _FOR_A_LINE
        return cls(failures, frozenset(numbers), size)

    def lost(self, found: Focused) -> int:
        """Return how many of them aren't among the lines that were kept."""
        kept = {number for start, end in found.kept for number in range(start, end + 1)}
        return len(self.numbers - kept)


def _failures_hint(given: LongText, failures: Failures) -> NextCall:
    more = given.call(start_line=failures.first, end_line=failures.last, mode="standard")
    size = kilobytes(0, of_mode("standard").budget)
    return more.saying(f"shows more of the {failures.count:,} failing lines", size)


def _gap_hint(given: LongText, lines: list[str], found: Focused, start: int) -> NextCall:
    """Return the call that opens the first lines left out."""
    first, last = gaps(found, start)[0]
    size = EVENT_AROUND + sum(escaped_size(line) + 2 for line in lines[first - start : last - start + 1])
    opened = given.call(start_line=first, end_line=last)
    says = "opens the first lines left out, verbatim"
    return opened.saying(says, kilobytes(0, min(size, limits().usual)), after="; likewise any others.")
