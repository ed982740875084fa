"""The blocks that may contain a text, and where in them, from the word index, before any block is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import orjson

from agtrace_indexer.index.opening import is_damage
from agtrace_indexer.index.questions.queries import is_team, value, values
from agtrace_indexer.index.team_words import grams_of_query
from agtrace_indexer.index.word_index import FOUND, INSERTED, NEVER, NONE, find
from agtrace_indexer.texts.candidates import Cut, Narrowed, Pieces, words_in_query
from agtrace_indexer.texts.pieces import OVERLAP, PIECES

_TOGETHER = 64
"""Spellings of a word that are looked up at once: the cost of FTS5's OR grows faster than the number of its terms."""

_MOST_SPELLINGS = 2_000
"""A piece found in more words than this is nearly everywhere, so blocks are read instead. A spelling takes
about 30 us."""

_MOST_AT_FIRST = 128
"""The same at first, if whole words of the query narrow it down already."""

_SHORTEST, _ALIKE = 4, 0.8
"""The characters of a word that another one can be near to, and how alike they are."""

_FEW = 256
"""With at most this many pieces, reading them is preferred to narrowing down further."""

_MATCHING = "FROM words WHERE words MATCH ?"
_SOME = f"SELECT rowid {_MATCHING} LIMIT {_FEW + 1}"  # all of them if there are at most `_FEW`

_HAVING_GRAMS = "SELECT one FROM blocks_with(?::smallint[]) one"
"""PostgreSQL's."""

_NOTHING_KNOWN = Narrowed(None, final=True)

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


def _candidates(connection: sqlite3.Connection, query: bytes, *, thorough: bool) -> Narrowed:
    if value(connection, f"SELECT 1 FROM block WHERE words IN ({INSERTED}, {FOUND}) LIMIT 1") is None:
        return _NOTHING_KNOWN
    unlisted, uncovered = _blocks(connection, INSERTED), _blocks(connection, NONE) | _blocks(connection, NEVER)
    whole, cut = words_in_query(query)
    unit = 1 if len(query) <= OVERLAP else PIECES  # a longer query may span several pieces of a block
    if unit == 1 and not unlisted:
        found, cut = _having_together(connection, whole, cut)
    else:
        found = _having_whole(connection, whole, unit)
    more = bool(cut) and (found is None or len(found) > _FEW)
    at_first = more and found is not None and not thorough
    if more:
        most = _MOST_AT_FIRST if at_first else _MOST_SPELLINGS
        narrowed = _having_cut(connection, cut, unit, most, found)
        if found is None:
            uncovered |= unlisted
        elif narrowed is not None:
            narrowed |= {piece for piece in found if piece * unit // PIECES in unlisted}
        found = narrowed
    if found is None:
        return _NOTHING_KNOWN
    named = Pieces(found, uncovered) if unit == 1 else dict.fromkeys(found | uncovered)
    return Narrowed(named, final=not at_first)


def candidates_of_all(connection: sqlite3.Connection, queries: Sequence[bytes], *, thorough: bool) -> Narrowed:
    """Return the blocks that may contain all of some folded queries, with the first one's places.

    Nothing is known if the word index is damaged: reading all blocks then finds what it no longer lists.
    """
    if is_team(connection):
        return _having_grams(connection, queries)
    try:
        found_of_each = [_candidates(connection, query, thorough=thorough) for query in queries]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return _NOTHING_KNOWN
    first, *others = (found.places for found in found_of_each)
    for found in others:
        if found is not None:
            first = dict.fromkeys(found) if first is None else {b: there for b, there in first.items() if b in found}
    return Narrowed(first, all(found.final for found in found_of_each))


def _having_grams(connection: sqlite3.Connection, queries: Sequence[bytes]) -> Narrowed:
    """Return the blocks of a team's index that have all grams of some folded queries."""
    grams = sorted({gram for query in queries for gram in grams_of_query(query)})
    if not grams:
        return _NOTHING_KNOWN
    listed = f"{{{', '.join(map(str, grams))}}}"
    return Narrowed(dict.fromkeys(values(connection, _HAVING_GRAMS, (listed,))), final=True)


def _having_together(
    connection: sqlite3.Connection, whole: list[bytes], cut: list[Cut]
) -> tuple[set[int] | None, list[Cut]]:
    """Return the pieces that contain all of some words, and the parts of words that they weren't narrowed down by.

    FTS5 intersects them, whichever are common: that takes a tenth of the time in which all their pieces are read.
    """
    exact = b" AND ".join(map(_quoted, whole))
    if whole and len(found := set(values(connection, _SOME, (exact,)))) <= _FEW:
        return found, cut
    spelt = {part: find(connection, part.part, begins=part.begins, ends=part.ends, most=_TOGETHER) for part in cut}
    asked = [b"(%b)" % b" OR ".join(map(_quoted, sorted(words))) for words in spelt.values() if words]
    if any(words == set() for words in spelt.values()):
        return set(), []
    left = [part for part, words in spelt.items() if words is None]
    together = b" AND ".join([*([exact] if whole else []), *asked])
    return (_holding(connection, together, 1) if together else None), left


def _having_whole(connection: sqlite3.Connection, whole: list[bytes], unit: int) -> set[int] | None:
    """Return the pieces, or blocks, that contain all of some words; None if there are no words."""
    found: set[int] | None = None
    for words in [whole] if unit == 1 and whole else [[word] for word in whole]:
        found = _both(found, _holding(connection, b" AND ".join(map(_quoted, words)), unit))
    return found


def _having_cut(
    connection: sqlite3.Connection, cut: list[Cut], unit: int, most: int, found: set[int] | None
) -> set[int] | None:
    """Return the pieces, of those found before, that contain possible parts of words; None if none of them narrows."""
    for word, begins, ends in cut:
        if found is not None and len(found) <= _FEW:
            break
        spelt = find(connection, word, begins=begins, ends=ends, most=most)
        if spelt is not None:
            found = _both(found, _any_of(connection, sorted(spelt), unit))
    return found


def _blocks(connection: sqlite3.Connection, state: int) -> set[int]:
    """Return the blocks whose words are in this state, other than `FOUND`."""
    query = f"SELECT id FROM block WHERE words != {FOUND} AND words = ?"
    return set(values(connection, query, (state,)))


def _any_of(connection: sqlite3.Connection, spellings: list[bytes], unit: int) -> set[int]:
    batches = (spellings[at : at + _TOGETHER] for at in range(0, len(spellings), _TOGETHER))
    return set().union(*(_holding(connection, b" OR ".join(map(_quoted, batch)), unit) for batch in batches))


def _holding(connection: sqlite3.Connection, match: bytes, unit: int) -> set[int]:
    """Return the pieces whose words match, or the blocks they belong to."""
    # One row of JSON takes a quarter of the time of a row for each piece.
    return set(orjson.loads(value(connection, f"SELECT json_group_array(rowid / {unit}) {_MATCHING}", (match,))))


def _quoted(word: bytes) -> bytes:
    return b'"%b"' % word


def _both(one: set[int] | None, other: set[int]) -> set[int]:
    return other if one is None else one & other
