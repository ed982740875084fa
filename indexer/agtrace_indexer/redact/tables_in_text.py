"""Secrets whose name is in another row: columns of Markdown, CSV and SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.redact.names import Strength, strength, words
from agtrace_indexer.redact.scanner import Look
from agtrace_indexer.redact.values import Context, Span, tier_of

_MOST_ROWS = 200
_LONGEST_ROW = 2000
_INSERT_LOOK = Look(r"insert[ \t]+into[ \t]+[^\s(]+[ \t]*\(", any_case=True, from_start=True)


class Cell(Struct, frozen=True):
    """A cell of a row, without surrounding blanks and quotes."""

    text: str
    start: int
    """The position in the text at which it begins."""


_CELLS = {
    sign: later(rf"\"(?:[^\"\n]|\"\")*\"|[^{re.escape(sign)}\n]+|(?<={re.escape(sign)})(?={re.escape(sign)}|\r?\Z)")
    for sign in "|,\t;"
}
_HEADER = later(r"(?:\"?[A-Za-z][\w -]{0,39}\"?[,;])+\"?[A-Za-z][\w -]{0,39}\"?\r?")
"""The first row of CSV."""
_LIST_HEADER = later(r"(?:[A-Za-z]\w{0,39}\|)+[A-Za-z]\w{0,39}\r?")
"""The first row of what `sqlite3 -header` prints: no frame, no blanks, no rule below it."""
_VARIABLE = later(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""The name of a row rather than of a column."""
_RULE = later(r"[\s|:+=-]*")
_AROUND = " \t\r`*\"'"


def _cells(text: str, start: int, end: int, sign: str) -> list[Cell]:
    found = []
    for cell in _CELLS[sign].finditer(text, start, end):
        said = cell[0]
        bare = said.strip(_AROUND)
        found.append(Cell(bare, cell.start() + (said.find(bare) if bare else 0)))
    if sign == "|":  # the frame
        if found and not found[0].text:
            del found[0]
        if found and not found[-1].text:
            del found[-1]
    return found


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
    strengths = [
        strength(cell.text)
        if len(cell.text) <= 40 and cell.text.count(" ") <= 3 and cell.text.lower() not in words("results")
        else Strength.NONE
        for cell in header
    ]
    if sign in "|\t" and len(header) == 2 and strengths[0] and not strengths[1]:
        yield from _secret(strengths[0], header[1])
    if (
        sign == "|"
        and len(header) > 2
        and strengths[0]
        and not any(strengths[1:])
        and _VARIABLE.fullmatch(header[0].text)
    ):
        yield from _secret(strengths[0], header[1])
    if len(header) < 2 or not any(strengths) or (sign in ",;" and not _HEADER.fullmatch(text, start, end)):
        return
    if sign == "\t" and len(header) == 2 and header[0].text.isdecimal():  # a numbered line of a file
        return
    ruled = sign != "|" or _RULE.fullmatch(text, end + 1, _line_end(text, end + 1))
    if not ruled and not _LIST_HEADER.fullmatch(text, start, end):
        return
    form = (sign, tuple(strengths))
    if start < tables.get(form, 0):
        return
    named = [column for column, level in enumerate(strengths) if level]
    for _ in range(_MOST_ROWS):
        start, end = end + 1, _line_end(text, end + 1)
        if start >= len(text) or end - start > _LONGEST_ROW or end == start:
            break
        if _RULE.fullmatch(text, start, end):
            continue
        row = _columns(text, start, end, sign, named, len(header))
        if row is None:
            break
        for column, cell in zip(named, row, strict=True):
            yield from _secret(strengths[column], cell)
    tables[form] = start


def _columns(text: str, start: int, end: int, sign: str, wanted: Sequence[int], columns: int) -> list[Cell] | None:
    """Return these cells of a row, or None if it has another number of columns; without quotes, no other is made."""
    if text.find('"', start, end) >= 0:
        cells = _cells(text, start, end, sign)
        return [cells[column] for column in wanted] if len(cells) == columns else None
    parts = text[start:end].split(sign)
    before = int(sign == "|" and not parts[0].strip(_AROUND))
    behind = int(sign == "|" and len(parts) > 1 and not parts[-1].strip(_AROUND))
    if len(parts) - before - behind != columns:
        return None
    found = []
    for column in wanted:
        said = parts[column + before]
        at = start + sum(len(part) + 1 for part in parts[: column + before])
        bare = said.strip(_AROUND)
        found.append(Cell(bare, at + said.find(bare)))
    return found


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _secret(level: Strength, cell: Cell) -> Iterator[Span]:
    if level and " " not in cell.text and (tier := tier_of(level, cell.text, Context.SETTING, literal=True)):
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
