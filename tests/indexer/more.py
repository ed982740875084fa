"""The real logs of further agents, and what was counted in them without agtrace (shared/logs_more)."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from agtrace_indexer.run import index

from tests.conftest import MORE_LOGS

needs_more = pytest.mark.skipif(not MORE_LOGS.is_dir(), reason="the folder of real logs (shared/logs_more) is not here")

_COUNTS = """
SELECT f.path, f.provider, f.records, f.unreadable_lines,
  count(*) FILTER (WHERE e.type = 3) AS tool_calls,
  count(*) FILTER (WHERE e.type = 4) AS results,
  count(*) FILTER (WHERE e.type = 4 AND e.outcome = 1) AS failed,
  count(*) FILTER (WHERE e.type = 4 AND e.outcome = 2) AS rejected,
  count(*) FILTER (WHERE e.type = 0 AND n.text = 'human') AS human,
  count(*) FILTER (WHERE e.type = 1) AS messages,
  count(*) FILTER (WHERE e.type = 2) AS thoughts,
  count(u.complete) AS responses,
  coalesce(sum(u.input_tokens), 0) AS input,
  coalesce(sum(u.output_tokens), 0) AS output,
  coalesce(sum(u.cache_read_tokens), 0) AS cache_read
FROM file f JOIN session s ON s.file_id = f.id JOIN event e ON e.session_id = s.id
LEFT JOIN token_usage u ON u.session_id = e.session_id AND u.event_index = e.event_index
LEFT JOIN name n ON n.id = e.name_id
WHERE f.status = 'log' AND e.superseded_by IS NULL GROUP BY f.id
"""
"""Types 0 to 4 are user texts, messages, thoughts, tool calls and results; outcomes 1 and 2 failed and rejected."""


class Counted(NamedTuple):
    """What the index holds of one log, copies included."""

    provider: str
    records: int
    unreadable_lines: int
    tool_calls: int
    results: int
    failed: int
    rejected: int
    human: int
    messages: int
    thoughts: int
    responses: int
    input: int
    output: int
    cache_read: int


def counted(database: Path, roots: list[Path]) -> dict[str, Counted]:
    """Index logs; return the figures of each by its path."""
    index(database, [str(root) for root in roots])
    with closing(sqlite3.connect(database)) as connection:
        return {path: Counted(*row) for path, *row in connection.execute(_COUNTS)}


def expected(provider: str) -> list[dict[str, str]]:
    """The rows of EXPECTED_MORE.csv for an agent: one a file, or one a session of a database."""
    with (MORE_LOGS / "EXPECTED_MORE.csv").open(encoding="utf-8", newline="") as table:
        return [row for row in csv.DictReader(table) if row["provider"] == provider]


def path_of(row: dict[str, str]) -> str:
    """Where a row's log is: for a session of a database, a path below the database."""
    return str(MORE_LOGS.parent / row["file"].replace("#", "/"))
