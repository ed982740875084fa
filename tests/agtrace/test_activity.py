"""What running sessions do, and which wait for the human, by logs of each agent; or that no log tells."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events.tools import Tools
from agtrace_indexer.index.opening import open_read_only
from agtrace_indexer.logs.content import last_records
from agtrace_indexer.providers.provider import Phase
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.run import index
from agtrace_schema.events import EventType
from hypothesis import given, settings
from hypothesis import strategies as st

from agtrace.answers.running import running
from agtrace.sessions.activity import Activity, LogEnd, Running, RunningSession, activity
from agtrace.sessions.prices import load
from tests.agtrace.live_logs import Claude, Codex, Copilot, Gemini
from tests.conftest import SAMPLES
from tests.depth import examples
from tests.indexer.strange import any_json


def look(database: Path, home: Path, *, later: float = 0, within: float = 3600) -> Running:
    """What is running, some seconds from now."""
    index(database, [str(home)])
    with closing(open_read_only(database)) as connection:
        now = round(1000 * (time.time() + later))
        return running(connection, load(None), now=now, within_ms=round(1000 * within))


def only(database: Path, home: Path, *, later: float = 0) -> RunningSession:
    (session,) = look(database, home, later=later).sessions
    return session


# -- what a log tells, line by line ------------------------------------------------------------------

Step = tuple[str, tuple[Any, ...], dict[str, Any], dict[str, Any]]
"""What is added to a log, and what the session then is, of which only these fields are looked at."""

DOUBT = {"later": 300}
"""With this, a step is looked at five minutes later."""


def step(how: str, *words: Any, then: dict[str, Any] | None = None, **more: Any) -> Step:
    return how, words, more, then or {}


ANSWERED = {"state": "waiting", "waits": "answer", "waits_for_you": True}
PYTEST = {"command": "pytest -x"}

STORIES: dict[str, tuple[Callable[[Path], Any], list[Step]]] = {
    "Claude answers, and its turn is over": (Claude, [
        step("asked", "When does the tide ebb?", then={"state": "thinking"}),
        step("says", "In two hours.", then={**ANSWERED, "now": "In two hours.", "agent": "Claude Code",
             "request": "When does the tide ebb?", "title": "When does the tide ebb?", "project": "tidepool"}),
        step("asked", "<command-name>/model</command-name>\n<command-message>model</command-message>"),
        step("asked", "<local-command-stdout>Set model to opus</local-command-stdout>", then=ANSWERED),
    ]),
    "Claude needs an answer": (Claude, [
        step("asked", "Remove the old tables."),
        step("says", "There are two old tables. Which of the two should I delete?", then={"waits": "question"}),
    ]),
    "Claude calls, and nobody knows whether it may": (Claude, [
        step("asked", "Run the tests."),
        step("calls", "Bash", **PYTEST, then={"state": "calling", "waits": None, "waits_for_you": None,
             "tool": "Bash", "now": "Bash pytest -x"}),
        step("returns", "1 failed", failed=True, then={"state": "thinking", "waits_for_you": False, "failed_calls": 1}),
    ]),
    "Claude asks by a tool": (Claude, [
        step("asked", "Make a plan."),
        step("calls", "AskUserQuestion", questions=[{"question": "Which station first?"}],
             then={**ANSWERED, "waits": "question", "now": "Which station first?"}),
    ]),
    "Claude shows a plan": (Claude, [
        step("asked", "Make a plan."),
        step("calls", "ExitPlanMode", plan="First the gauge.", then={**ANSWERED, "waits": "plan"}),
    ]),
    "Claude of a version without reasons why it stops": (partial(Claude, stop_reasons=False), [
        step("asked", "When does the tide ebb?"),
        step("says", "In two hours.", then={"state": "answering"}),
        step("", then=DOUBT | {"state": "unknown", "waits_for_you": None}),
        step("system", "turn_duration", then=ANSWERED),
    ]),
    "Claude is interrupted": (Claude, [
        step("asked", "Run the tests."),
        step("asked", "[Request interrupted by user]", then={"waits": "interruption"}),
    ]),
    "Claude's API fails": (Claude, [step("asked", "Run the tests."), step("fails", then={"waits": "error"})]),
    "Codex answers": (Codex, [
        step("asked", "How many rows?", then={"state": "thinking"}),
        step("says", "Five stations.", then={"state": "answering"}),
        step("", then=DOUBT | {"state": "unknown"}),  # an old version doesn't log the end of a turn
        step("event", "task_complete", last_agent_message="Five stations.",
             then={"waits": "answer", "now": "Five stations.", "agent": "Codex"}),
    ]),
    "Codex waits for approval": (Codex, [
        step("asked", "How many rows?"),
        step("calls", "exec_command", cmd="sqlite3 tidepool.db",
             then={"state": "calling", "now": "exec_command sqlite3 tidepool.db", "waits_for_you": None}),
        step("event", "exec_approval_request", call_id="call_1", command=["sqlite3"],
             then={"waits": "permission", "now": "exec_command sqlite3 tidepool.db"}),
    ]),
    "Codex is interrupted": (Codex, [
        step("asked", "How many rows?"),
        step("event", "turn_aborted", reason="interrupted", then={"waits": "interruption", "now": ""}),
    ]),
    "Codex asks": (Codex, [
        step("asked", "How many rows?"),
        step("calls", "request_user_input", questions=[{"question": "Which database?"}],
             then={"waits": "question", "now": "Which database?"}),
    ]),
    "Gemini, whose log doesn't tell whether a turn is over": (Gemini, [
        step("asked", "Export the chart.", then={"state": "thinking"}),
        step("says", "It is exported.", then={"state": "answering"}),
        step("", then=DOUBT | {"state": "unknown", "waits_for_you": None, "now": "It is exported."}),
    ]),
    "Copilot, whose log has requests for permission": (Copilot, [
        step("asked", "Run the tests.", then={"state": "thinking"}),
        step("calls", "bash", **PYTEST, then={"state": "calling"}),
        step("event", "permission.requested", requestId="r1",
             permissionRequest={"kind": "shell", "toolCallId": "call_1"},
             then={"waits": "permission", "now": "bash pytest -x", "agent": "Copilot CLI"}),
        step("event", "permission.completed", requestId="r1", result={"kind": "approved"}, then={"state": "calling"}),
        step("event", "session.shutdown", shutdownType="routine", then={"is_closed": True}),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_what_a_session_does_is_what_its_log_tells(database: Path, own_home: Path, story: str) -> None:
    begin, steps = STORIES[story]
    log = begin(own_home)
    for how, words, more, then in steps:
        if how:
            getattr(log, how)(*words, **more)
        if then:
            session = only(database, own_home, later=then.get("later", 0))
            expected = {name: value for name, value in then.items() if name != "later"}
            assert {name: getattr(session, name) for name in expected} == expected, (how, words)


def test_of_what_nobody_knows_the_reason_is_told(database: Path, own_home: Path) -> None:
    log = Claude(own_home, stop_reasons=False)
    log.asked("Run the tests.")
    log.calls("Bash", **PYTEST)
    assert "permission" in only(database, own_home).why
    log.returns("1 passed")
    log.says("They pass.")
    assert "doesn't say" in only(database, own_home, later=300).why


def test_a_session_that_was_left_is_closed(database: Path, own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("When does the tide ebb?")
    log.says("In two hours.")
    log.asked("<command-name>/exit</command-name>\n<command-message>exit</command-message>")
    found = look(database, own_home)
    assert [session.state for session in found.sessions] == ["closed"]
    assert [session.title for session in found.recent] == ["When does the tide ebb?"], "none is running"


def test_gemini_waits_for_approval_where_a_call_says_so(database: Path, own_home: Path) -> None:
    log = Gemini(own_home)
    log.asked("Export the chart.")
    log.says("I run it.", log.call("run_shell_command", "executing", command="make png"))
    assert only(database, own_home).state == "calling"
    log.says("I run it.", log.call("run_shell_command", "awaiting_approval", command="make png"))
    assert only(database, own_home).waits == "permission"
    log.info("Request cancelled.")
    assert only(database, own_home).waits == "interruption"


# -- figures ---------------------------------------------------------------------------------------


def test_context_cost_and_failures_are_those_of_the_session(database: Path, own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")
    log.calls("Bash", command="pytest")
    session = only(database, own_home)
    assert (session.context_tokens, session.context_window, session.context_percent) == (100_000, 200_000, 50)
    assert session.cost_usd == pytest.approx(1_000 * 3e-6 + 99_000 * 0.3e-6 + 50 * 15e-6, abs=1e-4)
    assert session.model == "claude-sonnet-4-5-20250929"


def test_after_a_compaction_the_context_is_unknown(database: Path, own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")
    log.says("All pass.")
    log.system("compact_boundary")
    assert only(database, own_home).context_tokens is None


def test_sessions_that_wait_come_first_and_old_ones_are_not_running(database: Path, own_home: Path) -> None:
    busy, waiting, old = Claude(own_home, 1, ago=1), Claude(own_home, 2, ago=60), Claude(own_home, 3, ago=7200)
    for log in (busy, waiting, old):
        log.asked("Run the tests.")
    waiting.says("They pass.")
    found = look(database, own_home)
    assert [session.session_id for session in found.sessions] == [waiting.uid, busy.uid]
    assert found.recent == ()
    assert len(look(database, own_home, within=9000).sessions) == 3


def test_a_session_whose_log_was_deleted_is_not_running(database: Path, own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")
    look(database, own_home)
    log.path.unlink()
    found = look(database, own_home)
    assert [(session.log_gone, session.is_closed) for session in found.sessions] == [(True, True)]
    assert len(found.recent) == 1


# -- the rules by themselves -----------------------------------------------------------------------

TOOLS = Tools(asking=frozenset({"Ask", "Plan"}), questioning=frozenset({"Ask"}))


@pytest.mark.parametrize(
    ("agent", "title"), [("pi", "Pi"), ("omp", "oh-my-pi"), ("qwen", "Qwen Code"), ("kiro", "Kiro CLI")]
)
def test_a_sample_session_that_ended_with_an_answer_waits_for_the_human(agent: str, title: str, database: Path) -> None:
    index(database, [str(SAMPLES / agent)])
    with closing(open_read_only(database)) as connection:
        ends = [end for (end,) in connection.execute("SELECT max(ts) FROM event WHERE ts GROUP BY session_id")]
        found = [running(connection, load(None), now=end + 5_000, within_ms=60_000).sessions for end in ends]
    assert any(each.agent == title and each.waits == "answer" for sessions in found for each in sessions)


# -- agents whose responses say by themselves whether they end a turn --------------------------------


def records(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_text("utf-8", "replace").splitlines():
        with suppress(ValueError):
            if isinstance(record := json.loads(line), dict):
                yield record


def is_of_user(agent: str, record: dict[str, Any]) -> bool:
    """Whether a record is what the human, or the program in their place, asks next."""
    if agent == "kiro":
        return record.get("kind") == "Prompt"
    return record.get("type") == "user" or record.get("message", {}).get("role") == "user"


@pytest.mark.parametrize(("agent", "ended"), [("pi", 3), ("qwen", 3), ("kiro", 3), ("omp", 1)])
def test_after_the_end_of_a_turn_only_the_human_goes_on(agent: str, ended: int) -> None:
    read, ends = AGENTS[{"omp": "oh_my_pi"}.get(agent, agent)].phase, 0
    assert read is not None
    for log in sorted((SAMPLES / agent).rglob("*.jsonl")):
        told = [(record, phase) for record in records(log) if (phase := read(record)) is not None]
        ends += sum(phase is Phase.OVER for _, phase in told)
        for (_, before), (record, phase) in pairwise(told):
            assert before is not Phase.OVER or phase is Phase.OVER or is_of_user(agent, record), (log, record)
    assert ends >= ended


@pytest.mark.parametrize(
    ("agent", "record", "phase"),
    [
        ("pi", {"type": "message", "message": {"role": "assistant", "stopReason": "toolUse"}}, Phase.GOES_ON),
        ("pi", {"type": "message", "message": {"role": "assistant", "stopReason": "aborted"}}, Phase.OVER),
        ("openclaw", {"type": "message", "message": {"role": "assistant", "content": "Hm"}}, None),
        ("pi", {"type": "compaction"}, None),
        ("qwen", {"type": "assistant", "message": {"parts": [{"functionCall": {}}]}}, Phase.GOES_ON),
        ("qwen", {"type": "assistant", "message": {"parts": [{"text": "Done."}]}}, Phase.OVER),
        ("qwen", {"type": "user", "subtype": "notification", "message": {}}, None),
        ("kiro", {"kind": "AssistantMessage", "data": {"content": [{"kind": "toolUse"}]}}, Phase.GOES_ON),
        ("kiro", {"kind": "AssistantMessage", "data": {"content": [{"kind": "text"}]}}, Phase.OVER),
        ("kiro", {"kind": "Clear", "data": None}, None),
    ],
)
def test_what_a_record_says_about_its_turn(agent: str, record: dict[str, Any], phase: Phase | None) -> None:
    read = AGENTS[agent].phase
    assert read is not None and read(record) is phase


WORDS = st.sampled_from(["type", "message", "content", "payload", "kind", "data", "toolCalls", "subtype", "text",
                         "status", "parts", "role", "user", "assistant", "gemini"])  # fmt: skip


@pytest.mark.thorough
@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(WORDS, any_json(WORDS)))
def test_no_record_makes_a_reader_of_phases_fail(record: dict[str, object]) -> None:
    for agent in AGENTS.values():
        if agent.phase is not None:
            assert agent.phase(record) in (None, *Phase)


@given(st.builds(LogEnd, st.none() | st.sampled_from(EventType), st.just(()), st.none() | st.sampled_from(Phase),
                 st.integers(0, 10**9), st.booleans(), st.booleans()))  # fmt: skip
def test_whoever_waits_is_known_to_wait(seen: LogEnd) -> None:
    found: Activity = activity(seen, TOOLS)
    assert (found.state == "waiting") == (found.waits is not None)
    assert found.waits is None or found.waits_known


# -- the end of a log ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", []),
        ('{"n": 1}', []),
        ('{"n": 1}\n', [1]),
        ('{"n": 1}\n{"n": 2}', [1]),
        ('{"n": 1}\nnot JSON\n[3]\n{"n": 2}\n', [2, 1]),
        ('{"n": 1}\n' + "x" * 3_000_000, []),
        ('{"n": 1}\n{"n": "' + "x" * 100_000 + '"}\n', ["x" * 100_000, 1]),
    ],
)
def test_only_complete_objects_at_the_end_are_records(tmp_path: Path, content: str, found: list[object]) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(content)
    assert [record["n"] for record in last_records(str(log))] == found
