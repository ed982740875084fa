"""What counts as a failure, and that it counts once: results before their calls, pipes, polls, Ctrl-C, scripts."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.run import index
from agtrace_schema.codes import OUTCOME_CODES, TYPE_CODE
from agtrace_schema.events import EventType

from tests.agtrace.asking import claude_log
from tests.indexer.test_codex_families import T0, Rollout

SESSION = "2b8c6f1e-0000-4000-8000-000000000019"
CALL, RESULT = TYPE_CODE[EventType.TOOL_CALL], TYPE_CODE[EventType.TOOL_RESULT]


def outcomes(database: Path, kind: int = CALL) -> list[str]:
    """The outcomes of the calls, or of the results, in file order."""
    query = "SELECT outcome FROM event WHERE type = ? ORDER BY session_id, event_index"
    with closing(sqlite3.connect(database)) as connection:
        return ["unknown" if code is None else OUTCOME_CODES[code] for (code,) in connection.execute(query, (kind,))]


def indexed(folder: Path, database: Path) -> Path:
    """Index a folder of logs."""
    index(database, [str(folder)])
    return database


@pytest.mark.parametrize("at_once", [True, False])
def test_a_result_that_stands_before_its_call_belongs_to_it(tmp_path: Path, database: Path, at_once: bool) -> None:
    """Claude Code writes parallel calls and their results as they come; the log may grow in between."""
    log = claude_log(tmp_path / "home", SESSION).prompt("look")
    log.call("Read", {"file_path": "a.py"}, "no such file", failed=True).say("Gone.")
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join([lines[0], lines[2]]))
    if not at_once:
        indexed(tmp_path / "home", database)
    log.path.write_bytes(b"".join([lines[0], lines[2], lines[1], lines[3]]))
    indexed(tmp_path / "home", database)
    with closing(sqlite3.connect(database)) as connection:
        query = (
            "SELECT e.event_index, e.type, e.link, e.turn_index, e.step_index, n.text, e.outcome FROM event e "
            "JOIN name n ON n.id = e.name_id WHERE e.type IN (?, ?) ORDER BY e.event_index"
        )
        rows = connection.execute(query, (CALL, RESULT)).fetchall()
        (failed,) = connection.execute("SELECT failed_calls FROM session").fetchone()
        tools = connection.execute("SELECT n.text FROM block_tool t JOIN name n ON n.id = t.name_id").fetchall()
    (result, _, call_of_it, *place), (call, _, answer, *same) = rows
    assert (result < call, call_of_it, answer) == (True, call, result)
    assert place == same and place[2:] == ["Read", 1]
    assert failed == 1 and tools == [("Read",)]


@pytest.mark.parametrize(
    ("command", "printed", "outcome"),
    [
        ("uv run pytest -q 2>&1 | tail -5", "FAILED tests/test_a.py::test_b\n1 failed, 3 passed in 0.2s", "failed"),
        ("go test ./... 2>&1 | tail -20", "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\texample.com/x\t0.01s", "failed"),
        ("mise run check 2>&1 | tail -3", "[check] ERROR task failed", "failed"),
        ("bun run lint 2>&1 | tail -10", '  x Some errors\n\nerror: script "lint" exited with code 1', "failed"),
        ("npx eslint . | head -40", "a.js\n  1:1 error x\n\n✖ 2 problems (2 errors, 0 warnings)", "failed"),
        ("uv run pytest -q 2>&1 | tail -5", "4 passed in 0.2s", "ok"),
        ("bun run lint 2>&1 | tail -10", "Checked 40 files. No fixes applied.", "ok"),
        ("cat pytest.log | tail -5", "1 failed, 3 passed in 0.2s", "ok"),
        ("grep -rn 'exited with code' lint/ | head", 'error: script "lint" exited with code 1', "ok"),
    ],
)
def test_a_check_behind_a_pipe_failed_if_it_printed_so(
    tmp_path: Path, database: Path, command: str, printed: str, outcome: str
) -> None:
    """The end of the command is that of `tail`."""
    claude_log(tmp_path / "home", SESSION).prompt("check").call("Bash", {"command": command}, printed)
    indexed(tmp_path / "home", database)
    assert outcomes(database) == outcomes(database, RESULT) == [outcome]


def test_what_was_never_run_since_another_call_failed_is_no_failure(tmp_path: Path, database: Path) -> None:
    log = claude_log(tmp_path / "home", SESSION).prompt("look")
    log.call("Bash", {"command": "false"}, "Exit code 1", failed=True)
    for _ in range(3):
        log.call("Read", {"file_path": "a"}, "<tool_use_error>Sibling tool call errored</tool_use_error>", failed=True)
    indexed(tmp_path / "home", database)
    assert outcomes(database) == ["failed", *["interrupted"] * 3]


def codex(folder: Path, *calls: tuple[str, dict[str, Any], str]) -> None:
    """Write a rollout with these calls: tool, arguments, output."""
    log = Rollout(folder, T0).says("user", "go")
    for number, (tool, arguments, output) in enumerate(calls):
        log.item("function_call", name=tool, arguments=json.dumps(arguments), call_id=f"c{number}")
        log.item("function_call_output", call_id=f"c{number}", output=output)
    log.write()


RUNNING = "Wall time: 1.0 seconds\nProcess running with session ID 41\nOutput:\n"


def test_a_process_that_fails_later_is_one_failure_and_its_error_is_found(tmp_path: Path, database: Path) -> None:
    ended = "Wall time: 9.0 seconds\nProcess exited with code 101\nOutput:\nerror: boom"
    codex(tmp_path, ("exec_command", {"cmd": "cargo test"}, RUNNING), ("write_stdin", {"session_id": 41}, ended))
    indexed(tmp_path, database)
    assert outcomes(database) == ["failed", "ok"]
    assert outcomes(database, RESULT)[1] == "failed"


def test_a_process_that_the_model_stopped_with_ctrl_c_did_not_fail(tmp_path: Path, database: Path) -> None:
    ended = "Wall time: 0.1 seconds\nProcess exited with code 130\nOutput:\n^C"
    stop = ("write_stdin", {"session_id": 41, "chars": "\x03"}, ended)
    codex(tmp_path, ("exec_command", {"cmd": "npm start"}, RUNNING), stop)
    indexed(tmp_path, database)
    assert outcomes(database) == ["interrupted", "ok"]


@pytest.mark.parametrize(
    ("printed", "outcome"),
    [
        ('{"output":"","exit_code":2}', "failed"),
        ('{"exit_code": 0, "output": "fine"}', "ok"),
        ('[{"exit_code":0,"output":"a"},{"exit_code":1,"output":"b"}]', "failed"),
        ('{"output":"{\\"exit_code\\":1}","exit_code":0}', "ok"),
        ("done", "ok"),
    ],
)
def test_a_script_of_code_mode_failed_if_a_command_in_it_did(
    tmp_path: Path, database: Path, printed: str, outcome: str
) -> None:
    codex(tmp_path, ("exec", {}, f"Script completed\nWall time 0.1 seconds\nOutput:\n{printed}"))
    indexed(tmp_path, database)
    assert outcomes(database) == [outcome]
