"""The word index: which blocks may hold a text, without opening them.

Wherever a text stands, it is, piece by piece, the end of one word, whole words, and the beginning of another. The
vocabulary tells which indexed words those can be, FTS5 which pieces of blocks have them, and what is found is checked
in the block itself. So the word index never decides what is a hit, only what is looked at: a stale or doubled entry
costs time, not truth, and what it doesn't cover yet is scanned (`block.words`).

The tuning stands here, with its measurements: 1,025 MB of logs made by `benchmarks.corpus`, 490 MB of text in 14,067
blocks, 881,000 words, SQLite 3.40.1, seconds of one core.
"""

from __future__ import annotations

import sqlite3
import sys

from agtrace_schema.database import WORDS

from agtrace_indexer.index import checksum, meta
from agtrace_indexer.index.vocabulary import add_words, is_swollen, list_anew
from agtrace_indexer.texts.blocks import unpack
from agtrace_indexer.texts.pieces import PIECES, has_long_word, pieces, words_in

NONE, INSERTED, FOUND, NEVER = range(4)
"""The values of `block.words`."""

LEAST = 2 * 1024 * 1024
"""Bytes of text that wait before they are indexed: a search scans them in 3 ms, a run indexes them in 60 ms."""

AT_ONCE = 32 * 1024 * 1024
"""Bytes of text between two commits: with each one FTS5 writes a segment, and many are dear to merge."""

_BULK = 64 * 1024 * 1024
"""Bytes of text from which on FTS5 is told not to merge as it goes, but once at the end (1 s)."""

_AS_IT_GOES = {"automerge": 4, "crisismerge": 16, "hashsize": 1 << 20}
_AT_THE_END = {"automerge": 0, "crisismerge": 64, "hashsize": 16 << 20}

_LISTED_FROM = 5
"""The vocabulary is listed anew (1.4 s) when one part in this many of all text is new; otherwise the new words are
cut out of the new text (15 s a gigabyte of text)."""

_STALE = 4
"""One part in this many of the blocks: when more than that are gone, the word index is made anew."""


def waiting(connection: sqlite3.Connection, below: int = FOUND) -> int:
    """Bytes of text that words don't find yet; below `INSERTED`, of what isn't even inserted."""
    query = f"SELECT coalesce(sum(text_size), 0) FROM block WHERE words != {FOUND} AND words < ?"
    return int(connection.execute(query, (below,)).fetchone()[0])


def begin_bulk(connection: sqlite3.Connection) -> bool:
    """Get ready for much text, between two transactions; False where SQLite can't hold a word index."""
    connection.execute("BEGIN IMMEDIATE")
    able = prepared(connection)
    if able:
        checksum.take_off(connection)  # the options stand in the tables that are sealed
        _tune(connection, _AT_THE_END)
    connection.execute("COMMIT")
    return able


def cover_if_due(connection: sqlite3.Connection) -> None:
    """Index the words of all blocks that wait, if they are many; seal the word index where that is still to be done."""
    if waiting(connection) >= LEAST:
        cover(connection)
    elif checksum.of(connection) is None and prepared(connection):
        checksum.put(connection)


def cover(connection: sqlite3.Connection) -> None:
    """Index the words of all blocks that wait. Called within a transaction, it commits as it goes.

    Where SQLite has no FTS5 with the trigram tokenizer nothing is done, and search reads the blocks.
    """
    if not prepared(connection):
        return
    bulk = waiting(connection) >= _BULK
    if bulk:
        _tune(connection, _AT_THE_END)
    while insert(connection, AT_ONCE):
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
    complete(connection, bulk=bulk)


def prepared(connection: sqlite3.Connection) -> bool:
    """Make the tables of the word index where there are none; False where SQLite can't."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trigram'").fetchone():
        return True
    connection.execute("SAVEPOINT words")
    try:
        for table in ("trigram", "word", "words", "vocabulary_part", "vocabulary"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"UPDATE block SET words = {NONE} WHERE words != {NONE}")
        for statement in WORDS.split(";\n"):
            connection.execute(statement)
    except sqlite3.OperationalError:
        connection.execute("ROLLBACK TO words")
        return False
    finally:
        connection.execute("RELEASE words")
    _tune(connection, _AS_IT_GOES)
    return True


def insert(connection: sqlite3.Connection, most: int = sys.maxsize) -> int:
    """Insert the words of blocks that wait, up to so many bytes of text; give how many bytes that were."""
    done = 0
    waiting = connection.execute(
        f"SELECT b.id, d.text FROM block b JOIN block_data d ON d.block_id = b.id "
        f"WHERE b.words != {FOUND} AND b.words = {NONE} ORDER BY b.id"
    )
    marks: list[tuple[int, int]] = []
    for block, packed in waiting:
        text = unpack(packed)
        marks.append((_insert_block(connection, block, text), block))
        done += len(text) or 1
        if done >= most:
            break
    waiting.close()
    if marks:
        checksum.take_off(connection)
    connection.executemany("UPDATE block SET words = ? WHERE id = ?", marks)
    return done


def complete(connection: sqlite3.Connection, *, bulk: bool = False) -> None:
    """Take the words of what was inserted into the vocabulary: from then on they find it."""
    new, whole = connection.execute(
        f"SELECT coalesce(sum(text_size) FILTER (WHERE words = {INSERTED}), 0), sum(text_size) FROM block"
    ).fetchone()
    if not new:
        if checksum.of(connection) is None:
            checksum.put(connection)
        return
    if bulk:
        connection.execute("INSERT INTO words(words) VALUES ('optimize')")
    _tune(connection, _AS_IT_GOES)
    if new * _LISTED_FROM > whole or is_swollen(connection):
        list_anew(connection)
    else:
        add_words(connection, _new_words(connection))
    connection.execute(f"UPDATE block SET words = {FOUND} WHERE words != {FOUND} AND words = {INSERTED}")
    checksum.put(connection)


def put_in_order(connection: sqlite3.Connection) -> None:
    """Merge the word index, or make it anew where much of it names blocks that are gone; in the open transaction."""
    if not prepared(connection):
        return
    gone, there = _blocks(connection)
    if gone - int(meta.get(connection, "words_without") or 0) > there // _STALE:
        make_anew(connection)
    else:
        connection.execute("INSERT INTO words(words) VALUES ('optimize')")
        list_anew(connection)
        checksum.put(connection)


def _blocks(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many blocks are gone, and how many there are."""
    ever, there = connection.execute(
        "SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'block'), count(*) FROM block"
    ).fetchone()
    return (ever or 0) - there, there


def make_anew(connection: sqlite3.Connection) -> None:
    """Make the word index of the blocks that are there, in the open transaction: no word of others stays in it."""
    if not prepared(connection):
        return
    checksum.take_off(connection)
    connection.execute("INSERT INTO words(words) VALUES ('delete-all')")
    list_anew(connection)
    connection.execute(f"UPDATE block SET words = {NONE}")
    _tune(connection, _AT_THE_END)
    while insert(connection, AT_ONCE):
        pass
    complete(connection, bulk=True)
    gone, _ = _blocks(connection)
    meta.put(connection, "words_without", str(gone))


def _insert_block(connection: sqlite3.Connection, block: int, text: bytes) -> int:
    rows = [(block * PIECES + number, text[start:end]) for number, (start, end) in enumerate(pieces(text))]
    if any(has_long_word(piece) for _, piece in rows):
        return NEVER
    connection.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", rows)
    return INSERTED


def _new_words(connection: sqlite3.Connection) -> set[bytes]:
    inserted = connection.execute(
        f"SELECT d.text FROM block b JOIN block_data d ON d.block_id = b.id "
        f"WHERE b.words != {FOUND} AND b.words = {INSERTED}"
    )
    return words_in(unpack(packed) for (packed,) in inserted)


def _tune(connection: sqlite3.Connection, options: dict[str, int]) -> None:
    connection.executemany("INSERT INTO words(words, rank) VALUES (?, ?)", options.items())
