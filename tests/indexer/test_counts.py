"""The figures of the samples and of the published logs, log by log.

Those of the published logs are compared with what was counted in them without agtrace (`EXPECTED.csv`,
`EXPECTED_MORE.csv`), where these have a figure; `figures.json` has all of them, also those of the samples, as they were
when independent scripts had counted the same. `python -m tests.indexer.test_counts` writes it anew, to be read line by
line.
"""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.run import index

from tests.conftest import LOGS, MORE_LOGS, SAMPLES

FIGURES = Path(__file__).with_name("figures.json")

_COUNTED = """
SELECT f.path, f.provider, f.records, f.unreadable_lines AS unreadable,
  count(DISTINCT s.id) AS sessions,
  count(*) FILTER (WHERE e.type = 0 AND n.text = 'human') AS human,
  count(*) FILTER (WHERE e.type = 1) AS messages,
  count(*) FILTER (WHERE e.type = 2) AS thoughts,
  count(*) FILTER (WHERE e.type = 3) AS calls,
  count(*) FILTER (WHERE e.type = 4) AS results,
  count(*) FILTER (WHERE e.type = 4 AND e.outcome = 1) AS failed,
  count(*) FILTER (WHERE e.type = 4 AND e.outcome = 2) AS rejected,
  count(*) FILTER (WHERE e.type = 4 AND e.outcome = 3) AS interrupted,
  count(u.session_id) AS responses,
  count(u.session_id) FILTER (WHERE e.step_index IS NOT NULL) AS in_steps,
  count(*) FILTER (WHERE NOT u.complete) AS incomplete,
  coalesce(sum(u.input_tokens), 0) AS input,
  coalesce(sum(u.cache_creation_5m_tokens), 0) AS written_5m,
  coalesce(sum(u.cache_creation_1h_tokens), 0) AS written_1h,
  coalesce(sum(u.cache_read_tokens), 0) AS cache_read,
  coalesce(sum(u.output_tokens), 0) AS output,
  count(*) FILTER (WHERE e.copy_of IS NOT NULL) AS copied
FROM file f JOIN session s ON s.file_id = f.id JOIN event e ON e.session_id = s.id
LEFT JOIN token_usage u ON u.session_id = e.session_id AND u.event_index = e.event_index
LEFT JOIN name n ON n.id = e.name_id
WHERE f.status = 'log' AND e.superseded_by IS NULL GROUP BY f.id ORDER BY f.path
"""
"""Of all that stands in a file, copies included, unless it says `copied`. Types 0 to 4 are user texts, messages,
thoughts, tool calls and results; outcomes 1, 2 and 3 failed, rejected and interrupted."""

Figures = dict[str, dict[str, Any]]
"""Path: name: figure."""


def counted(database: Path, *roots: Path) -> Figures:
    """Index logs, and return what the index holds of each by its path, which begins with the name of its root."""
    index(database, [str(root) for root in roots])
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute(_COUNTED)]
    return {_named(Path(row.pop("path")), roots): row for row in rows}


def _named(path: Path, roots: tuple[Path, ...]) -> str:
    root = next(root for root in roots if path.is_relative_to(root))
    return path.relative_to(root.parent).as_posix()


def copy_of_samples(folder: Path) -> Path:
    """The samples of all agents, without the programs that made some of them."""
    return Path(shutil.copytree(SAMPLES, folder / "samples", ignore=shutil.ignore_patterns("*.py", "*.sh", "*.md")))


def differences(found: Figures, prefix: str) -> Figures:
    """Return the figures that aren't those of the table, each with the table's."""
    told: Figures = {path: row for path, row in json.loads(FIGURES.read_text()).items() if path.startswith(prefix)}
    nothing: dict[str, Any] = {}
    pairs = {path: (found.get(path, nothing), told.get(path, nothing)) for path in found.keys() | told.keys()}
    return {
        path: {name: (ours.get(name), theirs.get(name)) for name in ours | theirs if ours.get(name) != theirs.get(name)}
        for path, (ours, theirs) in pairs.items()
        if ours != theirs
    }


def test_the_samples_have_the_figures_that_were_counted(tmp_path: Path, database: Path) -> None:
    assert differences(counted(database, copy_of_samples(tmp_path)), "samples/") == {}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """What an index of all published logs holds of each."""
    if not (LOGS.is_dir() and MORE_LOGS.is_dir()):
        pytest.skip("the folders of real logs (shared/logs, shared/logs_more) are not here")
    return counted(tmp_path_factory.mktemp("published") / "index.sqlite3", LOGS, MORE_LOGS)


def test_the_published_logs_have_the_figures_that_were_counted(published: Figures) -> None:
    assert differences(published, "logs") == {}


COLUMNS = {
    "events": "records", "tool_use": "calls", "tool_err": "failed", "user_turns_est": "human", "api_calls": "responses",
    "in_dedup": "input", "out_dedup": "output", "cr_dedup": "cache_read", "cw_dedup": "written",
}  # fmt: skip
"""The columns of the tables, and our figures."""

OTHERWISE: dict[str, dict[str, str | None]] = {
    "claude_code": {"tool_err": "ended_badly", "user_turns_est": None},
    "codex": {"in_dedup": "input_with_cache", "user_turns_est": None},
    "copilot": {"api_calls": "in_steps"},
    "gemini": {"events": None},
    "goose": {"events": None},
    "opencode": {"events": None},
}
"""Agent: column: our figure, if it isn't the usual one; None where the table means something else: user turns
guessed by a rule of thumb, records of a database without its session."""

SYNTHETIC = "a <synthetic> line, which is no call of the API, is counted there"
ENDED_LATER = "a background task was launched well and ended badly"
PIPED = "checks failed whose exit codes a pipe hides (`| tail`)"
PROGRESS = "a sub-agent that only `agent_progress` tells of, which the table doesn't count"
DIFFER = {
    "PackmindHub+context-evaluator/bc7cb13e": (
        f"{PIPED}; {PROGRESS}",
        {
            "tool_use": (15, 36),
            "tool_err": (0, 4),
            "api_calls": (15, 25),
            "in_dedup": (19, 2106),
            "out_dedup": (534, 2593),
            "cr_dedup": (570819, 1020480),
            "cw_dedup": (21466, 91356),
        },
    ),
    "entireio+cli/61cb3ba8": (
        PROGRESS,
        {
            "tool_use": (16, 37),
            "api_calls": (14, 31),
            "in_dedup": (17, 9469),
            "out_dedup": (2075, 4060),
            "cr_dedup": (441175, 1126444),
            "cw_dedup": (19056, 62594),
        },
    ),
    "PackmindHub+context-evaluator/cd04ea67": (PIPED, {"tool_err": (1, 3)}),
    "entireio+auth-go/9b138c7e": (PIPED, {"tool_err": (1, 3)}),
    "entireio+entire-graph/09e82c6a": (PIPED, {"tool_err": (1, 3)}),
    "entireio+cli/a2b25ca9": (f"{PIPED}; two records on one line", {"events": (344, 346), "tool_err": (1, 2)}),
    "claude-normalization-main": (ENDED_LATER, {"tool_err": (1, 2)}),
    "JSSoundRecorder/7acd37a8": (ENDED_LATER, {"tool_err": (6, 7)}),
    "task_id_linking": (ENDED_LATER, {"tool_err": (1, 2)}),
    "entireio+cli/4ec443d0": (SYNTHETIC, {"api_calls": (23, 22)}),
    "entireio+cli/53ea1606": (SYNTHETIC, {"api_calls": (51, 50)}),
    "entireio+cli/ab8c5aa0": (SYNTHETIC, {"api_calls": (28, 27)}),
    "stage0/agents/claude/small": (SYNTHETIC, {"api_calls": (3, 2)}),
    "agents/codex/large": ("a `tool_call` item", {"tool_use": (0, 1)}),
    "agents/codex/small": (
        "tool_search_call, web_search_call and image_generation_call; a total that was zeroed after a restart",
        {"tool_use": (4, 8), "in_dedup": (0, 16341), "out_dedup": (0, 81), "cr_dedup": (0, 3584)},
    ),
    "codex/function_calls": ("two calls of different tools share a call_id", {"tool_use": (1, 2)}),
    "codex/simple_session": ("a call item without a type", {"tool_use": (0, 1)}),
    "2-12_context-compaction": (
        "line 11: the summary's own request, which the log's totals (`tokenDetails`) have as well",
        {"in_dedup": (12212, 13430), "out_dedup": (247, 1322), "cr_dedup": (9728, 20352)},
    ),
    "2-15_shell-escape-command": ("line 11: a call by the human, who typed `!`", {"tool_use": (0, 1)}),
}
"""A piece of a path: why ours is right, as the raw lines show, and column: (the table's, ours)."""


def rows() -> Iterator[dict[str, str]]:
    """Yield the rows of both tables."""
    for table in (LOGS / "EXPECTED.csv", MORE_LOGS / "EXPECTED_MORE.csv"):
        with table.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                is_more = table.parent == MORE_LOGS
                if is_more or row["provider"] != "qwen":  # whose records the script behind the first table didn't know
                    yield {**row, "file": row["file"].replace("#", "/") if is_more else f"logs/{row['file']}"}


def test_what_was_counted_without_agtrace_is_what_the_index_holds(published: Figures) -> None:
    found: dict[str, dict[str, tuple[int, int]]] = {}
    compared = 0
    for row in rows():
        ours = published.get(row["file"])
        if ours is None:
            continue
        ours = {
            **ours,
            "written": ours["written_5m"] + ours["written_1h"],
            "ended_badly": ours["failed"] + ours["rejected"] + ours["interrupted"],
            "input_with_cache": ours["input"] + ours["cache_read"],
        }
        for column, usual in COLUMNS.items():
            name = OTHERWISE.get(ours["provider"], {}).get(column, usual)
            if row[column] and name is not None:
                compared += 1
                if int(row[column]) != ours[name]:
                    found.setdefault(row["file"], {})[column] = (int(row[column]), ours[name])
    known = {next((path for path in found if piece in path), piece): pairs for piece, (_, pairs) in DIFFER.items()}
    assert found == known
    assert compared > 1_500


_TOTALS = """SELECT sum(tool_calls), sum(failed_calls), sum(responses), sum(input_tokens), sum(output_tokens),
sum(turn_count) FROM session"""


def totals(database: Path, *logs: Path) -> tuple[int, ...]:
    """What the sessions of some logs count together; turns are the last figure."""
    index(database, [str(log) for log in logs])
    with closing(sqlite3.connect(database)) as connection:
        return tuple(connection.execute(_TOTALS).fetchone())


def main() -> None:
    """Write the table."""
    with tempfile.TemporaryDirectory() as folder:
        found = counted(Path(folder) / "a" / "index.sqlite3", copy_of_samples(Path(folder)))
        found |= counted(Path(folder) / "b" / "index.sqlite3", LOGS, MORE_LOGS)
    lines = (f"{json.dumps(path)}: {json.dumps(row)}" for path, row in sorted(found.items()))
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
