"""The blocks that may contain a text, from the word index, before any block is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import orjson

from agtrace_indexer.index.opening import is_damage
from agtrace_indexer.index.queries.base import is_team, value, values
from agtrace_indexer.index.team_words import grams_of_query
from agtrace_indexer.index.word_index import FOUND, INSERTED, NEVER, NONE, OVERLAP, PIECES, find, words_in_query

_TOGETHER = 64
"""Spellings of a word that are looked up at once: the cost of FTS5's OR grows faster than the number of its terms."""

_MOST_SPELLINGS = 2_000
"""A piece found in more words than this is nearly everywhere, so blocks are read instead. A spelling takes
about 30 us."""

_SHORTEST, _ALIKE = 4, 0.8
"""The characters of a word that another one can be near to, and how alike they are."""

_FEW = 256
"""With at most this many pieces, reading them is preferred to narrowing down further."""

_HAVING_GRAMS = "SELECT one FROM blocks_with(?::smallint[]) one"
"""PostgreSQL's."""

_NEAR = """
SELECT term FROM word WHERE term >= :begin AND term < :begin || char(1114111)
  AND length(term) BETWEEN :length - 2 AND :length + 2 ORDER BY doc DESC LIMIT 2000
"""


def near_word(connection: sqlite3.Connection, word: str) -> str | None:
    """Return the word of the index that is spelled most like this one, and begins like it; None if none is near."""
    if is_team(connection) or len(word) < _SHORTEST:
        return None
    import difflib  # only a search that finds nothing needs it

    try:
        terms = values(connection, _NEAR, {"begin": word[:2].lower(), "length": len(word)})
    except sqlite3.DatabaseError:  # there is no word index, or it is damaged
        return None
    return next(iter(difflib.get_close_matches(word.lower(), filter(str.isalpha, terms), 1, _ALIKE)), None)


def candidates_of_all(connection: sqlite3.Connection, queries: Sequence[bytes]) -> set[int] | None:
    """Return the blocks that may contain all of some folded queries; None if they aren't narrowed down.

    They aren't if the word index is damaged: reading all blocks then finds what it no longer lists.
    """
    if is_team(connection):
        return _having_grams(connection, queries)
    result: set[int] | None = None
    try:
        if value(connection, f"SELECT 1 FROM block WHERE words IN ({INSERTED}, {FOUND}) LIMIT 1") is None:
            return None
        for query in queries:
            result = _both(result, _candidates(connection, query))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return None
    return result


def _having_grams(connection: sqlite3.Connection, queries: Sequence[bytes]) -> set[int] | None:
    """Return the blocks of a team's index that have all grams of some folded queries."""
    grams = sorted({gram for query in queries for gram in grams_of_query(query)})
    listed = f"{{{', '.join(map(str, grams))}}}"
    return set(values(connection, _HAVING_GRAMS, (listed,))) if grams else None


def _candidates(connection: sqlite3.Connection, query: bytes) -> set[int] | None:
    """Return the blocks that may contain a folded query; None if its words don't narrow them down."""
    whole, cut = words_in_query(query)
    unit = 1 if len(query) <= OVERLAP else PIECES  # a longer query may span several pieces of a block
    spelt = [find(connection, *part, most=_MOST_SPELLINGS) for part in cut]
    few = [words for words in spelt if words is not None and len(words) <= _TOGETHER]
    asked = [*map(_quoted, whole), *(b"(%b)" % b" OR ".join(map(_quoted, sorted(words))) for words in few if words)]
    found: set[int] | None = None
    if not all(few):
        found = set()
    elif asked and unit == 1:  # FTS5 intersects them in a tenth of the time in which all their pieces are read
        found = _pieces_with(connection, b" AND ".join(asked), unit)
    else:
        for match in asked:
            found = _both(found, _pieces_with(connection, match, unit))
    for words in spelt:
        if words is not None and len(words) > _TOGETHER and (found is None or len(found) > _FEW):
            found = _both(found, _any_of(connection, sorted(words), unit))
    if found is None:
        return None
    return {piece * unit // PIECES for piece in found} | _not_listed(connection, in_vocabulary=bool(cut))


def _not_listed(connection: sqlite3.Connection, *, in_vocabulary: bool) -> set[int]:
    """Return the blocks whose words aren't in the index, or also those whose words the vocabulary lacks."""
    states = (NONE, NEVER, *([INSERTED] if in_vocabulary else []))
    query = f"SELECT id FROM block WHERE words != {FOUND} AND words IN ({', '.join(map(str, states))})"
    return set(values(connection, query, ()))


def _any_of(connection: sqlite3.Connection, spellings: list[bytes], unit: int) -> set[int]:
    batches = (spellings[at : at + _TOGETHER] for at in range(0, len(spellings), _TOGETHER))
    return set().union(*(_pieces_with(connection, b" OR ".join(map(_quoted, batch)), unit) for batch in batches))


def _pieces_with(connection: sqlite3.Connection, match: bytes, unit: int) -> set[int]:
    """Return the pieces whose words match, or the blocks they belong to."""
    # One row of JSON takes a quarter of the time of a row for each piece.
    query = f"SELECT json_group_array(rowid / {unit}) FROM words WHERE words MATCH ?"
    return set(orjson.loads(value(connection, query, (match,))))


def _quoted(word: bytes) -> bytes:
    return b'"%b"' % word


def _both(one: set[int] | None, other: set[int] | None) -> set[int] | None:
    return other if one is None else one if other is None else one & other
