"""What running sessions do, and which wait for the human, by logs of each agent; or that no log tells."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events.tools import Tools
from agtrace_indexer.index.opening import open_read_only
from agtrace_indexer.logs.tail import last_records
from agtrace_indexer.providers.provider import Phase
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.run import index
from agtrace_schema.events import EventType
from hypothesis import given, settings
from hypothesis import strategies as st

from agtrace.answers.running import running
from agtrace.sessions.activity import Activity, Running, RunningSession, Seen, activity
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


# -- Claude Code -----------------------------------------------------------------------------------


def test_claude_has_answered_when_the_response_ended_its_turn(database: Path, own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("When does the tide ebb?")
    log.says("In two hours.")
    session = only(database, own_home)
    assert (session.state, session.waits, session.waits_for_you) == ("waiting", "answer", True)
    assert session.now == "In two hours."
    assert session.request == session.title == "When does the tide ebb?"
    assert (session.project, session.agent) == ("tidepool", "Claude Code")


def test_claude_asks_when_its_answer_ends_with_a_question_it_needs_an_answer_to(database: Path, own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Remove the old tables.")
    log.says("There are two old tables. Which of the two should I delete?")
    assert only(database, own_home).waits == "question"


def test_claude_thinks_after_a_request_and_after_a_result(database: Path, own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")
    assert only(database, own_home).state == "thinking"
    log.calls("Bash", command="pytest -x")
    log.returns("1 failed", failed=True)
    session = only(database, own_home)
    assert (session.state, session.waits_for_you, session.failed_calls) == ("thinking", False, 1)


def test_an_open_call_runs_or_waits_for_permission_and_nobody_knows_which(database: Path, own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")
    log.calls("Bash", command="pytest -x tests/test_tides.py")
    session = only(database, own_home)
    assert (session.state, session.waits, session.waits_for_you) == ("calling", None, None)
    assert (session.tool, session.now) == ("Bash", "Bash pytest -x tests/test_tides.py")
    assert "permission" in session.why


@pytest.mark.parametrize(("tool", "waits"), [("AskUserQuestion", "question"), ("ExitPlanMode", "plan")])
def test_claude_waits_when_a_tool_asks_the_human(database: Path, own_home: Path, tool: str, waits: str) -> None:
    log = Claude(own_home)
    log.asked("Make a plan.")
    log.calls(tool, questions=[{"question": "Which station first?"}])
    session = only(database, own_home)
    assert (session.state, session.waits, session.waits_for_you) == ("waiting", waits, True)
    assert session.now == "Which station first?"


def test_without_stop_reasons_a_text_is_an_answer_only_once_the_turn_is_logged_as_over(
    database: Path, own_home: Path
) -> None:
    log = Claude(own_home, stop_reasons=False)
    log.asked("When does the tide ebb?")
    log.says("In two hours.")
    assert only(database, own_home).state == "answering"
    unclear = only(database, own_home, later=300)
    assert (unclear.state, unclear.waits_for_you) == ("unknown", None)
    assert "doesn't say" in unclear.why
    log.system("turn_duration")
    assert only(database, own_home).waits == "answer"


def test_a_local_command_after_an_answer_changes_nothing_and_exit_closes_the_session(
    database: Path, own_home: Path
) -> None:
    log = Claude(own_home)
    log.asked("When does the tide ebb?")
    log.says("In two hours.")
    log.asked("<command-name>/model</command-name>\n<command-message>model</command-message>")
    log.asked("<local-command-stdout>Set model to opus</local-command-stdout>")
    assert only(database, own_home).waits == "answer"
    log.asked("<command-name>/exit</command-name>\n<command-message>exit</command-message>")
    found = look(database, own_home)
    assert [session.state for session in found.sessions] == ["closed"]
    assert [session.title for session in found.recent] == ["When does the tide ebb?"], "none is running"


def test_claude_that_was_interrupted_or_failed_waits(database: Path, own_home: Path) -> None:
    stopped, failed = Claude(own_home, 1), Claude(own_home, 2)
    for log in (stopped, failed):
        log.asked("Run the tests.")
    stopped.asked("[Request interrupted by user]")
    failed.fails()
    assert {session.session_id: session.waits for session in look(database, own_home).sessions} == {
        stopped.uid: "interruption",
        failed.uid: "error",
    }


# -- Codex -----------------------------------------------------------------------------------------


def test_codex_has_answered_when_its_task_is_complete(database: Path, own_home: Path) -> None:
    log = Codex(own_home)
    log.asked("How many rows?")
    assert only(database, own_home).state == "thinking"
    log.says("Five stations.")
    assert only(database, own_home).state == "answering"
    assert only(database, own_home, later=300).state == "unknown", "an old version doesn't log the end of a turn"
    log.event("task_complete", last_agent_message="Five stations.")
    session = only(database, own_home)
    assert (session.waits, session.now, session.agent) == ("answer", "Five stations.", "Codex")


def test_codex_that_calls_may_wait_for_approval_unless_its_log_says_so(database: Path, own_home: Path) -> None:
    log = Codex(own_home)
    log.asked("How many rows?")
    log.calls("exec_command", cmd="sqlite3 tidepool.db")
    session = only(database, own_home)
    assert (session.state, session.now, session.waits_for_you) == ("calling", "exec_command sqlite3 tidepool.db", None)
    log.event("exec_approval_request", call_id="call_1", command=["sqlite3"])
    session = only(database, own_home)
    assert (session.waits, session.now) == ("permission", "exec_command sqlite3 tidepool.db")


def test_codex_that_was_aborted_waits_and_one_that_asks_asks(database: Path, own_home: Path) -> None:
    stopped, asking = Codex(own_home, 1), Codex(own_home, 2)
    for log in (stopped, asking):
        log.asked("How many rows?")
    stopped.event("turn_aborted", reason="interrupted")
    asking.calls("request_user_input", questions=[{"question": "Which database?"}])
    found = {session.session_id: (session.waits, session.now) for session in look(database, own_home).sessions}
    assert found == {stopped.uid: ("interruption", ""), asking.uid: ("question", "Which database?")}


# -- Gemini CLI ------------------------------------------------------------------------------------


def test_gemini_s_log_doesn_t_tell_whether_a_turn_is_over(database: Path, own_home: Path) -> None:
    log = Gemini(own_home)
    log.asked("Export the chart.")
    assert only(database, own_home).state == "thinking"
    log.says("It is exported.")
    assert only(database, own_home).state == "answering"
    unclear = only(database, own_home, later=300)
    assert (unclear.state, unclear.waits_for_you, unclear.now) == ("unknown", None, "It is exported.")


def test_gemini_waits_for_approval_where_a_call_says_so(database: Path, own_home: Path) -> None:
    log = Gemini(own_home)
    log.asked("Export the chart.")
    log.says("I run it.", log.call("run_shell_command", "executing", command="make png"))
    assert only(database, own_home).state == "calling"
    log.says("I run it.", log.call("run_shell_command", "awaiting_approval", command="make png"))
    assert only(database, own_home).waits == "permission"
    log.info("Request cancelled.")
    assert only(database, own_home).waits == "interruption"


# -- Copilot CLI -----------------------------------------------------------------------------------


def test_copilot_s_log_has_requests_for_permission_and_the_end_of_a_session(database: Path, own_home: Path) -> None:
    log = Copilot(own_home)
    log.asked("Run the tests.")
    assert only(database, own_home).state == "thinking"
    log.calls("bash", command="pytest -x")
    assert only(database, own_home).state == "calling"
    log.event("permission.requested", requestId="r1", permissionRequest={"kind": "shell", "toolCallId": "call_1"})
    session = only(database, own_home)
    assert (session.waits, session.now, session.agent) == ("permission", "bash pytest -x", "Copilot CLI")
    log.event("permission.completed", requestId="r1", result={"kind": "approved"})
    assert only(database, own_home).state == "calling"
    log.event("session.shutdown", shutdownType="routine")
    assert only(database, own_home).is_closed


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


@given(st.builds(Seen, st.none() | st.sampled_from(EventType), st.just(()), st.none() | st.sampled_from(Phase),
                 st.integers(0, 10**9), st.booleans(), st.booleans()))  # fmt: skip
def test_whoever_waits_is_known_to_wait(seen: Seen) -> None:
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
