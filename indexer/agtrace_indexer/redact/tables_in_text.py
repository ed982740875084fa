"""Secrets whose name is in another row: columns of Markdown, CSV and SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.redact.names import Strength, strength, words
from agtrace_indexer.redact.scanner import Look
from agtrace_indexer.redact.values import Context, Sort, Span, sort, tier_of

_MOST_ROWS = 200
_LONGEST_ROW = 2000
_INSERT_LOOK = Look(r"insert[ \t]+into[ \t]+[^\s(]+[ \t]*\(", any_case=True, from_start=True)


class Cell(Struct, frozen=True):
    """A cell of a row, without surrounding blanks and quotes."""

    text: str
    start: int
    """The position in the text at which it begins."""


_CELLS = {
    sign: later(rf"(?:\A|{re.escape(sign)})(?P<cell>\"(?:[^\"\n]|\"\")*\"|[^{re.escape(sign)}]*)") for sign in "|,\t;"
}
_HEADER = later(r"(?:\"?[A-Za-z_#][\w -]{0,39}\"?[,;\t])+\"?[A-Za-z_][\w -]{0,39}\"?\r?")
"""The first row of CSV and the like."""
_LIST = later(r"(?:[A-Za-z]\w{0,39}\|)+[A-Za-z]\w{0,39}\r?")
"""The first row of what `sqlite3 -header` prints: no frame, no blanks, no rule below it."""
_VARIABLE = later(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""The name of a row rather than of a column."""
_RULE = later(r"[\s|:+=-]*")
_AROUND = " \t\r`*\"'"


def _cells(text: str, start: int, end: int, sign: str) -> list[Cell]:
    found = []
    for cell in _CELLS[sign].finditer(text[start:end]):
        bare = cell["cell"].strip(_AROUND)
        found.append(Cell(bare, start + cell.start("cell") + cell["cell"].find(bare)))
    frame = sign == "|"
    return found[frame and not found[0].text : len(found) - (frame and len(found) > 1 and not found[-1].text)]


def in_table(text: str, at: int, tables: dict[tuple[str, tuple[int, ...]], int]) -> Iterator[Span]:
    """Yield the secrets of a table, given a position in its header row or in a row of a name and a value.

    `tables` are those that were gone through, by their form, and where they end: a row of one of them that could be a
    header, too, doesn't have the rows below gone through again.
    """
    start, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
    if end - start > _LONGEST_ROW:
        return
    sign = max("|,\t;", key=text[start:end].count)
    header = _cells(text, start, end, sign)
    levels = [strength(cell.text) if _is_heading(cell.text) else Strength.NONE for cell in header]
    if len(header) < 2 or not any(levels):
        return
    of_a_row = levels[0] and not any(levels[1:])
    if of_a_row and sign in "|\t" and (len(header) == 2 or (sign == "|" and _VARIABLE.fullmatch(header[0].text))):
        yield from _secret(levels[0], header[1])
    numbered = sign == "\t" and len(header) == 2 and header[0].text.isdecimal()  # a line of a file
    ruled = sign != "|" or _RULE.fullmatch(text, end + 1, _line_end(text, end + 1)) or _LIST.fullmatch(text, start, end)
    form = (sign, tuple(levels))
    if (
        numbered
        or not ruled
        or start < tables.get(form, 0)
        or (sign != "|" and not _HEADER.fullmatch(text, start, end))
        or (sign == "\t" and _line_above(text, start).count(sign) == len(header) - 1)
    ):
        return
    for _ in range(_MOST_ROWS):
        start, end = end + 1, _line_end(text, end + 1)
        if start >= len(text) or end - start > _LONGEST_ROW or end == start:
            break
        row = _cells(text, start, end, sign)
        if _RULE.fullmatch(text, start, end):
            continue
        if len(row) != len(header):
            break
        for level, cell in zip(levels, row, strict=True):
            yield from _secret(level, cell)
    tables[form] = start


def _is_heading(cell: str) -> bool:
    """Whether a cell may be the name of a column."""
    return len(cell) <= 40 and cell.count(" ") <= 3 and cell.lower() not in words("results") and not cell.endswith(":")


def _line_above(text: str, start: int) -> str:
    """Return the line before the one that starts here: a list that goes on has no header in the middle."""
    return text[text.rfind("\n", max(0, start - _LONGEST_ROW), max(0, start - 1)) + 1 : start]


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _secret(level: Strength, cell: Cell) -> Iterator[Span]:
    if level and (" " not in cell.text or sort(cell.text) is Sort.PHRASE):
        tier = tier_of(level, cell.text, Context.SETTING, literal=True)
        if tier:
            yield Span(cell.start, cell.start + len(cell.text), level.name.lower(), tier)


_INSERT = later(r"(?i:insert\s+into)\s+[^\s(]{1,200}\s*\((?P<columns>[^()]{1,1000})\)\s*(?i:values)\s*")
_ROW = later(r"\s*,?\s*\((?P<values>(?:'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|[^()'\"])*)\)")
_VALUE = later(
    r"\s*(?:[A-Za-z]?\\*'(?P<one>(?:[^'\\]|''|\\[^'])*)\\*'|\"(?P<two>[^\"]*)\"|(?P<bare>[^,'\"]+))\s*(?:,|$)"
)


def in_insert(text: str, at: int) -> Iterator[Span]:
    """Yield the secrets of `INSERT INTO users (name, password) VALUES (...), (...)`."""
    found = _INSERT.match(text, at)
    if found is None:
        return
    levels = [strength(column.strip(' \t\r\n`"[]\\')) for column in found["columns"].split(",")]
    end = found.end()
    while any(levels) and (row := _ROW.match(text, end)):
        values = list(_VALUE.finditer(text, row.start("values"), row.end("values")))
        for level, value in zip(levels, values, strict=False):
            kind = value.lastgroup or "bare"
            if kind != "bare":
                yield from _secret(level, Cell(value[kind], value.start(kind)))
        end = row.end()


LOOKS = ((_INSERT_LOOK, in_insert),)
"""First looks, each with its closer look."""
