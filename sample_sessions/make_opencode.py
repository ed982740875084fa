"""Write the sample sessions of OpenCode: a database with a session and its sub-agent, and an older tree of small files.

    python sample_sessions/make_opencode.py

writes `opencode/opencode.db` and `opencode/storage` beside this file, and nothing else. The result depends only on this
file: ids and times are invented. The tables are those of 1.18 that hold conversations, with the columns that matter.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent / "opencode"
ROOT = "/home/mira/projects/tidepool"

TABLES = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, time_created integer, time_updated integer);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, revert text, agent text,
  time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
"""

Json = dict[str, Any]


class Session:
    """A session that is being told: each message and part comes a while after the one before."""

    def __init__(self, name: str, at: datetime, title: str, version: str, parent: str | None = None) -> None:
        self.clock = int(at.timestamp() * 1000)
        self._count = 0
        self.id = f"ses_{name:0<12}TidepoolSample"
        self.head = {
            "id": self.id, "slug": "quiet-estuary", "projectID": "9f3c2a17", "directory": ROOT, "title": title,
            "version": version, "time": {"created": self.clock, "updated": self.clock},
        }  # fmt: skip
        if parent:
            self.head["parentID"] = parent
        self.messages: list[tuple[Json, list[Json]]] = []
        self._asked = ""

    def ask(self, *parts: Json) -> None:
        """A message of the human's."""
        self._asked = self._add({"role": "user", "time": {"created": self._later(2_000)}, "agent": "build"}, parts)

    def answer(self, *parts: Json, tokens: Json | None, model: str = "tern-2-large", **more: Any) -> None:
        """A message of the model's; without tokens it isn't finished."""
        created = self._later(3_000)
        step = [] if tokens is None else [{"type": "step-finish", "reason": "stop", "cost": 0, "tokens": tokens}]
        held = [{"type": "step-start", "snapshot": "4b825dc642cb6eb9"}, *(self._timed(part) for part in parts), *step]
        time = {"created": created} | ({} if tokens is None else {"completed": self._later(400)})
        info = {
            "role": "assistant", "parentID": self._asked, "mode": "build", "agent": "build",
            "path": {"cwd": ROOT, "root": ROOT}, "modelID": model, "providerID": "seabird", "cost": 0,
            "tokens": tokens or figures(0, 0), "time": time, **more,
        }  # fmt: skip
        self._add(info, held)

    def _timed(self, part: Json) -> Json:
        start, end = self._later(700), self._later(1_300)
        if part["type"] == "tool":
            return {**part, "state": {**part["state"], "time": {"start": start, "end": end}}}
        return {**part, "time": {"start": start, "end": end}}

    def _add(self, info: Json, parts: tuple[Json, ...] | list[Json]) -> str:
        own = self._id("msg")
        told = [{"id": self._id("prt"), "sessionID": self.id, "messageID": own, **part} for part in parts]
        self.messages.append(({"id": own, "sessionID": self.id, **info}, told))
        self.head["time"]["updated"] = self._later(100)  # type: ignore[index]
        return own

    def _id(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{(self.clock * 4096 + self._count) % 16**12:012x}{self._count:03}Sample00000"

    def _later(self, milliseconds: int) -> int:
        self.clock += milliseconds
        return self.clock


def text(said: str, **more: Any) -> Json:
    """A text."""
    return {"type": "text", "text": said, **more}


def tool(name: str, call: str, given: Json, output: str = "", **state: Any) -> Json:
    """An execution that was completed, unless its state says something else."""
    told = {"status": "completed", "input": given, "output": output, "title": name, "metadata": {}, **state}
    return {"type": "tool", "tool": name, "callID": f"call_{call}", "state": told}


def figures(given: int, said: int, thought: int = 0, read: int = 0) -> Json:
    """The figures of a response: since 1.4 the output excludes reasoning."""
    cache = {"read": read, "write": 0}
    return {
        "total": given + said + thought + read,
        "input": given,
        "output": said,
        "reasoning": thought,
        "cache": cache,
    }


def tide_gate() -> tuple[Session, Session]:
    """30 October: the tide gate test hangs. The second session is the sub-agent's."""
    told = Session("0311aa", datetime(2026, 10, 30, 9, 0, 0, tzinfo=UTC), "Tide gate test hangs", "1.18.4")
    child = Session(
        "0310bb", datetime(2026, 10, 30, 9, 2, 0, tzinfo=UTC), "Find every sleep (@explore subagent)", "1.18.4",
        parent=told.id,
    )  # fmt: skip
    told.ask(
        text("The tide gate test hangs on CI. Find out why. See @tests/test_gate.py"),
        text('Called the Read tool with the following input: {"filePath":"tests/test_gate.py"}', synthetic=True),
        {
            "type": "file",
            "mime": "text/plain",
            "filename": "tests/test_gate.py",
            "url": f"file://{ROOT}/tests/test_gate.py",
        },
    )
    told.answer(
        {"type": "reasoning", "text": "The gate waits for the tide; I run the test once with a limit."},
        text("I'll run it with a time limit first."),
        tool(
            "bash", "gate1", {"command": "timeout 20 pytest -x -q tests/test_gate.py", "description": "Run it"},
            "tests/test_gate.py F\nE   TimeoutError: the gate did not open within 5 s\n1 failed in 5.31s\n",
            metadata={"exit": 1, "truncated": False},
        ),
        tool("read", "gate2", {"filePath": f"{ROOT}/tidepool/gates.py"}, status="error", error="File not found"),
        tokens=figures(9_120, 140, 60), finish="tool-calls",
    )  # fmt: skip
    told.answer(
        tool(
            "task", "gate3",
            {"description": "Find every sleep", "prompt": "List each time.sleep in tests/",
             "subagent_type": "explore"},
            f'<task id="{child.id}" state="completed">\n<task_result>\ntests/test_gate.py:14 sleeps 5 s\n',
            metadata={"sessionId": child.id},
        ),
        tokens=figures(310, 85, 0, 9_000), finish="tool-calls",
    )  # fmt: skip
    child.ask(text("List each time.sleep in tests/"))
    child.answer(
        tool("grep", "sub1", {"pattern": "time.sleep", "path": "tests"}, "tests/test_gate.py:14: time.sleep(5)"),
        text("tests/test_gate.py:14 sleeps 5 s"), tokens=figures(2_400, 50), model="tern-2-small",
    )  # fmt: skip
    told.answer(
        tool(
            "edit", "gate4",
            {"filePath": f"{ROOT}/tests/test_gate.py", "oldString": "time.sleep(5)", "newString": "clock.advance(5)"},
            status="error", error="The user rejected permission to use this specific tool call.",
        ),
        tokens=figures(120, 44, 0, 9_500), finish="tool-calls",
    )  # fmt: skip
    told.ask(text("Leave the test alone, the gate itself has to take a clock. 潮の時計 🐟"))
    told.answer(
        tool(
            "apply_patch", "gate5",
            {"patchText": "*** Begin Patch\n*** Update File: tidepool/gate.py\n@@\n-def wait():\n+def wait(clock):"},
            "Success. Updated tidepool/gate.py",
        ),
        tool("bash", "gate6", {"command": "pytest -q tests/test_gate.py"}, "1 passed in 0.04s\n", metadata={"exit": 0}),
        {"type": "patch", "hash": "77aa01", "files": [f"{ROOT}/tidepool/gate.py"]},
        text("The gate now takes a clock, and the test passes in 0.04 s."),
        tokens=figures(260, 190, 30, 9_900), finish="stop",
    )  # fmt: skip
    told.ask({"type": "compaction", "auto": False})
    told.answer(
        text("The gate test hung because the gate slept; it takes a clock now."),
        tokens=figures(10_400, 70), summary=True, mode="compaction", finish="stop",
    )  # fmt: skip
    told.ask(text("Now run everything"))
    told.answer(
        tool("bash", "gate7", {"command": "pytest -q"}, status="running", output="", metadata={"output": "...."}),
        tokens=None,
    )
    return told, child


def chart() -> Session:
    """8 September: a session in small files, as before 1.2; its figures have no total."""
    told = Session("0422cc", datetime(2026, 9, 8, 15, 30, 0, tzinfo=UTC), "Depth axis of the chart", "1.1.51")
    told.ask(text("Why is the depth axis upside down?"))
    bare = {"input": 5_100, "output": 220, "reasoning": 40, "cache": {"read": 0, "write": 0}}
    told.answer(
        tool("grep", "axis1", {"pattern": "invert", "path": "lanternfish"}, "lanternfish/axis.py:9: invert = True"),
        text("`invert` is set twice, so it cancels out."), tokens=bare, finish="stop",
    )  # fmt: skip
    return told


def write_database(path: Path, sessions: tuple[Session, ...]) -> None:
    """Write a database as OpenCode leaves it when it ends."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size=1024")
        connection.executescript(TABLES)
        for session in sessions:
            head = session.head
            connection.execute(
                "INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?, ?)",
                (*(head.get(name) for name in ("id", "projectID", "parentID", "slug", "directory", "title", "version")),
                 *head["time"].values()),  # type: ignore[attr-defined]
            )  # fmt: skip
            for info, parts in session.messages:
                own = (info["id"], session.id, info["time"]["created"], session.clock, _data(info))
                connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", own)
                for part in parts:
                    row = (part["id"], info["id"], session.id, info["time"]["created"], session.clock, _data(part))
                    connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute("VACUUM")


def _data(value: Json) -> str:
    kept = {key: told for key, told in value.items() if key not in ("id", "sessionID", "messageID")}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def write_tree(storage: Path, session: Session) -> None:
    """Write the small files of a session."""
    _write(storage / "session" / "9f3c2a17" / f"{session.id}.json", session.head)
    for info, parts in session.messages:
        _write(storage / "message" / session.id / f"{info['id']}.json", info)
        for part in parts:
            _write(storage / "part" / info["id"] / f"{part['id']}.json", part)


def _write(path: Path, value: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir()
    write_database(HOME / "opencode.db", tide_gate())
    write_tree(HOME / "storage", chart())
