"""An index with archived sessions, ways to damage it, and what must hold for its answers afterwards."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agtrace_indexer.index.maintenance import optimize
from agtrace_indexer.logs.discovery import ARCHIVE
from agtrace_indexer.redact import COMPILED_FILE
from agtrace_indexer.run import index

from agtrace.answers.service import Service
from agtrace.settings.model import Settings
from tests.conftest import SAMPLES

PAGE = 4096
LARGE = "d41f7a52-6c0e-4b8e-9a37-2f5e81c0b944"
ARCHIVED = "5be1c2d7-90f4-4a61-b1c8-7d20e6a4f315"

_DELETED = (f"{ARCHIVED}.jsonl", "rollout-2026-09-14T16*.jsonl", "session-*ccde789b.json", "agent-c41d9be7.jsonl")

QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_sessions", {}),
    ("search_event_previews", {"order": "newest", "query": "database is locked"}),
    ("search_event_previews", {"query": "tide", "group_by": "session"}),
    ("get_session_details", {"session_id": LARGE, "detail_level": "full"}),
    ("get_session_details", {"session_id": ARCHIVED, "detail_level": "turns"}),
    ("get_event_details", {"session_id": ARCHIVED, "event_index": 3}),
    ("analyze_session", {"session_id": LARGE}),
    ("get_project_info", {}),
    ("run_sql", {"sql": "SELECT tool, count(*) FROM tool_calls GROUP BY 1"}),
    ("get_reasoning_chain", {"session_id": LARGE}),
    ("compare_sessions", {"id1": LARGE, "id2": ARCHIVED}),
    ("read_artifact", {"ref": f"ax://session/{ARCHIVED}"}),
)


@dataclass(frozen=True)
class Undisturbed:
    """Logs of three agents, some of them deleted since, and their index."""

    logs: Path
    data: Path

    @classmethod
    def make(cls, folder: Path, *, lines: int | None = None) -> Undisturbed:
        """Index the samples (of the large one so many lines, if that is given), delete some logs, index again."""
        logs, database = folder / "logs", folder / "data" / "index.sqlite3"
        shutil.copytree(SAMPLES, logs, ignore=shutil.ignore_patterns("*.py", "*.sh", "*.md"))
        large = next(logs.rglob(f"{LARGE}.jsonl"))
        large.write_bytes(b"".join(large.read_bytes().splitlines(keepends=True)[:lines]))
        index(database, [str(logs)])
        for name in _DELETED:
            next(logs.rglob(name)).unlink()
        index(database, ())
        optimize(database)
        return cls(logs, database.parent)

    @property
    def database(self) -> Path:
        """The index."""
        return self.data / "index.sqlite3"

    @property
    def pages(self) -> int:
        """The number of pages of the index."""
        return self.database.stat().st_size // PAGE

    def copy(self, folder: Path) -> Path:
        """Make a data folder with a copy of the index, the archive and the compiled rules; return the copy."""
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.name not in (COMPILED_FILE, ARCHIVE):
                path.unlink()
        shutil.copy(self.database, folder / "index.sqlite3")
        shutil.copytree(self.data / ARCHIVE, folder / ARCHIVE, dirs_exist_ok=True)
        return folder / "index.sqlite3"


# -- damaging --------------------------------------------------------------------------------------


def overwrite_page(database: Path, number: int, seed: int = 0) -> None:
    """Replace a page with random bytes; 1 is the first one."""
    write(database, (number - 1) * PAGE, random.Random(seed + number).randbytes(PAGE))


def write(database: Path, at: int, data: bytes) -> None:
    """Write bytes into a file."""
    with database.open("r+b") as file:
        file.seek(at)
        file.write(data)


def truncate(database: Path, size: int) -> None:
    """Truncate a file."""
    with database.open("r+b") as file:
        file.truncate(size)


def run_sql(database: Path, *statements: str) -> None:
    """Let SQLite do the damage."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=1")
        for statement in statements:
            connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def flip(connection: sqlite3.Connection, table: str, column: str, *, as_blob: bool) -> None:
    """Change the first byte of the last value of a column: a text is no UTF-8 then, a number another one, or a blob."""
    connection.create_function("flipped", 1, lambda value: value and bytes([value[0] ^ 0x80, *value[1:]]))
    bits = f"flipped(CAST({column} AS BLOB))"
    number = "x'ff'" if as_blob else f"{column} + 1"
    with suppress(sqlite3.IntegrityError):  # a row's id can be nothing but a number
        connection.execute(
            f"UPDATE OR IGNORE {table} SET {column} = CASE typeof({column}) WHEN 'text' THEN CAST({bits} AS TEXT) "
            f"WHEN 'blob' THEN {bits} ELSE {number} END WHERE {column} IS (SELECT max({column}) FROM {table})"
        )


# -- asking ----------------------------------------------------------------------------------------


def ask(database: Path) -> dict[int, dict[str, Any]]:
    """Return the answers to all questions, by their number; a defect of agtrace fails the test."""
    noted: list[Any] = []
    settings = Settings(data_dir=database.parent, environment={"HOME": str(database.parent / "nobody")})
    answers = Service(settings, log=noted.append, refresh_seconds=20)
    given = {number: answers.ask(name, arguments).value for number, (name, arguments) in enumerate(QUESTIONS)}
    assert [one["trace"] for one in noted if one["event"] == "internal_error"] == []
    return given


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two answers are the same apart from cursors, which contain a time, and the freshness of the index."""
    return _told(one) == _told(other)


def _told(answer: dict[str, Any]) -> str:
    return json.dumps({key: answer.get(key) for key in ("success", "data")}, sort_keys=True)


def is_clear_error(answer: dict[str, Any]) -> bool:
    """Whether an answer says that the index is damaged, and what to do."""
    return (
        not answer["success"]
        and answer["error"]["code"] == "index_unavailable"
        and "agtrace doctor --repair" in answer["hint"]
    )
