"""The law of search: it finds exactly what a plain scan of the events' texts finds, for any query.

The texts to search for are cut from the raw logs by this test's own code.
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
from agtrace_indexer.run import index
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Outcome

from agtrace.search.question import EventFilters, Place, search, snapshot_of
from tests import depth
from tests.conftest import REAL_LOGS, SAMPLES
from tests.contents import texts

_Of = TypeVar("_Of")

AGENTS = ("claude", "codex", "gemini", "pi", "openclaw", "qwen", "antigravity")
NEEDLES = 200
LENGTH = 12
SEED = 20261121
ODD, FOREIGN = re.compile(r"[\n\"'\\%_{}\t]"), re.compile(r"[^\x00-\x7f]")


class Raw(NamedTuple):
    """A text as a log holds it."""

    path: str
    line: int
    kind: str
    text: str


class Stored(NamedTuple):
    """An event of the index, with the folded text that a scan looks at."""

    path: str
    line: int
    ts: int
    event_id: int
    session: int
    type: EventType
    name: str | None
    outcome: Outcome | None
    provider: str
    project: int | None
    folded: bytes


# --- the raw logs, read without agtrace ---


def raw_texts() -> list[Raw]:
    roots = [SAMPLES, *REAL_LOGS]
    paths = sorted(path for root in roots for path in root.rglob("*") if path.suffix in (".jsonl", ".json", ".db"))
    return [raw for path in paths for raw in _of_file(path) if len(raw.text) >= LENGTH and _verbatim(raw.text)]


def _verbatim(text: str) -> bool:
    """Images become placeholders, and what hosts wrap around a prompt is told apart from it."""
    return "base64" not in text and not text.startswith(("<", "Caveat:", "# AGENTS.md", "/", "[trimmed for fixture]"))


def _of_file(path: Path) -> Iterator[Raw]:
    if path.name == "sessions.db":
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
            rows = connection.execute("SELECT session_id, id, role, content_json FROM messages").fetchall()
        for session, number, role, content in rows:
            for kind, text in _of_goose({"role": role, "content": json.loads(content)}):
                yield Raw(f"{path}/{session}", number, kind, text)
    if path.suffix == ".db":
        return
    if path.suffix == ".json":
        document = _decoded(path.read_text(errors="replace"))
        messages = document.get("messages") if isinstance(document, dict) and "projectHash" in document else None
        for message in messages or []:
            for kind, text in _of_gemini(message):
                yield Raw(str(path), 1, kind, text)
        return
    for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
        record = _decoded(line)
        if isinstance(record, dict):
            found = _of_line(record)
            for kind, text in found:
                yield Raw(str(path), number, kind, text)


def _of_line(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    payload = record.get("payload")
    return _of_codex(payload) if isinstance(payload, dict) else _reader_of(record)(record)


def _reader_of(record: dict[str, Any]) -> Callable[[dict[str, Any]], Iterator[tuple[str, str]]]:
    """Return what reads the records of an agent that writes such a record."""
    message = record.get("message")
    if isinstance(message, dict) and "parts" in message:
        return _of_qwen
    if record.keys() == {"role", "message"}:
        return _of_cursor
    for field, found in (("step_index", _of_antigravity), ("kind", _of_kiro), ("created", _of_goose)):
        if field in record:
            return found
    if isinstance(record.get("data"), dict):
        return _of_copilot
    return _of_pi if record.get("type") == "message" else _of_claude


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _of_claude(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    message = record.get("message")
    if record.get("type") not in ("user", "assistant") or not isinstance(message, dict) or "uuid" not in record:
        return
    content = message.get("content")
    if isinstance(content, str) and record["type"] == "user":
        yield "prompt", content
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use":
            yield from (("argument", leaf) for leaf in _leaves(block.get("input")))
        elif block.get("type") == "tool_result":
            inner = block.get("content")
            parts = inner if isinstance(inner, list) else [{"text": inner}]
            yield from (("output", part["text"]) for part in parts if isinstance(part.get("text"), str))


def _of_codex(payload: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if payload.get("type") == "function_call":
        yield from (("argument", leaf) for leaf in _leaves(_decoded(str(payload.get("arguments")))))
    elif payload.get("type") == "custom_tool_call" and isinstance(payload.get("input"), str):
        yield "argument", payload["input"]
    elif payload.get("type") in ("function_call_output", "custom_tool_call_output"):
        output = payload.get("output")
        document = _decoded(output) if isinstance(output, str) else None
        said = document.get("output") if isinstance(document, dict) else output
        if isinstance(said, str):
            yield "output", said


def _of_pi(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    message = record.get("message")
    if not isinstance(message, dict) or "parentId" not in record:
        return
    content = message.get("content")
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        if block.get("type") == "toolCall":
            yield from (("argument", leaf) for leaf in _leaves(block.get("arguments")))
        elif block.get("type") == "text" and message.get("role") in ("user", "toolResult"):
            yield ("prompt" if message["role"] == "user" else "output"), str(block["text"])


def _of_qwen(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for part in record["message"].get("parts") or []:
        yield from (("argument", leaf) for leaf in _leaves(part.get("functionCall", {}).get("args")))
        if isinstance(part.get("text"), str) and record.get("type") == "user":
            yield "prompt", part["text"]
        said = part.get("functionResponse", {}).get("response", {}).get("output")
        if isinstance(said, str):
            yield "output", said


def _of_antigravity(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    said = record.get("content")
    if isinstance(said, str) and record["type"] != "PLANNER_RESPONSE":
        yield (
            ("output" if record["source"] == "MODEL" else "prompt"),
            said.partition("</USER_REQUEST>")[0].rpartition(">\n")[2],
        )
    for call in record.get("tool_calls") or []:
        values = (_decoded(value) if isinstance(value, str) else value for value in call["args"].values())
        yield from (("argument", leaf) for value in values for leaf in _leaves(value))


def _of_gemini(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    content = message.get("content")
    if message.get("type") == "user" and isinstance(content, str):
        yield "prompt", content
    for call in message.get("toolCalls") or []:
        yield from (("argument", leaf) for leaf in _leaves(call.get("args")))
        for part in call.get("result") or []:
            response = part.get("functionResponse", {}).get("response", {}) if isinstance(part, dict) else {}
            yield from (("output", response[key]) for key in ("output",) if isinstance(response.get(key), str))


def _of_copilot(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    data, result = record["data"], record["data"].get("result")
    if record["type"] == "user.message" and isinstance(data.get("content"), str):
        yield "prompt", data["content"]
    for request in data.get("toolRequests") or []:
        yield from (("argument", leaf) for leaf in _leaves(request.get("arguments")) if leaf[:1] != "{")
    if record["type"] == "tool.execution_complete" and data.get("success") and isinstance(result, dict):
        yield "output", result["content"]


def _of_kiro(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    data = record.get("data")
    for block in data.get("content", []) if isinstance(data, dict) else []:
        if block["kind"] == "text" and record["kind"] == "Prompt":
            yield "prompt", block["data"]
        elif block["kind"] == "toolUse":
            yield from (("argument", leaf) for leaf in _leaves(block["data"]["input"]))
        elif block["kind"] == "toolResult":
            given = (part["data"] for part in block["data"]["content"])
            yield from (("output", part if isinstance(part, str) else part.get("stdout", "")) for part in given)


def _of_cursor(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for block in record["message"]["content"]:
        if block["type"] == "text" and record["role"] == "user":
            yield "prompt", block["text"]
        elif block["type"] == "tool_use":
            yield from (("argument", leaf) for leaf in _leaves(block["input"]))


def _of_goose(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for block in record["content"]:
        if block["type"] == "text" and record["role"] == "user":
            yield "prompt", block["text"]
        elif block["type"] == "toolRequest":
            yield from (("argument", leaf) for leaf in _leaves(block["toolCall"]["value"]["arguments"]))
        elif block["type"] == "toolResponse":
            value = block["toolResult"].get("value")
            content = value.get("content") if isinstance(value, dict) else value
            yield from (("output", part["text"]) for part in content or [])


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)


@cache
def needles() -> list[tuple[Raw, str]]:
    """Pieces of the raw texts: of all kinds alike, half of them around a character that is no letter of English."""
    chance = random.Random(SEED)
    raws = raw_texts()
    kinds = [[raw for raw in raws if raw.kind == kind] for kind in ("prompt", "argument", "output")]
    odd = [(raw, found.start()) for raw in raws for found in ODD.finditer(raw.text, 0, 4000)]
    foreign = [(raw, found.start()) for raw in raws for found in FOREIGN.finditer(raw.text, 0, 4000)]
    found = [
        _cut(raw, chance.randrange(len(raw.text))) for raw in (chance.choice(kinds[n % 3]) for n in range(NEEDLES // 2))
    ]
    found += [_cut(*chance.choice(odd)) for _ in range(NEEDLES // 4)]
    found += [_cut(*chance.choice(foreign)) for _ in range(NEEDLES // 4)]
    return found


def _cut(raw: Raw, around: int) -> tuple[Raw, str]:
    start = min(max(0, around - LENGTH // 2), len(raw.text) - LENGTH)
    return raw, raw.text[start : start + LENGTH]


# --- the index, and the plain scan of it ---


WAYS: dict[str, list[tuple[float, bool]]] = {
    "by reading blocks": [],
    "by words": [(1, True)],
    "by words of a part": [(0.5, True)],
    "by words that came bit by bit": [(0.1, True)] * 30,
    "by words that aren't listed yet": [(0.4, True), (0.3, False)],
}
"""How search has to find the events: the parts of the text whose words are inserted, and whether they are listed."""


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the samples and of the published logs, without words."""
    database = tmp_path_factory.mktemp("law") / "index.sqlite3"
    index(database, [str(SAMPLES), *map(str, REAL_LOGS)])
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
            "SELECT f.path, e.line, e.ts, e.id, e.session_id, e.type, n.text, e.outcome, s.provider, p.id, s.uid, "
            "e.event_index FROM event e JOIN session s ON s.id = e.session_id JOIN file f ON f.id = s.file_id "
            "LEFT JOIN project p ON p.id = s.project_id LEFT JOIN name n ON n.id = e.name_id "
            "WHERE e.superseded_by IS NULL ORDER BY e.ts DESC, e.id DESC"
        ).fetchall()
    return [
        Stored(
            *row[:5], EVENT_TYPE_CODES[row[5]], row[6], None if row[7] is None else OUTCOME_CODES[row[7]], *row[8:10],
            ascii_folded(said[row[10], row[11]]),
        )
        for row in rows
    ]  # fmt: skip


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
        page = search(connection, query, filters, limit, snapshot=snapshot, behind=behind)
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


def test_a_piece_of_a_raw_log_stands_in_the_event_that_it_came_from(
    stored: list[Stored], scan: Callable[[str], list[Stored]]
) -> None:
    """Search finds the same pieces as this scan, in every way: the next test."""
    by_origin: dict[tuple[str, int], list[Stored]] = {}
    for event in stored:
        by_origin.setdefault((event.path, event.line), []).append(event)
    redacted = 0
    for raw, needle in needles():
        if not any((event.path, event.line) == (raw.path, raw.line) for event in scan(needle)):
            masked = any(b"[redacted:" in event.folded for event in by_origin[raw.path, raw.line])
            assert masked, (raw.path, raw.line, raw.kind, needle)
            redacted += 1
    assert redacted <= NEEDLES * 0.02


def test_all_pages_together_are_what_a_plain_scan_finds_newest_first(
    way: str, connection: sqlite3.Connection, scan: Callable[[str], list[Stored]]
) -> None:
    chance = random.Random(SEED)
    for _, needle in of_way(way, needles()):
        expected = scan(needle)
        query = "".join(chance.choice((letter.swapcase(), letter)) if letter.isascii() else letter for letter in needle)
        assert all_pages(connection, query, EventFilters(), limit_for(len(expected), chance)) == places(expected), query


def some_filters(stored: list[Stored], chance: random.Random) -> Iterator[tuple[EventFilters, list[Stored]]]:
    """Each filter for itself and some together, with what a scan leaves of the events."""
    event = chance.choice([event for event in stored if event.ts and event.project])
    times = sorted(chance.choice(stored).ts for _ in range(2))
    tool = chance.choice([event.name for event in stored if event.type == EventType.TOOL_CALL and event.name])
    execution = (EventType.TOOL_CALL, EventType.TOOL_RESULT)
    has_tool = [e for e in stored if e.type in execution and (e.name or "").lower() == tool.lower()]
    yield EventFilters(session_row=event.session), [e for e in stored if e.session == event.session]
    yield EventFilters(provider=event.provider), [e for e in stored if e.provider == event.provider]
    assert event.project is not None
    of_project = [e for e in stored if e.project == event.project]
    yield EventFilters(projects=(event.project,)), of_project
    others = {e.project for e in stored if e.project is not None} - {event.project}
    yield EventFilters(projects=(*others,)), [e for e in stored if e.project in others]
    yield EventFilters(event_type=event.type), [e for e in stored if e.type == event.type]
    yield EventFilters(kind="thought"), [e for e in stored if e.type == EventType.REASONING]
    errors = [
        e for e in stored
        if (e.type == EventType.TOOL_RESULT and e.outcome == Outcome.FAILED)
        or (e.type == EventType.NOTIFICATION and "error" in (e.name or "").lower())
    ]  # fmt: skip
    yield EventFilters(kind="error"), errors
    yield EventFilters(kind="human"), [e for e in stored if e.type == EventType.USER and e.name in ("human", "command")]
    yield EventFilters(tool=tool.upper()), has_tool
    yield EventFilters(failed=True), [e for e in stored if e.outcome == Outcome.FAILED]
    yield EventFilters(failed=False), [e for e in stored if e.outcome != Outcome.FAILED]
    yield EventFilters(since=times[1]), [e for e in stored if e.ts >= times[1]]
    yield EventFilters(until=times[0]), [e for e in stored if e.ts <= times[0]]
    yield EventFilters(since=times[0], until=times[1]), [e for e in stored if times[0] <= e.ts <= times[1]]
    yield EventFilters(since=event.ts, until=event.ts), [e for e in stored if e.ts == event.ts]
    yield (
        EventFilters(provider=event.provider, projects=(event.project,), tool=tool, failed=True, until=times[1]),
        [
            e
            for e in of_project
            if e in has_tool and e.provider == event.provider and e.outcome == Outcome.FAILED and e.ts <= times[1]
        ],
    )


def test_the_same_is_true_with_every_filter(
    way: str, connection: sqlite3.Connection, stored: list[Stored], scan: Callable[[str], list[Stored]]
) -> None:
    chance = random.Random(SEED)
    cut = chance.sample(needles(), 4)
    queries = ("", "e", "error", "the ", *(needle for _, needle in cut))
    every = [(query, *filtered) for query in queries for filtered in some_filters(stored, chance)]
    for query, filters, left in of_way(way, every):
        kept = {event.event_id for event in left}
        expected = [event for event in scan(query) if event.event_id in kept]
        found = all_pages(connection, query, filters, limit_for(len(expected), chance))
        assert found == places(expected), (query, filters)


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
