"""The law of search in both orders, by words, by session, without calls to agtrace: a plain scan finds the same."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from typing import Any, NamedTuple

import pytest
from agtrace_indexer.index import word_index as word_index
from agtrace_indexer.index.opening import open_read_only
from agtrace_indexer.index.queries.matches import EventFilters
from agtrace_indexer.texts import blocks
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Outcome

from agtrace.search import scan
from agtrace.search.matching import Contains, Deadline, Matches
from agtrace.search.scan import Order, Place, Question, snapshot_of
from tests.agtrace.asking import Asker, ClaudeLog, claude_log
from tests.conftest import SAMPLES
from tests.contents import texts
from tests.depth import depth

WORDS = ("tide", "gauge", "harbour", "import", "Error", "file.py", "mole", "潮", "ab", "x")
TOOLS = ("Bash", "Read", "Edit")


class Event(NamedTuple):
    """An event as the plain scan sees it."""

    session: int
    index: int
    ts: int
    id: int
    type: EventType
    tool: str | None
    outcome: Outcome | None
    turn: int | None
    provider: str
    paths: frozenset[str]
    own: bool
    text: bytes

    @property
    def place(self) -> Place:
        return Place(self.ts, self.id)


def write(log: ClaudeLog, chance: random.Random, turns: int) -> None:
    """Some turns whose words, files, failures and calls to agtrace are drawn by lot."""
    for _ in range(turns):
        log.clock += chance.randrange(-3_000, 9_000)
        log.prompt(_some_words(chance))
        for _ in range(chance.randrange(4)):
            if chance.random() < 0.3:
                log.call("mcp__agtrace__search_event_previews", {"query": _some_words(chance)}, _some_words(chance))
            tool, file = chance.choice(TOOLS), f"/srv/Harbour/{chance.choice(WORDS)}"
            arguments = {"command": _some_words(chance)} if tool == "Bash" else {"file_path": file}
            log.call(tool, arguments, _some_words(chance), failed=chance.random() < 0.2)
        log.say(_some_words(chance))


def _some_words(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 6)))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Asker:
    """An index of thirty sessions drawn by lot, and of the samples, in blocks of a few events."""
    folder, chance = tmp_path_factory.mktemp("orders"), random.Random(5)
    for number in range(30):
        log = claude_log(folder / "logs", f"{number:08x}-0000-4000-8000-000000000000", cwd=f"/srv/p{number % 3}")
        log.clock += chance.randrange(100_000)
        write(log, chance, chance.randrange(1, 6))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(blocks, "MOST_EVENTS", 9)
        return Asker(folder / "data", folder / "logs", SAMPLES)


@pytest.fixture(scope="module", params=["by reading blocks", "by words"])
def connection(request: pytest.FixtureRequest, indexed: Asker) -> Iterator[sqlite3.Connection]:
    """The index, searched in both ways that there are."""
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "by words":
            with closing(sqlite3.connect(indexed.settings.database, isolation_level=None)) as writing:
                writing.execute("BEGIN")
                word_index.cover(writing)
                writing.execute("COMMIT")
        patched.setattr(scan, "_PROBED", 1)
        patched.setattr(scan, "_FEW", 0)
        patched.setattr(scan, "_COUNTED_ON", 0)
        with closing(open_read_only(indexed.settings.database)) as opened:
            opened.row_factory = sqlite3.Row
            yield opened


@pytest.fixture(scope="module")
def events(connection: sqlite3.Connection) -> list[Event]:
    """Every event that counts, newest first."""
    said = {(uid, index): text for uid, index, text, _ in texts(connection)}
    touched: dict[tuple[int, int], set[str]] = {}
    for session, index, path in connection.execute(
        "SELECT t.session_id, t.event_index, p.text FROM touched t JOIN path p ON p.id = t.path_id"
    ):
        touched.setdefault((session, index), set()).add(path)
    rows = connection.execute(
        "SELECT s.uid, s.provider, e.*, n.text AS name FROM event e JOIN session s ON s.id = e.session_id "
        "LEFT JOIN name n ON n.id = e.name_id WHERE coalesce(e.superseded_by, -1) < 0 ORDER BY e.ts DESC, e.id DESC"
    ).fetchall()
    found = []
    for row in rows:
        kind = EVENT_TYPE_CODES[row["type"]]
        call = {EventType.TOOL_CALL: row["event_index"], EventType.TOOL_RESULT: row["link"]}.get(kind)
        outcome = None if row["outcome"] is None else OUTCOME_CODES[row["outcome"]]
        paths = touched.get((row["session_id"], call), set()) if call is not None else set()
        text = folded(said[row["uid"], row["event_index"]])
        found.append(
            Event(
                row["session_id"], row["event_index"], row["ts"], row["id"], kind, row["name"], outcome,
                row["turn_index"], row["provider"], frozenset(paths), bool(row["own"]), text,
            )
        )  # fmt: skip
    assert sum(event.own for event in found) > 50
    return found


def folded(text: str) -> bytes:
    return text.encode("utf-8", "replace").lower()


# -- what a plain scan finds -----------------------------------------------------------------------


QUERIES = ("", "tide", "x", "e", "gauge tide", "error file.py import", "潮 ab", "HARBOUR mole", "zebra")

EXECUTIONS = (EventType.TOOL_CALL, EventType.TOOL_RESULT)

FILTERS: tuple[tuple[dict[str, Any], Callable[[Event], bool]], ...] = (
    ({}, lambda event: True),
    ({"provider": "codex"}, lambda event: event.provider == "codex"),
    ({"event_type": EventType.TOOL_RESULT}, lambda event: event.type == EventType.TOOL_RESULT),
    ({"tool": "bash"}, lambda e: (e.tool or "").lower() == "bash" and e.type in EXECUTIONS),
    ({"failed": True}, lambda event: event.outcome == Outcome.FAILED),
    ({"failed": False}, lambda event: event.outcome != Outcome.FAILED),
    ({"path": "harbour/FILE"}, lambda event: any("harbour/file" in path.lower() for path in event.paths)),
    ({"path": "潮"}, lambda event: any("潮" in path for path in event.paths)),
    ({"since": 1_790_050_000_000}, lambda event: event.ts >= 1_790_050_000_000),
    ({"until": 1_790_050_000_000}, lambda event: event.ts <= 1_790_050_000_000),
    (
        {"since": 1_790_020_000_000, "path": "r", "event_type": EventType.TOOL_CALL},
        lambda e: (
            e.ts >= 1_790_020_000_000 and e.type == EventType.TOOL_CALL and any("r" in p.lower() for p in e.paths)
        ),
    ),
)


def wanted(events: list[Event], query: str, without_own: bool, keep: Callable[[Event], bool]) -> list[Event]:
    left = (event for event in events if keep(event) and not (without_own and event.own))
    return [event for event in left if folded(query) in event.text]


# -- what search finds -----------------------------------------------------------------------------


def pages(asked: Question, limit: int) -> list[Place]:
    """The places of all hits, page by page."""
    behind, found, total = None, [], 0
    while True:
        page = asked.page(limit, behind, Deadline())
        found += [hit.place for hit in page.hits]
        assert page.found >= len(page.hits)
        total = max(total, len(found) - len(page.hits) + page.found)
        if not page.more:
            assert page.complete and total == len(found)
            return found
        assert len(page.hits) == limit
        behind = page.hits[-1].place


def sessions(asked: Question, limit: int) -> list[tuple[int, Place, int]]:
    """Each session with hits: its row, the place of its first hit, and how many it has."""
    behind, found = None, []
    while True:
        page = asked.sessions(limit, behind, len(found), Deadline())
        found += [(hit.session_row, hit.place, page.counts[hit.session_row]) for hit in page.hits]
        if not page.more:
            assert page.complete and page.found == len(found)
            return found
        assert len(page.hits) == limit
        behind = page.hits[-1].place


def grouped(hits: list[Event]) -> list[tuple[int, Place, int]]:
    """The sessions of hits in the order of the first of each."""
    of: dict[int, list[Event]] = {}
    for event in hits:
        of.setdefault(event.session, []).append(event)
    return [(session, events[0].place, len(events)) for session, events in of.items()]


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("without_own", [True, False])
def test_every_walk_finds_what_a_plain_scan_finds(
    connection: sqlite3.Connection, events: list[Event], order: Order, without_own: bool
) -> None:
    chance, snapshot = random.Random(f"{order} {without_own}"), snapshot_of(connection)
    for query, (given, keep) in chance.sample(list(product(QUERIES, FILTERS)), depth(5, 14)):
        filters = EventFilters(**given, without_own=without_own)
        expected = wanted(events, query, without_own, keep)
        hits = expected if order is Order.NEWEST else expected[::-1]
        asked = Question(connection, Contains(query), filters, snapshot, order)
        limit = max(chance.choice((1, 3, 10)), len(hits) // 3)
        assert pages(asked, limit) == [event.place for event in hits], (query, given)
        found = grouped(hits)
        assert sessions(asked, max(chance.choice((2, 7, 50)), len(found) // 3)) == found, (query, given)


def test_a_regular_expression_finds_the_same_the_other_way_round(connection: sqlite3.Connection) -> None:
    snapshot = snapshot_of(connection)
    newest, oldest = (
        pages(Question(connection, Matches("tide.*x$|mole"), EventFilters(), snapshot, order), 7) for order in Order
    )
    assert newest == oldest[::-1]
    assert len(newest) > 50


@pytest.mark.parametrize("order", Order)
def test_what_is_common_is_found_without_reading_everything(
    connection: sqlite3.Connection, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each order stops where no block that is left can change the page."""
    opened: list[int] = []
    text = scan.matches.text
    monkeypatch.setattr(scan.matches, "text", lambda connection, block: opened.append(block) or text(connection, block))
    asked = Question(connection, Contains("tide"), EventFilters(), snapshot_of(connection), order)
    assert not asked.page(3, None, Deadline()).complete
    assert len(opened) < 32
