"""The vocabulary: finds indexed words that begin with, end with or contain a piece of text.

The words are stored sorted, in chunks of some dozens; a trigram index shows which chunks may contain a piece. A lookup
therefore takes less than a millisecond however many words there are; reading all of them takes 10 ms a million.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice

from agtrace_indexer.texts.blocks import pack, unpack

CHUNK = 64
"""Words in a chunk. Of 881,000 words, chunks of 1 take 36 MB with their trigrams, of 16 17 MB, 64 13 MB, 256 12 MB."""

_SHORTEST = 2
_TRIGRAMS_ASKED = 12
_BULK = {"automerge": 0, "crisismerge": 64}


def list_anew(connection: sqlite3.Connection) -> None:
    """Rebuild the vocabulary from all the words in `words`."""
    connection.execute("DELETE FROM vocabulary")
    connection.execute("INSERT INTO vocabulary_part(vocabulary_part) VALUES ('delete-all')")
    connection.executemany("INSERT INTO vocabulary_part(vocabulary_part, rank) VALUES (?, ?)", _BULK.items())
    listed = connection.execute("SELECT CAST(term AS BLOB) FROM word")
    _insert(connection, (word for (word,) in listed), base=1)
    connection.execute("INSERT INTO vocabulary_part(vocabulary_part) VALUES ('optimize')")


def add_words(connection: sqlite3.Connection, words: Iterable[bytes]) -> None:
    """Add words, whether or not they are there already."""
    _insert(connection, sorted(words), base=0)


def is_swollen(connection: sqlite3.Connection) -> bool:
    """Whether more words were added, duplicates included, than the last full listing had."""
    counts = dict(connection.execute("SELECT base, count(*) FROM vocabulary GROUP BY base").fetchall())
    return bool(counts.get(0, 0) > counts.get(1, 0))


def find(connection: sqlite3.Connection, piece: bytes, *, begins: bool, ends: bool, most: int) -> set[bytes] | None:
    """Return the words that contain, begin or end with a piece; None for more than `most`, or if it is one letter."""
    wanted = b"\n" * begins + piece + b"\n" * ends
    letters = wanted.decode("utf-8", "replace")
    if len(letters) < _SHORTEST:
        return None
    found: set[bytes] = set()
    for chunk in _chunks(connection, letters):
        position = chunk.find(wanted)
        while position >= 0:
            start = chunk.rfind(b"\n", 0, position + begins) + 1
            end = chunk.find(b"\n", position + len(wanted) - ends)
            found.add(chunk[start:end])
            position = chunk.find(wanted, end)
        if len(found) > most:
            return None
    return found


def _chunks(connection: sqlite3.Connection, wanted: str) -> Iterator[bytes]:
    """Yield the chunks that may contain a text of two letters or more."""
    trigrams = sorted({wanted[at : at + 3] for at in range(len(wanted) - 2)})
    if trigrams:
        step = -(-len(trigrams) // _TRIGRAMS_ASKED)
        asked = " AND ".join(f'"{trigram}"' for trigram in trigrams[::step])
    else:  # a newline follows the last word, so any two letters begin a trigram
        asked = " OR ".join(f'"{trigram}"' for trigram in _trigrams_beginning(connection, wanted))
    rows = connection.execute(
        "SELECT words FROM vocabulary WHERE id IN (SELECT rowid FROM vocabulary_part WHERE vocabulary_part MATCH ?)",
        (asked or '""',),
    )
    return (unpack(packed) for (packed,) in rows)


def _trigrams_beginning(connection: sqlite3.Connection, letters: str) -> list[str]:
    rows = connection.execute(
        "SELECT term FROM trigram WHERE term > ? AND term < ?", (letters, letters + chr(0x10FFFF))
    )
    return [term for (term,) in rows]


def _insert(connection: sqlite3.Connection, words: Iterable[bytes], base: int) -> None:
    left = iter(words)
    number = connection.execute("SELECT coalesce(max(id), 0) FROM vocabulary").fetchone()[0]
    while chunk := list(islice(left, CHUNK)):
        number += 1
        lines = b"\n".join((b"", *chunk, b"", b""))  # so that a trigram begins with the last letter and its newline
        connection.execute("INSERT INTO vocabulary VALUES (?, ?, ?)", (number, base, pack(lines)))
        connection.execute("INSERT INTO vocabulary_part (rowid, words) VALUES (?, ?)", (number, lines))
