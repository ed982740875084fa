"""The first page of an index, made anew: it holds the header, and where the pages are that name all tables.

Without it SQLite reads nothing of a file, though everything else may be whole. The pages that name the tables can be
told by what stands in them. The format: https://sqlite.org/fileformat2.html, sections 1.3, 1.6 and 2.1.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from agtrace_indexer.index.catalog import make_tables

_SIZE = 4096
"""Bytes of a page of every index, as SQLite makes it: in a file with other pages no table is found here."""

_HEADER = 100
_LEAF, _INTERIOR = 13, 5
_KINDS = (b"table", b"index")


def renew_first_page(copy: Path) -> None:
    """Write a new first page into a copy of a damaged index; as it stands, where no page names a table."""
    with copy.open("r+b") as file:
        leaves = sorted(_leaves(file))
        if leaves:
            pages = file.seek(0, 2) // _SIZE
            file.seek(0)
            file.write(_header(pages) + _root(leaves))


def _leaves(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """The pages that name tables: (the last rowid there, the number of the page)."""
    file.seek(_SIZE)
    number = 1
    while len(page := file.read(_SIZE)) == _SIZE:
        number += 1
        if page[0] == _LEAF:
            rows = [_rowid_of_table(page, at) for at in _cells(page)]
            if rows and None not in rows:
                yield max(row for row in rows if row is not None), number


def _cells(page: bytes) -> list[int]:
    """Where the cells of a leaf begin."""
    count = int.from_bytes(page[3:5], "big")
    return [int.from_bytes(page[at : at + 2], "big") for at in range(8, min(8 + 2 * count, _SIZE), 2)]


def _rowid_of_table(page: bytes, at: int) -> int | None:
    """The rowid of a row that names a table or an index: its first column says which; None for any other row."""
    _, at = _number(page, at)
    rowid, at = _number(page, at)
    size, column = _number(page, at)
    values = at + size
    kind = _number(page, column)[0]
    is_one = 0 < size < 16 and kind == 13 + 2 * len(_KINDS[0]) and page[values : values + 5] in _KINDS
    return rowid if is_one else None


def _number(page: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = 0
    for length in range(1, 9):
        byte = page[at] if at < len(page) else 0
        value, at = value << 7 | byte & 0x7F, at + 1
        if byte < 0x80 or length == 8:
            break
    return value, at


def _header(pages: int) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        make_tables(connection)
        header = bytearray(connection.serialize()[:_HEADER])
    header[18:20] = b"\x01\x01"  # no WAL belongs to the copy
    header[28:40] = pages.to_bytes(4, "big") + bytes(8)  # none of them is free
    return bytes(header)


def _root(leaves: list[tuple[int, int]]) -> bytes:
    """The rest of the page: the root of the tree of all tables, with these leaves."""
    *others, (_, last) = leaves
    cells = [page.to_bytes(4, "big") + _as_number(rowid) for rowid, page in others]
    content = _SIZE - sum(map(len, cells))
    starts, at = [], content
    for cell in cells:
        starts.append(at.to_bytes(2, "big"))
        at += len(cell)
    head = bytes((_INTERIOR, 0, 0)) + len(cells).to_bytes(2, "big") + content.to_bytes(2, "big") + b"\0"
    head += last.to_bytes(4, "big") + b"".join(starts)
    return head + bytes(content - _HEADER - len(head)) + b"".join(cells)


def _as_number(value: int) -> bytes:
    """A number below 2 ** 14 in variable length."""
    return bytes((value,)) if value < 0x80 else bytes((0x80 | value >> 7, value & 0x7F))
