"""Regular expressions: what they find, the literals used to find it, and that none of them stops the server."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
import regex
from agtrace_indexer.index import word_index
from agtrace_indexer.index.queries.matches import EventFilters
from agtrace_indexer.texts.blocks import BlockText, OpenBlock, pack
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from msgspec.structs import replace

from agtrace.problems import InvalidParameter, SearchTimeout
from agtrace.search import scan
from agtrace.search.matching import Contains, Deadline, Matches, fold, required_literal
from agtrace.search.scan import Place, Question, snapshot_of
from tests import depth as depths
from tests.agtrace.asking import Asker, claude_log
from tests.agtrace.terminal import AGTRACE, agtrace_here, index_here
from tests.conftest import copy_index
from tests.contents import texts

ONE = "aaaaaaaa-0000-4000-8000-000000000001"
SEED = 20261121
CATASTROPHE = "(a|aa|a+)+$"
"""An expression that takes longer than the world stands where many letters a are followed by another one."""


def asker_of(folder: Path, *prompts: str) -> Asker:
    """Answers over one log with these prompts."""
    log = claude_log(folder / "home", ONE)
    for prompt in prompts:
        log.prompt(prompt)
    return Asker(folder, folder / "home")


# --- what matches ---

SAID = {
    "tide": "The TIDE gauge\nreads 3.25 m,\nsays the log",
    "accent": "Été: la marée",
    "chinese": "潮汐表 1.0",
    "secret": "a[0] = (b|c)* \\ x{2}",
    "escape": "C:\\tmp\\new.txt",
}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("tide", "tide"), ("TiDe", "tide"), ("tide.gauge", "tide"), ("^reads", "tide"), ("m,$", "tide"),
        ("gauge.reads", ""), ("(?s)gauge.reads", "tide"), (r"gauge\sreads", "tide"), (r"gauge\nreads", "tide"),
        (r"^the log", ""), (r"\d\.\d{2}", "tide"), (r"\b\d\.\d\b", "chinese"), (r"\d", "tide chinese secret"),
        ("été", "accent"), ("ÉTÉ", "accent"), (r"\w+ée$", "accent"), ("[à-ÿ]t", "accent"), (r"\p{Han}{3}", "chinese"),
        (r"a\[0\]", "secret"), (r"\(b\|c\)\*", "secret"), (r"x\{2\}", "secret"), (r"\\ x", "secret"),
        (r"\\tmp\\new\.txt$", "escape"), ("(?<=gauge\n)reads", "tide"), ("tide(?! table)", "tide"),
        (r"(.)t\1", "accent"), ("(?-i:tide)", ""), ("nothing|marée", "accent"),
        ("(?:tide|marée|潮汐)", "tide accent chinese"),
        ("", "tide accent chinese secret escape"), ("x*", "tide accent chinese secret escape"), ("^$", ""),
    ],
)  # fmt: skip
def test_an_expression_finds_the_events_that_it_matches_somewhere(pattern: str, found: str, of_said: Asker) -> None:
    matches = of_said.items("search_event_previews", "matches", query=pattern, regex=True, event_type="User")
    names = list(SAID)
    assert [names[match["event_index"]] for match in reversed(matches)] == found.split()


@pytest.fixture(scope="module")
def of_said(tmp_path_factory: pytest.TempPathFactory) -> Asker:
    return asker_of(tmp_path_factory.mktemp("said"), *SAID.values())


_PARTS = (
    "a", "b+", "[^a]", "[^a]*", ".", ".*", r"\d", r"\w{2}", r"\s", r"\b", r"\B", r"\A", r"\Z", "^", "$",
    "(?:a|b)", "(a)", r"\1",
    "(?<!a)", "(?<=b)", "(?!b)", "(?=1)", "a*+", "(?>b*)", "a??", "[]a]+", r"\x00", r"\0", "(?i:B)", "|",
)  # fmt: skip


def test_an_expression_finds_the_same_events_in_a_block_as_in_each_of_them() -> None:
    chance, compared, hits = random.Random(3), 0, 0
    while compared < depths.depth(1_000, 4_000):
        pattern = "".join(chance.choice(_PARTS) for _ in range(chance.randint(1, 5)))
        try:
            wanted = regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)
        except regex.error:
            continue
        texts = ["".join(chance.choice("ab1 \n") for _ in range(chance.randint(0, 5))) for _ in range(3)]
        block = OpenBlock(0)
        for text in texts:
            block.add(text, None, 0, 1, None)
        packed = block.pack()
        found = Matches(pattern).numbers(BlockText.of(packed.ends, packed.text), Deadline())
        assert found == {number for number, text in enumerate(texts) if wanted.search(text)}, (pattern, texts)
        compared, hits = compared + 1, hits + bool(found)
    assert compared / 4 < hits < compared


def test_without_regex_the_same_text_is_literal(of_said: Asker) -> None:
    for query, count in ((r"\d", 0), ("(b|c)*", 1), ("^reads", 0), (".", 2 + 1)):
        assert len(of_said.ask("search_event_previews", order="newest", query=query)["data"]["matches"]) == count, query


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "[", "[^", "a**", "*", "+a", "?", "a{3,2}", "a{99999999999}", "(?P<n>a)(?P<n", r"\g<9>",
        "\\", "[z-a]", r"\p{Nothing}", r"\N{NOTHING}", r"\x", r"\u12", "(?<a", "(?z)", "(?", "(?(1)a|b|c)",
        "[[:none:]]", "(" * 1999, "(?:" * 600,
        "(?a)(?u)x", "(?V0)(?V1)x",
    ],
)  # fmt: skip
def test_an_expression_that_cant_be_read_is_an_invalid_parameter_that_says_why(pattern: str, of_said: Asker) -> None:
    error = of_said.error("search_event_previews", query=pattern, regex=True)
    assert (error["code"], error["details"]["field"]) == ("invalid_parameter", "query")
    assert error["message"].startswith("invalid regular expression: ") and len(error["message"]) > 30
    assert of_said.ask("search_event_previews", query="tide", regex=True)["data"]["matches"]


@pytest.mark.parametrize(
    "pattern", ["a{99999999}", "(?:[ab]{200}x){200}", "(?:(?:a{30}){30}){30,}", "(?#[)a{9999999}(?#])"]
)
def test_an_expression_that_takes_all_memory_once_it_is_written_out_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidParameter):
        Matches(pattern)


def test_no_text_whatever_is_more_than_an_invalid_parameter(of_said: Asker) -> None:
    chance = random.Random(SEED)
    bits = [*"()[]{}?*+|^$.\\,-<>=!:#&~1ax潮", "(?", "\\p{", "[[:", "{e<", "(?<", "\\g<", "(?|", "\\K", "(?#"]
    for _ in range(200):
        query = "".join(chance.choices(bits, k=chance.randint(1, 8)))
        of_said.anything("search_event_previews", query=query, regex=True)


_RECURSION = """
import resource
from agtrace_indexer.texts.blocks import BlockText, OpenBlock, pack
from agtrace.search.matching import Deadline
from agtrace.search.matching import Matches
from agtrace.problems import Problem
resource.setrlimit(resource.RLIMIT_AS, (600_000_000, 600_000_000))
try:
    Matches("(?R)").numbers(BlockText.of((4).to_bytes(4, "little"), pack(b"tide\\0")), Deadline(1))
except Problem:
    pass
"""


def test_an_expression_that_names_itself_takes_no_memory_without_end() -> None:
    subprocess.run([sys.executable, "-c", _RECURSION], check=True, stderr=subprocess.DEVNULL)


# --- what a hit is sought by ---


@pytest.mark.parametrize(
    ("pattern", "text"), [(r"\[foo|bar]tide", "[foo"), (r"\[(x|]tide)?", "[(x"), (r"\[(tide]gauge)?", "[")]
)
def test_an_escaped_bracket_hides_no_alternative(pattern: str, text: str) -> None:
    assume_match(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"), [("task", "ta\u017fk"), ("kelvin", "\u212aelvin"), ("index", "\u0130ndex")]
)
def test_letters_that_only_the_expression_folds_are_found(pattern: str, text: str, tmp_path: Path) -> None:
    assume_match(pattern, text)
    assert asker_of(tmp_path, text).ask("search_event_previews", query=pattern, regex=True)["data"]["matches"]


def assume_match(pattern: str, text: str) -> None:
    """See that a text that matches is one that is looked at."""
    matches = regex.search(pattern, text, regex.IGNORECASE | regex.MULTILINE) is not None
    assert not matches or required_literal(pattern) in fold(text)


# --- the law: what is found is what a scan of all texts finds ---


@pytest.fixture(scope="module", params=["by reading blocks", "by words"])
def connection(
    request: pytest.FixtureRequest, indexed_samples: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sqlite3.Connection]:
    """The sample sessions; search asks the word index before it reads any block, however few they are."""
    database = copy_index(indexed_samples, tmp_path_factory.mktemp("matching") / "index.sqlite3")
    if request.param == "by words":
        with closing(sqlite3.connect(database, isolation_level=None)) as writing:
            writing.execute("BEGIN")
            word_index.cover(writing)
            writing.execute("COMMIT")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scan, "_PROBED", 0)
        patched.setattr(scan, "_FEW", 1)
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
            opened.row_factory = sqlite3.Row
            yield opened


def written_from(text: str, chance: random.Random) -> str:
    """An expression that a piece of a text matches: its letters, some of them by what they are."""
    start = chance.randrange(max(len(text) - 30, 1))
    pattern = ""
    for letter in text[start : start + chance.randint(4, 30)]:
        kinds = [".", r"\w"] if letter.isalnum() else [r"[^\w]", r"\W"]
        pattern += chance.choice(kinds) if chance.random() < 0.1 and letter != "\n" else regex.escape(letter)
        pattern += "" if chance.random() < 0.93 else chance.choice(["?", "+", "*", "{1,3}"])
    return pattern


def test_what_an_expression_finds_is_what_a_scan_finds(connection: sqlite3.Connection) -> None:
    chance = random.Random(SEED)
    said = {(uid, number): text for uid, number, text, _ in texts(connection)}
    rows = connection.execute(
        "SELECT e.ts, e.id, s.uid, e.event_index FROM event e JOIN session s ON s.id = e.session_id "
        "WHERE (e.superseded_by IS NULL OR e.superseded_by < 0) ORDER BY e.ts DESC, e.id DESC"
    ).fetchall()
    stored = [(Place(ts, event), said[uid, number]) for ts, event, uid, number in rows]
    patterns = [written_from(chance.choice(stored)[1], chance) for _ in range(depths.depth(10, 25))]
    for pattern in (*patterns, "", "error|fail", r"^\s*def \w+", "(tide|gauge)s?", r"潮.", r"\bno such\b", "zzzzzz"):
        wanted = regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)
        expected = [place for place, text in stored if wanted.search(text)]
        assert all_pages(connection, pattern, max(3, len(expected) // 3)) == expected, pattern


def all_pages(connection: sqlite3.Connection, pattern: str, limit: int) -> list[Place]:
    behind, found = None, []
    while True:
        question = Question(connection, Matches(pattern), EventFilters(), snapshot_of(connection))
        page = question.page(limit, behind, Deadline())
        found += [hit.place for hit in page.hits]
        if not page.more:
            return found
        behind = page.hits[-1].place


# --- what is shown ---


def test_a_preview_shows_the_match(tmp_path: Path) -> None:
    hay = "hay " * 2000
    log = claude_log(tmp_path / "home", ONE).prompt(f"{hay}Gauge-4711 {hay}")
    log.call("Bash", {"a": hay, "z": f"{hay}gauge-0815{hay}"}, f"{hay}GAUGE-9 {hay}")
    asker = Asker(tmp_path, tmp_path / "home")
    matches = asker.ask("search_event_previews", query=r"gauge-\d+", regex=True)["data"]["matches"]
    shown = [json.dumps(match["preview"]) for match in matches]
    assert [piece in text for piece, text in zip(("GAUGE-9", "gauge-0815", "Gauge-4711"), shown, strict=True)] == [
        True
    ] * 3


def test_a_cursor_belongs_to_the_expression_and_not_to_the_same_text(tmp_path: Path) -> None:
    asker = asker_of(tmp_path, *(f"tide {number}" for number in range(5)))
    pages = list(asker.pages("search_event_previews", query="tide", regex=True, limit=2))
    assert [len(page["data"]["matches"]) for page in pages] == [2, 2, 1]
    cursor = pages[0]["pagination"]["next_cursor"]
    for other in ({}, {"regex": False}):
        error = asker.error("search_event_previews", order="newest", query="tide", limit=2, cursor=cursor, **other)
        assert (error["code"], error["details"]["reason"]) == ("invalid_cursor", "mismatch")


def test_the_command_line_has_it_as_an_option(tmp_path: Path) -> None:
    claude_log(tmp_path / "logs", ONE).prompt("the tide gauge").prompt("a|b")
    index_here(tmp_path / "logs")
    said = agtrace_here("search", "--regex", "--json", "t.d+e|xyz")
    assert [match["event_index"] for match in said.json()["data"]["matches"]] == [0]
    literal = agtrace_here("search", "--newest", "--json", "a|b")
    assert [match["event_index"] for match in literal.json()["data"]["matches"]] == [1]
    invalid = agtrace_here("search", "--regex", "(tide")
    assert invalid.code != 0 and "invalid regular expression: missing )" in invalid.err


# --- what takes too long ---


def test_a_catastrophic_expression_ends_in_time_and_the_server_goes_on(tmp_path: Path) -> None:
    claude_log(tmp_path / "home" / ".claude", ONE).prompt("a" * 5000 + "!").say("the tide gauge")
    environment = {
        "HOME": str(tmp_path / "home"),
        "AGTRACE_DATA_DIR": str(tmp_path / "data"),
        "AGTRACE_SEARCH_TIMEOUT_SECONDS": "1",
    }
    server = StdioServerParameters(command=str(AGTRACE), args=["mcp"], env=environment)

    async def story() -> None:
        with anyio.fail_after(300):
            async with Client(stdio_client(server)) as client:
                await client.call_tool("search_event_previews", {"order": "newest", "query": "tide"})
                began = time.monotonic()
                stopped = await client.call_tool("search_event_previews", {"query": CATASTROPHE, "regex": True})
                assert time.monotonic() - began > 0.9
                error = stopped.structured_content["error"]
                assert (error["code"], error["retryable"], error["details"]["seconds"]) == ("search_timeout", True, 1)
                after = await client.call_tool("search_event_previews", {"query": "t.de gauge", "regex": True})
                assert len(after.structured_content["data"]["matches"]) == 1

    anyio.run(story)


@pytest.mark.thorough
def test_searches_at_once_have_their_whole_time_each() -> None:
    """The library counts the time of all threads."""
    block = BlockText.of(array("I", [5001]).tobytes(), pack(b"a" * 5000 + b"!\0"))
    stopped: list[float] = []

    def search(began: float) -> None:
        with pytest.raises(SearchTimeout):
            Matches(CATASTROPHE).numbers(block, Deadline(0.6))
        stopped.append(time.monotonic() - began)

    threads = [threading.Thread(target=search, args=(time.monotonic(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stopped) == 3 and min(stopped) >= 0.6


@pytest.mark.parametrize(("make", "query"), [(Contains, "tide"), (Contains, ""), (Matches, "t.de"), (Matches, "^x")])
def test_a_search_without_time_is_stopped_and_the_connection_goes_on(
    make: type[Contains] | type[Matches], query: str, connection: sqlite3.Connection
) -> None:
    asked = Question(connection, make(query), EventFilters(), snapshot_of(connection))
    with pytest.raises(SearchTimeout):
        asked.page(10, None, Deadline(-1.0))
    counted = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT count(*) FROM n"
    assert connection.execute(counted).fetchone()[0] == 100_000, "nobody looks at the clock any more"
    assert replace(asked, matcher=Contains("tide")).page(10, None, Deadline()).hits


def test_a_query_that_sqlite_is_busy_with_is_stopped_as_well(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "STEPS_BETWEEN_LOOKS", 50)
    nowhere = EventFilters(tool="no such tool")  # no block is opened: only SQLite looks at the clock
    asked = Question(connection, Contains("tide"), nowhere, snapshot_of(connection))
    with pytest.raises(SearchTimeout):
        asked.page(10, None, Deadline(-1.0))
    assert asked.page(10, None, Deadline()).hits == []
