"""Writes the sample sessions of Goose: a database as 1.45 keeps it, and a file as it was before 1.10.

    python sample_sessions/make_goose.py

The same run gives the same bytes of rows.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "goose" / "sessions"
TABLES = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
  session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL, created_at TIMESTAMP, updated_at TIMESTAMP,
  accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER, provider_name TEXT, model_config_json TEXT,
  parent_session_id TEXT
);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL REFERENCES sessions(id),
  role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP,
  tokens INTEGER, metadata_json TEXT
);
CREATE TABLE usage_ledger (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER NOT NULL, model TEXT,
  input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER,
  cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0
);
INSERT INTO schema_version VALUES (15, '2026-10-29 08:00:00');
"""
MODEL = "qwen3:8b"
MAIN, HELPER, OLD = "20261029_1", "20261029_2", "20260918_101500"

Block = dict[str, Any]


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def thoughts(said: str) -> list[Block]:
    """A thought as it is streamed: a block for each word."""
    return [{"type": "thinking", "thinking": word + " ", "signature": ""} for word in said.split(" ")]


def call(id: str, name: str, **arguments: Any) -> Block:
    return {
        "type": "toolRequest",
        "id": id,
        "toolCall": {"status": "success", "value": {"name": name, "arguments": arguments}},
    }


def back(id: str, said: str, *, failed: bool = False) -> Block:
    value = {"content": [text(said)], "isError": failed}
    return {"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": value}}


def refused(id: str, why: str) -> Block:
    return {"type": "toolResponse", "id": id, "toolResult": {"status": "error", "error": why}}


ASKED = "Which buoy drifts? Check the log of positions and write its name into drifting.txt"
PLAN = "The log has one line for each buoy and hour so I compare the first and the last of each"
DECLINED = "The user has declined to run this tool. DO NOT attempt to call this tool again."

FAILURE = "ValueError: position 7 of buoy Oyster is empty"
UNKNOWN = "-32002: Tool 'read' not found. Available tools: [write, edit, shell]"
TASK = "Find out why position 7 of Oyster is missing"
REASON = "The receiver was off from 06:00 to 07:00."

CONVERSATION: list[tuple[str, str, str, list[Block], dict[str, Any]]] = [
    (MAIN, "user", "09:00:00", [text(ASKED)], {}),
    (
        MAIN, "assistant", "09:00:09", [*thoughts(PLAN), call("call_1", "shell", command="python -m buoys.drift")],
        {"usage": (1840, 96)},
    ),
    (MAIN, "user", "09:00:11", [back("call_1", FAILURE, failed=True)], {}),
    (MAIN, "assistant", "09:00:09", [*thoughts(PLAN), call("call_2", "read", source="positions.csv")], {}),
    (MAIN, "user", "09:00:12", [refused("call_2", UNKNOWN)], {}),
    (
        MAIN, "assistant", "09:00:25", [call("call_3", "shell", command="grep -n Oyster positions.csv")],
        {"usage": (2010, 41)},
    ),
    (MAIN, "user", "09:00:26", [back("call_3", "7:Oyster,,\n31:Oyster,54.51,8.62\n")], {}),
    (
        MAIN, "assistant", "09:00:40", [call("call_4", "write", path="drifting.txt", content="Oyster\n")],
        {"usage": (2160, 38)},
    ),
    (MAIN, "user", "09:01:30", [refused("call_4", DECLINED)], {}),
    (
        MAIN, "assistant", "09:01:40", [text("Oyster drifts; its 7th position is missing. I wrote nothing.")],
        {"usage": (2290, 27)},
    ),
    (MAIN, "user", "09:03:00", [text("<info-msg>\nIt is 2026-10-29 09:03:00\n</info-msg>")], {"userVisible": False}),
    (MAIN, "user", "09:03:00", [text("Ask somebody else why it is missing. 浮标 🛟")], {}),
    (MAIN, "assistant", "09:03:08", [call("call_5", "delegate", instructions=TASK)], {"usage": (2400, 52)}),
    (HELPER, "user", "09:03:09", [text(TASK)], {}),
    (HELPER, "assistant", "09:03:14", [call("call_6", "shell", command="cat receiver.log")], {"usage": (610, 18)}),
    (HELPER, "user", "09:03:14", [back("call_6", "06:00 off\n07:00 on\n")], {}),
    (HELPER, "assistant", "09:03:20", [text(REASON)], {"usage": (640, 16)}),
    (MAIN, "user", "09:03:21", [back("call_5", REASON)], {}),
    (
        MAIN, "assistant", "09:03:30", [{"type": "chart", "data": "an invented block"}, text("The receiver was off.")],
        {"usage": (2530, 12)},
    ),
]  # fmt: skip
"""Session, role, time, blocks, and metadata of each message, in which `usage` is input and output."""


LISTED = {"status": "success", "value": [text("Limpet\nOyster\n")]}
"""A result as it was before 1.10: a list, without whether it failed."""


def seconds(time: str, day: str = "2026-10-29") -> int:
    return int(datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC).timestamp())


def fill(connection: sqlite3.Connection) -> None:
    """Write the tables and the sessions."""
    connection.executescript(TABLES)
    config = json.dumps({"model_name": MODEL})
    for session, name, kind, parent in (
        (MAIN, "The buoy that drifts", "user", None),
        (HELPER, TASK, "sub_agent", MAIN),
    ):
        figures = [told["usage"] for of, _, _, _, told in CONVERSATION if of == session and "usage" in told]
        sums = [sum(column) for column in zip(*figures, strict=True)]
        connection.execute(
            "INSERT INTO sessions VALUES (?, ?, '', ?, '/home/mira/projects/tidepool', '2026-10-29 09:00:00', "
            "'2026-10-29 09:03:30', ?, ?, 'ollama', ?, ?)",
            (session, name, kind, *sums, config, parent),
        )
    for number, message in enumerate(CONVERSATION, 1):
        add(connection, number, *message)


def add(
    connection: sqlite3.Connection,
    number: int,
    session: str,
    role: str,
    time: str,
    blocks: list[Block],
    told: dict[str, Any],
) -> None:
    """Write one message, and the tokens of its request if it has some."""
    metadata: dict[str, Any] = {"userVisible": told.get("userVisible", True), "agentVisible": True}
    if "usage" in told:
        sent, made = told["usage"]
        metadata["usage"] = {"inputTokens": sent, "outputTokens": made, "totalTokens": sent + made}
        connection.execute(
            "INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens, output_tokens, "
            "total_tokens) VALUES (?, ?, ?, ?, ?, ?)",
            (session, seconds(time), MODEL, sent, made, sent + made),
        )
    named = f"chatcmpl-{number}" if "usage" in told else f"msg_buoy-{number}"
    content = json.dumps(blocks, ensure_ascii=False)
    connection.execute(
        "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, "
        "metadata_json) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (named, session, role, content, seconds(time), f"2026-10-29 {time}", json.dumps(metadata)),
    )


def old_lines() -> list[dict[str, Any]]:
    """Return the lines of a session as files had them until 1.10."""
    day = "2026-09-18"
    return [
        {"working_dir": "/home/mira/projects/tidepool", "description": "Names of buoys", "schedule_id": None,
         "message_count": 4, "total_tokens": 980, "input_tokens": 930, "output_tokens": 50,
         "accumulated_total_tokens": 1810, "accumulated_input_tokens": 1720, "accumulated_output_tokens": 90},
        {"id": None, "role": "user", "created": seconds("10:15:02", day), "content": [text("List the buoys")]},
        {"role": "assistant", "created": seconds("10:15:06", day),
         "content": [call("toolu_1", "developer__shell", command="cut -d, -f1 positions.csv | sort -u")]},
        {"role": "user", "created": seconds("10:15:07", day),
         "content": [{**back("toolu_1", ""), "toolResult": LISTED}]},
        {"role": "assistant", "created": seconds("10:15:10", day), "content": [text("Limpet and Oyster.")]},
    ]  # fmt: skip


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    database = FOLDER / "sessions.db"
    database.unlink(missing_ok=True)
    with closing(sqlite3.connect(database)) as connection:
        fill(connection)
        connection.commit()
    lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in old_lines())
    (FOLDER / f"{OLD}.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
