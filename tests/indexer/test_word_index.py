"""The word index names every block that has a text, whatever the text and however the index was made."""

from __future__ import annotations

import random
import sqlite3
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from agtrace_indexer.index import word_index
from agtrace_indexer.index.catalog import open_database
from agtrace_indexer.index.queries.candidates import candidates_of_all
from agtrace_indexer.index.word_index import FOUND, INSERTED, NEVER, NONE, OVERLAP, PIECES, pieces
from agtrace_indexer.texts.blocks import BlockText, pack
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agtrace.search import scan
from agtrace.search.matching import Contains, Deadline, fold
from tests.agtrace.asking import Asker, claude_log
from tests.depth import depth, part


def candidates(connection: sqlite3.Connection, query: bytes) -> set[int] | None:
    return candidates_of_all(connection, [query])


SEED = 20261121
ONE = "aaaaaaaa-0000-4000-8000-000000000001"
relaxed = settings(deadline=None, derandomize=True, database=None)


@pytest.fixture
def connection(database: Path) -> Iterator[sqlite3.Connection]:
    """An index without logs, open for writing."""
    with closing(open_database(database)) as opened:
        assert word_index.prepared(opened)
        yield opened


def add_block(connection: sqlite3.Connection, *texts: str) -> int:
    """A block with an event for each of the texts, not in the word index yet; give its id."""
    encoded = [text.encode() + b"\0" for text in texts]
    ends = array("I", (end - 1 for end in accumulate(map(len, encoded))))
    (row,) = connection.execute(
        "INSERT INTO block (session_id, first_index, event_count, t0, t1, text_size, types) "
        "SELECT coalesce(max(session_id), 0) + 1, 0, ?, 1, 1, ?, 1 FROM block RETURNING id",
        (len(texts), sum(map(len, encoded))),
    ).fetchone()
    data = (row, ends.tobytes(), pack(b"".join(encoded) + b"[]"))
    connection.execute("INSERT INTO block_data VALUES (?, ?, ?)", data)
    return int(row)


def cover(connection: sqlite3.Connection) -> None:
    """Bring the word index up to date."""
    connection.execute("BEGIN IMMEDIATE")
    word_index.cover(connection)
    connection.execute("COMMIT")


def states(connection: sqlite3.Connection) -> set[int]:
    return {state for (state,) in connection.execute("SELECT words FROM block")}


# --- pieces ---


@st.composite
def block_texts(draw: st.DrawFn) -> bytes:
    """Texts of many sizes, those around the limits of pieces among them; with spaces in all places, and without."""
    size = draw(st.one_of(st.integers(0, 200_000), st.sampled_from([2047, 2048, 2049, 2175, 2176, 65_536, 65_537])))
    letters = draw(st.sampled_from(["a", "ab ", "a" * 61 + " ", "a" * 64 + " ", "a" * 130 + " ", "潮汐", "🐟 ", " "]))
    shift = draw(st.integers(0, 130))
    return ("b" * shift + letters * (size // len(letters.encode()) + 1)).encode()[:size]


@relaxed
@given(text=block_texts(), seed=st.integers())
@example(b"a" * 2048, 0)
@example(b"a" * 2107 + b" " + b"b" * 3000, 0)
def test_pieces_are_few_cover_the_text_and_hold_every_short_text_as_a_whole(text: bytes, seed: int) -> None:
    spans = [*pieces(text)]
    assert len(spans) <= PIECES
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    for (_, end), (start, _) in pairwise(spans):
        assert start <= end - OVERLAP or end >= len(text), "a text may lie across this border"
    chance = random.Random(seed)
    places = [border + chance.randint(-OVERLAP, OVERLAP) for span in spans for border in span]
    for place in places:
        start = min(max(place, 0), max(len(text) - OVERLAP, 0))
        assert any(s <= start and start + OVERLAP <= max(e, s + OVERLAP) for s, e in spans), start


# --- the vocabulary ---

ALPHABETS = ("ab", "abcdefghij", "0123456789.", "a_-./", "潮汐表水位", "aé潮🐟")


def some_words(chance: random.Random, count: int) -> set[str]:
    """Words of one to twelve letters, of all kinds of letters."""
    return {"".join(chance.choices(chance.choice(ALPHABETS), k=chance.randint(1, 12))) for _ in range(count)}


def listed(connection: sqlite3.Connection, known: set[str]) -> None:
    """List the words of a text."""
    add_block(connection, " ".join(sorted(known)))
    cover(connection)
    word_index.list_anew(connection)


def added(connection: sqlite3.Connection, known: set[str]) -> None:
    """Add words bit by bit, some of them again and again."""
    left = sorted(known)
    while left:
        word_index.add_words(connection, [word.encode() for word in (*left[:90], *left[1000:1003])])
        left = left[90:]


def found_by_reading(known: set[str], piece: str, begins: bool, ends: bool) -> set[bytes]:
    return {
        word.encode()
        for word in known
        if (word.startswith(piece) or not begins) and (word.endswith(piece) or not ends) and piece in word
        and (word == piece or not (begins and ends))
    }  # fmt: skip


def pieces_of_words(known: set[str], chance: random.Random) -> Iterator[str]:
    """Beginnings, ends, middles and wholes of words, and what stands in none."""
    for word in chance.sample(sorted(known), depth(50, 150)):
        start = chance.randrange(len(word))
        yield word[start : chance.randint(start + 1, len(word))]
        yield word[start:]
        yield word[: start + 1]
    yield from ("zz", "zzz", "..", "a\u0301", "潮a潮", "🐟🐟🐟🐟", "\U0010ffff", "a" * 300)


@pytest.mark.parametrize("by", [listed, added])
@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("ends", [True, False])
def test_the_vocabulary_finds_what_reading_through_all_words_finds(
    begins: bool, ends: bool, by: Callable[..., None], connection: sqlite3.Connection
) -> None:
    chance = random.Random(SEED)
    known = some_words(chance, 3000)
    by(connection, known)
    for piece in set(pieces_of_words(known, chance)):
        if len(piece) > 1 or begins:  # the end of a word alone: below
            found = word_index.find(connection, piece.encode(), begins=begins, ends=ends, most=len(known))
            assert found == found_by_reading(known, piece, begins, ends), piece


def test_a_piece_that_too_many_words_have_narrows_nothing_down(connection: sqlite3.Connection) -> None:
    word_index.add_words(connection, [b"word%d" % number for number in range(500)])
    assert word_index.find(connection, b"word", begins=True, ends=False, most=499) is None
    assert len(word_index.find(connection, b"word", begins=True, ends=False, most=500) or ()) == 500
    assert word_index.find(connection, b"w", begins=False, ends=False, most=500) is None, "one letter"


# --- candidates ---


def prose(chance: random.Random) -> str:
    said = [
        "the",
        "Tide",
        "gauge",
        "éb",
        "潮汐",
        "it'll",
        "v1.2",
        "--rm",
        "ERROR:",
        "\n",
        "(ab)",
        '"qu"',
        "🐟🐠",
        "x=10",
    ]
    return " ".join(chance.choices(said, k=chance.randint(5, 2000)))


def paths(chance: random.Random) -> str:
    parts = ["src", "tide_pool", "node-modules", "v1.2", "..", "A"]
    return " ".join("/".join(chance.choices(parts, k=chance.randint(2, 12))) for _ in range(chance.randint(2, 60)))


def chinese(chance: random.Random) -> str:
    letters = [chr(0x4E00 + number) for number in range(400)] + ["。", "，"]
    return "".join(chance.choices(letters, k=chance.randint(10, 6000)))


def base64(chance: random.Random) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    sizes = [chance.randint(150, 12_000) for _ in range(chance.randint(1, 5))]
    return " ".join("".join(chance.choices(letters, k=size)) for size in sizes)


def at_once(connection: sqlite3.Connection, texts: list[list[str]]) -> list[int]:
    blocks = [add_block(connection, *events) for events in texts]
    cover(connection)
    return blocks


def bit_by_bit(connection: sqlite3.Connection, texts: list[list[str]]) -> list[int]:
    """Beside much that was there before, each for itself."""
    add_much(connection)
    blocks = []
    for events in texts:
        blocks.append(add_block(connection, *events))
        cover(connection)
    assert connection.execute("SELECT 1 FROM vocabulary WHERE base = 0").fetchone(), "nothing was listed anew"
    return blocks


def add_much(connection: sqlite3.Connection) -> None:
    """Text beside which other text is little."""
    chance = random.Random(SEED)
    for _ in range(10):
        add_block(connection, " ".join(f"{chance.randrange(1000):x}" for _ in range(30_000)))
    cover(connection)


def doubled(connection: sqlite3.Connection, texts: list[list[str]]) -> list[int]:
    """Inserted again after they were covered, as after a crash."""
    blocks = at_once(connection, texts)
    connection.execute("UPDATE block SET words = ?", (NONE,))
    cover(connection)
    return blocks


def in_part(connection: sqlite3.Connection, texts: list[list[str]]) -> list[int]:
    """Some found by words, some only inserted, some not at all."""
    blocks = [add_block(connection, *events) for events in texts]
    for first, last in ((0, 5), (5, 9)):
        word_index.complete(connection)
        word_index.insert(connection, sum(len(text.encode()) for events in texts[first:last] for text in events))
    assert states(connection) == {FOUND, INSERTED, NONE}
    return blocks


def queries(texts: list[list[str]], chance: random.Random, longest: int) -> Iterator[str]:
    """Pieces of the texts of 1 byte to so many, at the borders of words and within them, by letters of any case."""
    for _ in range(depth(40, 120)):
        text = chance.choice(chance.choice(texts))
        start = chance.choice([chance.randrange(len(text)), text.find(" ", chance.randrange(len(text))) + 1])
        most = chance.choice([3, 12, 40, longest])
        cut = text[start : start + chance.randint(1, most)]
        while len(cut.encode()) > longest:
            cut = cut[:-1]
        yield chance.choice([cut, cut.swapcase() if cut.isascii() else cut])


def lost(connection: sqlite3.Connection, blocks: dict[int, list[bytes]], query: str) -> Iterator[tuple[int, str]]:
    """The blocks that hold a query in folded texts, where the word index leads past it."""
    wanted = fold(query)
    named = candidates(connection, wanted)
    for block, events in blocks.items():
        holding = {number for number, text in enumerate(events) if wanted in text}
        ends, text = connection.execute("SELECT ends, text FROM block_data WHERE block_id = ?", (block,)).fetchone()
        assert Contains(query).numbers(BlockText.of(ends, text), Deadline()) == holding
        if holding and named is not None and block not in named:
            yield block, query


@pytest.fixture
def narrowed_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """What few blocks hold is narrowed down by all words of a query, as in a large index."""
    monkeypatch.setattr("agtrace_indexer.index.queries.candidates._FEW", 0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "covering", "longest"),
    part(
        [
            *((kind, covering, 300) for kind in (prose, paths) for covering in (bit_by_bit, doubled, in_part)),
            *((kind, covering, OVERLAP) for kind in (base64, chinese) for covering in (in_part, bit_by_bit)),
            *((kind, at_once, 300) for kind in (base64, chinese)),
        ],
        1,
        2,
    ),
)
def test_the_blocks_that_hold_a_text_are_among_the_candidates(
    kind: Callable[[random.Random], str],
    covering: Callable[..., list[int]],
    longest: int,
    connection: sqlite3.Connection,
    narrowed_down: None,
) -> None:
    chance = random.Random(SEED)
    texts = [[kind(chance) for _ in range(chance.randint(1, 3))] for _ in range(12)]
    ids = covering(connection, texts)
    blocks = {block: [fold(text) for text in events] for block, events in zip(ids, texts, strict=True)}
    asked = list(queries(texts, chance, longest))
    assert [pair for query in asked for pair in lost(connection, blocks, query)] == []
    assert any(candidates(connection, fold(query)) is not None for query in asked)


def test_a_text_is_narrowed_down_by_its_whole_words_and_by_those_that_it_cuts(
    connection: sqlite3.Connection, narrowed_down: None
) -> None:
    first, second = add_block(connection, "tide gauge"), add_block(connection, "gauge pool")
    cover(connection)
    found = [candidates(connection, query) for query in (b"a gauge x", b"de gauge p", b"ide gaug")]
    assert found == [set(), set(), {first}]
    assert candidates(connection, b"gauge") == {first, second}
    assert candidates(connection, b"g") is None, "one letter narrows nothing down"
    assert candidates(connection, b" (") is None, "no word at all"


def test_a_word_that_is_too_long_for_fts5_is_looked_for_by_reading(connection: sqlite3.Connection) -> None:
    text = "begin " + "潮汐" * 250_000 + " end"
    long, short = add_block(connection, text), add_block(connection, "begin 汐潮 end")
    cover(connection)
    assert dict(connection.execute("SELECT id, words FROM block")) == {long: NEVER, short: FOUND}
    for query in ("汐潮", "潮汐" * 20, "潮 end", "begin 潮"):
        assert list(lost(connection, {long: [fold(text)]}, query)) == []
    cover(connection)
    assert dict(connection.execute("SELECT id, words FROM block")) == {long: NEVER, short: FOUND}


def test_a_block_that_is_gone_hides_no_other_one(connection: sqlite3.Connection) -> None:
    texts = [f"needle number {number}" for number in range(6)]
    blocks = [add_block(connection, text) for text in texts]
    cover(connection)
    for table, key in (("block", "id"), ("block_data", "block_id")):
        connection.execute(f"DELETE FROM {table} WHERE {key} >= ?", (blocks[3],))
    new = add_block(connection, "another needle")
    assert new > blocks[-1], "ids aren't used again"
    left = {block: [text.encode()] for block, text in zip(blocks[:3], texts, strict=False)}
    for _ in range(2):
        for query in ("needle", "needle number 1", "another needle"):
            assert list(lost(connection, left | {new: [b"another needle"]}, query)) == []
        cover(connection)


# --- along with logs ---


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run brings the word index up to date, however little is new."""
    monkeypatch.setattr(word_index, "LEAST", 1)


@pytest.fixture
def always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search asks the word index before it reads any block, however few they are."""
    monkeypatch.setattr(scan, "_PROBED", 0)
    monkeypatch.setattr(scan, "_FEW", 1)


def found(asker: Asker, query: str) -> int:
    return len(asker.ask("search_event_previews", order="newest", query=query)["data"]["matches"])


def test_a_block_that_grows_is_found_by_its_old_and_its_new_words(
    tmp_path: Path, eager: None, always_asked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = claude_log(tmp_path / "home", ONE).prompt("the old needle")
    asker = Asker(tmp_path, tmp_path / "home")
    block, state = only_block(asker)
    assert state == FOUND and found(asker, "old needle") == 1
    monkeypatch.setattr(word_index, "LEAST", 10**9)
    log.say("the fresh needle " + "and hay " * 1000)
    asker.index()
    assert only_block(asker) == (block, NONE), "it grew, and its words wait"
    assert [found(asker, query) for query in ("old needle", "fresh needle", "needle", "stale")] == [1, 1, 2, 0]
    monkeypatch.setattr(word_index, "LEAST", 1)
    log.say("the last needle " + "and hay " * 9000)
    asker.index()
    assert only_block(asker) == (block, FOUND)
    counts = [found(asker, query) for query in ("old needle", "fresh needle", "last needle", "needle", "stale")]
    assert counts == [1, 1, 1, 3, 0]


def only_block(asker: Asker) -> tuple[int, int]:
    with closing(sqlite3.connect(asker.settings.database)) as connection:
        (block,) = connection.execute("SELECT id, words FROM block").fetchall()
    return block


def test_words_that_a_crash_left_half_indexed_are_completed_by_the_next_run(
    tmp_path: Path, eager: None, always_asked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_index, "LEAST", 10**9)
    claude_log(tmp_path / "home", ONE).prompt("the old needle")
    asker = Asker(tmp_path, tmp_path / "home")
    with closing(open_database(asker.settings.database)) as connection:
        assert word_index.prepared(connection)
        word_index.insert(connection)  # and then it was killed
        assert states(connection) == {INSERTED}
        assert found(asker, "old needle") == 1
        monkeypatch.setattr(word_index, "LEAST", 1)
        claude_log(tmp_path / "home", ONE[:-1] + "2").prompt("the new needle")
        asker.index()
        assert states(connection) == {FOUND}
    assert [found(asker, query) for query in ("old needle", "new needle", "needle")] == [1, 1, 2]


def test_a_word_index_whose_creation_was_cut_off_is_created_by_the_next_run(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE vocabulary")
    assert word_index.prepared(connection)
    cover(connection)
