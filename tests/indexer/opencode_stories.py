"""Sessions of OpenCode's, written as it writes them: into a database, a tree of small files, an export."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START = 1_794_000_000_000

TABLES = """
CREATE TABLE IF NOT EXISTS project (id text PRIMARY KEY, worktree text NOT NULL);
CREATE TABLE IF NOT EXISTS session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, agent text, revert text,
  time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE IF NOT EXISTS message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL,
  seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS account (id text PRIMARY KEY, access_token text NOT NULL);
CREATE INDEX IF NOT EXISTS message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX IF NOT EXISTS part_message_id_id_idx ON part (message_id, id);
CREATE INDEX IF NOT EXISTS part_session_idx ON part (session_id);
"""
"""The tables of 1.18 that matter here, with the columns that matter."""


@dataclass
class Story:
    """A session with its messages, each with its parts."""

    session: dict[str, Any]
    messages: list[tuple[dict[str, Any], list[dict[str, Any]]]] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The session's id."""
        return str(self.session["id"])

    @property
    def export(self) -> dict[str, Any]:
        """What `opencode export` writes."""
        return {"info": self.session, "messages": [{"info": info, "parts": parts} for info, parts in self.messages]}

    def into_database(self, connection: sqlite3.Connection, *, at: int = START) -> None:
        """Write its rows, or overwrite those with the same ids."""
        told = self.session
        connection.execute(
            "INSERT OR REPLACE INTO session (id, project_id, parent_id, slug, directory, title, version, time_created, "
            "time_updated) VALUES (?, 'global', ?, 'calm-tide', ?, ?, ?, ?, ?)",
            (self.id, told.get("parentID"), told["directory"], told["title"], told["version"], START, at),
        )
        for info, parts in self.messages:
            put_message(connection, info, at=at)
            for part in parts:
                put_part(connection, part, at=at)

    def into_tree(self, storage: Path) -> None:
        """Write its small files."""
        write_json(storage / "session" / "p1" / f"{self.id}.json", self.session)
        for info, parts in self.messages:
            write_json(storage / "message" / self.id / f"{info['id']}.json", info)
            for part in parts:
                write_json(storage / "part" / info["id"] / f"{part['id']}.json", part)


def database(path: Path, mode: str = "WAL") -> sqlite3.Connection:
    """Open a database as OpenCode does, with its tables."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.executescript(TABLES)
    return connection


def put_message(connection: sqlite3.Connection, info: dict[str, Any], *, at: int = START) -> None:
    """Write the row of a message, whose ids are columns."""
    data = {key: value for key, value in info.items() if key not in ("id", "sessionID")}
    row = (info["id"], info["sessionID"], info["time"]["created"], at, as_written(data))
    change = "ON CONFLICT (id) DO UPDATE SET time_updated = excluded.time_updated, data = excluded.data"
    connection.execute(f"INSERT INTO message VALUES (?, ?, ?, ?, ?) {change}", row)


def put_part(connection: sqlite3.Connection, part: dict[str, Any], *, at: int = START) -> None:
    """Write the row of a part, whose ids are columns."""
    data = {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}
    row = (part["id"], part["messageID"], part["sessionID"], START, at, as_written(data))
    change = "ON CONFLICT (id) DO UPDATE SET time_updated = excluded.time_updated, data = excluded.data"
    connection.execute(f"INSERT INTO part VALUES (?, ?, ?, ?, ?, ?) {change}", row)


def as_written(value: Any) -> str:
    """JSON as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_json(path: Path, value: Any) -> None:
    """Write a small file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False))


# --- messages ---


def session(number: int = 1, **more: Any) -> dict[str, Any]:
    """The head of a session."""
    return {
        "id": f"ses_{number:04}abc", "slug": "calm-tide", "projectID": "global", "directory": "/srv/tidepool",
        "title": f"Tide tables {number}", "version": "1.2.24", "time": {"created": START, "updated": START}, **more,
    }  # fmt: skip


def user(number: int, *parts: dict[str, Any], of: int = 1, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A message of the human's, with its parts."""
    info = {"role": "user", "time": {"created": START + 1000 * number}, "agent": "build", **more}
    return _identified(info, number, of, parts)


def answer(
    number: int, *parts: dict[str, Any], of: int = 1, **more: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A message of the model's, with its parts."""
    info = {
        "role": "assistant", "parentID": "msg_0001abc", "mode": "build", "path": {"cwd": "/srv/tidepool", "root": "/"},
        "time": {"created": START + 1000 * number, "completed": START + 1000 * number + 900}, "modelID": "tide-1",
        "providerID": "moon", "cost": 0, "finish": "stop", "tokens": tokens(100, 10), **more,
    }  # fmt: skip
    return _identified(info, number, of, parts)


def _identified(
    info: dict[str, Any], number: int, of: int, parts: tuple[dict[str, Any], ...]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    own, held = f"msg_{of:02}{number:04}abc", f"ses_{of:04}abc"
    told = [
        {"id": f"prt_{of:02}{number:04}{place:03}abc", "sessionID": held, "messageID": own, **part}
        for place, part in enumerate(parts)
    ]
    return {"id": own, "sessionID": held, **info}, told


def tokens(given: int, said: int, thought: int = 0, *, read: int = 0, written: int = 0, **more: int) -> dict[str, Any]:
    """The figures of a response."""
    return {"input": given, "output": said, "reasoning": thought, "cache": {"read": read, "write": written}, **more}


def text(said: str, **more: Any) -> dict[str, Any]:
    """A text."""
    return {"type": "text", "text": said, **more}


def tool(name: str, status: str = "completed", call: str = "call_1", **state: Any) -> dict[str, Any]:
    """An execution of a tool."""
    given = {"status": status, "input": {"command": "make tides"}, "time": {"start": START + 100, "end": START + 350}}
    return {"type": "tool", "tool": name, "callID": call, "state": {**given, **state}}


def tidal() -> Story:
    """A session with something of everything."""
    return Story(
        session(),
        [
            user(1, text("Mend the tide gauge"), text("Called the Read tool with …", synthetic=True)),
            answer(
                2,
                {"type": "step-start", "snapshot": "ab12"},
                {"type": "reasoning", "text": "The moon pulls.", "time": {"start": START + 2100, "end": START + 2200}},
                text("I look at the gauge.", time={"start": START + 2300, "end": START + 2400}),
                tool("bash", output="gauge.py:3: high water", metadata={"exit": 1}),
                tool("read", call="call_2", input={"filePath": "/srv/tidepool/gauge.py"}, output="a = 1"),
                {"type": "patch", "hash": "cd34", "files": ["/srv/tidepool/gauge.py"]},
                {"type": "step-finish", "reason": "tool-calls", "cost": 0, "tokens": tokens(100, 10)},
            ),
            answer(3, text("The gauge is mended.", time={"start": START + 3100}), tokens=tokens(200, 20, 5, total=225)),
            user(4, text("And the moon?")),
            answer(5, tool("task", "running", "call_3", metadata={"sessionId": "ses_0002abc"}), tokens=tokens(0, 0)),
        ],
    )
