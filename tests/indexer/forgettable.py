"""Logs of the three agents with one word wherever a log can have a text, to be forgotten without a trace."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import zstandard
from agtrace_indexer import forget as forgetting
from agtrace_indexer.index.catalog import Catalog

from tests.agtrace.asking import ClaudeLog, claude_log

WORD = "wombat"
"""The word that must not be found anywhere: it ends every marker."""

CLAUDE = "3c9e7a10-5b7d-4d6e-8a61-2f1de9b6c001"
CODEX = "019e4c1f-77aa-7c10-9b3e-54d1c2e8f002"
GEMINI = "7d21f0c4-9a3b-4e58-b6d2-8f3c5a7e9003"
AGENT = "agent-5f2c8e71"
TWIN = "e4a7c2b8-1d6f-4f3a-a9e0-6c8b2d5f1005"
STAYS = "b1d0c3e5-2f47-4a98-9c6b-7e8f1a2d3004"
SESSIONS = (CLAUDE, CODEX, GEMINI, TWIN)
IDS = (*SESSIONS, AGENT)

PLACES = (
    "prompt", "thought", "answer", "argument", "output", "title", "cwd", "file", "branch", "tool", "inline", "unknown",
    "unreadable", "task", "description", "spilled", "rollout", "shelled", "document", "called", "directory",
)  # fmt: skip

_MAGIC = b"\x28\xb5\x2f\xfd"
_MOST = 1 << 20


def marker(place: str) -> str:
    """Return the word for one place."""
    return f"{place}{WORD}"


def write(home: Path) -> None:
    """Write the logs below a home: for each agent, a session with the word everywhere, and one without it."""
    _claude(home)
    _codex(home)
    _gemini(home)
    claude_log(home / "claude", STAYS).prompt("Where is the tide table?").say("In docs/tides.md.")


def _claude(home: Path) -> None:
    folder = home / "claude" / "projects" / f"-home-{marker('cwd')}"
    log = ClaudeLog(folder / f"{CLAUDE}.jsonl", CLAUDE, cwd=f"/home/{marker('cwd')}")
    log.write("user", f"Find the {marker('prompt')}.", gitBranch=marker("branch"))
    log.write("assistant", [{"type": "thinking", "thinking": f"Where may {marker('thought')} be?", "signature": "s"}])
    log.call("Bash", {"command": f"grep {marker('argument')}"}, f"{marker('output')}\n" * 3)
    log.call(f"mcp__{marker('tool')}__find", {"file_path": f"/home/{marker('file')}.py"}, "done")
    log.write("user", marker("inline"), isSidechain=True, parentUuid=None).say(f"It is {marker('answer')}.")
    log.raw({"type": "ai-title", "sessionId": CLAUDE, "aiTitle": marker("title")})
    log.raw({"type": marker("unknown"), "sessionId": CLAUDE, "said": marker("unknown")})
    with log.path.open("a") as file:
        file.write(f"{{no json {marker('unreadable')}\n")
    beside = folder / CLAUDE
    agent = ClaudeLog(beside / "subagents" / f"{AGENT}.jsonl", CLAUDE, cwd=f"/home/{marker('cwd')}")
    agent.write("user", marker("task"), isSidechain=True, agentId=AGENT.removeprefix("agent-"))
    described = {"agentType": "Explore", "description": marker("description")}
    agent.path.with_suffix(".meta.json").write_text(json.dumps(described))
    (beside / "tool-results").mkdir()
    (beside / "tool-results" / f"{marker('spilled')}.txt").write_text("a long output")


def _codex(home: Path) -> None:
    records: list[tuple[str, dict[str, Any]]] = [
        ("session_meta", {"id": CODEX, "cwd": f"/home/{marker('directory')}", "cli_version": "0.139.0"}),
        ("response_item", _said("user", marker("rollout"))),
        ("response_item", {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}),
        ("response_item", {"type": "function_call_output", "call_id": "c", "output": marker("shelled")}),
    ]
    times = (f"2026-09-02T08:12:4{second}.000Z" for second in range(9))
    lines = [
        json.dumps({"timestamp": time, "type": kind, "payload": payload})
        for time, (kind, payload) in zip(times, records, strict=False)
    ]
    path = home / "codex" / "sessions" / "2026" / "09" / "02" / f"rollout-2026-09-02T08-12-40-{CODEX}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines) + "\n")
    path.with_suffix(".jsonl.zst").write_bytes(zstandard.compress(path.read_bytes()))  # its second form


def _said(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def _gemini(home: Path) -> None:
    head = {"sessionId": GEMINI, "projectHash": sha256(b"/home/tidepool").hexdigest(), "summary": marker("title")}
    call = {"id": "c", "name": "read_file", "args": {"path": marker("called")}, "status": "success", "result": []}
    messages = [
        {"id": "m1", "timestamp": "2026-09-02T08:12:40.000Z", "type": "user", "content": marker("document")},
        {"id": "m2", "timestamp": "2026-09-02T08:12:41.000Z", "type": "gemini", "content": "", "toolCalls": [call]},
    ]
    folder = home / "gemini" / "tmp" / WORD / "chats"
    folder.mkdir(parents=True)
    (folder / f"session-{GEMINI[:8]}.json").write_text(json.dumps(head | {"messages": messages}))
    twin = head | {"sessionId": TWIN}
    (folder / f"session-{TWIN[:8]}.json").write_text(json.dumps(twin | {"messages": messages[:1]}))
    (folder / f"session-{TWIN[:8]}.jsonl").write_text(
        "".join(f"{json.dumps(record)}\n" for record in (twin, *messages))
    )


def found_in(folder: Path, *texts: str) -> set[str]:
    """Return the texts that are in the files of a folder: in bytes, in zstd frames, in values of tables."""
    wanted = {text: text.lower().encode() for text in texts}
    found: set[str] = set()
    for piece in _pieces(folder):
        lower = piece.lower()
        found |= {text for text, data in wanted.items() if data in lower}
    return found


def _pieces(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.rglob("*")):
        yield str(path.relative_to(folder)).encode()
        if path.is_file():
            data = path.read_bytes()
            yield data
            yield from _unpacked(data)
            if data.startswith(b"SQLite format 3\0"):
                yield from _values(path)


def _values(path: Path) -> Iterator[bytes]:
    """Yield every value of every table, unchanged and decompressed: in the file, long ones span several pages."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'"
        for (table,) in connection.execute(tables).fetchall():
            for row in connection.execute(f"SELECT * FROM [{table.decode()}]"):
                for value in row:
                    if isinstance(value, bytes):
                        yield value
                        yield from _unpacked(value)


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Yield the readable contents of the zstd frames in some bytes."""
    at = data.find(_MAGIC)
    while at >= 0:
        with suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(data[at : at + _MOST])
        at = data.find(_MAGIC, at + 1)


def killed_at(statement: int, database: Path, gone: set[str]) -> bool:
    """Forget in a process that is killed before its n-th SQL statement; return whether it got that far."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    try:
        left = iter(range(statement))

        def count(_: str) -> None:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        class Counted(Catalog):
            def __init__(self, path: Path) -> None:
                super().__init__(path)
                self.connection.set_trace_callback(count)

        forgetting.Catalog = Counted  # type: ignore[misc]
        forgetting.forget(database, gone, now=time.time())
    finally:
        os._exit(0)
