"""Real logs of the agents beyond the first three, and what was counted in them without agtrace."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from agtrace_indexer.run import index

from tests.conftest import LOGS

MORE = LOGS.with_name("logs_more")

needs_more_logs = pytest.mark.skipif(
    not (LOGS.is_dir() and MORE.is_dir()),
    reason="the folders of real logs (shared/logs, shared/logs_more) are not here",
)

_COUNTS = """
SELECT f.path, f.provider, f.records, f.unreadable_lines,
  (SELECT count(*) FROM event e JOIN session s ON s.id = e.session_id
    WHERE s.file_id = f.id AND e.type = 3 AND e.superseded_by IS NULL),
  (SELECT count(*) FROM event e JOIN session s ON s.id = e.session_id
    WHERE s.file_id = f.id AND e.type = 4 AND e.superseded_by IS NULL AND e.outcome = 1),
  (SELECT count(*) FROM event e JOIN session s ON s.id = e.session_id JOIN name n ON n.id = e.name_id
    WHERE s.file_id = f.id AND e.type = 0 AND e.superseded_by IS NULL AND n.text = 'human'),
  (SELECT count(u.output_tokens) FROM token_usage u JOIN session s ON s.id = u.session_id WHERE s.file_id = f.id),
  (SELECT coalesce(sum(u.input_tokens), 0) FROM token_usage u JOIN session s ON s.id = u.session_id
    WHERE s.file_id = f.id),
  (SELECT coalesce(sum(u.output_tokens), 0) FROM token_usage u JOIN session s ON s.id = u.session_id
    WHERE s.file_id = f.id),
  (SELECT coalesce(sum(u.cache_read_tokens), 0) FROM token_usage u JOIN session s ON s.id = u.session_id
    WHERE s.file_id = f.id),
  (SELECT coalesce(sum(coalesce(u.cache_creation_5m_tokens, 0) + coalesce(u.cache_creation_1h_tokens, 0)), 0)
    FROM token_usage u JOIN session s ON s.id = u.session_id WHERE s.file_id = f.id)
FROM file f WHERE f.status = 'log'
"""


class Counted(NamedTuple):
    """What the index holds of one file, copies included."""

    provider: str
    records: int
    unreadable_lines: int
    tool_calls: int
    failed: int
    human_turns: int
    responses: int
    """With figures: a response without them is no record of tokens."""
    input_tokens: int
    output_tokens: int
    cache_read: int
    cache_written: int


COLUMNS = ("tool_use", "tool_err", "user_turns_est", "api_calls", "in_dedup", "out_dedup", "cr_dedup", "cw_dedup")
"""The columns of EXPECTED_MORE.csv, in the order of `Counted` from `tool_calls` on."""


def folders(*agents: str) -> list[Path]:
    """Return the folders of these agents' logs; none if they are absent."""
    found = [folder / agent for folder in (LOGS, MORE) for agent in agents]
    return [folder for folder in found if folder.is_dir()]


def files(*agents: str) -> list[Path]:
    """Return the files in these folders, in order."""
    return sorted(path for folder in folders(*agents) for path in folder.rglob("*") if path.is_file())


def counted(database: Path, *agents: str) -> dict[Path, Counted]:
    """Index the logs of these agents, and return what the index then holds of each file that is a log."""
    index(database, [str(folder) for folder in folders(*agents)])
    with closing(sqlite3.connect(database)) as connection:
        return {Path(path): Counted(*row) for path, *row in connection.execute(_COUNTS)}


def expected(*agents: str) -> dict[Path, tuple[int, ...]]:
    """Return the figures of EXPECTED_MORE.csv by file; files that aren't here are left out."""
    with (MORE / "EXPECTED_MORE.csv").open(encoding="utf-8", newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["provider"] in agents]
    told = {LOGS.parent / row["file"]: tuple(int(row[column] or 0) for column in COLUMNS) for row in rows}
    return {path: figures for path, figures in told.items() if path.is_file()}


def as_told(counts: Counted) -> dict[str, object]:
    """Return counts in the form of the independent scripts."""
    return {
        "records": counts.records,
        "tool_calls": counts.tool_calls,
        "failed": counts.failed,
        "human_turns": counts.human_turns,
        "responses": counts.responses,
        "tokens": [counts.input_tokens, counts.output_tokens, counts.cache_read, counts.cache_written],
    }
