"""The word index: finds the blocks that may contain a text without opening them.

Any occurrence of a text consists, piece by piece, of the end of one word, whole words, and the beginning of another.
The vocabulary shows which indexed words those can be, FTS5 which pieces of blocks have them, and every candidate is
checked in the block itself. So the word index never decides what is a hit, only where to look: a stale or duplicate
entry costs time, not correctness, and blocks that it doesn't cover yet are scanned (`block.words`).

The tuning is here, with its measurements: 1,025 MB of logs made by `benchmarks.corpus`, 490 MB of text in 14,067
blocks, 881,000 words, SQLite 3.40.1, seconds of one core.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from agtrace_schema.database import WORDS

from agtrace_indexer.index import meta
from agtrace_indexer.index.opening import Wal
from agtrace_indexer.texts.blocks import Damaged, unpack

NONE, INSERTED, FOUND, NEVER = range(4)
"""The values of `block.words`."""

LEAST = 2 * 1024 * 1024
"""Bytes of text that accumulate before they are indexed: a search scans them in 3 ms, a run indexes them in 60 ms."""

AT_ONCE = 32 * 1024 * 1024
"""Bytes of text between two commits: FTS5 writes a segment with each, and many segments are expensive to merge."""

_HELD = 16 * 1024 * 1024
"""Bytes of words that FTS5 gathers before it writes them: with its own megabyte, inserting takes a seventh longer."""

_LISTED_FROM = 5
"""The vocabulary is rebuilt (1.4 s) when one part in this many of all text is new; otherwise the new words are
extracted from the new text (15 s a gigabyte of text)."""

_STALE = 4
"""One part in this many of the blocks: when more than that are gone, the word index is rebuilt."""
_LARGE = 500
"""Blocks, of some 100 MB of text: from then on what gone blocks leave behind is worth removing unasked."""

_MOST_ADDED = 64
"""Additions to the vocabulary after which it is listed anew: each may repeat words."""

_CHUNK = 100_000
"""Words in a row of the vocabulary, all of which are read to find some: of 881,000 words in 7 ms."""

_SHORTEST = 2


def waiting(connection: sqlite3.Connection, below: int = FOUND) -> int:
    """Return the bytes of text that words don't find yet; with `below=INSERTED`, of text not even inserted."""
    query = f"SELECT coalesce(sum(text_size), 0) FROM block WHERE words != {FOUND} AND words < ?"
    return int(connection.execute(query, (below,)).fetchone()[0])


def cover_if_due(connection: sqlite3.Connection) -> None:
    """Index the words of all waiting blocks if there are many."""
    if waiting(connection) >= LEAST:
        cover(connection)


def cover(connection: sqlite3.Connection) -> None:
    """Index the words of all waiting blocks. Called within a transaction, it commits along the way.

    If SQLite has no FTS5, nothing is done, and search reads the blocks.
    """
    if not prepared(connection):
        return
    wal = Wal(connection)
    while insert(connection, AT_ONCE):
        connection.execute("COMMIT")
        wal.empty_if_large()
        connection.execute("BEGIN IMMEDIATE")
    complete(connection)


def prepared(connection: sqlite3.Connection) -> bool:
    """Create the tables of the word index if there are none; return False if SQLite can't."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'vocabulary'").fetchone():
        return True
    connection.execute("SAVEPOINT words")
    try:
        for table in ("word", "words"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"UPDATE block SET words = {NONE} WHERE words != {NONE}")
        for statement in WORDS.split(";\n"):
            connection.execute(statement)
        connection.execute("INSERT INTO words(words, rank) VALUES ('hashsize', ?)", (_HELD,))
    except sqlite3.OperationalError:
        connection.execute("ROLLBACK TO words")
        return False
    finally:
        connection.execute("RELEASE words")
    return True


def insert(connection: sqlite3.Connection, most: int = sys.maxsize) -> int:
    """Insert the words of waiting blocks, up to this many bytes of text; return how many bytes that was."""
    done = 0
    waiting = connection.execute(
        f"SELECT b.id, b.text_size, d.text FROM block b JOIN block_data d ON d.block_id = b.id "
        f"WHERE b.words != {FOUND} AND b.words = {NONE} ORDER BY b.id"
    )
    marks: list[tuple[int, int]] = []
    for block, size, packed in waiting:
        text = unpack(packed)[:size]
        marks.append((_insert_block(connection, block, text), block))
        done += len(text) or 1
        if done >= most:
            break
    waiting.close()
    connection.executemany("UPDATE block SET words = ? WHERE id = ?", marks)
    return done


def complete(connection: sqlite3.Connection) -> None:
    """Add the words of the inserted blocks to the vocabulary, which makes the blocks findable by their words."""
    new, whole = connection.execute(
        f"SELECT coalesce(sum(text_size) FILTER (WHERE words = {INSERTED}), 0), sum(text_size) FROM block"
    ).fetchone()
    if not new:
        return
    if new * _LISTED_FROM > whole or is_swollen(connection):
        list_anew(connection)
    else:
        add_words(connection, _new_words(connection))
    connection.execute(f"UPDATE block SET words = {FOUND} WHERE words != {FOUND} AND words = {INSERTED}")


def is_stale(connection: sqlite3.Connection) -> bool:
    """Whether a large word index has the words of as many blocks that are gone as of those that exist."""
    gone, there = _blocks(connection)
    return there >= _LARGE and gone - int(meta.get(connection, "words_without") or 0) >= there


def put_in_order(connection: sqlite3.Connection) -> None:
    """List the vocabulary anew, or rebuild the word index if many of its blocks are gone; in the open transaction."""
    if not prepared(connection):
        return
    gone, there = _blocks(connection)
    if gone - int(meta.get(connection, "words_without") or 0) > there // _STALE:
        make_anew(connection)
    else:
        list_anew(connection)


def _blocks(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of blocks that are gone, and of those that exist."""
    ever, there = connection.execute(
        "SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'block'), count(*) FROM block"
    ).fetchone()
    return (ever or 0) - there, there


def make_anew(connection: sqlite3.Connection) -> None:
    """Rebuild the word index from the existing blocks, in the open transaction: no other words stay in it."""
    if not prepared(connection):
        return
    connection.execute("INSERT INTO words(words) VALUES ('delete-all')")
    list_anew(connection)
    connection.execute(f"UPDATE block SET words = {NONE}")
    insert(connection)
    complete(connection)
    gone, _ = _blocks(connection)
    meta.put(connection, "words_without", str(gone))


def _insert_block(connection: sqlite3.Connection, block: int, text: bytes) -> int:
    rows = [(block * PIECES + number, text[start:end]) for number, (start, end) in enumerate(pieces(text))]
    if any(_LONG_WORD.search(piece) for _, piece in rows if len(piece) > _LONGEST):
        return NEVER
    connection.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", rows)
    return INSERTED


def _new_words(connection: sqlite3.Connection) -> set[bytes]:
    inserted = connection.execute(
        f"SELECT b.text_size, d.text FROM block b JOIN block_data d ON d.block_id = b.id "
        f"WHERE b.words != {FOUND} AND b.words = {INSERTED}"
    )
    return words_in(unpack(packed)[:size] for size, packed in inserted)


# -- the vocabulary: which indexed words begin with, end with or contain a piece of text ------------


def list_anew(connection: sqlite3.Connection) -> None:
    """Rebuild the vocabulary from all the words in `words`."""
    connection.execute("DELETE FROM vocabulary")
    listed = connection.execute("SELECT CAST(term AS BLOB) FROM word")
    while chunk := [word for (word,) in islice(listed, _CHUNK)]:
        _insert_words(connection, chunk, base=1)


def add_words(connection: sqlite3.Connection, words: Iterable[bytes]) -> None:
    """Add words, whether or not they are there already."""
    _insert_words(connection, sorted(words), base=0)


def is_swollen(connection: sqlite3.Connection) -> bool:
    """Whether words were added many times since the last full listing."""
    (added,) = connection.execute("SELECT count(*) FROM vocabulary WHERE base = 0").fetchone()
    return bool(added > _MOST_ADDED)


def find(connection: sqlite3.Connection, piece: bytes, begins: bool, ends: bool, *, most: int) -> set[bytes] | None:
    """Return the words that contain, begin or end with a piece; None for more than `most`, or if it is one letter.

    Raise `Damaged`, also for words that aren't as they were written: hits would be missed.
    """
    wanted = b"\n" * begins + piece + b"\n" * ends
    if len(wanted.decode("utf-8", "replace")) < _SHORTEST:
        return None
    result: set[bytes] = set()
    for words, checksum in connection.execute("SELECT words, checksum FROM vocabulary"):
        if zlib.crc32(words) != checksum:
            raise Damaged("the vocabulary has changed")
        position = words.find(wanted)
        while position >= 0:
            start = words.rfind(b"\n", 0, position + begins) + 1
            end = words.find(b"\n", position + len(wanted) - ends)
            result.add(words[start:end])
            if len(result) > most:
                return None
            position = words.find(wanted, end)
    return result


def _insert_words(connection: sqlite3.Connection, words: Sequence[bytes], base: int) -> None:
    lines = b"\n".join((b"", *words, b""))
    row = (base, lines, zlib.crc32(lines))
    connection.execute("INSERT INTO vocabulary (base, words, checksum) VALUES (?, ?, ?)", row)


# -- pieces and words: how the text of a block is divided, and a query that is looked up in it -----
# A piece is a document of the word index: some kilobytes of a block, overlapping slightly with the next piece so that
# no short text is cut in two. A word is what FTS5's tokenizer takes for one.

PIECES = 32
"""The maximum number of pieces of a block that have a rowid of their own in `words`: block * PIECES + piece."""

OVERLAP = 128
"""The minimum number of bytes that neighbouring pieces share: a text no longer than this lies within one piece."""

_PIECE = 4 * 1024
"""Bytes of text in one document. Smaller ones narrow down phrases of common words better, larger ones are faster to
index: 1 KB 5.6 s, 2 KB 4.9 s, 4 KB 4.5 s, 8 KB 4.4 s; blocks that may contain `class`, `provides` and `two`: 93, 171,
261, 365."""

_NEXT_SPACE = 64
"""The most bytes by which a piece is extended to end at a space rather than within a word, as half a word is an
additional word."""

_LONGEST = 32 * 1024
"""The most bytes of a word that FTS5 keeps: a block with a longer word is always scanned."""

_ANY_WORD = re.compile(rb"[0-9a-z_./\x80-\xff-]+")
_LONG_WORD = re.compile(rb"[0-9A-Za-z_./\x80-\xff-]{%d}" % _LONGEST)


def pieces(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each piece of a block's text: at most `PIECES`, each overlapping the next one."""
    size = max(_PIECE, -(-len(text) // PIECES))
    for start in range(0, max(len(text), 1), size):
        following = start + size
        end = _space(text, _space(text, following) + OVERLAP) if following < len(text) else len(text)
        yield _space(text, start) if start else 0, end


def _space(text: bytes, at: int) -> int:
    """Return the position of the next space if one is near, else the given position."""
    found = text.find(b" ", at, at + _NEXT_SPACE)
    return at if found < 0 else found


def words_in(texts: Iterable[bytes]) -> set[bytes]:
    """Return all folded words in the pieces of some texts; a word cut between pieces is included in FTS5's parts."""
    result: set[bytes] = set()
    for text in texts:
        folded = text.lower()
        for start, end in pieces(folded):
            result.update(_ANY_WORD.findall(folded, start, end))
    return result


_EXACT_ASKED = 8
"""The longest whole words of a query, as many as are looked up: more narrow little down."""


class Cut(NamedTuple):
    """A text that may be only a part of a word."""

    part: bytes
    begins: bool
    """Whether the word begins with it."""
    ends: bool
    """Whether the word ends with it."""


class Words(NamedTuple):
    """The words of a query."""

    whole: list[bytes]
    """The longest words that texts must contain exactly as they are, shortest first."""
    cut: list[Cut]
    """Words that the query may have cut, longest first."""


def words_in_query(query: bytes) -> Words:
    """Return the words of a folded query."""
    whole: set[bytes] = set()
    cut: list[Cut] = []
    for match in _ANY_WORD.finditer(query):
        word, begins, ends = match[0], match.start() > 0, match.end() < len(query)
        if len(word) > OVERLAP:  # no piece need contain all of it
            cut.append(Cut(word[:OVERLAP].decode("utf-8", "ignore").encode(), begins=False, ends=False))
        elif begins and ends:
            whole.add(word)
        else:
            cut.append(Cut(word, begins, ends))
    cut.sort(key=lambda word: -len(word.part))
    return Words(sorted(whole, key=len)[-_EXACT_ASKED:], cut)
