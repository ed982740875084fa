"""Bug classes of other tools that read Claude Code's logs: small logs, indexed, and queried by SQL.

Each test fails if the rule that it names is removed.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events.drafts import Record
from agtrace_indexer.index.queries.usage import Among, not_understood
from agtrace_indexer.run import index

from tests.contents import contents, texts

MAIN = "aaaaaaaa-0000-4000-8000-000000000001"
OTHER = "bbbbbbbb-0000-4000-8000-000000000002"

_SESSIONS = """
SELECT s.*, p.own_id AS parent, e.name, e.call_line FROM session s
LEFT JOIN session p ON p.id = s.parent_session
LEFT JOIN (SELECT e.session_id, e.event_index, n.text AS name, e.line AS call_line FROM event e
  LEFT JOIN name n ON n.id = e.name_id) e ON e.session_id = s.parent_session AND e.event_index = s.started_by
"""

_EXECUTIONS = """
SELECT n.text AS tool, e.type, e.outcome, e.duration_ms FROM event e LEFT JOIN name n ON n.id = e.name_id
WHERE e.type IN (3, 4) AND e.superseded_by IS NULL ORDER BY e.event_index
"""
"""Type 3 is a call, 4 a result."""

OK, FAILED, REJECTED, INTERRUPTED, RUNNING = range(5)
"""The codes of outcomes."""


# --- lines: the number at the end of a uuid is the second of its time ---


def line(kind: str, uuid: str, **more: Any) -> Record:
    """A chain line."""
    number = int(uuid.rpartition("-")[2])
    time = f"2026-07-01T12:{number // 60:02}:{number % 60:02}.000Z"
    return {"type": kind, "uuid": uuid, "timestamp": time, "isSidechain": False, "cwd": "/home/ada/engine", **more}


def said(uuid: str, content: Any, **more: Any) -> Record:
    """A user line."""
    return line("user", uuid, message={"role": "user", "content": content}, **more)


def answer(uuid: str, *blocks: Any, id: str | None = "", output: int = 10, **more: Any) -> Record:
    """An assistant line with its usage; a string is a text block."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    usage = more.pop("usage", {"input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": output})
    message = {"id": f"msg_{uuid}" if id == "" else id, "role": "assistant", "model": "claude-opus-4-8"}
    message |= {"content": content, "stop_reason": "end_turn", "usage": usage, **more.pop("message", {})}
    return line("assistant", uuid, message=message, **{"requestId": f"req_{uuid}", "version": "2.1.212"} | more)


def call(id: str, name: str = "Bash", **arguments: Any) -> Record:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": id, "name": name, "input": arguments or {"command": "make"}}


def result(uuid: str, id: str, content: Any = "done", *, detail: Any = None, **more: Any) -> Record:
    """A user line with the result of a call."""
    block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": more.pop("is_error", False)}
    return said(uuid, [block], **({} if detail is None else {"toolUseResult": detail}), **more)


def chained(*lines: Record) -> list[Record]:
    """Lines of which each has the one before it as its parent, where it names none itself."""
    parents = [None, *(one["uuid"] for one in lines)]
    return [{"parentUuid": parent, **one} for parent, one in zip(parents, lines, strict=False)]


def of_session(session: str, lines: list[Record], **more: Any) -> list[Record]:
    """The lines as a log of this session has them."""
    return [{**one, "sessionId": session, **more} for one in lines]


class Logs:
    """A folder of logs and the index of it."""

    def __init__(self, folder: Path, database: Path) -> None:
        self.folder, self.database = folder / "projects" / "-home-ada-engine", database

    def write(self, name: str, lines: list[Record], session: str = MAIN, **more: Any) -> Path:
        """Write a log of a session, or append to it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in of_session(session, lines, **more))
        return path

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Bring the index up to date and ask it."""
        index(self.database, [str(self.folder.parent)])
        connection = sqlite3.connect(self.database)
        connection.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in connection.execute(sql)]
        finally:
            connection.close()

    def sessions(self) -> dict[str, dict[str, Any]]:
        """The sessions by the ids that their logs give them."""
        return {row["own_id"]: row for row in self.rows(_SESSIONS)}

    def session(self, own_id: str = MAIN) -> dict[str, Any]:
        """One of them."""
        return self.sessions()[own_id]

    def executions(self) -> list[tuple[str, int, int | None]]:
        """(tool, outcome, duration) of the calls; each result must say the same as its call."""
        rows = [tuple(row.values()) for row in self.rows(_EXECUTIONS)]
        calls, results = ([(row[0], *row[2:]) for row in rows if row[1] == kind] for kind in (3, 4))
        assert sorted(calls, key=repr) == sorted(results, key=repr)
        return calls

    def usages(self) -> list[dict[str, Any]]:
        """The figures of the responses that count."""
        return self.rows(
            "SELECT u.* FROM token_usage u JOIN event e USING (session_id, event_index) "
            "WHERE e.superseded_by IS NULL AND e.copy_of IS NULL ORDER BY 1, 2"
        )

    def texts(self) -> list[str]:
        """The searchable texts of all events."""
        self.rows("SELECT 1")
        connection = sqlite3.connect(self.database)
        try:
            return [text for _, _, text, _ in texts(connection)]
        finally:
            connection.close()


@pytest.fixture
def logs(tmp_path: Path, database: Path) -> Iterator[Logs]:
    """Logs to be written; at the end the index must be what reading all of them at once gives."""
    made = Logs(tmp_path, database)
    yield made
    if made.folder.exists():
        made.rows("SELECT 1")
        fresh = database.with_name("fresh.sqlite3")
        index(fresh, [str(made.folder.parent)])
        assert contents(made.database) == contents(fresh)


TALK = chained(
    said("m-1", "Build an engine"),
    answer("m-2", "I build it.", call("toolu_1"), output=20),
    result("m-3", "toolu_1"),
    answer("m-4", "Built.", output=30),
)
"""A request, a tool execution and an answer: 50 tokens of output in two responses."""


# --- tokens of responses ---


def test_a_response_on_several_lines_counts_once(logs: Logs) -> None:
    """Its usage stands on every line."""
    one = {"id": "msg_1", "requestId": "req_1", "output": 57}
    logs.write(f"{MAIN}.jsonl", chained(said("m-1", "go"), answer("m-2", "a", **one), answer("m-3", "b", **one)))
    assert [(row["response_id"], row["output_tokens"]) for row in logs.usages()] == [("msg_1/req_1", 57)]
    assert (logs.session()["responses"], logs.session()["total_tokens"]) == (1, 160)


@pytest.mark.parametrize("first", ["req_1", None])
def test_a_line_may_lack_the_id_of_the_request(logs: Logs, first: str | None) -> None:
    one = {"id": "msg_1", "output": 57}
    lines = [
        answer("m-2", "a", **one, requestId=first),
        answer("m-3", "b", **one, requestId=None if first else "req_1"),
    ]
    logs.write(f"{MAIN}.jsonl", chained(said("m-1", "go"), *lines))
    assert logs.session()["output_tokens"] == 57


@pytest.mark.parametrize("together", [True, False])
def test_the_final_figures_of_a_response_count_and_not_the_first(logs: Logs, together: bool) -> None:
    """The first line holds what was known when the response began."""
    one = {"id": "msg_1", "requestId": "req_1"}
    logs.write(f"{MAIN}.jsonl", chained(said("m-1", "go"), answer("m-2", "a", **one, output=1)))
    if not together:
        assert logs.session()["output_tokens"] == 1
    logs.write(f"{MAIN}.jsonl", [result("m-3", "toolu_0"), answer("m-4", "b", **one, output=508)])
    assert logs.session()["output_tokens"] == 508


def test_the_whole_line_with_the_most_output_counts(logs: Logs) -> None:
    """Another model took over in the middle, with cache figures of its own."""
    first = {"input_tokens": 900, "cache_read_input_tokens": 5000, "output_tokens": 8}
    later = {"input_tokens": 700, "cache_read_input_tokens": 0, "output_tokens": 80}
    one = {"id": "msg_1", "requestId": "req_1"}
    logs.write(
        f"{MAIN}.jsonl",
        chained(
            said("m-1", "go"),
            answer("m-2", "a", **one, usage=first, message={"model": "claude-fable-5"}),
            answer("m-3", "b", **one, usage=later, message={"model": "claude-opus-4-8"}),
        ),
    )
    (row,) = logs.usages()
    assert (row["model"], row["input_tokens"], row["cache_read_tokens"]) == ("claude-opus-4-8", 700, 0)


def test_long_and_short_lived_cache_writes_the_speed_and_the_size_of_a_request_are_told_apart(logs: Logs) -> None:
    """They have prices of their own."""
    detail = {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 400}
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 420, "cache_creation": detail, "output_tokens": 9}
    large = {"input_tokens": 300_000, "output_tokens": 9, "speed": "fast"}
    lines = chained(said("m-1", "go"), answer("m-2", "a", usage=usage), answer("m-3", "b", usage=large))
    logs.write(f"{MAIN}.jsonl", lines)
    found = logs.rows(
        "SELECT speed, context_class % 4 > 0 AS large, cache_creation_5m_tokens AS short, "
        "cache_creation_1h_tokens AS long FROM model_usage ORDER BY speed"
    )
    assert [tuple(row.values()) for row in found] == [("", 0, 20, 400), ("fast", 1, None, None)]


def test_a_cost_that_the_log_names_counts_once_a_response(logs: Logs) -> None:
    one = {"id": "msg_1", "requestId": "req_1"}
    told = [answer(f"m-{number}", "a", **one, costUSD=cost) for number, cost in enumerate((0, 0.125, 0.125), start=2)]
    lines = chained(said("m-1", "go"), *told, answer("m-5", "c"))
    logs.write(f"{MAIN}.jsonl", lines)
    assert [row["cost_usd"] for row in logs.usages()] == [0.125, None]
    assert logs.rows("SELECT cost_usd, responses FROM model_usage WHERE told") == [{"cost_usd": 0.125, "responses": 1}]


@pytest.mark.parametrize(
    ("usage", "known"),
    [
        ({"input_tokens": 0, "output_tokens": 0}, (None, None, None)),
        ({"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0}, (None, None, None)),
        ({"input_tokens": 812, "output_tokens": 0}, (812, None, None)),
        ({"input_tokens": 0, "output_tokens": 57, "cache_read_input_tokens": 0}, (None, None, 57)),
    ],
)
def test_figures_that_cannot_be_zero_are_unknown(logs: Logs, usage: Record, known: tuple[int | None, ...]) -> None:
    """Gateways to other models write zeros, or save a part of the figures."""
    logs.write(f"{MAIN}.jsonl", chained(said("m-1", "go"), answer("m-2", "a", usage=usage)))
    (row,) = logs.usages()
    assert (row["input_tokens"], row["cache_read_tokens"], row["output_tokens"]) == known
    assert logs.session()["incomplete_usage"] == 1


def test_input_that_was_cached_to_the_last_token_is_zero(logs: Logs) -> None:
    usage = {"input_tokens": 0, "cache_read_input_tokens": 9000, "output_tokens": 5}
    logs.write(f"{MAIN}.jsonl", chained(said("m-1", "go"), answer("m-2", "a", usage=usage)))
    assert (logs.session()["input_tokens"], logs.session()["incomplete_usage"]) == (0, 0)


def cost(session: str = MAIN, **models: tuple[int, int, int]) -> Record:
    names = ("inputTokens", "cacheReadInputTokens", "outputTokens")
    usage = {name.replace("_", "-"): dict(zip(names, told, strict=True)) for name, told in models.items()}
    return {"type": "cost-state", "sessionId": session, "modelUsage": usage}


def test_what_a_cost_state_has_more_than_the_lines_counts_once(logs: Logs) -> None:
    sums = (
        "SELECT model, sum(input_tokens), sum(cache_read_tokens), sum(output_tokens), sum(incomplete) FROM model_usage"
    )
    opus, haiku = "claude_opus_4_8", "claude_haiku_4_5"
    first, second = cost(**{opus: (6, 200, 60), haiku: (400, 0, 40)}), cost(**{f"{opus}[1m]": (9, 307, 80)})
    logs.write(f"{MAIN}.jsonl", [*TALK, first, first])
    assert [tuple(row.values()) for row in logs.rows(sums + " GROUP BY 1 ORDER BY 1")] == [
        ("claude-haiku-4-5", 400, 0, 40, 0), ("claude-opus-4-8", 6, 200, 60, 0)
    ]  # fmt: skip
    more = chained(said("m-70", "On"), answer("m-71", "Yes.", output=5))
    logs.write(f"{MAIN}.jsonl", more)
    assert [*logs.rows(sums)[0].values()][1:] == [409, 300, 105, 1]
    logs.write(f"{MAIN}.jsonl", [second, second])
    assert [*logs.rows(sums)[0].values()][1:] == [409, 307, 120, 0]
    asked = answer("m-80", call("t", "Agent", prompt="x"), output=1)
    logs.write(f"{MAIN}.jsonl", [asked, cost(**{opus: (99, 999, 99)}), cost(OTHER, **{opus: (9999, 9999, 9999)})])
    assert [*logs.rows(sums)[0].values()][1:4] == [412, 407, 121]
    assert logs.rows("SELECT type FROM record_type WHERE status = 'unknown'") == [{"type": "usage/cost-state"}]


# --- lines in several logs, and twice in one ---


@pytest.mark.parametrize("fork_first", [False, True])
def test_a_response_in_two_sessions_counts_in_the_older_one(logs: Logs, fork_first: bool) -> None:
    """A fork copies the lines of its origin, whatever is read first."""
    fork = [*TALK, *chained(said("f-70", "Another way."), answer("f-71", "Yes.", output=5))]
    writes = [(f"{MAIN}.jsonl", TALK, MAIN), (f"{OTHER}.jsonl", fork, OTHER)]
    for write in reversed(writes) if fork_first else writes:
        logs.write(*write)
        logs.rows("SELECT 1")
    made, copied = logs.session(MAIN), logs.session(OTHER)
    assert (made["output_tokens"], made["responses"], made["tool_calls"], made["turn_count"]) == (50, 2, 1, 1)
    assert (copied["output_tokens"], copied["responses"], copied["tool_calls"], copied["turn_count"]) == (5, 1, 0, 1)
    assert (copied["copied_responses"], copied["copied_turns"], copied["parent"]) == (2, 1, MAIN)
    assert copied["snippet"] == "Another way."


@pytest.mark.parametrize("missing", ["requestId", "message id", "both"])
def test_a_replayed_response_without_an_id_is_known_by_its_line(logs: Logs, missing: str) -> None:
    """Other gateways and SDKs leave out the request's id or the message's."""
    left_out: Record = {} if missing == "message id" else {"requestId": None}
    left_out |= {} if missing == "requestId" else {"id": None}
    lines = chained(said("m-1", "go"), answer("m-2", "a", output=40, **left_out))
    logs.write(f"{MAIN}.jsonl", lines)
    logs.write(f"{OTHER}.jsonl", [*lines, said("f-70", "on")], OTHER)
    assert (logs.session(MAIN)["output_tokens"], logs.session(OTHER)["output_tokens"]) == (40, None)
    assert logs.session(OTHER)["copied_responses"] == 1


def test_a_background_copy_is_a_fork_and_counts_nothing_twice(logs: Logs) -> None:
    """Only the session's id is another one."""
    logs.write(f"{MAIN}.jsonl", TALK)
    logs.write(f"{OTHER}.jsonl", TALK, OTHER, sessionKind="bg", cwd="/elsewhere")
    assert {id: (row["kind"], row["output_tokens"]) for id, row in logs.sessions().items()} == {
        MAIN: ("main", 50),
        OTHER: ("fork", None),
    }
    assert logs.session(OTHER)["parent"] == MAIN


def test_only_the_first_line_makes_a_background_copy(logs: Logs) -> None:
    logs.write(f"{MAIN}.jsonl", [*TALK[:2], *({**one, "sessionKind": "bg"} for one in TALK[2:])])
    assert logs.session()["kind"] == "main"


def test_a_branch_whose_lines_have_new_uuids_counts_nothing_twice(logs: Logs) -> None:
    """As the SDK makes it; each line names that of which it is a copy."""
    logs.write(f"{MAIN}.jsonl", TALK)
    copies = [
        {**one, "uuid": f"c-{place}", "forkedFrom": {"sessionId": MAIN, "messageUuid": one["uuid"]}}
        for place, one in enumerate(TALK)
    ]
    logs.write(
        f"{OTHER}.jsonl", [*copies, said("f-70", "Another way."), cost(OTHER, claude_opus_4_8=(9, 900, 90))], OTHER
    )
    fork = logs.session(OTHER)
    assert (fork["kind"], fork["copied_turns"], fork["output_tokens"], fork["snippet"]) == (
        "fork",
        1,
        None,
        "Another way.",
    )
    assert logs.rows("SELECT type FROM record_type WHERE status = 'unknown'") == [{"type": "usage/cost-state"}]


def test_a_branch_names_the_session_that_it_was_made_of(logs: Logs) -> None:
    logs.write(f"{OTHER}.jsonl", [{**TALK[0], "forkedFrom": {"sessionId": MAIN, "messageUuid": "m-1"}}], OTHER)
    assert (logs.session(OTHER)["kind"], logs.session(OTHER)["parent_id"]) == ("fork", MAIN)


def test_history_that_is_repeated_at_each_turn_counts_once(logs: Logs) -> None:
    """With stream-json input the file repeats what it has."""
    second = chained(said("m-70", "And a test"), answer("m-71", "Tested.", output=7))
    logs.write(f"{MAIN}.jsonl", [*TALK, *TALK, *second, *TALK, *second])
    found = logs.session()
    assert (found["turn_count"], found["tool_calls"], found["responses"], found["output_tokens"]) == (2, 1, 3, 57)
    skipped = logs.rows("SELECT count FROM record_type WHERE type = 'repeated line'")
    assert skipped == [{"count": 10}]


@pytest.mark.parametrize("answers", [1, 100])
def test_history_that_is_repeated_under_new_uuids_costs_nothing(logs: Logs, answers: int) -> None:
    """The ids of the responses are still the same, however long ago they came."""
    first = chained(said("m-1", "Build an engine"), *(answer(f"m-{n + 2}", "Built.") for n in range(answers)))
    again = [{**one, "uuid": f"again-{number}"} for number, one in enumerate(first, 300)]
    logs.write(f"{MAIN}.jsonl", [*first, *again])
    assert (logs.session()["responses"], logs.session()["output_tokens"]) == (answers, 10 * answers)


def test_an_aside_that_logs_the_whole_conversation_again_counts_only_what_it_adds(logs: Logs) -> None:
    """`/btw` starts a sub-agent with a copy of everything."""
    agent = "aside_question-1f"
    own = chained(said("b-70", "What is an engine?"), answer("b-71", "A machine.", output=4))
    logs.write(f"{MAIN}.jsonl", [*TALK, answer("m-80", "On we go.", output=6)])
    logs.write(f"{MAIN}/subagents/agent-{agent}.jsonl", [*TALK, *own], isSidechain=True, agentId=agent)
    aside = logs.session(f"agent-{agent}")
    assert (logs.session()["output_tokens"], aside["output_tokens"], aside["turn_count"]) == (56, 4, 1)
    assert (aside["parent"], aside["snippet"]) == (MAIN, "What is an engine?")


def test_a_second_compaction_that_appends_old_lines_again_adds_nothing(logs: Logs) -> None:
    """With their own uuids, by another version, in another directory."""
    boundary = line("system", "m-60", subtype="compact_boundary", content="Compacted", logicalParentUuid="m-4")
    summary = said("m-61", "This session is being continued...", isCompactSummary=True)
    again = [{**one, "version": "2.1.219", "gitBranch": "next", "slug": "later"} for one in TALK]
    logs.write(f"{MAIN}.jsonl", [*TALK, boundary, summary])
    before = logs.session()
    logs.write(f"{MAIN}.jsonl", [*again, *again, {**boundary, "uuid": "m-80"}])
    after = logs.session()
    for sum_of in ("turn_count", "tool_calls", "responses", "output_tokens", "copied_events"):
        assert after[sum_of] == before[sum_of], sum_of
    assert after["event_count"] == before["event_count"] + 1


def test_a_uuid_that_two_logs_use_for_different_things_costs_neither_its_line(logs: Logs) -> None:
    """An index by uuid drops the whole second file."""
    other = chained(said("m-1", "Paint a house"), answer("m-2", "Painted.", id="msg_x", requestId="req_x", output=9))
    logs.write(f"{MAIN}.jsonl", TALK)
    logs.write(f"{OTHER}.jsonl", other, OTHER)
    assert {id: (row["event_count"], row["output_tokens"]) for id, row in logs.sessions().items()} == {
        MAIN: (7, 50),
        OTHER: (3, 9),
    }


def test_two_files_with_one_session_id_are_two_sessions(logs: Logs) -> None:
    """Reading one again must not take the other's away."""
    logs.write(f"{MAIN}.jsonl", TALK)
    logs.write(f"../-home-ada-house/{MAIN}.jsonl", chained(said("h-1", "Paint a house")), cwd="/home/ada/house")
    logs.rows("SELECT 1")
    logs.write(f"../-home-ada-house/{MAIN}.jsonl", [said("h-2", "And a fence")])
    found = logs.rows("SELECT snippet, turn_count, own_id FROM session ORDER BY started_at, snippet")
    assert [tuple(row.values()) for row in found] == [("Build an engine", 1, MAIN), ("Paint a house", 2, MAIN)]


def test_a_log_of_which_another_one_with_its_id_has_everything_is_no_second_session(logs: Logs) -> None:
    """As after resuming from another folder, with a copy."""
    logs.write(f"{MAIN}.jsonl", TALK)
    logs.write(f"../-home-ada-house/{MAIN}.jsonl", [*TALK, said("m-90", "Go on", parentUuid="m-4")])
    query = "SELECT uid, turn_count, output_tokens, copied_turns FROM session WHERE kind != 'warmup'"
    for _ in range(2):
        assert [tuple(row.values()) for row in logs.rows(query)] == [(MAIN, 2, 50, 0)]
        logs.write(f"{OTHER}.jsonl", [])
    logs.write(f"{MAIN}.jsonl", [said("m-91", "Or not", parentUuid="m-4")])
    assert [row["turn_count"] for row in logs.rows(f"{query} ORDER BY uid")] == [2, 1]
    shutil.copy(logs.folder / f"{MAIN}.jsonl", logs.folder / f"../-home-ada-house/{MAIN}.jsonl")
    assert [row["turn_count"] for row in logs.rows(query)] == [2]
    (logs.folder / f"{MAIN}.jsonl").write_text(json.dumps(said("n-1", "Anew")) + "\n")
    assert sorted(row["turn_count"] for row in logs.rows(query)) == [1, 2]


# --- what a chain of parents can't tell ---


def test_every_branch_of_an_edited_conversation_is_kept(logs: Logs) -> None:
    """A line may have several children."""
    edited = said("m-70", "Build a boat", parentUuid=None, version="2.1.270")
    again = {**answer("m-72", "Or a raft.", output=2), "parentUuid": "m-70"}
    lines = [*TALK, edited, {**answer("m-71", "Built.", output=1), "parentUuid": "m-70"}, again]
    logs.write(f"{MAIN}.jsonl", lines)
    assert (logs.session()["turn_count"], logs.session()["output_tokens"]) == (2, 53)
    assert {"Build an engine", "Build a boat", "Or a raft."} <= set(logs.texts())


def test_a_turn_that_was_rewound_counts_no_more_but_for_its_tokens(logs: Logs) -> None:
    """Two requests after one answer: the later one goes on, and tells what it left behind."""
    left = [said("m-5", "Use steam"), answer("m-6", call("toolu_2")), result("m-7", "toolu_2", is_error=True)]
    again = said("m-9", "Use wind", parentUuid="m-4")
    between = [line("system", "m-12", subtype="turn_duration"), said("m-13", "<bash-stdout></bash-stdout>")]
    lines = [*chained(*TALK, *between, *left, said("m-8", "Why?")), again, answer("m-10", "Blows.", parentUuid="m-9")]
    logs.write(f"{MAIN}.jsonl", lines)
    for _ in range(2):
        found = logs.session()
        assert (found["turn_count"], found["tool_calls"], found["failed_calls"]) == (2, 1, 0)
        assert found["output_tokens"] == 70
        logs.write(f"{MAIN}.jsonl", lines)  # repeated: the request isn't another one
    assert "left behind:\nUse steam\nWhy?" in logs.texts()


def test_a_rewind_is_known_by_the_last_leaf(logs: Logs) -> None:
    left = [said("m-5", "Use steam"), answer("m-6", "Hot.")]
    logs.write(f"{MAIN}.jsonl", [*chained(*TALK, *left), {"type": "last-prompt", "leafUuid": "m-4"}])
    assert (logs.session()["turn_count"], logs.session()["output_tokens"]) == (1, 60)
    assert "left behind:\nUse steam" in logs.texts()


def test_a_compaction_breaks_no_session_and_its_summary_is_no_request(logs: Logs) -> None:
    """The boundary has no parent, later lines have one that is nowhere."""
    boundary = line("system", "m-60", parentUuid=None, subtype="compact_boundary", content="Compacted",
                    logicalParentUuid="m-4")  # fmt: skip
    summary = said("m-61", "What was said before: an engine.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    lost = {**answer("m-63", "Polished.", output=1), "parentUuid": "nowhere"}
    logs.write(f"{MAIN}.jsonl", [boundary, summary, *TALK, said("m-62", "Polish it"), lost])
    found = logs.session()
    assert (found["turn_count"], found["snippet"], found["output_tokens"]) == (2, "Build an engine", 51)
    assert {"What was said before: an engine.", "Polished."} <= set(logs.texts())
    for own, lacking in ([], {0: 1}), (agent_lines("acompact-1", "Sum up"), {}):
        logs.write(f"{MAIN}/subagents/agent-acompact-1.jsonl", own)
        logs.session()
        with closing(sqlite3.connect(logs.database)) as connection:
            assert not_understood(connection, Among("all")) == lacking


@pytest.mark.parametrize(
    "first",
    [
        said("f-70", "And now?", parentUuid="m-4"),
        line("system", "f-70", parentUuid=None, subtype="compact_boundary", logicalParentUuid="m-4", content="x"),
        said("f-70", "Summary.", parentUuid="m-4", isCompactSummary=True),
        line("progress", "f-70", parentUuid="m-4", data={"type": "hook_progress"}, parentToolUseID="h"),
    ],
    ids=["resumed", "boundary", "summary", "progress"],
)
def test_a_log_that_begins_behind_a_line_of_another_goes_on_from_it(logs: Logs, first: Record) -> None:
    logs.write(f"{OTHER}.jsonl", [first, {**said("f-71", "On"), "parentUuid": "f-70"}], OTHER)
    assert logs.session(OTHER)["parent"] is None
    logs.write(f"{MAIN}.jsonl", TALK)
    assert (logs.session(OTHER)["parent"], logs.session(OTHER)["kind"]) == (MAIN, "main")


def test_a_later_line_with_a_parent_elsewhere_makes_no_family(logs: Logs) -> None:
    logs.write(f"{MAIN}.jsonl", TALK)
    logs.write(f"{OTHER}.jsonl", [*chained(said("f-70", "A")), said("f-71", "B", parentUuid="m-4")], OTHER)
    assert logs.session(OTHER)["parent"] is None


# --- sub-agents ---


def agent_lines(agent: str, prompt: str, *more: Record) -> list[Record]:
    """The log of a sub-agent."""
    number = 100 + 10 * ord(agent[-1])
    own = chained(said(f"{agent}-{number}", prompt), answer(f"{agent}-{number + 1}", "Done.", output=3), *more)
    return [{**one, "isSidechain": True, "agentId": agent} for one in own]


@pytest.mark.parametrize("name", ["agent-ab.jsonl", f"{MAIN}/subagents/agent-ab.jsonl",
                                  f"{MAIN}/subagents/workflows/wf_1/agent-ab.jsonl"])  # fmt: skip
def test_a_subagent_is_found_wherever_its_log_lies(logs: Logs, name: str) -> None:
    """And it is a session of its own, with its own tokens."""
    logs.write(name, agent_lines("ab", "Find the leak"))
    task = answer("m-5", call("toolu_9", "Task", prompt="Find the leak", description="leak"), output=1)
    done = result(
        "m-6", "toolu_9", [{"type": "text", "text": "Done."}], detail={"agentId": "ab", "status": "completed"}
    )
    logs.write(f"{MAIN}.jsonl", [*TALK, task, done])
    agent = logs.session("agent-ab")
    assert (agent["kind"], agent["parent"], agent["name"], agent["call_line"]) == ("subagent", MAIN, "Task", 5)
    assert (agent["output_tokens"], logs.session()["output_tokens"]) == (3, 51)


def test_a_nested_agent_belongs_to_the_agent_that_started_it(logs: Logs) -> None:
    """Not to the session at the root, whose folder its log lies in."""
    folder = f"{MAIN}/subagents"
    started = [answer("ab-200", call("toolu_n", "Agent", prompt="Look there"), output=1)]
    started += [result("ab-201", "toolu_n", detail={"agentId": "ac", "status": "completed"})]
    logs.write(f"{folder}/agent-ac.jsonl", agent_lines("ac", "Look there"), "agent-ac")
    logs.write(f"{MAIN}.jsonl", TALK)
    assert logs.session("agent-ac")["parent"] == MAIN  # the folder tells, and nothing better is known yet
    logs.write(f"{folder}/agent-ab.jsonl", agent_lines("ab", "Find the leak", *started))
    found = logs.sessions()
    assert (found["agent-ac"]["parent"], found["agent-ac"]["name"]) == ("agent-ab", "Agent")
    assert found["agent-ab"]["parent"] == MAIN


def test_agents_of_one_id_belong_each_to_its_own_session(logs: Logs) -> None:
    """The short ids of agents are unique only within a session."""
    done = result("m-6", "toolu_9", detail={"agentId": "ab", "status": "completed"})
    for session, uuid in ((MAIN, "m-5"), (OTHER, "n-5")):
        asked = answer(uuid, call("toolu_9", "Task", prompt=session))
        logs.write(f"{session}.jsonl", [said(f"{uuid}0", "go"), asked, {**done, "uuid": f"{uuid}1"}], session)
        logs.write(f"{session}/subagents/agent-ab.jsonl", agent_lines("ab", session), session)
    found = logs.rows(f"SELECT parent_id, parent, name FROM ({_SESSIONS}) WHERE kind = 'subagent' ORDER BY parent_id")
    assert [tuple(row.values()) for row in found] == [(MAIN, MAIN, "Task"), (OTHER, OTHER, "Task")]


def test_a_description_beside_a_subagents_log_is_read(logs: Logs) -> None:
    path = logs.write(f"{MAIN}/subagents/agent-ab.jsonl", agent_lines("ab", "Find the leak"))
    path.with_name("agent-ab.meta.json").write_text('{"agentType": "Explore", "description": "Find\\n the leak"}')
    found = logs.session("agent-ab")
    assert (found["agent_type"], found["description"]) == ("Explore", "Find the leak")


@pytest.mark.parametrize("made", [os.mkfifo, Path.mkdir, lambda place: place.symlink_to(place.with_name("x.json")),
    b"", b"{", b"[1]", b'{"agentType": 3, "description": ["x"]}', b"{" * 70_000])  # fmt: skip
def test_a_description_that_cannot_be_read_harms_nothing(logs: Logs, made: Any) -> None:
    path = logs.write(f"{MAIN}/subagents/agent-ab.jsonl", agent_lines("ab", "Find the leak"))
    beside = path.with_name("agent-ab.meta.json")
    beside.with_name("x.json").write_text('{"agentType": "Explore"}')
    beside.write_bytes(made) if isinstance(made, bytes) else made(beside)
    found = logs.session("agent-ab")
    assert (found["agent_type"], found["description"], found["turn_count"]) == (None, None, 1)


def test_no_secret_of_a_description_is_stored(logs: Logs) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    path = logs.write(f"{MAIN}/subagents/agent-ab.jsonl", agent_lines("ab", "Find the leak"))
    path.with_name("agent-ab.meta.json").write_text(json.dumps({"description": f"use {secret}"}))
    task = call("toolu_9", "Task", prompt="Look", description=f"use {secret}")
    logs.write(f"{MAIN}.jsonl", [*TALK, answer("m-5", task), {"type": "summary", "summary": secret, "leafUuid": "m-5"}])
    assert "[redacted" in logs.session("agent-ab")["description"]
    states = logs.rows("SELECT state FROM file_state")
    assert states and not [row for row in states if secret.encode() in unpacked(row["state"])]


def unpacked(state: bytes | None) -> bytes:
    from agtrace_indexer.texts.blocks import unpack

    return b"" if state is None else unpack(state)


def inline(uuid: str, prompt: str, *more: Record) -> list[Record]:
    """The lines of an inline sidechain, which begins with the prompt of its call."""
    return [{**one, "isSidechain": True} for one in chained(said(uuid, prompt), *more)]


def test_inline_sidechains_are_linked_with_the_calls_whose_prompts_they_begin_with(logs: Logs) -> None:
    tasks = [
        answer("m-5", call("toolu_a", "Task", prompt="Find it", description="first", subagent_type="Explore")),
        answer("m-6", call("toolu_b", "Task", prompt="Fix it", description="second", subagent_type="Plan")),
        answer("m-7", call("toolu_c", "Task", prompt="Find it", description="third", subagent_type="Explore")),
    ]
    ended = [
        answer("m-8", call("toolu_d", "Task", prompt="Oil it")),
        result("m-9", "toolu_d"),
        *inline("s-5", "Oil it"),
    ]
    chains = [*inline("s-1", "Fix it", answer("s-2", "Fixed.")), *inline("s-3", "Find it "), *inline("s-4", "Find it")]
    logs.write(f"{MAIN}.jsonl", [*TALK, *tasks, *ended, *chains])
    found = logs.sessions()
    linked = {id[-3:]: (row["call_line"], row["description"], row["agent_type"]) for id, row in found.items()}
    assert linked == {
        MAIN[-3:]: (None, None, None),
        "s-1": (6, "second", "Plan"),
        "s-3": (5, "first", "Explore"),
        "s-4": (7, "third", "Explore"),
        "s-5": (None, None, None),
    }
    assert {row["parent"] for id, row in found.items() if id != MAIN} == {MAIN}
    own = [{**one, "agentId": "x1"} for one in inline("s-1", "Fix it", answer("s-2", "Fixed."))]
    logs.write("agent-x1.jsonl", own)
    found = logs.sessions()
    kinds = {id[-3:]: (row["kind"], row["event_count"]) for id, row in found.items() if id[-3:] in ("s-1", "-x1")}
    assert kinds == {"s-1": ("warmup", 0), "-x1": ("subagent", 3)}


def progressed(prompt: str, lines: list[Record]) -> list[Record]:
    """The lines of a sub-agent as progress of its session."""
    data = {"type": "agent_progress", "agentId": "ab", "prompt": prompt}
    return [
        {**line("progress", f"p-{20 + number}"), "parentToolUseID": "toolu_9", "data": {**data, "message": one}}
        for number, one in enumerate(lines)
    ]


@pytest.mark.parametrize("renamed", [True, False])
def test_an_agent_known_by_progress_alone_is_a_session_until_its_own_log_is_there(logs: Logs, renamed: bool) -> None:
    own = agent_lines("ab", "Find the leak", answer("ab-205", call("toolu_n")), result("ab-206", "toolu_n"))
    told = [{**one, "uuid": f"x{one['uuid']}"} if renamed else one for one in own]
    usage = {"input_tokens": 1, "cache_read_input_tokens": 7, "output_tokens": 700}
    detail = {"agentId": "ab", "content": [{"type": "text", "text": "Found."}], "usage": usage}
    asked = answer("m-5", call("toolu_9", "Task", prompt="Find the leak", description="leak"), output=1)
    lines = [asked, *progressed("Find the leak", told), result("m-90", "toolu_9", detail=detail)]
    logs.write(f"{MAIN}.jsonl", [*TALK, *lines])
    logs.write(f"{OTHER}.jsonl", [*TALK, *lines, said("f-99", "Go on")], OTHER)
    agent = logs.session("agent-ab")
    assert (agent["kind"], agent["name"], agent["description"]) == ("subagent", "Task", "leak")
    assert (agent["tool_calls"], agent["output_tokens"], logs.session()["output_tokens"]) == (1, 713, 51)
    logs.write(f"{MAIN}/subagents/agent-ab.jsonl", own)
    counted = "SELECT sum(output_tokens) AS o, sum(tool_calls) AS c, sum(kind = 'subagent') AS n FROM session"
    assert logs.rows(counted + " WHERE parent_id = '" + MAIN + "'") == [{"o": 13, "c": 1, "n": 1}]


def test_of_a_subagent_whose_lines_its_sessions_log_has_too_its_own_log_counts(logs: Logs) -> None:
    own = agent_lines("ab", "Find the leak")
    logs.write(f"{MAIN}.jsonl", [*TALK, *own])
    logs.write(f"{MAIN}/subagents/agent-ab.jsonl", own)
    counted = "SELECT kind, sum(event_count) AS n, sum(output_tokens) AS o FROM session GROUP BY kind ORDER BY kind"
    assert [tuple(row.values()) for row in logs.rows(counted)] == [
        ("main", 7, 50),
        ("subagent", 3, 3),
        ("warmup", 0, None),
    ]


def test_a_teammate_belongs_to_its_lead(logs: Logs) -> None:
    spawned = {"status": "teammate_spawned", "teammate_id": "finder@the harbour"}
    asked = answer("m-5", call("toolu_9", "Agent", prompt="x", team_name="harbour"))
    message = '<teammate-message teammate_id="team-lead">\nlook into cranes\n</teammate-message>'
    team = {"teamName": "the harbour", "agentName": "finder"}
    logs.write(f"{OTHER}.jsonl", [{**one, **team} for one in chained(said("n-1", message), answer("n-2", "ok"))], OTHER)
    logs.write(f"{MAIN}.jsonl", [*TALK, asked, result("m-6", "toolu_9", detail=spawned), said("m-7", message)])
    mate = logs.session(OTHER)
    assert (mate["kind"], mate["parent"], mate["name"], mate["agent_type"]) == ("subagent", MAIN, "Agent", "finder")
    assert (mate["snippet"], logs.session()["turn_count"]) == ("look into cranes", 1)


def test_a_log_that_begins_with_another_members_message_is_a_teammates(logs: Logs) -> None:
    message = said("n-1", '<teammate-message teammate_id="team-lead">\nlook into cranes\n</teammate-message>')
    logs.write(f"{OTHER}.jsonl", chained(message, answer("n-2", "ok")), OTHER)
    assert (logs.session(OTHER)["kind"], logs.session(OTHER)["snippet"]) == ("subagent", "look into cranes")


# --- titles ---


def test_a_summary_names_the_session_that_holds_its_leaf(logs: Logs) -> None:
    logs.write(f"{OTHER}.jsonl", [{"type": "summary", "summary": "An engine is built", "leafUuid": "m-4"},
                                  *chained(said("f-70", "Go on"))], OTHER)  # fmt: skip
    assert logs.session(OTHER)["title"] is None
    logs.write(f"{MAIN}.jsonl", TALK)
    assert (logs.session(MAIN)["title"], logs.session(OTHER)["title"]) == ("An engine is built", None)
    logs.write(f"{MAIN}.jsonl", [{"type": "ai-title", "aiTitle": "Engine"}])
    assert logs.session(MAIN)["title"] == "Engine"


def test_of_several_summaries_the_one_of_the_latest_line_names_the_session(logs: Logs) -> None:
    summaries = [{"type": "summary", "summary": f"Up to {leaf}", "leafUuid": leaf} for leaf in ("m-4", "m-1", "m-2")]
    logs.write(f"{MAIN}.jsonl", [{"type": "agent-name", "agentName": "builder"}, *TALK, *summaries])
    assert logs.session()["title"] == "Up to m-4"


def test_a_queued_prompt_is_neither_dropped_nor_doubled(logs: Logs) -> None:
    """It was typed while a tool ran."""
    queued = {
        "type": "queue-operation",
        "operation": "enqueue",
        "content": "And a test",
        "timestamp": TALK[2]["timestamp"],
    }
    prompt = {"type": "queued_command", "prompt": "And a test", "commandMode": "prompt"}
    logs.write(f"{MAIN}.jsonl", [*TALK[:3], queued, line("attachment", "m-5", attachment=prompt), TALK[3]])
    requests = logs.rows("SELECT text FROM request ORDER BY event_index")
    assert [row["text"] for row in requests] == ["Build an engine", "And a test"]
    assert logs.session()["turn_count"] == 2


def test_of_an_output_that_was_spilled_the_preview_and_the_place_can_be_searched(logs: Logs) -> None:
    """The rest lies in a file of its own."""
    path = f"/home/ada/.claude/projects/-home-ada-engine/{MAIN}/tool-results/toolu_1.txt"
    preview = (
        f"<persisted-output>\nOutput too large (45KB). Full output saved to: {path}\n\nPreview (first 2KB):\nbolt 1"
    )
    detail = {"stdout": "bolt 1", "persistedOutputPath": path, "persistedOutputSize": 46_080}
    bare = result("m-6", "toolu_2", "bolt 1", detail=detail)
    spilled = [*TALK[:2], result("m-3", "toolu_1", preview, detail=detail), answer("m-5", call("toolu_2")), bare]
    logs.write(f"{MAIN}.jsonl", spilled)
    assert [text for text in logs.texts() if path in text or "bolt 1" in text] == [
        preview,
        "bolt 1",
        f"{path}\n46080 bytes",
    ]


NEW_TYPES = [
    {"type": "companion_intro", "text": "hello"},
    {"type": "hologram", "uuid": "x", "size": 3},
    line("attachment", "m-20", attachment={"type": "deferred_tools_delta", "added": ["Grep"]}),
    line("attachment", "m-21", attachment={"type": "mcp_instructions_delta"}),
    line("system", "m-22", subtype="away_summary", content="You were away"),
    line("system", "m-23", subtype="api_error", error={"status": 529}),
    {
        "type": "assistant",
        "uuid": "m-24",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "sdk"}]},
    },
    {"type": "user", "message": {"role": "user", "content": "from an SDK"}},
    {"type": "user", "uuid": "m-25", "message": {"role": "user", "content": [{"type": "hologram"}]}},
    {"type": None, "message": [3]},
]


def test_lines_of_new_types_and_without_ids_are_kept_and_cost_no_other_line(logs: Logs) -> None:
    """They appear in almost every version."""
    logs.write(f"{MAIN}.jsonl", [TALK[0], *NEW_TYPES, *TALK[1:]])
    found = logs.session()
    assert (found["event_count"], found["output_tokens"], found["turn_count"]) == (7 + len(NEW_TYPES), 50, 2)
    assert logs.rows("SELECT sum(count) AS n FROM record_type WHERE status = 'unknown'") == [{"n": 4}]
    assert logs.rows("SELECT sum(unreadable_lines) AS n FROM file") == [{"n": 0}]


# --- executions that end later ---


def test_results_of_calls_with_one_id_answer_them_in_order(logs: Logs) -> None:
    calls = [answer(f"m-{n}", call("call_1", command=f"make {n}"), id="msg_1", requestId="r") for n in (2, 3, 4)]
    ends = [result("m-5", "call_1"), result("m-6", "call_1", is_error=True), result("m-7", "call_1")]
    logs.write(f"{MAIN}.jsonl", chained(said("m-1", "Build"), *calls, *ends, answer("m-8", call("call_1"))))
    logs.write(f"{MAIN}.jsonl", [result("m-9", "call_1", is_error=True)])
    assert logs.executions() == [("Bash", outcome, lasted) for outcome, lasted in
                                 [(OK, 3000), (FAILED, 3000), (OK, 3000), (FAILED, 1000)]]  # fmt: skip


def notice(status: str | None, *, task: str = "bg1", call: str | None = "toolu_1") -> str:
    """A notification of the end of a background task; its result may quote anything."""
    tags = {"task-id": task, "tool-use-id": call, "status": status, "summary": "It ended"}
    inner = "\n".join(f"<{tag}>{value}</{tag}>" for tag, value in tags.items() if value)
    return f"<task-notification>\n{inner}\n<result><status>failed</status></result>\n</task-notification>"


STARTED = chained(
    said("m-1", "Build an engine"),
    answer("m-2", call("toolu_1")),
    result("m-3", "toolu_1", "Command running in background with ID: bg1", detail={"backgroundTaskId": "bg1"}),
)


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        (said("m-42", notice("completed"), origin={"kind": "task-notification"}), OK),
        (said("m-42", notice("completed", call=None)), OK),
        (said("m-42", notice("failed", call="REDACTED")), FAILED),
        (said("m-42", notice("killed")), INTERRUPTED),
        (said("m-42", notice("failed").replace("task-", "agent-")), FAILED),
        (line("attachment", "m-42", attachment={"type": "queued_command", "prompt": notice("failed")}), FAILED),
        ({**line("queue-operation", "m-42", operation="enqueue", content=notice("completed")), "uuid": None}, OK),
    ],
    ids=["user line", "by task", "other id", "killed", "agent", "attachment", "queue"],
)
@pytest.mark.parametrize("together", [True, False])
def test_a_background_task_ends_as_its_notification_tells(
    logs: Logs, told: Record, outcome: int, together: bool
) -> None:
    logs.write(f"{MAIN}.jsonl", STARTED)
    if not together:
        assert logs.executions() == [("Bash", RUNNING, None)]
    logs.write(f"{MAIN}.jsonl", [told])
    assert logs.executions() == [("Bash", outcome, 40_000)]
    assert (logs.session()["failed_calls"], logs.session()["turn_count"]) == (outcome == FAILED, 1)


def test_the_first_of_several_notifications_tells_the_end(logs: Logs) -> None:
    queued = line("queue-operation", "m-12", operation="enqueue", content=notice("completed"))
    later = line("attachment", "m-42", attachment={"type": "queued_command", "prompt": notice("failed")})
    logs.write(f"{MAIN}.jsonl", [*STARTED, queued, later])
    assert logs.executions() == [("Bash", OK, 10_000)]


@pytest.mark.parametrize(
    "told",
    [notice("running"), notice(None), notice("completed", task="bg2", call="toolu_2"), "<status>failed</status>"],
)
def test_what_tells_no_end_leaves_a_task_running(logs: Logs, told: str) -> None:
    logs.write(f"{MAIN}.jsonl", [*STARTED, said("m-42", told)])
    assert logs.executions() == [("Bash", RUNNING, None)]


@pytest.mark.parametrize(
    ("tool", "detail", "outcome", "lasted"),
    [
        ("BashOutput", {"shellId": "bg1", "status": "completed", "exitCode": 0}, OK, None),
        ("BashOutput", {"shellId": "bg1", "status": "completed", "exitCode": 2}, FAILED, None),
        ("BashOutput", {"shellId": "bg1", "status": "running", "exitCode": None}, RUNNING, None),
        ("TaskOutput", {"retrieval_status": "success", "task": {"task_id": "bg1", "status": "failed"}}, FAILED, None),
        ("KillShell", {"message": "Successfully killed shell: bg1 (make)", "shell_id": "bg1"}, INTERRUPTED, 40_000),
        ("TaskStop", {"message": "Successfully stopped task: bg1 (make)"}, INTERRUPTED, 40_000),
        ("TaskUpdate", {"success": True, "taskId": "bg1", "updatedFields": ["status"]}, RUNNING, None),
    ],
)
def test_a_background_task_ends_as_the_tool_that_asks_for_it_tells(
    logs: Logs, tool: str, detail: Record, outcome: int, lasted: int | None
) -> None:
    logs.write(
        f"{MAIN}.jsonl", [*STARTED, answer("m-41", call("toolu_2", tool)), result("m-42", "toolu_2", detail=detail)]
    )
    assert logs.executions() == [("Bash", outcome, lasted), (tool, OK, 1000)]


def test_an_agent_in_the_background_is_running_until_it_is_told_to_have_ended(logs: Logs) -> None:
    launched = {"isAsync": True, "status": "async_launched", "agentId": "ab", "description": "leak"}
    logs.write(f"{MAIN}/subagents/agent-ab.jsonl", agent_lines("ab", "Find the leak"))
    asked = answer("m-2", call("toolu_1", "Agent", prompt="Find the leak"))
    logs.write(f"{MAIN}.jsonl", chained(said("m-1", "go"), asked, result("m-3", "toolu_1", detail=launched)))
    assert (logs.executions()[0], logs.session("agent-ab")["name"]) == (("Agent", RUNNING, None), "Agent")
    logs.write(f"{MAIN}.jsonl", [said("m-42", notice("completed", task="ab", call=None))])
    assert logs.executions()[0] == ("Agent", OK, 40_000)
