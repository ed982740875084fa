"""Codex rollouts that replay, start or continue each other: to which session requests belong, and what counts where.

The logs are written here, as Codex writes them (indexer/README.md): a fork begins with its parent's records,
all stamped with the instant of the fork.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard
from agtrace_indexer.index.queries.usage import Among, not_understood
from agtrace_indexer.run import index

T0 = 1_780_000_000_000
MINUTE = 60_000

COUNTED = "SELECT turn_count, tool_calls, responses, coalesce(total_tokens, 0) FROM session WHERE own_id = ?"
COPIED = "SELECT copied_turns, copied_tool_calls, copied_responses, copied_tokens FROM session WHERE own_id = ?"
PARENTS = """
SELECT s.own_id, s.kind, p.own_id, s.started_by FROM session s LEFT JOIN session p ON p.id = s.parent_session
ORDER BY s.own_id
"""


def uuid7(at: int, number: int = 0) -> str:
    """An id that Codex makes at this time."""
    return f"{at >> 16:08x}-{at & 0xFFFF:04x}-7000-8000-{number:012x}"


def stamped(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Rollout:
    """A rollout that is written record by record, each a second after the one before."""

    def __init__(self, home: Path, at: int, number: int = 1, **meta: Any) -> None:
        self.home, self.clock, self.id = home, at, uuid7(at, number)
        self.used = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
        self.records: list[dict[str, Any]] = []
        self.file = f"rollout-{self.id}.jsonl"
        told = {"id": self.id, "timestamp": stamped(at), "cwd": "/work/own", "source": "cli"}
        self.add("session_meta", **(told | meta))

    @property
    def path(self) -> Path:
        return self.home / "sessions" / "2026" / "05" / "28" / self.file

    def add(self, kind: str, /, **payload: Any) -> Rollout:
        self.records.append({"timestamp": stamped(self.clock), "type": kind, "payload": payload})
        self.clock += 1000
        return self

    def event(self, kind: str, /, **fields: Any) -> Rollout:
        return self.add("event_msg", type=kind, **fields)

    def item(self, kind: str, /, **fields: Any) -> Rollout:
        return self.add("response_item", type=kind, **fields)

    def says(self, role: str, text: str) -> Rollout:
        part = "output_text" if role == "assistant" else "input_text"
        self.item("message", role=role, content=[{"type": part, "text": text}])
        return self.event("agent_message" if role == "assistant" else "user_message", message=text)

    def calls(self, call_id: str, output: str, name: str = "exec_command") -> Rollout:
        self.item("function_call", name=name, arguments='{"cmd":"make"}', call_id=call_id)
        return self.item("function_call_output", call_id=call_id, output=output)

    def spends(self, given: int, made: int) -> Rollout:
        """A request of so many tokens, as the total and the last request tell it."""
        last = {"input_tokens": given, "cached_input_tokens": 0, "output_tokens": made}
        self.used = {key: self.used[key] + number for key, number in last.items()}
        return self.counts(self.used, last)

    def counts(self, total: dict[str, int], last: dict[str, int]) -> Rollout:
        info = {"total_token_usage": dict(total), "last_token_usage": last, "model_context_window": 9}
        return self.event("token_count", info=info)

    def turn(self, prompt: str, tokens: int, turn_id: str | None = "") -> Rollout:
        """A whole turn: a prompt, a call, an answer, a count. Without an id it is one of 2025's."""
        turn_id = uuid7(self.clock) if turn_id == "" else turn_id
        turn = {"turn_id": turn_id} if turn_id else {}
        if turn_id:
            self.event("task_started", **turn)
        self.add("turn_context", cwd="/work/own", model="gpt-5.5", **turn).says("user", prompt)
        self.calls(f"call_{prompt}", "Exit code: 0\nWall time: 1 seconds\nOutput:\nmade").says(
            "assistant", f"{prompt} done"
        )
        self.spends(tokens, 10)
        return self.event("task_complete", **turn) if turn_id else self

    def fork(self, at: int, number: int = 2, step: int = 0, **meta: Any) -> Rollout:
        """A copy with another id; `step` is the time that each copied record takes."""
        copy = Rollout(self.home, at, number, **meta)
        copy.clock = at
        for record in self.records:
            copy.records.append(record | {"timestamp": stamped(copy.clock)})
            copy.clock += step
        copy.clock += 1
        copy.used = self.used
        return copy

    def write(self, *, below: Path | None = None) -> Path:
        path = self.path if below is None else below / self.path.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records), encoding="utf-8")
        return path


def rows(database: Path, sql: str, *arguments: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql, arguments).fetchall()


def sums(database: Path, log: Rollout) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """(turns, calls, responses, tokens) that count in a session, and those that are copied into it."""
    return rows(database, COUNTED, log.id)[0], rows(database, COPIED, log.id)[0]


def index_anew(database: Path, *paths: Path) -> None:
    database.unlink(missing_ok=True)
    index(database, [str(path) for path in paths])


@pytest.fixture
def parent(tmp_path: Path) -> Rollout:
    """Two turns of 110 tokens each."""
    return Rollout(tmp_path, T0).turn("one", 100).turn("two", 100)


NOTHING = (0, 0, 0, 0)
TWO_TURNS = (2, 2, 2, 220)
OWN_TURN = (1, 1, 1, 17)


# -- where a replay ends ---------------------------------------------------------------------------


def test_replayed_requests_count_only_in_the_session_that_made_them(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    """Whichever is read first, and where the parent's log is missing."""
    fork = parent.fork(T0 + MINUTE, forked_from_id=parent.id).turn("mine", 7)
    for first, then in ((parent, fork), (fork, parent)):
        first.write()
        index_anew(database, tmp_path)
        then.write()
        index(database, [str(tmp_path)])
        assert sums(database, parent) == (TWO_TURNS, NOTHING)
        assert sums(database, fork) == (OWN_TURN, TWO_TURNS)
        assert rows(database, PARENTS) == [(parent.id, "main", None, None), (fork.id, "fork", parent.id, None)]
        first.path.unlink()
        then.path.unlink()
    fork.write()
    index_anew(database, tmp_path)
    assert sums(database, fork) == (OWN_TURN, TWO_TURNS)


def test_a_replayed_event_points_to_the_parents_own(parent: Rollout, tmp_path: Path, database: Path) -> None:
    fork = parent.fork(T0 + MINUTE, forked_from_id=parent.id).turn("mine", 7)
    parent.turn("three", 100).write()
    fork.write()
    index(database, [str(tmp_path)])
    copies = (
        "SELECT count(*), sum(o.type = e.type AND o.name_id IS e.name_id), min(p.own_id), max(p.own_id) FROM event e "
        "JOIN event o ON o.id = e.copy_of JOIN session p ON p.id = o.session_id"
    )
    assert rows(database, copies) == [(8, 8, parent.id, parent.id)]  # a prompt, a call, its result, an answer; twice


@pytest.mark.parametrize("step", [0, 400])
def test_the_replay_ends_with_the_first_turn_that_is_not_older_than_the_session(
    parent: Rollout, tmp_path: Path, database: Path, step: int
) -> None:
    """However fast the fork went on, and however long it took to write the replay."""
    fork = parent.fork(T0 + MINUTE, step=step, forked_from_id=parent.id)
    fork.event("task_started", turn_id=uuid7(T0 + MINUTE, 7))  # in the very millisecond of its birth
    fork.clock = T0 + MINUTE + 5
    fork.says("user", "mine").spends(7, 10).write()
    index(database, [str(tmp_path)])
    assert sums(database, fork) == ((1, 0, 1, 17), TWO_TURNS)


def test_a_first_count_that_carries_the_parents_total_adds_nothing(tmp_path: Path, database: Path) -> None:
    """30 to 150 times the tokens otherwise (CodexBar 3524)."""
    child = Rollout(tmp_path, T0, forked_from_id=uuid7(T0 - MINUTE), thread_source="subagent")
    child.event("task_started", turn_id=uuid7(child.clock)).says("user", "mine")
    child.used = {"input_tokens": 9_000_000, "cached_input_tokens": 8_000_000, "output_tokens": 90_000}
    child.counts(child.used, dict.fromkeys(child.used, 0)).says("assistant", "done").spends(7, 10).write()
    index(database, [str(tmp_path)])
    assert sums(database, child) == ((1, 0, 1, 17), NOTHING)


def test_a_sub_agent_that_counts_from_zero_keeps_its_first_request(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    """The other way round: 0.144 names a fork and replays only messages (CodexBar 2193)."""
    child = parent.fork(T0 + MINUTE, forked_from_id=parent.id, thread_source="subagent")
    child.used = dict.fromkeys(child.used, 0)
    child.turn("mine", 500).write()  # more than the parent's total
    index(database, [str(tmp_path)])
    assert sums(database, child) == ((1, 1, 1, 510), TWO_TURNS)


def test_a_fork_that_never_went_on_counts_nothing(parent: Rollout, tmp_path: Path, database: Path) -> None:
    """Also where what was copied holds settings of the parent's."""
    parent.event("thread_settings_applied", thread_settings={"model": "gpt-5.5"}).turn("three", 100)
    fork = parent.fork(T0 + MINUTE, forked_from_id=parent.id)
    fork.write()
    index(database, [str(tmp_path)])
    assert sums(database, fork) == (NOTHING, (3, 3, 3, 330))


def test_turn_ids_without_a_time_leave_it_to_the_start_of_the_turn(tmp_path: Path, database: Path) -> None:
    """Ids of version 4, of an ancestor that an old version began (tokscale 895)."""
    old = "5b0d3c1e-9a52-4c07-b8f1-2f5e81c0b944"
    parent = Rollout(tmp_path, T0).event("task_started", turn_id=old, started_at=T0 // 1000).says("user", "one")
    parent.spends(100, 10)
    for step in (0, 700):
        child = parent.fork(T0 + MINUTE + 500, step=step, forked_from_id=parent.id, thread_source="subagent")
        child.event("task_started", turn_id=old.replace("5", "6"), started_at=child.clock // 1000)  # whole seconds
        child.says("user", "mine").spends(7, 10).write()
        index_anew(database, tmp_path)
        assert sums(database, child) == ((1, 0, 1, 17), (1, 0, 1, 110))


def test_a_session_whose_id_has_no_time_began_when_its_meta_says(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    """The line itself may be written seconds later, with the first turn."""
    fork = parent.fork(T0 + MINUTE + 4000, forked_from_id=parent.id)
    fork.id = fork.records[0]["payload"]["id"] = "5b0d3c1e-9a52-4c07-b8f1-2f5e81c0b944"
    fork.records[0]["payload"]["timestamp"] = stamped(T0 + MINUTE)
    fork.event("task_started", turn_id=uuid7(T0 + MINUTE + 1)).says("user", "mine").spends(7, 10).write()
    index(database, [str(tmp_path)])
    assert sums(database, fork) == ((1, 0, 1, 17), TWO_TURNS)


def test_numbered_lines_tell_the_first_own_one(parent: Rollout, tmp_path: Path, database: Path) -> None:
    """In a paginated thread the first meta names it."""
    own = len(parent.records) + 1
    meta = {"thread_source": "subagent", "parent_thread_id": parent.id, "subagent_history_start_ordinal": own}
    child = parent.fork(T0 + MINUTE, step=700, **meta)
    child.says("user", "mine").spends(7, 10)
    child.records = [record | {"ordinal": number} for number, record in enumerate(child.records)]
    child.write()
    index(database, [str(tmp_path)])
    assert sums(database, child) == ((1, 0, 1, 17), TWO_TURNS)


def test_an_item_can_carry_the_id_of_its_turn(tmp_path: Path, database: Path) -> None:
    """Of the last turns, from 0.144 on, a sub-agent may get the items alone."""
    parent, child = Rollout(tmp_path, T0), Rollout(tmp_path, T0 + MINUTE, 2, thread_source="subagent")
    for log, prompt in ((parent, "one"), (child, "mine")):
        carried = {"turn_id": uuid7(log.clock)}
        for copy in (log, child) if log is parent else (child,):
            copy.item("message", role="user", content=prompt, internal_chat_message_metadata_passthrough=carried)
            copy.says("assistant", f"{prompt} done")
    child.spends(7, 10).write()
    index(database, [str(tmp_path)])
    assert sums(database, child) == ((1, 0, 1, 17), (1, 0, 0, 0))


def test_items_that_a_sub_agent_got_alone_were_written_at_its_beginning(tmp_path: Path, database: Path) -> None:
    """The last turns, with neither their parent's meta nor an id of a turn (0.139 to 0.143)."""
    child = Rollout(tmp_path, T0, 2, thread_source="subagent", forked_from_id=uuid7(T0 - MINUTE))
    child.clock = T0 + 5
    child.item("message", role="user", content="one").clock = T0 + 6
    child.item("message", role="assistant", content="one done").clock = T0 + 7
    child.turn("mine", 7).write()
    index(database, [str(tmp_path)])
    assert sums(database, child) == (OWN_TURN, (1, 0, 0, 0))


def test_what_a_replay_left_open_is_neither_doubled_nor_continued(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    """A filtered replay holds one stream only, and an own text may equal one of it."""
    parent.event("task_started", turn_id=uuid7(parent.clock)).event("agent_message", message="done")
    fork = parent.fork(T0 + MINUTE, forked_from_id=parent.id)
    fork.event("task_started", turn_id=uuid7(fork.clock)).item("message", role="assistant", content="done").write()
    index(database, [str(tmp_path)])
    own = "SELECT type, step_index FROM event WHERE copy_of IS NULL"
    assert rows(database, own) == [(1, 3)]


def without_ids(home: Path) -> Rollout:
    """Two turns as 0.46 to 0.104 logged them, without turn ids."""
    return Rollout(home, T0).turn("one", 100, None).turn("two", 100, None)


def test_without_turn_ids_what_was_written_at_the_instant_of_the_fork_is_the_replay(
    tmp_path: Path, database: Path
) -> None:
    """The second meta is another session's, so that there is a replay at all."""
    parent = without_ids(tmp_path)
    fork = parent.fork(T0 + MINUTE)
    fork.clock += 3000
    fork.turn("mine", 7, None).write()
    for known in (False, True):
        if known:
            parent.write()
        index_anew(database, tmp_path)
        assert sums(database, fork) == (OWN_TURN, TWO_TURNS)
    assert rows(database, PARENTS)[1] == (fork.id, "fork", parent.id, None)


@pytest.mark.parametrize(("step", "pause"), [(0, 0), (400, 0), (0, 3000), (1500, 3000)])
def test_without_times_in_turn_ids_the_parents_log_tells_better_than_the_times_of_lines(
    tmp_path: Path, database: Path, step: int, pause: int
) -> None:
    """However slowly the replay was written, and however fast the fork went on."""
    parent = Rollout(tmp_path, T0).turn("one", 100, "turn-1").turn("two", 100, "turn-2")
    fork = parent.fork(T0 + MINUTE, step=step, forked_from_id=parent.id)
    fork.clock += pause
    parent.turn("three", 100, "turn-3").write()
    fork.turn("mine", 7, "turn-9").write()
    index(database, [str(tmp_path)])
    assert sums(database, fork) == (OWN_TURN, TWO_TURNS)
    assert sums(database, parent) == ((3, 3, 3, 330), NOTHING)


def test_the_files_of_a_call_are_those_that_its_patch_changed(tmp_path: Path, database: Path) -> None:
    """A relative path and an absolute one are one file."""
    log = Rollout(tmp_path, T0).says("user", "go")
    for call_id, path in (("a", "src/tide.py"), ("b", "/work/own/src/tide.py")):
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch"
        log.item("custom_tool_call", name="apply_patch", input=patch, call_id=call_id)
        log.event("patch_apply_end", call_id=call_id, success=True, changes={"/work/own/src/tide.py": {}}).write()
        index(database, [str(tmp_path)])
        log.item("custom_tool_call_output", call_id=call_id, output="Exit code: 0\nWall time: 0 seconds\n").write()
        index(database, [str(tmp_path)])
    touched = "SELECT event_index, p.text FROM touched t JOIN path p ON p.id = t.path_id ORDER BY 1"
    assert rows(database, touched) == [(2, "/work/own/src/tide.py"), (4, "/work/own/src/tide.py")]


def test_what_a_command_within_a_script_left_counts_once(tmp_path: Path, database: Path) -> None:
    made, run = "[main 3fa9c21] Tides\n", "== 2 failed in 1.2s =="
    source = 'await tools.exec_command({"cmd":"git commit -m Tides"}); await tools.exec_command({"cmd":"pytest"})'
    log = Rollout(tmp_path, T0).says("user", "go").item("custom_tool_call", name="exec", input=source, call_id="a")
    for number, (command, said, code) in enumerate((("git commit -m Tides", made, 0), ("pytest", run, 1))):
        ran = {"command": ["bash", "-lc", command], "exit_code": code, "aggregated_output": said}
        log.event("item_completed", item={"type": "CommandExecution", "id": f"e{number}"} | ran)
    shown = f"Script completed\nWall time 2.0 seconds\nOutput:\n{made}{run}"
    log.item("custom_tool_call_output", call_id="a", output=shown).write()
    index(database, [str(tmp_path)])
    marks = "SELECT kind, name FROM landmark ORDER BY event_index"
    assert rows(database, marks) == [("commit", "3fa9c21"), ("test_run", "pytest")]
    assert rows(database, "SELECT tool_calls, failed_calls FROM session") == [(3, 1)]


def test_an_aborted_turn_interrupts_the_calls_that_wait(tmp_path: Path, database: Path) -> None:
    """Old versions only write the event; the result may come after all."""
    log = Rollout(tmp_path, T0).says("user", "go").item("function_call", name="a", arguments="{}", call_id="a")
    log.item("function_call", name="b", arguments="{}", call_id="b").event("turn_aborted", reason="interrupted")
    log.item("function_call_output", call_id="b", output="Exit code: 0\nWall time: 1 seconds\nOutput:\n").write()
    index(database, [str(tmp_path)])
    outcomes = "SELECT type, outcome FROM event WHERE type IN (3, 4) ORDER BY event_index"
    assert rows(database, outcomes) == [(3, 3), (3, 0), (4, 0)]


def test_without_turn_ids_a_sub_agent_that_copied_nothing_keeps_its_first_second(
    tmp_path: Path, database: Path
) -> None:
    child = Rollout(tmp_path, T0 + MINUTE, source={"subagent": "review"}, parent_thread_id=uuid7(T0))
    child.clock = T0 + MINUTE
    child.says("user", "review it").spends(7, 10).write()
    index(database, [str(tmp_path)])
    assert sums(database, child) == ((1, 0, 1, 17), NOTHING)


def test_a_sub_agent_with_its_parents_instructions_and_nothing_replayed_copies_nothing(
    tmp_path: Path, database: Path
) -> None:
    for meta, turn in (({"forked_from_id": uuid7(T0, 1)}, ""), ({}, ""), ({}, None)):
        parent = Rollout(tmp_path, T0).item("message", role="developer", content="rules").turn("review it", 100)
        child = Rollout(tmp_path, T0 + MINUTE, 2, thread_source="subagent", parent_thread_id=parent.id, **meta)
        if turn is not None:
            child.event("task_started", turn_id=uuid7(child.clock))
        child.item("message", role="developer", content="rules").turn("review it", 7, turn).write()
        parent.write()
        index_anew(database, tmp_path)
        assert sums(database, child) == (OWN_TURN, NOTHING)


def test_nested_forks_count_each_request_once(parent: Rollout, tmp_path: Path, database: Path) -> None:
    """A fork of a fork replays two metas, and its parent's replay."""
    middle = parent.fork(T0 + MINUTE, forked_from_id=parent.id).turn("mine", 7)
    inner = middle.fork(T0 + 2 * MINUTE, 3, forked_from_id=middle.id).turn("inner", 3)
    for log in (parent, middle, inner):
        log.write()
    index(database, [str(tmp_path)])
    assert sums(database, parent) == (TWO_TURNS, NOTHING)
    assert sums(database, middle) == (OWN_TURN, TWO_TURNS)
    assert sums(database, inner) == ((1, 1, 1, 13), (3, 3, 3, 237))
    assert [row[2] for row in rows(database, PARENTS)] == [None, parent.id, middle.id]


def test_a_fork_keeps_what_it_copied_apart_when_the_parents_log_is_deleted(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    """Agents delete their logs."""
    fork = parent.fork(T0 + MINUTE, forked_from_id=parent.id).turn("mine", 7)
    path = parent.write()
    fork.write()
    index(database, [str(tmp_path)])
    path.unlink()
    index(database, [str(tmp_path)])
    assert sums(database, fork) == (OWN_TURN, TWO_TURNS)
    assert sums(database, parent) == (TWO_TURNS, NOTHING)
    fork.turn("more", 3).write()
    index(database, [str(tmp_path)])
    assert sums(database, fork) == ((2, 2, 2, 30), TWO_TURNS)


# -- what a session is ------------------------------------------------------------------------------


def test_a_replayed_parents_directory_and_name_are_not_the_forks(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    """Nor its id, its version or its branch."""
    parent.records[0]["payload"] |= {"cwd": "/work/parent", "cli_version": "0.1.0", "git": {"branch": "theirs"}}
    parent.event("thread_name_updated", thread_id=parent.id, thread_name="Parent")
    parent.event("thread_name_updated", thread_name="Parent, as an old version wrote it")
    parent.item("message", role="user", content="<environment_context>\n<cwd>/work/parent</cwd>")
    meta = {"cwd": None, "cli_version": "0.2.0", "git": {"branch": "mine"}}
    fork = parent.fork(T0 + MINUTE, forked_from_id=parent.id, **meta)
    fork.event("task_started", turn_id=uuid7(fork.clock)).add("turn_context", model="gpt-5.5-mini", cwd="/work/fork")
    fork.write()
    facts = "SELECT own_id, cwd, version, branch, model, title FROM session"
    index(database, [str(tmp_path)])
    assert rows(database, facts) == [(fork.id, "/work/fork", "0.2.0", "mine", "gpt-5.5-mini", None)]
    fork.event("thread_name_updated", thread_id=fork.id, thread_name="Mine").write()
    index(database, [str(tmp_path)])
    assert rows(database, facts) == [(fork.id, "/work/fork", "0.2.0", "mine", "gpt-5.5-mini", "Mine")]


def test_a_replayed_prompt_is_a_humans_and_the_sub_agents_own_a_task(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    child = parent.fork(T0 + MINUTE, forked_from_id=parent.id, thread_source="subagent").turn("mine", 7)
    child.write()
    index(database, [str(tmp_path)])
    kinds = "SELECT n.text, e.copy_of IS NULL FROM event e JOIN name n ON n.id = e.name_id WHERE e.type = 0"
    assert rows(database, kinds) == [("human", 0), ("human", 0), ("task", 1)]
    assert rows(database, "SELECT snippet FROM session") == [("mine",)]


@pytest.mark.parametrize("shape", ["output", "spawn_end", "activity", "turn_item", "activity_item"])
def test_a_spawned_thread_belongs_to_the_call_that_started_it(tmp_path: Path, database: Path, shape: str) -> None:
    """The output names the thread, or an event before it does."""
    parent, thread = Rollout(tmp_path, T0).says("user", "go"), uuid7(T0 + MINUTE, 2)
    parent.item("function_call", name="spawn_agent", arguments="{}", call_id="c")
    told = {
        "spawn_end": {"type": "collab_agent_spawn_end", "call_id": "c", "new_thread_id": thread, "status": "running"},
        "activity": {"type": "sub_agent_activity", "event_id": "c", "agent_thread_id": thread, "kind": "started"},
        "turn_item": {"type": "CollabAgentToolCall", "id": "c", "tool": "spawnAgent", "receiver_thread_ids": [thread]},
        "activity_item": {"type": "SubAgentActivity", "id": "c", "kind": "started", "agentThreadId": thread},
    }
    if shape.endswith("item"):
        parent.event("item_completed", item=told[shape])
    elif shape in told:
        parent.add("event_msg", **told[shape])
    named = {"nickname": "Ohm", "agent_id": thread} if shape == "output" else {"task_name": "/root/ohm"}
    parent.item("function_call_output", call_id="c", output=json.dumps(named)).write()
    Rollout(tmp_path, T0 + MINUTE, 2, thread_source="subagent").turn("mine", 7).write()
    index(database, [str(tmp_path)])
    assert rows(database, PARENTS)[1] == (thread, "subagent", parent.id, 2)


def test_a_review_belongs_to_the_thread_that_asked_for_it(parent: Rollout, tmp_path: Path, database: Path) -> None:
    """Its tokens are its own; from 0.142 on `session_id` is the root's in all of them."""
    meta = {"source": {"subagent": "review"}, "session_id": parent.id, "parent_thread_id": parent.id}
    review = Rollout(tmp_path, T0 + MINUTE, 2, **meta)
    review.turn("review it", 7).write()
    parent.write()
    index(database, [str(tmp_path)])
    assert rows(database, PARENTS)[1] == (review.id, "subagent", parent.id, None)
    assert sums(database, parent) == (TWO_TURNS, NOTHING)
    assert sums(database, review) == (OWN_TURN, NOTHING)


@pytest.mark.parametrize(
    ("source", "role"),
    [
        ({"subagent": {"other": "guardian"}}, "guardian"),
        ({"subagent": "compact"}, "compact"),
        ({"internal": "memory_consolidation"}, "memory_consolidation"),
    ],
)
def test_a_thread_that_codex_started_itself_is_a_sub_agent(
    parent: Rollout, tmp_path: Path, database: Path, source: Any, role: str
) -> None:
    parent.write()
    Rollout(tmp_path, T0 + MINUTE, 2, source=source, session_id=parent.id).turn("assess it", 7).write()
    index(database, [str(tmp_path)])
    found = rows(database, "SELECT kind, parent_session IS NOT NULL, agent_type FROM session WHERE kind != 'main'")
    assert found == [("subagent", 1, role)]


def test_what_a_thread_repeats_of_a_review_counts_in_the_reviewers_log(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    """Before 0.139 neither log names the other; the reviewer's may be missing, and a fork repeats both."""
    review = Rollout(tmp_path, parent.clock, 2, source={"subagent": "review"}).says("user", "review it")
    review.spends(30, 10).spends(50, 10)
    parent.event("entered_review_mode").records += review.records[2:]
    parent.event("exited_review_mode").turn("three", 100)
    fork = parent.fork(parent.clock + MINUTE, 3, forked_from_id=parent.id).turn("mine", 7)
    parent.write()
    fork.write()
    index(database, [str(tmp_path)])
    tokens = "SELECT total_tokens FROM session ORDER BY own_id"
    assert rows(database, tokens) == [(430,), (17,)]
    review.write()
    index(database, [str(tmp_path)])
    assert rows(database, tokens) == [(330,), (100,), (17,)]
    assert (review.id, "subagent", parent.id, None) in rows(database, PARENTS)
    index_anew(database, tmp_path)
    assert rows(database, tokens) == [(330,), (100,), (17,)]


# -- files -------------------------------------------------------------------------------------------


def test_a_thread_is_listed_whether_or_not_the_index_of_names_has_it(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    """`session_index.jsonl` can shrink, and neither it nor `history.jsonl` is a log."""
    parent.event("thread_name_updated", thread_id=parent.id, thread_name="Tides").write()
    named = {"id": uuid7(T0, 9), "thread_name": "Another", "updated_at": stamped(T0)}
    (tmp_path / "session_index.jsonl").write_text(json.dumps(named) + "\n", encoding="utf-8")
    typed = {"session_id": parent.id, "ts": T0 // 1000, "text": "one"}
    (tmp_path / "history.jsonl").write_text(json.dumps(typed) + "\n", encoding="utf-8")
    index(database, [str(tmp_path)])
    assert rows(database, "SELECT own_id, title FROM session") == [(parent.id, "Tides")]


# -- logs that grow ------------------------------------------------------------------------------------


def rotated(log: Rollout, number: int, kept: int | None = None, **total: int) -> Rollout:
    """The rollout in which a thread goes on, from what it had before an ordinal: of all it had if none is given."""
    for ordinal, record in enumerate(log.records, log.records[0].get("ordinal", 0)):
        record["ordinal"] = ordinal
    end = log.records[-1]["ordinal"] + 1
    further = Rollout(log.home, log.clock, number, id=log.id, history_base={"end_ordinal_exclusive": kept or end})
    further.id, further.file = log.id, f"rollout-2026-05-2{number}T10-00-00-{log.id}_{uuid7(log.clock, number)}.jsonl"
    further.records[0]["ordinal"], further.used = end, total or log.used
    return further


@pytest.mark.parametrize("total", [{}, {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}])
@pytest.mark.parametrize("deleted", [False, True])
def test_a_thread_that_goes_on_in_further_rollouts_is_one_session(
    tmp_path: Path, database: Path, deleted: bool, total: dict[str, int]
) -> None:
    """Its total goes on or begins anew; the first rollouts may be compressed, moved or deleted meanwhile."""
    first = Rollout(tmp_path, T0).turn("one", 100)
    second = rotated(first, 8, **total).turn("two", 100)
    third = rotated(second, 9, **total).turn("three", 100)
    path = first.write()
    index(database, [str(tmp_path)])
    second.write()
    index(database, [str(tmp_path)])
    path.with_suffix(".jsonl.zst").write_bytes(zstandard.compress(path.read_bytes()))
    path.unlink()
    if deleted:
        path.with_suffix(".jsonl.zst").unlink()
    third.write()
    for more in ("four", "five"):
        index(database, [str(tmp_path)])
        third.turn(more, 100).write()
    third.write(below=tmp_path / "archived_sessions")
    third.path.unlink()
    index(database, [str(tmp_path)])
    assert rows(database, "SELECT own_id, turn_count, tool_calls, total_tokens FROM session") == [(first.id, 5, 5, 550)]
    if not deleted:
        index_anew(database, tmp_path)
        assert rows(database, "SELECT own_id, turn_count, total_tokens FROM session") == [(first.id, 5, 550)]


def test_turns_that_a_further_rollout_reverts_are_gone(parent: Rollout, tmp_path: Path, database: Path) -> None:
    second = rotated(parent, 8, kept=1 + len(parent.records) // 2).turn("three", 100)
    third = rotated(second, 9, kept=second.records[0]["ordinal"]).turn("four", 100)
    for log in (parent, second, third):
        log.write()
    index(database, [str(tmp_path)])
    requests = "SELECT r.text FROM turn t JOIN request r ON r.event_index = t.request_event ORDER BY t.turn_index"
    assert rows(database, requests) == [("one",), ("four",)]
    assert rows(database, "SELECT turn_count, total_tokens FROM session") == [(2, 440)]


def test_a_copy_of_a_rollout_under_another_name_counts_once(parent: Rollout, tmp_path: Path, database: Path) -> None:
    path = parent.write()
    shutil.copy(path, path.with_name("rollout-backup.jsonl"))
    for turns in (2, 3):
        index(database, [str(tmp_path)])
        counted = "SELECT own_id, turn_count, total_tokens FROM session WHERE kind != 'warmup'"
        assert rows(database, counted) == [(parent.id, turns, turns * 110)]
        parent.turn("three", 100).write()


def test_a_rollout_that_was_migrated_in_place_is_the_same_session(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    """`codex migrate-rollouts` writes a thread anew at its path: numbered lines, the screen's side as items."""
    parent.write()
    index(database, [str(tmp_path)])
    kinds = {"user_message": "UserMessage", "agent_message": "AgentMessage"}
    for number, record in enumerate(parent.records):
        record["ordinal"], payload = number, record["payload"]
        if kind := kinds.get(payload.get("type")):
            said = [{"type": "text", "text": payload["message"]}]
            record["payload"] = {"type": "item_completed", "item": {"type": kind, "content": said}}
    parent.records[0]["payload"]["history_mode"] = "paginated"
    parent.turn("three", 100).write()
    index(database, [str(tmp_path)])
    assert rows(database, "SELECT own_id, turn_count, total_tokens FROM session") == [(parent.id, 3, 330)]
    assert rows(database, "SELECT count(*) FROM event WHERE type = 0 AND superseded_by IS NULL") == [(3,)]


def test_turns_that_were_rolled_back_are_gone_and_their_tokens_stay(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    parent.turn("three", 100).event("thread_rolled_back", num_turns=2).turn("four", 7).write()
    index(database, [str(tmp_path)])
    requests = "SELECT r.text FROM turn t JOIN request r ON r.event_index = t.request_event ORDER BY t.turn_index"
    assert rows(database, requests) == [("one",), ("four",)]
    assert sums(database, parent) == ((2, 2, 4, 347), NOTHING)
    kept = "SELECT e.superseded_by FROM event e JOIN name n ON n.id = e.name_id WHERE n.text = 'thread_rolled_back'"
    assert rows(database, kept) == [(None,)]


def test_a_last_response_without_figures_makes_the_total_inexact(
    parent: Rollout, tmp_path: Path, database: Path
) -> None:
    for lacking in ({}, {0: 1}):
        parent.write()
        index(database, [str(tmp_path)])
        with closing(sqlite3.connect(database)) as connection:
            assert not_understood(connection, Among("all")) == lacking
        parent.item("function_call", name="exec_command", arguments="{}", call_id="k")


def family(home: Path) -> list[Path]:
    """A parent that goes on, a fork, a sub-agent with a replay and its fork, and a fork without turn ids."""
    parent = Rollout(home, T0).turn("one", 100).turn("two", 100)
    fork = parent.fork(T0 + MINUTE, forked_from_id=parent.id).turn("mine", 7)
    child = parent.fork(T0 + MINUTE, 3, forked_from_id=parent.id, thread_source="subagent").turn("task", 7)
    inner = child.fork(T0 + 2 * MINUTE, 4, forked_from_id=child.id).event("thread_rolled_back", num_turns=1)
    parent.turn("three", 100)
    old = Rollout(home, T0, 5).turn("old", 100, None)
    young = old.fork(T0 + MINUTE, 6)
    young.clock += 3000
    young.turn("young", 7, None)
    return [log.write() for log in (parent, fork, child, inner, old, young)]
