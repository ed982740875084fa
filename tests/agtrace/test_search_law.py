"""The law of search: it finds exactly what a plain scan of the events' texts finds, for any query.

The scan looks at all texts of the index, and nearly all texts of a raw log are among them.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from agtrace_indexer.index import word_index
from agtrace_indexer.index.opening import open_read_only
from agtrace_indexer.index.queries.matches import EventFilters
from agtrace_indexer.run import index

from agtrace.search.matching import Contains, Deadline
from agtrace.search.scan import Place, Question, snapshot_of
from tests import depth
from tests.conftest import REAL_LOGS, SAMPLES, copy_index
from tests.contents import texts

_Of = TypeVar("_Of")

SHARES = {"claude": 0.84, "codex": 0.53, "copilot": 0.74, "cursor": 0.91, "kiro": 1, "pi": 1, "qwen": 1, "openclaw": 1}
"""What share of an agent's texts is in the index."""
NEEDLES = 200
LENGTH = 12
SEED = 20261121
ODD, FOREIGN = re.compile(r"[\n\"'\\%_{}\t]"), re.compile(r"[^\x00-\x7f]")


class Stored(NamedTuple):
    """An event of the index, with the folded text that a scan looks at."""

    path: str
    line: int
    ts: int
    event_id: int
    folded: bytes


# --- the raw logs, read without agtrace ---


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of some words in a log of JSON lines, each with the number of its line."""
    for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
        try:
            yield from ((number, leaf) for leaf in _leaves(json.loads(line)) if leaf.count(" ") > 3)
        except ValueError:
            continue


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)


# --- the index, and the plain scan of it ---


WAYS: dict[str, list[tuple[float, bool]]] = {
    "by reading blocks": [],
    "by words of a part": [(0.5, True)],
    "by words that aren't listed yet": [(0.4, True), (0.3, False)],
}
"""How search has to find the events: the parts of the text whose words are inserted, and whether they are listed."""


@pytest.fixture(scope="module")
def indexed(indexed_samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the samples and, in a thorough run, of the published logs, without words."""
    database = copy_index(indexed_samples, tmp_path_factory.mktemp("law") / "index.sqlite3")
    index(database, [str(SAMPLES), *map(str, REAL_LOGS if depth.THOROUGH else ())])
    return database


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


def of_way(way: str, everything: Sequence[_Of]) -> Sequence[_Of]:
    """Return a third of everything, another one than the next way; all of it in a thorough run."""
    return depth.part(everything, [*WAYS].index(way), 3)


@pytest.fixture(scope="module")
def connection(way: str, indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """The same events, found in every way that search has."""
    database = Path(shutil.copytree(indexed.parent, tmp_path_factory.mktemp("law") / "copy")) / indexed.name
    with closing(sqlite3.connect(database, isolation_level=None)) as writing:
        writing.execute("BEGIN")
        cover_in_parts(writing, WAYS[way])
        writing.execute("COMMIT")
    with closing(open_read_only(database)) as opened:
        opened.row_factory = sqlite3.Row
        yield opened


@pytest.fixture(scope="module")
def stored(indexed: Path) -> list[Stored]:
    """All events that count, newest first."""
    with closing(sqlite3.connect(indexed)) as connection:
        said = {(uid, number): text for uid, number, text, _ in texts(connection)}
        rows = connection.execute(
            "SELECT f.path, e.line, e.ts, e.id, s.uid, e.event_index "
            "FROM event e JOIN session s ON s.id = e.session_id JOIN file f ON f.id = s.file_id "
            "WHERE (e.superseded_by IS NULL OR e.superseded_by < 0) ORDER BY e.ts DESC, e.id DESC"
        ).fetchall()
    return [Stored(*place, ascii_folded(said[uid, number])) for *place, uid, number in rows]


def cover_in_parts(connection: sqlite3.Connection, parts: list[tuple[float, bool]]) -> None:
    """Let the word index cover parts of the text, one after the other."""
    assert word_index.prepared(connection)
    whole = word_index.waiting(connection)
    for part, listed in parts:
        word_index.insert(connection, int(whole * part))
        if listed:
            word_index.complete(connection)


def ascii_folded(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(bytes(b + 32 if 65 <= b <= 90 else b for b in range(256)))


@pytest.fixture(scope="module")
def scan(stored: list[Stored]) -> Callable[[str], list[Stored]]:
    """What holds a text, newest first."""

    @cache
    def scan(query: str) -> list[Stored]:
        wanted = ascii_folded(query.replace("\0", "\u2400"))
        return [event for event in stored if wanted in event.folded]

    return scan


def all_pages(connection: sqlite3.Connection, query: str, filters: EventFilters, limit: int) -> list[Place]:
    """Every hit, page by page."""
    snapshot, behind, found = snapshot_of(connection), None, []
    while True:
        page = Question(connection, Contains(query), filters, snapshot).page(limit, behind, Deadline())
        found += [hit.place for hit in page.hits]
        assert page.found >= len(page.hits)
        if not page.more:
            assert page.complete
            return found
        assert len(page.hits) == limit
        behind = page.hits[-1].place


def places(events: list[Stored]) -> list[Place]:
    return [Place(event.ts, event.event_id) for event in events]


def limit_for(count: int, chance: random.Random) -> int:
    return max(chance.choice((1, 3, 10, 50)), count // 6)


@pytest.mark.parametrize("agent", SHARES)
def test_the_texts_of_a_raw_log_stand_in_the_events_of_its_lines(agent: str, stored: list[Stored]) -> None:
    """But for those that agents repeat, and what they tell themselves, such as the prompt of the system."""
    by_line: dict[tuple[str, int], bytes] = {}
    for event in stored:
        by_line[event.path, event.line] = by_line.get((event.path, event.line), b"") + event.folded
    paths = [path for path in sorted((SAMPLES / agent).rglob("*.jsonl")) if path.stat().st_size < 500_000]
    found = [
        ascii_folded(text[:LENGTH]) in by_line.get((str(path), number), b"")
        for path in paths
        for number, text in sentences(path)
    ]
    assert found and sum(found) >= SHARES[agent] * len(found)


@pytest.fixture(scope="module")
def needles(indexed: Path) -> list[str]:
    """Pieces of the texts of events, half of them around a character that is no letter of English."""
    chance = random.Random(SEED)
    with closing(sqlite3.connect(indexed)) as connection:
        every = [text for _, _, text, _ in texts(connection) if len(text) >= LENGTH]
    odd, foreign = (
        [(text, place.start()) for text in every for place in signs.finditer(text, 0, 4000)] for signs in (ODD, FOREIGN)
    )
    plain = [(text, chance.randrange(len(text))) for text in chance.sample(every, NEEDLES // 2)]
    return [
        _cut(*place) for place in (*plain, *chance.sample(odd, NEEDLES // 4), *chance.sample(foreign, NEEDLES // 4))
    ]


def _cut(text: str, around: int) -> str:
    start = min(max(0, around - LENGTH // 2), len(text) - LENGTH)
    return text[start : start + LENGTH]


def test_all_pages_together_are_what_a_plain_scan_finds_newest_first(
    way: str, connection: sqlite3.Connection, scan: Callable[[str], list[Stored]], needles: list[str]
) -> None:
    chance = random.Random(SEED)
    for needle in of_way(way, needles):
        expected = scan(needle)
        query = "".join(chance.choice((letter.swapcase(), letter)) if letter.isascii() else letter for letter in needle)
        assert all_pages(connection, query, EventFilters(), limit_for(len(expected), chance)) == places(expected), query


QUERIES = [
    *("", " ", "a", "ab", "%", "_", "%%", "a%b", '"', "'", "''", '"a', "\\", "\\n", "\\\\", "\n", "\r\n", "\t", "\n\n"),
    *(
        "\0",
        "a\0b",
        "*",
        "a*",
        "-a",
        "+",
        "^",
        "(",
        ")",
        "()",
        "{",
        "[a-z]",
        "a.b",
        "AND",
        "OR NOT",
        "NEAR(a b)",
        "a:b",
    ),
    *("c++", "#", "$", "~", "`", "|", "&&", "<", "/", "//", "../", "rm -rf", ".env", "it's", "50%", "user@host", "--"),
    *("; DROP TABLE", "潮", "潮汐", "é", "É", "ß", "🐟", "👩\u200d💻", "\u200d", "\ufffd", "\u2400", "\ud800", "İ"),
    *("a" * 2000, "0", "1.0", "null", "\x1b[31m", "?", "??"),
]


def test_no_text_is_a_syntax_error_and_none_finds_less_than_a_scan(
    way: str, connection: sqlite3.Connection, scan: Callable[[str], list[Stored]]
) -> None:
    for query in of_way(way, QUERIES):
        expected = scan(query)
        assert all_pages(connection, query, EventFilters(), max(50, len(expected) // 2)) == places(expected), query


def small_index(folder: Path, *records: dict[str, Any]) -> sqlite3.Connection:
    """An index of one Claude Code log."""
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps({"sessionId": "s", **record}) + "\n" for record in records))
    index(folder / "index.sqlite3", [str(log)])
    opened = sqlite3.connect(folder / "index.sqlite3")
    opened.row_factory = sqlite3.Row
    return opened


def prompt(text: str, time: str) -> dict[str, Any]:
    return {"type": "user", "uuid": text, "timestamp": time, "message": {"role": "user", "content": text}}


def test_only_the_letters_a_to_z_are_folded(tmp_path: Path) -> None:
    connection = small_index(tmp_path, prompt("Été in PARIS", "2026-10-01T10:00:00Z"))
    found = {
        query: len(all_pages(connection, query, EventFilters(), 10)) for query in ("Été in paris", "été", "ÉTÉ", "tÉ")
    }
    assert found == {"Été in paris": 1, "été": 0, "ÉTÉ": 0, "tÉ": 0}


def test_time_that_runs_backwards_behind_lines_without_time_hides_nothing(tmp_path: Path) -> None:
    title = {"type": "summary", "summary": "the gauge", "leafUuid": "u"}
    late, early = prompt("gauge late", "2026-10-01T10:00:00Z"), prompt("gauge early", "2026-09-01T10:00:00Z")
    connection = small_index(tmp_path, title, late, early)
    until = 1_788_300_000_000
    assert len(all_pages(connection, "gauge early", EventFilters(until=until), 10)) == 1
    assert len(all_pages(connection, "", EventFilters(until=until), 10)) == 1
