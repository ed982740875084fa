"""What narrows a search down in a team's index, on PostgreSQL: the grams of blocks, and the stems of words.

A gram is a pair or a triple of bytes of a folded text, hashed to 16 bits. A block that contains a text has all of its
grams, so a search opens only blocks that have them; what merely collides is sorted out when the texts are read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import lru_cache

_HASH = 2654435761
_DISTINCT, _HALF = 0xFFFF, 0x8000

_STEMS = """
CREATE VIRTUAL TABLE text USING fts5(words, content='', columnsize=0, detail=none, tokenize='porter unicode61');
CREATE VIRTUAL TABLE stem USING fts5vocab(text, instance);
"""
"""As the ranking index of SQLite takes words apart (`agtrace_schema.database.RANKED`)."""


def grams(folded: bytes) -> list[int]:
    """Return the grams of a block's folded texts, as 16-bit integers with a sign, in order.

    Texts end with NUL: no gram reaches from one into the next.
    """
    found = set()
    for one, other, third in {*zip(folded, folded[1:], folded[2:] + b"\0", strict=False)}:  # few of them are distinct
        if one and other:
            found.add(_hashed(one << 8 | other))
            if third:
                found.add(_hashed(one << 16 | other << 8 | third))
    return sorted(found)


def grams_of_query(folded: bytes) -> list[int]:
    """Return the grams that a block must have to contain a folded text; none if it is too short to tell."""
    if len(folded) < 2:
        return []
    if len(folded) == 2:
        return [_hashed(folded[0] << 8 | folded[1])]
    return sorted(
        {
            _hashed(a << 16 | b << 8 | c)
            for a, b, c in zip(folded, folded[1:], folded[2:], strict=False)
            if a and b and c
        }
    )


def _hashed(gram: int) -> int:
    return (gram * _HASH >> 8 & _DISTINCT) - _HALF


def stems(texts: Sequence[tuple[int, str]]) -> dict[int, set[str]]:
    """Return the stems of the words of texts, each text with a number above 0."""
    result: dict[int, set[str]] = {number: set() for number, _ in texts}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        memory.executescript(_STEMS)
        memory.execute("BEGIN")
        memory.executemany("INSERT INTO text (rowid, words) VALUES (?, ?)", texts)
        memory.execute("COMMIT")
        for term, number in memory.execute("SELECT term, doc FROM stem"):
            result[number].add(term)
    return result


@lru_cache(maxsize=1000)
def tsquery(word: str, *, beginning: bool) -> str:
    """Return the search for a word in any of its forms, or for words that begin so, as PostgreSQL reads it."""
    return " & ".join(f"{_quoted(stem)}{':*' if beginning else ''}" for stem in sorted(stems([(1, word)])[1]))


def tsvector(found: Iterable[str]) -> str:
    """Return stems as PostgreSQL reads them into a `tsvector`."""
    return " ".join(map(_quoted, sorted(found)))


def _quoted(stem: str) -> str:
    doubled = stem.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"
