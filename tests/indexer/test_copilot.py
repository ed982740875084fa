"""Copilot CLI's logs: real ones compared with what others counted, authored ones event by event, and the laws."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path, PurePath
from typing import Any

import pytest
from agtrace_indexer.events.drafts import Draft, LogState, Settlement
from agtrace_indexer.index.queries.usage import Among
from agtrace_indexer.providers.copilot import COPILOT, parser
from agtrace_indexer.run import index
from agtrace_schema.events import (
    Message,
    Notification,
    Outcome,
    Payload,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agtrace.sessions.prices import load
from agtrace.sessions.usage import usage_by
from tests.conftest import SAMPLES
from tests.depth import examples
from tests.indexer.test_counts import counted

TIDE = SAMPLES / "copilot/session-state/7d3c1f58-92ab-4e06-b7d4-5e80a1c6f329/events.jsonl"
GLOW = SAMPLES / "copilot/session-state/c05e9a41-6b1d-4f73-8a2e-19d7b3f04c86/events.jsonl"
AUTHORED = [TIDE, GLOW]


relaxed = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))

# --- the authored samples, event by event ---


def drafts_of(path: Path) -> list[tuple[int, Any]]:
    """Every item of a log with the number of its line."""
    state = parser.begin(PurePath(path))
    records = map(json.loads, path.read_text().splitlines())
    return [(number, said) for number, record in enumerate(records, 1) for said in parser.drafts(record, state)]


def payloads(path: Path, kind: type[Payload]) -> dict[int, list[Any]]:
    """The payloads of one kind by line."""
    found: dict[int, list[Any]] = {}
    for number, said in drafts_of(path):
        if isinstance(said, Draft) and isinstance(said.payload, kind):
            found.setdefault(number, []).append(said.payload)
    return found


def test_only_what_was_typed_is_a_request_and_what_a_parent_asks_is_a_task() -> None:
    kinds = {number: users[0].kind for number, users in payloads(TIDE, User).items()}
    human, task, summary = UserKind.HUMAN, UserKind.TASK, UserKind.COMPACTION_SUMMARY
    assert kinds == {4: human, 29: human, 34: task, 55: summary, 56: human}
    assert payloads(TIDE, User)[4][0].text.endswith("Find out why 🌊")


def test_outcomes_follow_from_flags_exit_codes_and_permissions() -> None:
    results = {number: (found[0].outcome, found[0].exit_code) for number, found in payloads(TIDE, ToolResult).items()}
    assert results == {
        11: (Outcome.OK, None),
        12: (Outcome.FAILED, 1),
        17: (Outcome.OK, None),
        19: (Outcome.RUNNING, None),
        24: (Outcome.OK, 0),
        37: (Outcome.OK, None),
        40: (Outcome.OK, None),
        47: (Outcome.REJECTED, None),
    }
    settled = [(number, said[:2]) for number, said in drafts_of(TIDE) if isinstance(said, Settlement)]
    assert settled == [(24, ("toolu_01AllTests", Outcome.OK))]
    assert payloads(GLOW, ToolResult)[10][0].exit_code == 2


def test_a_call_is_read_once_and_a_command_of_the_human_belongs_to_no_step() -> None:
    assert sum(map(len, payloads(TIDE, ToolCall).values())) == 9
    steps = {number: said.step for number, said in drafts_of(GLOW) if isinstance(said.payload, ToolCall)}
    assert steps[15] is None and steps[5] is not None and steps.keys() == {5, 8, 15}


def test_thoughts_that_come_twice_are_one_event_in_the_step_of_their_message() -> None:
    thoughts = {number: found[0].text for number, found in payloads(GLOW, Reasoning).items()}
    assert thoughts == {4: "The catalogue is in data/species.csv."}
    steps = {number: said.step for number, said in drafts_of(GLOW) if isinstance(said.payload, (Reasoning, Message))}
    assert steps[4] == steps[5] != steps[11]
    assert payloads(TIDE, Reasoning)[22][0].text == ""  # sealed


def test_a_sub_agent_is_a_session_of_its_own_whether_named_in_the_envelope_or_in_the_data(database: Path) -> None:
    index(database, [str(TIDE), str(GLOW)])
    query = "SELECT own_id, parent_id, kind, agent_type, description, event_count FROM session WHERE thread != ''"
    with closing(sqlite3.connect(database)) as connection:
        found = sorted(connection.execute(query).fetchall())
        started = connection.execute("SELECT count(*) FROM session WHERE parent_session IS NOT NULL").fetchone()
    assert found == [
        ("call_CountRed", GLOW.parent.name, "subagent", "task", "Count red species", 5),
        ("toolu_01NaiveTimes", TIDE.parent.name, "subagent", "explore", "Find naive times", 6),
    ]
    assert started == (2,)


def test_runs_of_older_versions_begin_to_count_at_zero() -> None:
    state = LogState()
    lines = [
        event("session.start", sessionId="s"),
        event("assistant.message", apiCallId="a", model="m", content="x", outputTokens=40),
        event("session.shutdown", modelMetrics=metrics(100, 40)),
        event("session.resume"),
        event("assistant.message", apiCallId="b", model="m", content="y", outputTokens=5),
        event("session.shutdown", modelMetrics=metrics(30, 5)),
    ]
    usages = [said.payload for line in lines for said in parser.drafts(line, state) if is_usage(said)]
    assert sum(usage.input_tokens or 0 for usage in usages) == 130
    assert sum(usage.output_tokens or 0 for usage in usages) == 45


def test_the_chunks_of_a_response_are_one_step_and_count_once(database: Path, tmp_path: Path) -> None:
    chunks = [
        event("session.start", sessionId="s"),
        event("assistant.message", messageId="m", apiCallId="a", content="one", outputTokens=3, chunkIndex=0),
        event("assistant.message", messageId="m", apiCallId="a", content="two", outputTokens=9, chunkIndex=1),
    ]  # fmt: skip
    log = written(tmp_path / "chunks.jsonl", chunks)
    assert figures(database, log) == {"messages": 2, "calls": 0, "in_steps": 1, "output": 9}


def test_a_message_that_is_written_again_while_it_grows_is_one(database: Path, tmp_path: Path) -> None:
    request = [{"toolCallId": "call_1", "name": "bash", "arguments": {"command": "ls"}}]
    grown = [
        event("session.start", sessionId="s"),
        event("assistant.message", messageId="m", content="High", toolRequests=request, outputTokens=3),
        event("assistant.message", messageId="m", content="High water", toolRequests=request, outputTokens=7),
    ]
    log = written(tmp_path / "grown.jsonl", grown)
    assert figures(database, log) == {"messages": 1, "calls": 1, "in_steps": 1, "output": 7}


def test_notices_tell_of_errors_interruptions_and_compactions() -> None:
    told = [(number, found[0]) for path in AUTHORED for number, found in payloads(path, Notification).items()]
    signs = COPILOT.notices
    assert [number for number, one in told if one.kind in signs.api_errors] == [20]
    assert [number for number, one in told if any(s.fits(one.kind, one.text) for s in signs.interruptions)] == [60]
    assert [number for number, one in told if any(s.fits(one.kind, one.text) for s in signs.compactions)] == [55]


def test_the_session_is_named_by_the_file_next_to_its_log(database: Path) -> None:
    index(database, [str(TIDE)])
    with closing(sqlite3.connect(database)) as connection:
        row = connection.execute("SELECT own_id, title, branch, version, cwd FROM session WHERE thread = ''").fetchone()
    told = ("Spring tide: an hour late", "naive-times", "1.0.78", "/home/mira/projects/tidepool")
    assert row == (TIDE.parent.name, *told)


@pytest.mark.parametrize(
    ("written_as", "title"),
    [("name: 'It''s late'", "It's late"), ("summary: plain", "plain"), ("name: |\n  a", None), ("name: &a [", None),
     ("name: null\nsummary: two", "two"), ("\x00\xff", None), ("cwd: /x", None)],
)  # fmt: skip
def test_names_of_all_kinds_are_read_or_left(written_as: str, title: str | None, tmp_path: Path) -> None:
    (tmp_path / "workspace.yaml").write_text(written_as)
    assert parser.begin(tmp_path / "events.jsonl").sessions[""].title == title


def test_a_log_without_its_first_line_is_known_by_its_folder(tmp_path: Path) -> None:
    state = parser.begin(tmp_path / "0b7e" / "events.jsonl")
    list(parser.drafts(event("user.message", content="hello"), state))
    assert state.sessions[""].id == "0b7e"


def test_the_logs_of_copilot_chat_have_its_name(database: Path, tmp_path: Path) -> None:
    lines = [
        event("session.start", sessionId="c", producer="copilot-chat", copilotVersion="0.40"),
        event("user.message", content="Where does the tide turn?"),
    ]
    log = written(tmp_path / "c.jsonl", lines)
    (row,) = counted(database, log).values()
    assert row["provider"] == "copilot_chat"
    assert parser.Chat.recognizes(lines[0]) and not parser.recognizes(lines[0])
    assert parser.recognizes(lines[1]) and not parser.Chat.recognizes(lines[1])


def test_flat_logs_of_early_versions_are_the_same(database: Path, tmp_path: Path) -> None:
    flat = tmp_path / "session-state" / f"{GLOW.parent.name}.jsonl"
    flat.parent.mkdir()
    flat.write_bytes(GLOW.read_bytes())
    one, other = ({**row, "copied": 0} for row in counted(database, flat, GLOW).values())
    assert one == other


# --- writing lines ---


def figures(database: Path, log: Path) -> dict[str, Any]:
    (row,) = counted(database, log).values()
    return {name: row[name] for name in ("messages", "calls", "in_steps", "output")}


def event(kind: str, *, id: str = "e1", at: str = "2026-11-11T09:00:00.000Z", **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": id, "timestamp": at, "parentId": None}


def metrics(sent: int, output: int) -> dict[str, Any]:
    return {"m": {"requests": {"count": 1}, "usage": {"inputTokens": sent, "outputTokens": output}}}


def is_usage(said: Any) -> bool:
    return isinstance(said, Draft) and isinstance(said.payload, TokenUsage)


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


# --- costs ---


def said(number: int, **data: Any) -> dict[str, Any]:
    return event("assistant.message", apiCallId=f"a{number}", model="m", content="x", outputTokens=10, **data)


def checkpoint(units: int) -> dict[str, Any]:
    return event("session.usage_checkpoint", totalNanoAiu=units * 10**9)


def shut_down(sent: int, output: int, units: int) -> dict[str, Any]:
    by_model = metrics(sent, output)
    by_model["m"]["totalNanoAiu"] = units * 10**9
    return event("session.shutdown", modelMetrics=by_model, totalNanoAiu=units * 10**9)


SILENT = event("assistant.message", apiCallId="a", model="m", content="x")
"""A message of 1.0.83 and later: it has no figures."""
FIRST = [said(1), checkpoint(5), shut_down(100, 10, 5)]
KILLED = [said(1), checkpoint(5)]
RESUMED = [event("session.resume"), said(2), checkpoint(9)]


@pytest.mark.parametrize(
    ("lines", "cents", "made", "tokens"),
    [(FIRST, 5, "exact", 110),
     ([said(1)], None, "unknown", 10),
     ([SILENT, checkpoint(5)], 5, "partial", None),
     ([SILENT], None, "unknown", None),
     ([SILENT, checkpoint(5), shut_down(100, 10, 5)], 5, "exact", 110),
     ([*KILLED, said(2), checkpoint(7)], 7, "partial", 20),
     ([*FIRST, *RESUMED], 9, "partial", 120),
     ([*FIRST, *RESUMED, shut_down(150, 20, 9)], 9, "exact", 170),
     ([*FIRST, *RESUMED, shut_down(50, 10, 4)], 9, "exact", 170),
     ([*KILLED, *RESUMED, shut_down(50, 10, 4)], 9, "partial", 70),
     ([*KILLED, *RESUMED, shut_down(150, 20, 9)], 9, "exact", 170),
     ([said(1), shut_down(100, 10, 0), RESUMED[0], said(2), shut_down(150, 20, 4)], 4, "partial", 170),
     ([*map(said, range(50)), checkpoint(5), shut_down(100, 500, 5)], 5, "exact", 600),
     ([said(1), said(2, parentToolCallId="t"), checkpoint(5), shut_down(100, 20, 5)], 5, "partial", 120)],
)  # fmt: skip
def test_a_session_costs_what_copilot_says_and_at_least_that_of_the_last_checkpoint_of_a_killed_run(
    lines: list[dict[str, Any]], cents: int | None, made: str, tokens: int | None, database: Path, tmp_path: Path
) -> None:
    index(database, [str(written(tmp_path / "paid.jsonl", [event("session.start", sessionId="s"), *lines]))])
    with closing(sqlite3.connect(database)) as connection:
        found = usage_by(connection, load(None), Among("all"))[0]
    assert (found.cost, found.cost_made, found.total) == (cents and cents / 100, made, tokens)


def test_records_of_newer_versions_are_known() -> None:
    state = LogState()
    for kind in ("model.call_start", "model.call_failure", "session.workspace_file_changed", "tool_search.activated"):
        list(parser.drafts(event(kind, path="count.txt", errorMessage="too many"), state))
    assert state.unknown == []
    ended = event("tool.execution_complete", toolCallId="t", success=True, shellExecution={"exitCode": 2})
    (result,) = (said.payload for said in parser.drafts(ended, state) if isinstance(said, Draft))
    assert isinstance(result, ToolResult) and (result.outcome, result.exit_code) == (Outcome.FAILED, 2)


# --- a log that is shortened in place: /rewind ---


def live(database: Path) -> dict[str, Any]:
    """What counts in an index: everything but the indices of events and turns."""
    with closing(sqlite3.connect(database)) as connection:
        events = connection.execute(_LIVE).fetchall()
        sums = connection.execute(_SUMS).fetchall()
        models = connection.execute(
            "SELECT s.thread, m.* FROM model_usage m JOIN session s ON s.id = m.session_id ORDER BY 1, 3, 4, 5"
        )
        return {"events": events, "sums": sums, "models": [(row[0], *row[2:]) for row in models]}


_LIVE = """
SELECT s.thread, e.line, e.type, e.ts, e.step_index, n.text, e.outcome, e.offset, e.length, e.identity, e.duration_ms,
  e.own, p.text, l.line, (SELECT count(*) FROM turn t WHERE t.session_id = s.id AND t.turn_index <= e.turn_index),
  (SELECT group_concat(kind) FROM landmark m WHERE m.session_id = s.id AND m.event_index = e.event_index)
FROM event e JOIN session s ON s.id = e.session_id LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN name p ON p.id = e.program_id
LEFT JOIN event l ON l.session_id = e.session_id AND l.event_index = e.link AND l.superseded_by IS NULL
WHERE e.superseded_by IS NULL ORDER BY s.thread, e.event_index
"""

_SUMS = """
SELECT thread, own_id, kind, event_count, turn_count, tool_calls, failed_calls, input_tokens, output_tokens,
  total_tokens, incomplete_usage, responses, active_ms, snippet, title, branch, model, started_at, ended_at
FROM session WHERE event_count > 0 ORDER BY thread
"""


LINES = TIDE.read_bytes().splitlines(keepends=True)


def again(number: int, lines: list[bytes]) -> list[bytes]:
    """Lines as another run would write them: other ids, other times, other texts."""
    text = b"".join(lines).replace(b"-", b"-%d" % number, 0)
    changed = []
    for line in text.splitlines(keepends=True):
        record = json.loads(line)
        record["id"] = f"{number:08x}{record['id'][8:]}"
        record["timestamp"] = record["timestamp"].replace("2026-", f"2{number:03}-")
        if record["type"] == "user.message":
            record["data"]["content"] += f" (attempt {number})"
        changed.append(json.dumps(record).encode() + b"\n")
    return changed


@pytest.mark.thorough
@settings(relaxed, max_examples=examples(25))
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(1, len(LINES))), min_size=1, max_size=5))
def test_after_any_appends_and_rewinds_an_index_has_what_a_new_one_has(
    steps: list[tuple[bool, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rewound")
    log, database = folder / "events.jsonl", folder / "data" / "index.sqlite3"
    held = LINES[:30]
    for number, (rewinds, at) in enumerate([(False, 0), *steps]):
        if rewinds:
            held = held[: max(at % (len(held) + 1), 1)]
        elif number:
            held = held + again(number, LINES[at - 1 : at + 12])
        log.write_bytes(b"".join(held))
        index(database, [str(log)])
        fresh = folder / f"fresh-{number}" / "index.sqlite3"
        index(fresh, [str(log)])
        assert live(database) == live(fresh)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM file WHERE status = 'log'").fetchone() == (1,)


def rewound(tmp_path: Path, database: Path) -> Path:
    """A log whose second turn was taken back, together with its sub-agent, and said otherwise."""
    log = tmp_path / "logs" / "events.jsonl"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"".join(LINES[:52]))
    index(database, [str(log.parent)])
    log.write_bytes(b"".join(LINES[:28]))
    index(database, [str(log.parent)])
    with log.open("ab") as file:
        file.writelines(again(1, LINES[55:59]))
    index(database, [str(log.parent)])
    return log


@pytest.mark.parametrize("most", [0, 40])
def test_a_log_that_is_about_to_be_written_again_stays_as_it_is(most: int, tmp_path: Path, database: Path) -> None:
    log = rewound(tmp_path, database)
    before, content = live(database), log.read_bytes()
    log.write_bytes(content[:most])
    index(database, [])
    assert live(database) == before
    log.write_bytes(content)
    index(database, [])
    assert live(database) == before
