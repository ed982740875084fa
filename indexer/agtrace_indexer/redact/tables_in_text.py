"""Secrets whose name is in another row: columns of Markdown, CSV and SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from agtrace_schema.patterns import later

from agtrace_indexer.redact.names import Strength, strength, words
from agtrace_indexer.redact.scanner import Look, Looking
from agtrace_indexer.redact.values import Context, Sort, Span, sort, tier_of

_MOST_ROWS = 200
_LONGEST_ROW = 2000
_INSERT_LOOK = Look(r"insert[ \t]+into[ \t]+[^\s(]+[ \t]*\(", any_case=True, from_start=True)


Cell: TypeAlias = tuple[str, int]
"""A cell of a row without surrounding blanks and quotes, and the position in the text at which it begins."""

_CELLS = {
    sign: later(rf"(?:\A|{re.escape(sign)})(?P<cell>\"(?:[^\"\n]|\"\")*\"|[^{re.escape(sign)}]*)") for sign in "|,\t;"
}
_MARGIN = later(r"[ ]*(?:[^\s:,;|\"'`]{1,200}?[:-])?L?(?P<line>[0-9]{1,6})(?:→|\t|[:-][ ]?|\.[ ])")
"""What listings and searches put before a line."""
_MARK = later(r">[ ]?|[+-](?![ ])")
"""What diffs and quotations put before a line."""
_HEADER = later(r"[ ]*(?:\"?[A-Za-z_#][\w -]{0,39}\"?[,;\t])+\"?[A-Za-z_][\w -]{0,39}\"?\r?")
"""The first row of CSV and the like."""
_LIST = later(r"(?:[A-Za-z]\w{0,39}\|)+[A-Za-z]\w{0,39}\r?")
"""The first row of what `sqlite3 -header` prints: no frame, no blanks, no rule below it."""
_VARIABLE = later(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""The name of a row rather than of a column."""
_HEADING = later(r"(?=.{1,40}\Z)[^ ]*(?:[ ][^ ]*){0,3}(?<!:)")
"""What may be the name of a column."""
_RULE = later(r"[\s|:+=-]*")
_AROUND = " \t\r`*\"'"


def _cells(text: str, start: int, end: int, sign: str) -> list[Cell]:
    found = []
    for cell in _CELLS[sign].finditer(text[start:end]):
        bare = cell["cell"].strip(_AROUND)
        found.append((bare, start + cell.start("cell") + cell["cell"].find(bare)))
    frame = sign == "|"
    return found[frame and not found[0][0] : len(found) - (frame and len(found) > 1 and not found[-1][0])]


def in_table(text: str, at: int, tables: dict[tuple[str, tuple[int, ...]], int]) -> Iterator[Span]:
    """Yield the secrets of a table, given a position in its header row or in a row of a name and a value.

    `tables` are those that were gone through, by their form, and where they end: a row of one of them that could be a
    header, too, doesn't have the rows below gone through again.
    """
    start, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
    if end - start > _LONGEST_ROW:
        return
    margin = _MARGIN.match(text, start, end)
    first = margin.end() if margin else start
    mark = _MARK.match(text, first, end)
    first = mark.end() if mark else first
    sign = max("|,\t;", key=text[first:end].count)
    header = _cells(text, first, end, sign)
    names = (name if _HEADING.fullmatch(name) and name.lower() not in words("results") else "" for name, _ in header)
    levels = list(map(strength, names))
    if len(header) < 2 or not any(levels):
        return
    of_a_row = levels[0] and not any(levels[1:])
    if of_a_row and sign in "|\t" and (len(header) == 2 or (sign == "|" and _VARIABLE.fullmatch(header[0][0]))):
        yield from _secret(levels[0], header[1])
    number = int(margin["line"]) if margin else None
    below = _below(text, end + 1, number, marked=mark is not None)
    ruled = sign != "|" or (below and _RULE.fullmatch(text, *below)) or _LIST.fullmatch(text, first, end)
    form, above = (sign, tuple(levels)), text.rfind("\n", max(0, start - _LONGEST_ROW), max(0, start - 1)) + 1
    if (
        not ruled
        or start < tables.get(form, 0)
        or (sign != "|" and not _HEADER.fullmatch(text, first, end))
        or (sign == "\t" and text.count(sign, above, start) == text.count(sign, start, end))  # a list that goes on
    ):
        return
    for _ in range(_MOST_ROWS):
        below = _below(text, end + 1, number, marked=mark is not None)
        if below is None:
            break
        start, end, number = *below, None if number is None else number + 1
        row = _cells(text, start, end, sign)
        if _RULE.fullmatch(text, start, end):
            continue
        if len(row) != len(header):
            break
        for level, cell in zip(levels, row, strict=True):
            yield from _secret(level, cell)
    tables[form] = start


def _below(text: str, start: int, number: int | None, *, marked: bool) -> tuple[int, int] | None:
    """Return where the row in a line begins and ends, behind a line's number and mark if the line above has them."""
    end = _line_end(text, start)
    if number is not None:
        here = _MARGIN.match(text, start, end)
        if here is None or int(here["line"]) != number + 1:
            return None
        start = here.end()
    if marked and text[start : start + 1] in ("+", "-", ">", " "):
        start += 1
    return (start, end) if start < end <= start + _LONGEST_ROW else None


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _secret(level: Strength, cell: Cell, context: Context = Context.SETTING) -> Iterator[Span]:
    text, start = cell
    if level and (" " not in text or sort(text) is Sort.PHRASE):
        tier = tier_of(level, text, context, literal=True)
        if tier and (level is not Strength.TOKEN or sort(text) is Sort.RANDOM):
            yield Span(start, start + len(text), level.kind, tier)


_INSERT = later(r"(?i:insert\s+into)\s+[^\s(]{1,200}\s*\((?P<columns>[^()]{1,1000})\)\s*(?i:values)\s*")
_ROW = later(r"\s*,?\s*\((?P<values>(?:'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|[^()'\"])*)\)")
_VALUE = later(
    r"\s*(?:[A-Za-z]?\\*'(?P<one>(?:[^'\\]|''|\\[^'])*)\\*'|\"(?P<two>[^\"]*)\"|(?P<bare>[^,'\"]+))\s*(?:,|$)"
)


def in_insert(text: str, at: int, _: Looking) -> Iterator[Span]:
    """Yield the secrets of `INSERT INTO users (name, password) VALUES (...), (...)`."""
    match = _INSERT.match(text, at)
    if match is None:
        return
    levels = [strength(column.strip(' \t\r\n`"[]\\')) for column in match["columns"].split(",")]
    end = match.end()
    while any(levels) and (row := _ROW.match(text, end)):
        values = list(_VALUE.finditer(text, row.start("values"), row.end("values")))
        for level, value in zip(levels, values, strict=False):
            kind = value.lastgroup or "bare"
            if kind != "bare":
                yield from _secret(level, (value[kind], value.start(kind)), Context.LITERAL)
        end = row.end()


LOOKS = ((_INSERT_LOOK, in_insert),)
"""First looks, each with its closer look."""
