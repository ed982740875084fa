"""The counts of the index compared with a second computation that shares no code with it (tests/reference).

Every published log of Claude Code and Codex is indexed alone and counted by the scripts; logs that copy
each other are indexed together. Where the two differed, the raw lines were read: the tables below say which is right.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agtrace_indexer.run import index

from tests.conftest import LOGS
from tests.reference import claude_counts, codex_counts, families

_COUNTS = """
SELECT f.path, f.provider,
  count(*) FILTER (WHERE e.type = 3) AS tool_calls,
  count(*) FILTER (WHERE e.type = 4) AS results,
  count(*) FILTER (WHERE e.type = 4 AND e.outcome = 1) AS failed,
  count(*) FILTER (WHERE e.type = 4 AND e.outcome = 2) AS rejected,
  count(*) FILTER (WHERE e.type = 4 AND e.outcome = 3) AS interrupted,
  count(u.complete) AS responses,
  count(*) FILTER (WHERE NOT u.complete) AS incomplete,
  coalesce(sum(u.input_tokens), 0) AS input,
  coalesce(sum(u.cache_creation_5m_tokens), 0) AS cache_creation_5m,
  coalesce(sum(u.cache_creation_1h_tokens), 0) AS cache_creation_1h,
  coalesce(sum(u.cache_read_tokens), 0) AS cache_read,
  coalesce(sum(u.output_tokens), 0) AS output,
  count(*) FILTER (WHERE e.type = 0 AND n.text IN ('human', 'task')) AS human,
  (SELECT count(*) FROM turn t JOIN session o ON o.id = t.session_id WHERE o.file_id = f.id AND t.copied = :copied)
    AS turns
FROM file f JOIN session s ON s.file_id = f.id JOIN event e ON e.session_id = s.id
LEFT JOIN token_usage u ON u.session_id = e.session_id AND u.event_index = e.event_index
LEFT JOIN name n ON n.id = e.name_id
WHERE f.status = 'log' AND e.superseded_by IS NULL AND (e.copy_of IS NOT NULL) = :copied
GROUP BY f.id
"""
"""Types 0, 3 and 4 are user texts, tool calls and results; outcomes 1, 2 and 3 failed, rejected and interrupted."""

_COPIED_LINES = """
SELECT f.path, count(DISTINCT e.line)
FROM event e JOIN session s ON s.id = e.session_id JOIN file f ON f.id = s.file_id
WHERE e.copy_of IS NOT NULL AND e.superseded_by IS NULL AND e.type != 5
GROUP BY f.id
"""
"""Type 5 are token figures."""


class Counted(NamedTuple):
    """What the index holds of one file; all are numbers of things, the five before `human` are tokens."""

    provider: str
    tool_calls: int
    results: int
    failed: int
    rejected: int
    interrupted: int
    responses: int
    incomplete: int
    input: int
    cache_creation_5m: int
    cache_creation_1h: int
    cache_read: int
    output: int
    human: int
    turns: int


NOTHING = Counted("claude_code", *(14 * (0,)))


def indexed_counts(database: Path, *, copied: bool = False) -> dict[Path, Counted]:
    """By file what the index counts: what is its own, or what it repeats of another log."""
    connection = sqlite3.connect(database)
    try:
        return {Path(path): Counted(*row) for path, *row in connection.execute(_COUNTS, {"copied": copied})}
    finally:
        connection.close()


# --- each log alone ---

FIXTURE = "made up by the tests of another tool, not written by its agent: "

PIPED = "checks failed whose exit codes a pipe hides: the reference goes by these"
DIFFERS: dict[str, dict[str, tuple[int, int, str]]] = {
    "claude/Sinity+polylogue/tests/fixtures/claude-code/claude-normalization-main.jsonl": {
        "failed": (2, 1, "a background task's notice says that it failed: the reference reads only results"),
    },
    "claude/handgemacht-ai+claude-code-log/test/test_data/real_projects/-Users-dain-workspace-JSSoundRecorder/"
    "7acd37a8-2745-4b58-a8a9-46164b22ad9e.jsonl": {
        "interrupted": (1, 0, "KillShell ended a background command: the reference reads only results")
    },
    "claude/entireio+cli/53ea1606-cf60-417b-928a-068324ecc7b3.jsonl": {
        "human": (3, 2, "line 204 queues a prompt that the run takes up: no other line has it, and it is obeyed"),
        "turns": (4, 3, "the same"),
    },
    "claude/handgemacht-ai+claude-code-log/test/test_data/task_id_linking.jsonl": {
        "interrupted": (1, 0, "TaskStop ended a background agent: the reference reads only results")
    },
    "claude/jazzyalex+agent-sessions/Resources/Fixtures/stage0/agents/claude/small.jsonl": {
        "human": (4, 8, FIXTURE + "all uuids and texts are one placeholder; the index compares only these"),
        "turns": (5, 9, "the same"),
    },
    "claude/PackmindHub+context-evaluator/bc7cb13e-4b27-40d9-83a1-b342357d4fbe.jsonl": {"failed": (2, 0, PIPED)},
    "claude/PackmindHub+context-evaluator/cd04ea67-3a4e-4ab0-8849-a4ae456990a2.jsonl": {"failed": (3, 1, PIPED)},
    "claude/entireio+auth-go/9b138c7e-bf80-4a5d-af75-e52fc19a2db5.jsonl": {"failed": (3, 1, PIPED)},
    "claude/entireio+cli/a2b25ca9-1cbb-41d7-a3b1-89c66f8697f9.jsonl": {"failed": (2, 1, PIPED)},
    "claude/entireio+entire-graph/09e82c6a-87c1-4cac-b38f-0ef49e46781d.jsonl": {"failed": (3, 1, PIPED)},
    "codex/Sinity+polylogue/tests/data/codex_event_stream/interleaved_stream.jsonl": {
        "responses": (1, 0, FIXTURE + "a token_count as an item, with the figures of one request in it"),
        "input": (120, 0, "the same"),
        "output": (40, 0, "the same"),
    },
    "codex/Sinity+polylogue/tests/data/codex_event_stream/text_only_stream.jsonl": {
        "responses": (1, 0, "the same"),
        "input": (12, 0, "the same"),
        "output": (8, 0, "the same"),
    },
    "codex/Sinity+polylogue/tests/data/codex_event_stream/tool_call_stream.jsonl": {
        "responses": (1, 0, "the same"),
        "input": (42, 0, "the same"),
        "output": (18, 0, "the same"),
    },
    "codex/lanegrid+agtrace/tests/fixtures/codex/simple_session.jsonl": {
        "responses": (1, 0, FIXTURE + "the figures of a request stand in a tool's output"),
        "input": (500, 0, "the same"),
        "output": (200, 0, "the same"),
    },
    "codex/jazzyalex+agent-sessions/Resources/Fixtures/stage0/agents/codex/small.jsonl": dict.fromkeys(
        ("human", "turns"), (4, 3, FIXTURE + "all texts are one placeholder, so two requests look like one said twice")
    ),
}
"""File: figure: (ours, the reference's, why both are acceptable)."""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counted]:
    """What the index counts of each log, indexed alone; by the path below shared/logs."""
    if not LOGS.is_dir():
        pytest.skip("the folder of real logs (shared/logs) is not here")
    folder = tmp_path_factory.mktemp("alone")
    paths = sorted(path for agent in ("claude", "codex") for path in (LOGS / agent).rglob("*") if path.is_file())
    found: dict[Path, Counted] = {}
    for number, path in enumerate(paths):
        index(folder / f"{number}.sqlite3", [str(path)])
        found |= indexed_counts(folder / f"{number}.sqlite3")
    return {path.relative_to(LOGS).as_posix(): counts for path, counts in found.items()}


def differing(ours: Counted, theirs: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Figure: (ours, theirs), where they differ; only what both have is compared."""
    flat = {**theirs, **theirs["usage"]}
    pairs = {figure: (value, flat[figure]) for figure, value in ours._asdict().items() if figure in flat}
    return {figure: pair for figure, pair in pairs.items() if pair[0] != pair[1]}


def without_reasons(known: dict[str, dict[str, tuple[int, int, str]]]) -> dict[str, dict[str, tuple[int, int]]]:
    """The figures of known differences."""
    return {file: {figure: row[:2] for figure, row in rows.items()} for file, rows in known.items()}


@pytest.mark.parametrize(
    ("provider", "printed", "at_least"),
    [
        ("claude_code", lambda path: claude_counts.printed(claude_counts.count(path)), 105),
        ("codex", lambda path: codex_counts.printed(codex_counts.count(path)), 39),
    ],
)
def test_each_log_alone_counts_as_the_reference_does(
    alone: dict[str, Counted], provider: str, printed: Callable[[Path], dict[str, Any]], at_least: int
) -> None:
    logs = {file: counts for file, counts in alone.items() if counts.provider == provider}
    found = {file: pairs for file, counts in logs.items() if (pairs := differing(counts, printed(LOGS / file)))}
    assert found == {file: rows for file, rows in without_reasons(DIFFERS).items() if file in logs}
    assert len(logs) >= at_least


# --- logs that copy each other ---

STAGE0 = "claude/jazzyalex+agent-sessions/Resources/Fixtures/stage0/agents/claude/"
TOGETHER_DIFFERS: dict[str, dict[str, tuple[int, int, str]]] = {
    "own claude/entireio+cli/53ea1606-cf60-417b-928a-068324ecc7b3.jsonl": {"human": (3, 2, "as alone")},
    f"own {STAGE0}small.jsonl": {"human": (4, 8, "as alone")},
}
"""Own or copied and the file: figure: (ours, the reference's, why both are acceptable)."""

Differences = dict[str, dict[str, tuple[int, int]]]


def compare_families(database: Path, paths: list[Path], below: Path) -> Differences:
    """Index these files and folders; what is own and copied in which of their logs, where the reference says else."""
    index(database, [str(path) for path in paths])
    own, copied = indexed_counts(database), indexed_counts(database, copied=True)
    logs = sorted(path for path, counts in (own | copied).items() if counts.provider == "claude_code")
    found = {}
    for path, shares in families.families(logs).items():
        for part, ours, theirs in (("own", own, shares.own), ("copied", copied, shares.copied)):
            pairs = differing(ours.get(path, NOTHING), families.printed(theirs))
            found[f"{part} {path.relative_to(below).as_posix()}"] = pairs
    return {name: pairs for name, pairs in found.items() if pairs}


def copied_lines(database: Path) -> dict[Path, int]:
    """By file how many lines are copies; token figures are no lines, they are shared by response."""
    connection = sqlite3.connect(database)
    try:
        return {Path(path): lines for path, lines in connection.execute(_COPIED_LINES)}
    finally:
        connection.close()


def test_published_forks_are_told_apart_as_the_reference_does(logs: Path, database: Path) -> None:
    folder = logs / "claude/handgemacht-ai+claude-code-log/test/test_data"
    forks = sorted(folder.glob("dag_*.jsonl"))
    assert compare_families(database, forks, folder) == {}
    expected = {path: shares.copied.lines for path, shares in families.families(forks).items()}
    assert copied_lines(database) == {path: lines for path, lines in expected.items() if lines}
    assert sum(expected.values()) == 7


def test_all_logs_of_claude_code_together_share_what_the_reference_says(logs: Path, database: Path) -> None:
    assert compare_families(database, [logs / "claude"], logs) == without_reasons(TOGETHER_DIFFERS)


# --- copies made of real logs ---

SPLIT = "claude/entireio+cli/4ec443d0-063b-4de3-8ede-e35160c2c1de.jsonl"
"""A session whose responses are split over several lines, with failed calls and a request that failed."""
INLINE = "claude/d-kimuson+claude-code-viewer/mock-global-claude-dir/projects/sample-project/5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl"  # noqa: E501
"""A session of 1.0.108 with two sub-agents inline."""


def fork_of(lines: list[dict[str, Any]], *, at: int, session: str) -> list[dict[str, Any]]:
    """A background copy of the first `at` lines, as Claude Code writes it (known-bugs.md 6), with an end of its own."""
    copy = [{**line, "sessionId": session, "sessionKind": "bg", "cwd": "/elsewhere"} for line in lines[:at]]
    last = next(line["uuid"] for line in reversed(copy) if "uuid" in line)
    own = {"type": "user", "uuid": f"own-{session}", "parentUuid": last, "sessionId": session, "isSidechain": False}
    said = {"role": "user", "content": "Another way."}
    return [*copy, {**own, "timestamp": "2027-01-01T00:00:00.000Z", "message": said}]


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")], ids=["origin first", "fork first"])
@pytest.mark.parametrize("part", [0.3, 0.55, 1.0])
@pytest.mark.parametrize("origin", [SPLIT, INLINE], ids=["split responses", "inline sub-agents"])
def test_a_fork_of_a_real_log_counts_only_what_it_adds(
    logs: Path, tmp_path: Path, database: Path, origin: str, part: float, names: tuple[str, str]
) -> None:
    lines = claude_counts.records(logs / origin)
    old = write(tmp_path / f"{names[0]}.jsonl", lines)
    new = write(tmp_path / f"{names[1]}.jsonl", fork_of(lines, at=int(len(lines) * part), session="0f0f0f0f"))
    assert compare_families(database, [old, new], tmp_path) == {}
    assert indexed_counts(database)[new] == NOTHING._replace(human=1, turns=1)


def test_lines_that_a_log_repeats_count_once(logs: Path, tmp_path: Path, database: Path) -> None:
    lines = claude_counts.records(logs / SPLIT)
    log = write(tmp_path / "repeated.jsonl", lines + lines[: len(lines) // 2])
    index(database, [str(log)])
    assert differing(indexed_counts(database)[log], claude_counts.printed(claude_counts.count(logs / SPLIT))) == {}


FORK = "codex/entireio+git-sync/rollout-2026-04-11T20-15-02-019d7e2f-0041-7310-951c-94020254dfc9.jsonl"
"""A sub-agent of 0.118: its lines 2 to 339 replay its parent."""


def test_a_codex_fork_beside_its_parent_counts_only_what_follows_the_replay(
    logs: Path, tmp_path: Path, database: Path
) -> None:
    lines = codex_counts.records(logs / FORK)
    assert codex_counts.replay_length(lines) == 339
    parent = write(tmp_path / "rollout-parent.jsonl", lines[1:339])
    child = write(tmp_path / "rollout-child.jsonl", lines)
    index(database, [str(parent), str(child)])
    own = indexed_counts(database)
    for path in (parent, child):
        assert differing(own[path], codex_counts.printed(codex_counts.count(path))) == {}
    assert (own[parent].tool_calls, own[child].tool_calls) == (74, 3)
