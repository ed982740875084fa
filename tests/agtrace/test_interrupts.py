"""Ctrl-C, as a terminal sends it: to a command and all processes that it has started, at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from agtrace_indexer.run import index

from tests import corpus
from tests.conftest import keep_rules
from tests.depth import SECOND, part
from tests.faults.serving import gone

MOMENTS = part([0.02, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55], 0, 3)
"""Seconds after the first line of ours, most of them while Python still imports."""

BEGIN = "import os; from agtrace.serving.interruption import end_at_interrupt; end_at_interrupt(); os.write(1, b'.')\n"
COMMAND = BEGIN + "from agtrace.cli import main; main()"
ON_ALL_CORES = (
    BEGIN
    + """
from agtrace.health import analysis
from agtrace_indexer.parallel import pool
pool.LEAST = analysis.LEAST_EVENTS = 1
pool.cores = os.cpu_count = lambda: 2
from agtrace.cli import main; main()"""
)
ENDLESS = (
    BEGIN
    + """
import sqlite3
endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
sqlite3.connect(":memory:").execute(endless).fetchone()"""
)
HANDED_OVER = """
import os, signal, sys, time
from agtrace.serving.interruption import end_at_interrupt
sys.setswitchinterval(60)  # the thread that ends the process comes too late
end_at_interrupt()
os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, lambda *_: None)
time.sleep(5)"""


@pytest.fixture(scope="module")
def large(compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of an index of logs that take a while."""
    folder = tmp_path_factory.mktemp("large")
    corpus.make(folder / "logs", 12)
    keep_rules(compiled_rules, folder / "data")
    index(folder / "data" / "index.sqlite3", [str(folder / "logs")])
    return folder / "data"


def interrupted(moment: float, program: str, *arguments: str, data: Path | None = None) -> int:
    """The exit code of a program that got SIGINT at a moment; nothing is left of it, and at most a line is told."""
    variables = os.environ if data is None else {**os.environ, "AGTRACE_DATA_DIR": str(data)}
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=-1, stdout=-1, stderr=-1, start_new_session=True, env=variables,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.read(1) == b"."
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        began = time.monotonic()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        process.stdout.read()
        assert process.stderr is not None and len(process.stderr.read().splitlines()) <= 1
        process.wait(300)
        assert gone(process.pid, began) < SECOND
    return process.returncode


@pytest.mark.thorough
def test_a_server_ends_at_any_moment(large: Path) -> None:
    assert [interrupted(moment, COMMAND, "mcp", data=large) for moment in MOMENTS] == [130] * len(MOMENTS)


@pytest.mark.thorough
@pytest.mark.parametrize("command", [["index", "--rebuild"], ["report", "--json"]], ids=" ".join)
def test_what_works_on_all_cores_ends_at_any_moment_with_all_its_processes(large: Path, command: list[str]) -> None:
    codes = [interrupted(moment, ON_ALL_CORES, *command, data=large) for moment in MOMENTS]
    assert {code for moment, code in zip(MOMENTS, codes, strict=True) if moment < 0.2} == {130}
    assert set(codes) <= {130, 0, -signal.SIGINT}  # done before, or in the midst of Python's own end


def test_a_call_into_c_that_never_ends_is_no_obstacle() -> None:
    assert interrupted(0.2, ENDLESS) == 130


def test_who_ignores_ctrl_c_goes_on_doing_so() -> None:
    """As what `nohup` starts, or a shell in the background."""
    program = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{BEGIN}input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None and process.stdout.read(1) == "."
        process.send_signal(signal.SIGINT)
        assert process.communicate("\n") == ("", None)
    assert process.returncode == 0


def test_ctrl_c_isnt_lost_just_before_a_server_handles_it_itself() -> None:
    assert subprocess.run([sys.executable, "-c", HANDED_OVER], check=False).returncode == 130
