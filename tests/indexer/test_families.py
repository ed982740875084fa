"""Logs that share lines, start each other or repeat each other: what counts where depends only on the set of logs.

The order in which they are read, the number of pieces, and their earlier names never matter.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.run import index
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agtrace.asking import ClaudeLog, claude_log
from tests.conftest import LOGS, SAMPLES, copy_index
from tests.contents import contents
from tests.depth import examples
from tests.indexer.test_codex_families import family as codex_family

ONE = "aaaaaaaa-0000-4000-8000-000000000001"
TWO = "bbbbbbbb-0000-4000-8000-000000000002"
THREE = "cccccccc-0000-4000-8000-000000000003"

SUMS = "turn_count, tool_calls, failed_calls, responses, total_tokens"
COPIED = "copied_turns, copied_tool_calls, copied_failed_calls, copied_responses, copied_tokens"


def rows(database: Path, sql: str, *arguments: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql, arguments).fetchall()


def sums(database: Path, session: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """(what counts in a session, what is copied into it)."""
    found = rows(database, f"SELECT {SUMS}, {COPIED} FROM session WHERE uid = ?", session)[0]
    return found[:5], found[5:]


def answered(log: ClaudeLog, prompt: str, tokens: int) -> ClaudeLog:
    """A turn: a request, a failed call, an answer with figures."""
    return log.prompt(prompt).call("Bash", {"command": f"make {prompt}"}, "no rule", failed=True).used(tokens, 10)


# -- copies --------------------------------------------------------------------------------------


def test_a_fork_is_linked_to_its_origin_and_its_copies_to_their_originals(tmp_path: Path, database: Path) -> None:
    origin = answered(claude_log(tmp_path, ONE), "first", 100)
    middle = answered(origin.fork(TWO, cwd="/elsewhere"), "second", 7)
    answered(middle.fork(THREE, cwd="/elsewhere"), "third", 7)
    index(database, [str(tmp_path / "projects")])
    parents = "SELECT s.uid, p.uid FROM session s JOIN session p ON p.id = s.parent_session ORDER BY 1"
    assert rows(database, parents) == [(TWO, ONE), (THREE, TWO)]
    copies = rows(
        database,
        "SELECT s.uid, count(*), sum(e.event_index = o.event_index AND e.type = o.type) FROM event e "
        "JOIN event o ON o.id = e.copy_of JOIN session s ON s.id = o.session_id GROUP BY 1 ORDER BY 1",
    )
    assert copies == [(ONE, 10, 10), (TWO, 5, 5)]  # a request, a call, its result, an answer, its figures


def test_turns_sum_up_to_what_counts_and_what_is_copied(indexed_samples: Path, database: Path, logs: Path) -> None:
    copy_index(indexed_samples, database)
    index(database, [str(logs / "codex"), str(SAMPLES)])
    whole = " + ".join(f"coalesce({c}_tokens, 0)" for c in (
        "input", "cache_creation_5m", "cache_creation_1h", "cache_read", "output"))  # fmt: skip
    outside = (
        "SELECT coalesce(sum({}), 0) FROM token_usage u JOIN event e USING (session_id, event_index) "
        "WHERE e.session_id = s.id AND e.superseded_by IS NULL AND NOT EXISTS (SELECT 1 FROM turn o "
        "WHERE o.session_id = s.id AND o.turn_index = e.turn_index)"
    )  # what was spent in turns that were dropped
    wrong = rows(
        database,
        f"SELECT s.uid FROM session s JOIN (SELECT session_id, sum(tool_calls) AS calls, sum(failed_calls) AS failed, "
        f"sum({whole}) AS tokens FROM turn GROUP BY 1) t ON t.session_id = s.id "
        "WHERE t.calls != s.tool_calls + s.copied_tool_calls OR t.failed != s.failed_calls + s.copied_failed_calls "
        f"OR t.tokens + ({outside.format(whole)}) != coalesce(s.total_tokens, 0) + s.copied_tokens",
    )
    assert wrong == []
    sessions, models = (
        rows(database, "SELECT sum(total_tokens), sum(responses) FROM session")[0],
        rows(database, f"SELECT sum({whole}), sum(responses) FROM model_usage")[0],
    )
    assert sessions == models


# -- parents -------------------------------------------------------------------------------------


def test_parents_never_form_a_circle(tmp_path: Path, database: Path) -> None:
    """A sub-agent that names itself, and two that name each other."""
    for agent, result in (("a", "a"), ("b", "c"), ("c", "b")):
        log = ClaudeLog(tmp_path / "projects" / ONE / "subagents" / f"agent-{agent}.jsonl", ONE)
        log.write("user", f"task of {agent}", isSidechain=True, agentId=agent)
        log.call("Agent", {"prompt": "go"}, None)
        answer = {"type": "tool_result", "tool_use_id": f"toolu_{ONE[:8]}_1", "content": "done"}
        log.write("user", [answer], isSidechain=True, agentId=agent, toolUseResult={"agentId": result})
    index(database, [str(tmp_path / "projects")])
    parents = dict(rows(database, "SELECT id, parent_session FROM session"))
    for session in parents:
        seen: set[int] = set()
        walker: int | None = session
        while walker is not None:
            assert walker not in seen
            seen.add(walker)
            walker = parents[walker]


# -- the law -------------------------------------------------------------------------------------


def families() -> list[dict[Path, bytes]]:
    """Groups of small logs that have to do with each other, by their places."""
    groups = [sorted((SAMPLES / agent).rglob("*.jsonl")) for agent in ("claude", "codex", "pi", "omp", "qwen")]
    published = LOGS / "claude" / "handgemacht-ai+claude-code-log" / "test" / "test_data"
    groups += [sorted(published.glob(pattern)) for pattern in ("dag_*.jsonl", "*memory*.jsonl", "*todo*.jsonl")]
    groups += [sorted((published / "real_projects").rglob("*.jsonl"))[:12], sorted((LOGS / "codex").rglob("*.jsonl"))]
    with tempfile.TemporaryDirectory() as folder:
        groups.append(codex_family(Path(folder)))
        small = [[path for path in group if path.stat().st_size < 200_000][:10] for group in groups]
        return [
            {path.relative_to(os.path.commonpath(group)): path.read_bytes() for path in group}
            for group in small
            if len(group) > 1
        ]


FAMILIES = families()


relaxed = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Home:
    """Logs of a family that appear piece by piece, and move from folder to folder."""

    def __init__(self, work: Path, group: int) -> None:
        shutil.rmtree(work, ignore_errors=True)
        self.logs, self.database = work / "logs", work / "data" / "index.sqlite3"
        self.left = dict(FAMILIES[group])
        self.folder = dict.fromkeys(self.left, "0")
        self.logs.mkdir(parents=True)

    def path(self, name: Path) -> Path:
        return self.logs / self.folder[name] / name

    def append(self, name: Path, part: float) -> None:
        """Append a part of what is left of a log."""
        data = self.left[name]
        end = len(data) if part >= 1 else int(len(data) * part)
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        with self.path(name).open("ab") as file:
            file.write(data[:end])
        self.left[name] = data[end:]

    def move(self, name: Path) -> None:
        """Give a log another place."""
        before = self.path(name)
        self.folder[name] = str(int(self.folder[name]) + 1)
        if before.exists():
            self.path(name).parent.mkdir(parents=True, exist_ok=True)
            before.rename(self.path(name))

    def index(self) -> None:
        index(self.database, [str(self.logs)])

    def afresh(self, **chosen: bool) -> dict[str, Any]:
        """The contents of a new index of what is there now."""
        other = self.database.with_name("fresh.sqlite3")
        for old in other.parent.glob("fresh.sqlite3*"):
            old.unlink()
        index(other, [str(self.logs)])
        return contents(other, **chosen)


def equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for part, rows in expected.items():
        assert found[part] == rows, part


steps = st.lists(
    st.tuples(st.integers(0, 9), st.floats(0, 1.2), st.booleans()), min_size=1, max_size=10
)  # which log, how much of what is left, whether it moves first


@pytest.mark.thorough
@settings(relaxed, max_examples=examples(24))
@given(group=st.integers(0, len(FAMILIES) - 1), schedule=steps)
def test_a_family_that_grows_piece_by_piece_is_what_it_is_at_once(
    work: Path, group: int, schedule: list[tuple[int, float, bool]]
) -> None:
    home = Home(work, group)
    names = list(home.left)
    for number, part, moves in schedule:
        name = names[number % len(names)]
        if moves:
            home.move(name)
        home.append(name, part)
        home.index()
    for name in names:
        home.append(name, 1)
    home.index()
    equal(contents(home.database), home.afresh())


@settings(relaxed, max_examples=examples(24))
@given(group=st.integers(0, len(FAMILIES) - 1), schedule=steps)
def test_what_goes_counts_as_it_was_and_all_is_as_if_it_had_been_read_at_once(
    work: Path, group: int, schedule: list[tuple[int, float, bool]]
) -> None:
    """Removed and replaced logs are read from the archive then."""
    home = Home(work, group)
    names = list(home.left)
    for name in names:
        home.append(name, 1)
    home.index()
    for step, (number, _, replaces) in enumerate(schedule[:4]):
        path = home.path(names[number % len(names)])
        if path.exists():
            path.unlink()
            if replaces:
                other = {"type": "user", "uuid": f"new-{step}", "sessionId": ONE, "timestamp": "2026-01-01",
                         "message": {"role": "user", "content": f"another log {step}"}}  # fmt: skip
                path.write_text(json.dumps(other) + "\n")
            home.index()
    found, expected = contents(home.database), home.afresh()
    equal({**found, "files": []}, {**expected, "files": []})
