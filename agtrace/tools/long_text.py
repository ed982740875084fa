"""Long texts in answers: chunks, digests, lines of a span or of a question, and the calls that lead to the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Annotated, Any, NamedTuple

from agtrace_indexer.redact import redact
from agtrace_schema.answers import Pruning
from agtrace_schema.model import dump
from agtrace_schema.requests import Mode
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from agtrace.problems import InvalidParameter, InvalidRange
from agtrace.sessions.transcript import lines_of, told_lines
from agtrace.settings import ABSOLUTE_MAX_BYTES, SMALLEST_MAX_BYTES
from agtrace.settings.limits import limits
from agtrace.shaping.digest import Digest as Shortened
from agtrace.shaping.digest import Failures, gather, of_mode
from agtrace.shaping.focusing import MOST_CHARS, applied, cut_lines, focused, gaps, nothing, refused
from agtrace.shaping.replies import Body, Digest, FittedText
from agtrace.text.chunking import escaped_size, line_count, line_start
from agtrace.text.failing_lines import Failing
from agtrace.text.focus import Focused
from agtrace.text.next_call import Hint, NextCall
from agtrace.tools.arguments import LARGEST, Arguments, Cursor, FocusQuestion
from agtrace.tools.tool import up_to

_BEFORE, _BEHIND = 5, 30  # lines around the first failing one
_MOST_AROUND = 4_000  # bytes that an answer takes in addition to a digest

_LARGER: dict[Mode | None, Mode] = {"minimal": "standard", "standard": "verbose"}

QUESTION = "context_focus_question"

LineNumber = Annotated[int, Meta(le=LARGEST)] | None

ToldLines = Iterable[tuple[str, Failing | None]]


class TextArguments(Arguments):
    """The arguments of a tool that opens a long text."""

    start_line: LineNumber = None
    """Counted from 1, like the next one."""
    end_line: LineNumber = None
    mode: Mode | None = None
    """The kind of digest; None for the text itself."""
    context_focus_question: FocusQuestion = None
    cursor: Cursor = None
    """Of a chunk."""
    max_bytes: Annotated[int, Meta(ge=SMALLEST_MAX_BYTES, le=ABSOLUTE_MAX_BYTES)] | None = None


class LongText(Struct, frozen=True):
    """A text, its place in the answer, and the call that returns it."""

    call: Callable[..., NextCall]
    """Return the call with more arguments."""
    frame: dict[str, Any]
    key: str
    within: str | None
    hint: Hint
    """The next call if nothing is left out."""
    text: str = ""
    """Canonical text; redacted on its way out."""
    output: bool = False
    """Whether it is the output of a tool: only outputs are examined for failures."""
    whole: dict[str, Any] = field(default_factory=dict)
    """See `Body.whole`."""


def check_asked(asked: TextArguments) -> None:
    """Raise `InvalidParameter` if a digest is requested with a cursor, or the answer to a question with one of both."""
    if asked.context_focus_question is not None:
        check_question(cursor=asked.cursor, mode=asked.mode)
    if asked.mode and asked.cursor:
        raise InvalidParameter(
            "cursor", "cursor: a digest is a single answer; leave out mode to get chunks, or cursor to get a digest"
        )


def check_question(**others: str | None) -> None:
    """Raise `InvalidParameter` for arguments that can't be combined with a question."""
    for name, value in others.items():
        if value is not None:
            said = f"gives the lines that it is about in a single answer; leave out {name}, or the question"
            raise InvalidParameter(QUESTION, f"{QUESTION}: {said}")


def budget_of(asked: TextArguments) -> int:
    """Return the bytes that the answer may take: a digest never more than its mode allows."""
    if asked.mode:
        most = of_mode(asked.mode).budget
        return min(asked.max_bytes or most, most)
    return asked.max_bytes or limits().size()


def part_asked(asked: TextArguments) -> str:
    """Return the requested lines and digest, for a summary."""
    first, last = asked.start_line, asked.end_line
    lines = f", lines {first or 1} to {last or 'the end'}" if first is not None or last is not None else ""
    return lines + (f", {asked.mode} digest" if asked.mode else "")


def body_or_digest(
    given: LongText,
    asked: TextArguments,
    read_cursor: Callable[[str], tuple[int, ...]],
    make_cursor: Callable[..., str],
) -> Body | Digest:
    """Return a text that is in memory: its chunks, those of a span of lines, or a digest."""
    redacted = redact(given.text)
    start, end = check_range(asked, line_count(redacted), given.call)
    if asked.mode:
        return digest(given, asked, told_lines(lines_of(redacted)[start - 1 : end], output=given.output), start)
    ranged = asked.start_line is not None or asked.end_line is not None
    position = read_cursor(asked.cursor) if asked.cursor else (line_start(redacted, start - 1) or 0, start - 1, 0)
    stop = line_start(redacted, end) if ranged else None
    return Body(
        text=given.text,
        frame=given.frame,
        key=given.key,
        within=given.within,
        whole=given.whole,
        cursor=make_cursor,
        offset=position[0],
        line=position[1],
        chunk=position[2],
        end=(len(redacted) if stop is None else stop) if ranged else None,
        told=None if ranged or not given.output else lambda most: _reported_failures(given, lines_of(redacted), most),
    )


def check_range(asked: TextArguments, total: int, call: Callable[..., NextCall]) -> tuple[int, int]:
    """Return the first and last requested line. Raises `InvalidRange` unless the text has them all."""
    start = 1 if asked.start_line is None else asked.start_line
    end = total if asked.end_line is None else asked.end_line
    if not 1 <= start <= end <= total:
        near = max(min(start, total), 1)
        nearest = call(start_line=near, end_line=max(min(end, total), near), mode=asked.mode)
        raise InvalidRange(
            f"lines {start} to {end}: no such range; this text has {total:,} lines, counted from 1",
            nearest.saying("is the nearest range"),
            total_lines=total,
        )
    return start, end


def digest(
    given: LongText, asked: TextArguments, lines: ToldLines, start: int, check: Callable[[int], None] | None = None
) -> Digest:
    """Return a digest of the requested lines, of which the first has number `start`; `check` gets their count."""
    assert asked.mode
    limits = of_mode(asked.mode)
    gathered = gather(lines, limits, first=start)
    if check:
        check(gathered.lines)
    failures = gathered.failures
    counts = {"failures": failures.counts()} if failures.count else {}
    shown = (start, start + gathered.lines - 1)

    def make(most_bytes: int) -> FittedText:
        made = gathered.digest(most_bytes, lean=True)
        if not made.shortened:
            return FittedText(made.text, None, given.hint)
        told = {"reason": "digest", "shown": made.lines, "total": gathered.lines}
        lost = {"omitted_failures": made.omitted_failures} if failures.count else {}
        clamped = most_bytes < limits.budget - _MOST_AROUND
        return FittedText(
            made.text, {**told, **lost}, _digest_hint(given, asked, failures, made, shown, clamped=clamped)
        )

    return Digest(make=make, frame={**given.frame, **counts}, key=given.key, within=given.within)


def _digest_hint(
    given: LongText, asked: TextArguments, failures: Failures, made: Shortened, shown: tuple[int, int], *, clamped: bool
) -> NextCall:
    """Return the call for the failing lines left out, else for the first ones verbatim, else for the rest.

    A larger digest is suggested only if this one had all the bytes of its mode.
    """
    larger = None if clamped else _LARGER.get(asked.mode)
    if made.omitted_failures and larger:
        more = given.call(start_line=asked.start_line, end_line=asked.end_line, mode=larger)
        return more.saying(f"shows more of the {failures.count:,} failing lines", up_to(of_mode(larger).budget))
    if made.omitted_failures:
        rest = given.call(start_line=failures.first, end_line=failures.last)
        return rest.saying(f"has all {failures.count:,} failing lines, verbatim in chunks")
    after = f"; mode={larger!r} shows more." if larger else "."
    if failures.count:
        return _around(given, failures.explained, shown[1]).saying("shows the first failure verbatim", after=after)
    first, last = made.omitted or shown
    left = given.call(start_line=first, end_line=last)
    return left.saying("has what is left out, verbatim in chunks", after=after)


def _reported_failures(given: LongText, lines: list[str], most_bytes: int) -> tuple[dict[str, Any], Hint]:
    """Return what the first chunk of an output reports of its failures, and the call that shows the others."""
    failures = Failures()
    for number, (text, failing) in enumerate(told_lines(lines, output=True), 1):
        if failing:
            failures.note(number, text, failing)
    if not failures.count:
        return {}, given.hint
    told, all_of_them = failures.told(most_bytes)
    if all_of_them:
        return {"failures": told}, _around(given, failures.explained, len(lines)).saying("shows the first failure")
    size_of_all = up_to(of_mode("standard").budget)
    return {"failures": told}, given.call(mode="standard").saying("shows the other failing lines", size_of_all)


def _around(given: LongText, line: int, last: int) -> NextCall:
    return given.call(start_line=max(line - _BEFORE, 1), end_line=min(line + _BEHIND, last))


def ranged_lines(
    lines: ToldLines, asked: TextArguments, call: Callable[..., NextCall]
) -> tuple[Iterator[tuple[str, Failing | None]], int, Callable[[int], None]]:
    """Return the requested lines of a text read forward, the number of the first, and a check that they existed."""
    start, end = asked.start_line, asked.end_line
    first = 1 if start is None else start
    if first < 1 or (end is not None and end < first):
        check_range(asked, sum(1 for _ in lines), call)
    ahead = iter(lines)
    skipped = sum(1 for _ in islice(ahead, first - 1))

    def check(read: int) -> None:
        """Raise `InvalidRange` if the text ended too early."""
        if (start is not None and not read) or (end is not None and skipped + read < end):
            check_range(asked, skipped + read, call)

    return islice(ahead, None if end is None else end - first + 1), first, check


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
    result = lines_asked(given, asked.context_focus_question, lines, start, max_bytes=asked.max_bytes)
    if isinstance(result, Digest):
        return result
    ordinary = body_or_digest(given, asked, read_cursor, make_cursor)
    return replace(ordinary, pruning=dump(result))


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
    result = refused(0) or _marked_lines(lines)
    if isinstance(result, Pruning):
        return result
    if check:
        check(len(result.lines))
    failing = _Failing.of(result, start)
    aim = min(max(_AIM, failing.size + _AIM // 2), limits().usual)
    room = max(max_bytes - _AROUND, _LEAST) if max_bytes else aim
    text = "".join(f"{line}\n" for line in result.lines)
    first = focused(text, question, room, first_line=start)
    if isinstance(first, Pruning):
        return first

    def make(most_bytes: int) -> FittedText:
        found: Focused | Pruning = first
        more = most_bytes - _FOR_PATHS > room and failing.lost(first)
        if more or escaped_size(first.text) > most_bytes - _FOR_PATHS:
            found = focused(text, question, most_bytes - _FOR_PATHS, first_line=start)
        if isinstance(found, Pruning):
            found = nothing(text, start)
        lost, cut = failing.lost(found), cut_lines(found, result.lines, start)
        told = {"reason": "focus", "shown": found.kept_lines, "total": found.total_lines}
        told |= {"omitted_failures": lost} if failing.failures.count else {}
        told |= {"paths": cut[:_PATHS]} if cut else {}
        hint = _failures_hint(given, failing.failures) if lost else _gap_hint(given, found, start)
        return FittedText(found.text, told, hint, applied(found.kept_lines, found.total_lines))

    total = len(result.lines)
    frame = {**given.frame, **({"failures": failing.failures.counts()} if failing.failures.count else {})}
    return Digest(make, frame, given.key, given.within, pruning=applied(total, total))


class _MarkedLines(NamedTuple):
    """Lines in memory, each with the failure it reports."""

    lines: list[str]
    told: list[Failing | None]


def _marked_lines(lines: Iterable[tuple[str, Failing | None]]) -> _MarkedLines | Pruning:
    """Return lines that may be read one after the other, unless they are too many to be looked through."""
    taken, chars = _MarkedLines([], []), 0
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
    def of(cls, taken: _MarkedLines, start: int) -> _Failing:
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
    return more.saying(f"shows more of the {failures.count:,} failing lines", up_to(of_mode("standard").budget))


def _gap_hint(given: LongText, found: Focused, start: int) -> NextCall:
    """Return the call that opens the first lines left out."""
    first, last = gaps(found, start)[0]
    opened = given.call(start_line=first, end_line=last)
    return opened.saying("opens the first lines left out, verbatim", after="; likewise any others.")
