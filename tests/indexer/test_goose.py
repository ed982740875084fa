"""Goose's sessions become events, while it writes them, and without a trace in its folder."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.index.queries.usage import Among, not_understood
from agtrace_indexer.providers.goose import parser as goose
from agtrace_indexer.run import index
from agtrace_schema.events import (
    Message,
    Outcome,
    OutcomeSource,
    Payload,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sample_sessions import make_goose as authored
from tests.conftest import MORE_LOGS, SAMPLES
from tests.contents import contents
from tests.depth import depth, part

relaxed = settings(deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])

DATABASE = SAMPLES / "goose" / "sessions" / "sessions.db"
LINES = DATABASE.with_name(f"{authored.OLD}.jsonl")
REAL = sorted((MORE_LOGS / "goose").rglob("sessions.db"))


def message(role: str, *blocks: Record, **more: Any) -> Record:
    return {"role": role, "created": 1_790_000_000, "content": list(blocks), **more}


def payloads(*records: Record, state: LogState | None = None) -> list[Payload]:
    state = state or LogState()
    found = (said for record in records for said in goose.drafts(record, state))
    return [said.payload for said in found if isinstance(said, Draft)]


# --- the published sessions, and an independent count ---


@pytest.mark.parametrize("log", [DATABASE, *REAL], ids=str)
def test_an_event_leads_home_to_its_row(log: Path, database: Path) -> None:
    index(database, [str(log)])
    with closing(sqlite3.connect(f"file:{log}?immutable=1", uri=True)) as connection:
        texts = {row[:2]: row[2] for row in connection.execute("SELECT session_id, id, content_json FROM messages")}
    found = contents(database)
    lines = {(event[0], event[1]): event[9] for event in found["events"] if event[2] < 5}
    assert {(uid, line) for (uid, _), line in lines.items()} <= texts.keys()
    for uid, number, said, _ in found["texts"]:
        if (uid, number) in lines:
            content = texts[uid, lines[uid, number]]
            assert all(word in content for word in said.split()[:1] if word.isalpha()), (uid, number)


# --- messages ---


def test_blocks_become_events_and_streamed_thoughts_one_thought() -> None:
    call = authored.call("c", "shell", command="ls")
    assert payloads(
        message(
            "user", {"type": "text", "text": "Look"}, {"type": "image", "data": "A" * 400, "mimeType": "image/png"}
        ),
        message("assistant", *authored.thoughts("so it is"), {"type": "text", "text": "I look"}, call),
        message("user", authored.back("c", "a\nb")),
    ) == [
        User("Look\n[image: image/png, 300 bytes]", UserKind.HUMAN),
        Reasoning("so it is "),
        Message("I look"),
        ToolCall("c", "shell", {"command": "ls"}),
        ToolResult("c", "a\nb", Outcome.OK, OutcomeSource.STRUCTURE),
    ]


@pytest.mark.parametrize(
    ("block", "outcome"),
    [
        (authored.back("c", "no", failed=True), Outcome.FAILED),
        (authored.refused("c", "-32002: Tool 'read' not found"), Outcome.FAILED),
        (authored.refused("c", authored.DECLINED), Outcome.REJECTED),
        (authored.back("c", authored.DECLINED), Outcome.REJECTED),
        (authored.back("c", "says: the user has declined to run this tool"), Outcome.OK),
        (authored.refused("c", "Interrupted by the user to make a correction"), Outcome.INTERRUPTED),
        (authored.back("c", "the build was interrupted by the user"), Outcome.OK),
        ({"type": "toolResponse", "id": "c", "toolResult": {"status": "success", "value": []}}, Outcome.OK),
        ({"type": "toolResponse", "id": "c"}, Outcome.UNKNOWN),
    ],
)
def test_the_outcome_of_a_call_is_what_its_response_says(block: Record, outcome: Outcome) -> None:
    (made,) = payloads(message("user", block))
    assert isinstance(made, ToolResult)
    assert made.outcome == outcome


def test_a_call_that_the_model_wrote_wrongly_is_a_call_with_the_error() -> None:
    block = {"type": "toolRequest", "id": "c", "toolCall": {"status": "error", "error": "no such tool: sh ell"}}
    assert payloads(message("assistant", block)) == [ToolCall("c", "unknown", "no such tool: sh ell")]


@pytest.mark.parametrize(
    ("said", "told", "kind"),
    [
        ("Look", {}, UserKind.HUMAN),
        ("Look", {"agentVisible": False, "userVisible": True}, UserKind.HUMAN),
        ("A summary", {"userVisible": False, "agentVisible": True}, UserKind.INJECTED),
        ("<info-msg>\nIt is late", {}, UserKind.INJECTED),
    ],
)
def test_only_what_a_human_asked_opens_a_turn(said: str, told: Record, kind: UserKind) -> None:
    assert payloads(message("user", authored.text(said), metadata=told)) == [User(said, kind)]


@pytest.mark.parametrize("kind", ["sub_agent", "scheduled", "hidden"])
def test_where_no_human_speaks_the_prompt_is_a_task(kind: str) -> None:
    state = LogState()
    list(goose.drafts({"$goose": "session", "session_type": kind, "parent_session_id": "p"}, state))
    assert payloads(message("user", authored.text("Look")), state=state) == [User("Look", UserKind.TASK)]
    assert (state.sessions[""].kind == "subagent") == (kind == "sub_agent")


def test_calls_of_one_response_are_one_step_though_they_are_in_two_messages(database: Path) -> None:
    index(database, [str(DATABASE)])
    found = contents(database)
    steps = [event[5] for event in found["events"] if event[0] == authored.MAIN and event[2] == 3]
    assert steps == [0, 0, 1, 2, 0], "of the two turns"
    thoughts = [text for uid, number, text, _ in found["texts"] if text.startswith(authored.PLAN)]
    assert len(thoughts) == 1


# --- tokens: the ledger, messages, totals ---


def made(tmp_path: Path, *, more: str = "") -> sqlite3.Connection:
    """The authored database in a folder of its own, open as Goose has it."""
    (tmp_path / "sessions").mkdir(exist_ok=True)
    connection = sqlite3.connect(tmp_path / "sessions" / "sessions.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    authored.fill(connection)
    connection.executescript(more)
    return connection


def tokens(database: Path, session: str = authored.MAIN) -> tuple[int, int, int]:
    """Responses, input and output of a session."""
    (row,) = [row for row in contents(database)["sessions"] if row[0] == session]
    return row[23], row[19], row[20]


ALL = (6, 13_230, 266)


def test_tokens_are_counted_once_though_two_tables_and_the_totals_have_them(tmp_path: Path, database: Path) -> None:
    with closing(made(tmp_path)):
        index(database, [str(tmp_path / "sessions")])
    assert tokens(database) == ALL


def test_cached_input_is_part_of_the_input_that_goose_counts() -> None:
    told = {"input_tokens": 1000, "output_tokens": 5, "cache_read_tokens": 700, "cache_write_tokens": 200, "cost": 0.25}
    (usage,) = payloads({"$goose": "usage", "row": 1, "model": "m", **told})
    assert usage == TokenUsage(None, "m", 100, 200, None, 700, 5, None, cost_usd=0.25)
    (usage,) = payloads({"$goose": "usage", "row": 1, "model": "m", **told, "total_tokens": 1012})
    assert isinstance(usage, TokenUsage) and (usage.output_tokens, usage.reasoning_tokens) == (12, 7)


def test_requests_that_no_message_has_count_as_well(tmp_path: Path, database: Path) -> None:
    columns = "session_id, created_timestamp, input_tokens, output_tokens, cost_source"
    with closing(made(tmp_path, more="DELETE FROM usage_ledger;")) as connection:
        index(database, [str(tmp_path / "sessions")])
        for row in (f"{ALL[1] + 900}, {ALL[2] + 9}, 'carried_forward'", "70, 7, NULL"):
            connection.execute(f"INSERT INTO usage_ledger ({columns}) VALUES ('{authored.MAIN}', 1, {row})")
        index(database, [])
    assert tokens(database) == (8, ALL[1] + 970, ALL[2] + 16)


@pytest.mark.parametrize("table", ["sessions", "usage_ledger"])
def test_figures_in_a_column_that_nobody_knows_are_noted(tmp_path: Path, database: Path, table: str) -> None:
    more = f"ALTER TABLE {table} ADD COLUMN audio_tokens INTEGER; UPDATE {table} SET audio_tokens = 7;"
    with closing(made(tmp_path, more=more)):
        index(database, [str(tmp_path / "sessions")])
    with closing(sqlite3.connect(database)) as connection:
        assert not_understood(connection, Among("all"))[0]


@pytest.mark.parametrize("first", ["messages", "usage_ledger"])
def test_a_request_counts_once_whichever_of_its_rows_comes_first(tmp_path: Path, database: Path, first: str) -> None:
    second = {"messages": "usage_ledger", "usage_ledger": "messages"}[first]
    with closing(made(tmp_path)) as connection:
        kept = {table: connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall() for table in (first, second)}
        for table in (first, second):
            connection.execute(f"DELETE FROM {table}")
        for table in (first, second):
            for row in kept[table]:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
                if row[0] % 2 or row == kept[table][-1]:
                    index(database, [str(tmp_path / "sessions")])
    assert tokens(database) == ALL


def test_tokens_of_a_session_older_than_the_ledger_are_its_totals(tmp_path: Path, database: Path) -> None:
    bare = "UPDATE messages SET metadata_json = NULL; "
    with closing(made(tmp_path, more=bare + "DELETE FROM usage_ledger;")) as connection:
        index(database, [str(tmp_path / "sessions")])
        assert tokens(database) == (1, *ALL[1:])
        authored.add(connection, 90, authored.MAIN, "user", "10:00:00", [authored.text("And?")], {})
        authored.add(connection, 91, authored.MAIN, "assistant", "10:00:09", [authored.text("No")], {"usage": (70, 7)})
        connection.execute(
            "UPDATE sessions SET accumulated_input_tokens = accumulated_input_tokens + 70, "
            "accumulated_output_tokens = accumulated_output_tokens + 7 WHERE id = ?", (authored.MAIN,)
        )  # fmt: skip
        index(database, [])
    assert tokens(database) == (2, ALL[1] + 70, ALL[2] + 7)


def test_tokens_without_a_ledger_are_those_of_the_messages(tmp_path: Path, database: Path) -> None:
    with closing(made(tmp_path, more="DROP TABLE usage_ledger;")):
        index(database, [str(tmp_path / "sessions")])
    assert tokens(database) == ALL


# --- incremental, and rewritten ---


def live(database: Path) -> dict[str, Any]:
    """What counts: the events that weren't replaced, in order, without the numbers of their turns, and the sums."""
    found = contents(database)
    texts = {(uid, number): text for uid, number, text, _ in found["texts"]}
    standing = [event for event in found["events"] if event[12] is None and event[2] != 5]
    return {
        "events": [
            (event[0], event[2], event[3], *event[6:8], event[9], texts[event[0], event[1]]) for event in standing
        ],
        "tokens": {row[0]: (row[19], row[20], row[21], row[23]) for row in found["sessions"]},
        "sessions": [(row[0], row[4], row[5], *row[7:12], *row[15:19]) for row in found["sessions"]],
    }


@pytest.mark.parametrize("step", [1, 2, 5])
def test_a_session_that_grows_gives_what_it_gives_at_once(tmp_path: Path, database: Path, step: int) -> None:
    with closing(made(tmp_path)) as connection:
        for table in ("messages", "usage_ledger"):
            connection.execute(f"DELETE FROM {table}")
        connection.execute("UPDATE sessions SET accumulated_input_tokens = NULL, accumulated_output_tokens = NULL")
        for number, said in enumerate(authored.CONVERSATION, 1):
            authored.add(connection, number, *said)
            if number % step == 0 or number == len(authored.CONVERSATION):
                index(database, [str(tmp_path / "sessions")])
        index(tmp_path / "fresh.sqlite3", [str(tmp_path / "sessions")])
    grown, fresh = contents(database), contents(tmp_path / "fresh.sqlite3")
    assert {**grown, "files": 0} == {**fresh, "files": 0}


def test_a_file_of_an_older_version_which_is_written_anew_at_each_message_stays_one_session(
    tmp_path: Path, database: Path
) -> None:
    log = tmp_path / "sessions" / LINES.name
    log.parent.mkdir()
    about, *messages = map(json.loads, LINES.read_text().splitlines())
    for count in range(1, len(messages) + 1):
        written = [about | {"message_count": count, "total_tokens": 100 * count}, *messages[:count]]
        fresh = log.with_name("fresh")
        fresh.write_text("".join(json.dumps(record) + "\n" for record in written))
        fresh.replace(log)
        index(database, [str(log.parent)])
    index(tmp_path / "fresh.sqlite3", [str(log.parent)])
    assert contents(database) == contents(tmp_path / "fresh.sqlite3")


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["append", "compact", "cut", "hide", "rename", "index"]), st.integers(1, 12)
    ),
    min_size=1,
    max_size=9,
)  # fmt: skip


def change(connection: sqlite3.Connection, way: str, number: int, serial: int) -> None:
    """Do something that Goose does to a conversation."""
    if way == "append":
        for role, told in (("user", {}), ("assistant", {"usage": (100 + serial, number)})):
            said = [authored.text(f"{role} {serial}")]
            authored.add(
                connection, 100 + 2 * serial + (role == "assistant"), authored.MAIN, role, "11:00:00", said, told
            )
    elif way == "compact":  # replace_conversation
        columns = "message_id, session_id, role, content_json, created_timestamp, timestamp, tokens, metadata_json"
        select = f"SELECT {columns} FROM messages WHERE session_id = ? ORDER BY id"
        kept = connection.execute(select, (authored.MAIN,)).fetchall()
        connection.execute("DELETE FROM messages WHERE session_id = ?", (authored.MAIN,))
        for row in kept[-number:]:
            connection.execute(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    elif way == "cut":
        connection.execute(
            "DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE session_id = ? AND id > "
            "(SELECT min(id) FROM messages WHERE session_id = ?) ORDER BY id DESC LIMIT ?)",
            (authored.MAIN, authored.MAIN, min(number, 5)),
        )
    elif way == "hide":
        connection.execute(
            "UPDATE messages SET metadata_json = json_set(metadata_json, '$.userVisible', json('false')) WHERE id = "
            "(SELECT max(id) FROM messages WHERE session_id = ? AND role = 'user')", (authored.MAIN,)
        )  # fmt: skip
    elif way == "rename":
        connection.execute("UPDATE sessions SET name = ?, updated_at = ?", (f"Name {serial}", str(serial)))


@settings(relaxed, max_examples=depth(5, 30))
@given(CHANGES)
def test_after_any_sequence_of_changes_the_index_says_what_a_fresh_one_says(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("goose")
    grown = folder / "grown.sqlite3"
    with closing(made(folder)) as connection:
        index(grown, [str(folder / "sessions")])
        for serial, (way, number) in enumerate([*changes, ("rename", 1)]):
            change(connection, way, number, serial)
            if way == "index" or number % 2:
                index(grown, [str(folder / "sessions")])
        index(folder / "fresh.sqlite3", [str(folder / "sessions")])
    ours, theirs = live(grown), live(folder / "fresh.sqlite3")
    assert ours["events"] == theirs["events"]
    assert ours["sessions"] == theirs["sessions"]
    assert ours["tokens"] == theirs["tokens"]


@pytest.mark.thorough
def test_of_a_long_conversation_that_is_rewritten_no_turn_stays(tmp_path: Path, database: Path) -> None:
    with closing(made(tmp_path)) as connection:
        for serial in range(300):
            change(connection, "append", 1, serial)
        index(database, [str(tmp_path / "sessions")])
        change(connection, "compact", 10, 300)
        change(connection, "rename", 1, 301)
        index(database, [])
        index(tmp_path / "fresh.sqlite3", [str(tmp_path / "sessions")])
    assert live(database)["events"] == live(tmp_path / "fresh.sqlite3")["events"]


def test_a_session_that_was_copied_counts_once(tmp_path: Path, database: Path) -> None:
    more = (
        "INSERT INTO sessions SELECT 'copy', 'Copy', description, session_type, working_dir, created_at, updated_at, "
        f"NULL, NULL, provider_name, model_config_json, NULL FROM sessions WHERE id = '{authored.MAIN}'; "
        "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) "
        f"SELECT message_id, 'copy', role, content_json, created_timestamp, '{{}}' FROM messages "
        f"WHERE session_id = '{authored.MAIN}' AND id < 8;"
    )
    with closing(made(tmp_path, more=more)) as connection:
        authored.add(connection, 99, "copy", "user", "12:00:00", [authored.text("And now otherwise")], {})
        index(database, [str(tmp_path / "sessions")])
    copy = next(row for row in contents(database)["sessions"] if row[0] == "copy")
    assert (copy[16], copy[17], copy[33], copy[34]) == (1, 0, 1, 3), "turns and calls, and those that are copies"


# --- the same session twice, other places, other schemas ---


def test_of_a_file_and_the_database_it_was_imported_into_the_database_is_read(tmp_path: Path, database: Path) -> None:
    with closing(made(tmp_path)):
        lines = tmp_path / "sessions" / f"{authored.MAIN}.jsonl"
        shutil.copy(LINES, lines)
        shutil.copy(LINES, tmp_path / "sessions" / "by-another-name.jsonl")
        index(database, [str(tmp_path / "sessions")])
    statuses = {Path(row[0]).name: row[1] for row in contents(database)["files"]}
    names = lines.name, "by-another-name.jsonl", authored.MAIN
    assert [statuses[name] for name in names] == ["duplicate", "log", "log"]


def test_a_schema_with_fewer_columns_yields_what_it_has(tmp_path: Path, database: Path) -> None:
    more = """
    CREATE TABLE kept AS SELECT id, session_id, role, content_json FROM messages; DROP TABLE messages;
    ALTER TABLE kept RENAME TO messages; DROP TABLE usage_ledger;
    CREATE TABLE named AS SELECT id, description FROM sessions; DROP TABLE sessions;
    ALTER TABLE named RENAME TO sessions;
    """
    with closing(made(tmp_path, more=more)):
        index(database, [str(tmp_path / "sessions")])
    found = contents(database)
    assert Counter(event[2] for event in found["events"] if event[0] == authored.MAIN)[3] == 5
    assert {event[3] for event in found["events"]} == {0} or {event[3] for event in found["events"]} == {None}


@pytest.mark.parametrize("more", ["DROP TABLE messages;", "ALTER TABLE messages RENAME COLUMN content_json TO body;"])
def test_another_schema_is_said_to_be_one_and_never_no_sessions(tmp_path: Path, database: Path, more: str) -> None:
    with closing(made(tmp_path)) as connection:
        index(database, [str(tmp_path / "sessions")])
        before = live(database)
        connection.executescript(more)
        index(database, [])
    reason = {Path(row[0]).name: row[2] for row in contents(database)["files"]}["sessions.db"]
    assert reason == "can't be read: its tables are not those of Goose's sessions"
    assert live(database) == before


STRANGE = [
    "",
    "[",
    "{}",
    "5",
    "null",
    "[1]",
    '[{"type": 5}]',
    '[]} {"role":"user"',
    "[" * 5000,
    b"\xff\x00",
    7,
    1e300,
    "[[]]",
]


@pytest.mark.parametrize("content", part(STRANGE, 0, 2), ids=str)
def test_a_strange_row_is_kept_and_costs_no_other_one(tmp_path: Path, database: Path, content: Any) -> None:
    with closing(made(tmp_path)) as connection:
        index(tmp_path / "whole.sqlite3", [str(tmp_path / "sessions")])
        connection.execute(
            "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) "
            "VALUES (?, ?, 'user', ?, ?, ?)", (content, authored.MAIN, content, content, content)
        )  # fmt: skip
        index(database, [str(tmp_path / "sessions")])
    lost = Counter(map(str, live(tmp_path / "whole.sqlite3")["events"])) - Counter(map(str, live(database)["events"]))
    assert not lost
    index(database, [])


@pytest.mark.parametrize("id", ["../../etc", "a/b", "", "x" * 300, "😀", 5, b"\x00"])
def test_a_session_with_a_strange_id_is_read(tmp_path: Path, database: Path, id: Any) -> None:
    with closing(made(tmp_path)) as connection:
        connection.execute("UPDATE messages SET session_id = ? WHERE session_id = ?", (id, authored.HELPER))
        index(database, [str(tmp_path / "sessions")])
        index(database, [])
    assert len(contents(database)["sessions"]) == 2
