"""The command line as tests use it: the console script in a process of its own, or the commands within the test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.run import index
from click.testing import CliRunner

import agtrace.render.terminal  # its console keeps the width that COLUMNS has when it is created
from agtrace.commands import group
from agtrace.commands.asking import answers
from agtrace.settings import load
from agtrace.settings.environment import forget_command_line

AGTRACE = Path(sys.executable).with_name("agtrace")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Said(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def agtrace(*arguments: str | Path, patience: float = 60, **environment: str) -> Said:
    """Run a command for at most `patience` seconds. No command may ever show a traceback or control characters."""
    run = subprocess.run(
        [AGTRACE, *arguments],
        capture_output=True,
        env={**os.environ, "COLUMNS": "160", **environment},
        timeout=patience,
        stdin=subprocess.DEVNULL,
    )
    said = Said(run.returncode, run.stdout.decode(), run.stderr.decode())
    assert "Traceback" not in said.err, said
    assert not CONTROLS.search(said.out + said.err), said
    return said


def agtrace_here(*arguments: str | Path, **environment: str) -> Said:
    """Run a command in this process, which is much quicker if the start and end of a process don't matter.

    Not for `index`, which would lower the priority of the whole test run.
    """
    assert arguments[:1] != ("index",)
    answers.cache_clear()
    forget_command_line()
    environment = {"COLUMNS": "160", **environment}
    run = CliRunner().invoke(group.agtrace, list(map(str, arguments)), prog_name="agtrace", env=environment)
    forget_command_line()
    assert run.exception is None or isinstance(run.exception, SystemExit), run.exception
    assert not CONTROLS.search(run.output), run.output
    return Said(run.exit_code, run.stdout, run.stderr)


def index_here(*roots: Path) -> None:
    """Index these folders for the commands, as `agtrace index` does in a process of its own."""
    index(load().database, [str(root) for root in roots])
