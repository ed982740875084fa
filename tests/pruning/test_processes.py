"""Processes of the pruning server: whatever a command does, nothing of it outlives the call or the server."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import anyio
import pytest

from agtrace.pruning.output import inherited
from tests.pruning.running import appear, call, children, failure, marked, needs_proc, run

pytestmark = needs_proc

_ESCAPES = {
    "in the background": "sleep 1000 &",
    "deaf to SIGTERM": "(trap '' TERM; sleep 1000; sleep 1000) &",
    "without output": "sleep 1000 > /dev/null 2>&1 < /dev/null & disown",
    "stopped": "sleep 1000 & kill -STOP $!",
}


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex


@pytest.mark.parametrize("left", _ESCAPES.values(), ids=_ESCAPES)
def test_what_a_command_leaves_behind_is_ended_with_it_and_delays_its_answer_little(
    left: str, mark: str, tmp_path: Path
) -> None:
    began = time.monotonic()
    output = run("bash", tmp_path, command=f"{left}\necho done", env={"MARK": mark})
    assert output.text == "done\n" and output.exit_code == 0
    assert time.monotonic() - began < 10, "not the 1,000 seconds"
    assert marked(mark) == []


@pytest.mark.parametrize("left", _ESCAPES.values(), ids=_ESCAPES)
def test_a_command_whose_time_is_up_is_ended_with_all_that_it_started(left: str, mark: str, tmp_path: Path) -> None:
    failed = failure("bash", tmp_path, command=f"{left}\nsleep 1000", env={"MARK": mark}, timeout_ms=300)
    assert (failed.error_code, failed.timeout_ms) == ("timeout", 300)
    assert marked(mark) == []


def test_a_call_that_is_cancelled_leaves_nothing(mark: str, tmp_path: Path) -> None:
    there = set(children())  # servers of other modules

    async def leave() -> None:
        arguments = {"command": "sleep 1000 & trap '' TERM; sleep 1000; sleep 1000", "env": {"MARK": mark}}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "bash", tmp_path, None, arguments)
            await appear(3, mark)
            tasks.cancel_scope.cancel()
        assert marked(mark) == []

    anyio.run(leave)
    assert set(children()) <= there


def test_a_command_gets_the_usual_variables_those_the_user_names_and_no_other() -> None:
    usual = {"PATH", "HOME", "LANG", "LC_ALL", "TERM", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "VIRTUAL_ENV"}
    others = {
        "NPM_CONFIG__AUTH",
        "OAUTH",
        "COOKIE",
        "STRIPE_SK",
        "KEY",
        "VAULT",
        "BASIC",
        "KUBECONFIG_DATA",
        "PGPASSWORD",
    }
    given = dict.fromkeys(usual | others, "x")
    assert inherited(given).keys() == usual
    assert inherited(given, ["VAULT"]).keys() == usual | {"VAULT"}


def test_a_command_finds_signals_as_usual_and_no_descriptor_but_the_three(tmp_path: Path) -> None:
    output = run("bash", tmp_path, command="set -o pipefail; yes | head -1; echo $?; ls /proc/self/fd | wc -l")
    assert output.text.split() == ["y", "141", "4"], "ls itself has one open"
