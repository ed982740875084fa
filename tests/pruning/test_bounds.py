"""What no output, command or client can do to the server: fill its memory, outlive it, keep others waiting."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.serving import memory
from tests.pruning.driving import Server, server
from tests.pruning.misbehaving import pruning
from tests.pruning.running import children

pytestmark = pytest.mark.thorough

MOST = 200 * 1024 * 1024
GIGABYTE = 1_000_000_000
WAITS = "exec tail -f /dev/null"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture(params=["stdio", "http"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with server(tmp_path, http=request.param == "http") as found:
        yield found


def test_a_gigabyte_of_output_is_counted_and_takes_no_memory(running: Server) -> None:
    command = f"yes {'x' * 99} | head -c {GIGABYTE}"
    answer = running.call("bash", {"command": command, "context_focus_question": "Where is the end?"})
    assert answer.about["stdout_bytes"] == GIGABYTE
    assert answer.about["pruning"]["reason"] == "input_too_large"
    assert answer.about["captured"]["kept_bytes"] <= 2_097_152 and len(answer.text) <= 40_960
    assert memory(running.process.pid) < MOST


def test_a_range_at_the_end_of_a_very_large_file_takes_no_memory(running: Server, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        for _ in range(140):
            file.write(b"0123456789abcdef\n" * 65_536)
    answer = running.call("read", {"file_path": "file", "start_line": 140 * 65_536 - 9_999})
    (tmp_path / "file").unlink()
    assert answer.about["raw_bytes"] == 170_000 and memory(running.process.pid) < MOST


def test_two_hundred_requests_at_once_are_all_answered(tmp_path: Path) -> None:
    """Each reads as much as is ever kept, and asks a pruner that answers at length."""
    (tmp_path / "large.txt").write_text("a line of a large file, about nothing\n" * 10_000)
    with pruning() as pruner, server(tmp_path, http=True, AGTRACE_PRUNER__ENDPOINT=pruner.url) as running:
        scores = [["token", 0.123456789]] * 40_000
        pruner.reply = json.dumps({"pruned_code": "kept", "token_scores": scores}).encode()

        def ask(number: int) -> str:
            asked = {"context_focus_question": f"Which line has the number {number}?"}
            params = {"name": "read", "arguments": {"file_path": "large.txt", **asked}}
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            message = running.exchanged(json.dumps(call).encode())
            assert message["id"] == number
            return str(message["result"]["content"][0]["text"])

        with ThreadPoolExecutor(200) as clients:
            assert set(clients.map(ask, range(200))) == {"kept"}
        assert memory(running.process.pid) < MOST
        assert running.call("bash", {"command": "echo well"}).text == "well\n"
        assert children(running.process.pid) == []


@pytest.mark.parametrize("ending", ["kill", "terminate", "close"])
def test_commands_end_with_the_server(tmp_path: Path, ending: str) -> None:
    with server(tmp_path) as running:
        params = {"name": "bash", "arguments": {"command": f"echo $$ > fresh; mv fresh pid; {WAITS}"}}
        call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
        running.sent(json.dumps(call).encode())
        running.until(lambda: (tmp_path / "pid").exists())
        process = int((tmp_path / "pid").read_text())
        assert running.process.stdin is not None
        running.process.stdin.close() if ending == "close" else getattr(running.process, ending)()
        running.process.wait(30)
        running.until(lambda: not Path(f"/proc/{process}").exists())


def test_neither_questions_nor_outputs_reach_a_shell_a_log_line_or_the_pruner_unmasked(tmp_path: Path) -> None:
    question = f'Which $(touch {tmp_path}/made) `touch {tmp_path}/made`; says {SECRET}\n{{"event": "forged"}}?'
    (tmp_path / "file.txt").write_text(f"TOKEN={SECRET}\n" + '{"event": "forged"}\n' * 100)
    with pruning() as pruner, server(tmp_path, AGTRACE_PRUNER__ENDPOINT=pruner.url) as running:
        pruner.reply = {"pruned_code": f"TOKEN={SECRET}"}
        for tool, arguments in (
            ("read", {"file_path": "file.txt"}),
            ("bash", {"command": "cat file.txt"}),
            ("grep", {"pattern": "TOKEN|forged", "paths": ["file.txt"]}),
            ("bash", {"command": f"echo {SECRET} >&2; exit 1"}),
            ("read", {"file_path": f"nowhere/{SECRET}"}),
            ("read", {SECRET: "x"}),
        ):
            answer = running.call(tool, {**arguments, "context_focus_question": question})
            assert SECRET not in json.dumps(answer.message)
        assert len(pruner.asked) == 3
        assert all(SECRET.encode() not in body and b"[redacted" in body for body in pruner.asked)
        log = running.errors.read_text()
        assert SECRET not in log and "Which" not in log
        assert all(json.loads(line)["event"] != "forged" for line in log.splitlines())
        assert not (tmp_path / "made").exists()
        kept = list((Path(os.environ["AGTRACE_DATA_DIR"]) / "outputs").iterdir())
        assert kept and all(path.stat().st_mode & 0o077 == 0 for path in kept)


def test_commands_get_the_variables_that_they_need_and_no_others(tmp_path: Path) -> None:
    with server(tmp_path, MY_API_KEY=SECRET, HARMLESS="seen") as running:
        answer = running.call("bash", {"command": "env", "env": {"ADDED": "too"}})
        assert "PATH=" in answer.text and "ADDED=too" in answer.text and "HARMLESS" not in answer.text
        assert "MY_API_KEY" not in answer.text and "AGTRACE_HTTP_TOKEN" not in answer.text
