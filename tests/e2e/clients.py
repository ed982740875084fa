"""The real clients: where they are installed, and how a test runs one in isolation, without leaving processes behind.

`make e2e` installs them from the locks below `npm`; CI runs the two test suites if they are installed.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / ".e2e"
LOCKS = Path(__file__).parent / "npm"
AGTRACE = Path(sys.executable).with_name("agtrace")

ALL = os.environ.get("AGTRACE_E2E") == "1"
"""Whether everything must run: `make e2e`."""

SECONDS = 300
"""A client that takes longer counts as hanging."""

NOWHERE = "http://127.0.0.1:9"
"""A proxy that doesn't exist, so that a client's requests to the network fail at once."""


@dataclass(frozen=True, slots=True)
class Client:
    """A program that speaks MCP, installed by npm."""

    title: str
    command: str
    folder: str
    """The folder below `npm` with its lock."""


INSPECTOR = Client("MCP Inspector", "mcp-inspector", "small")
CONFORMANCE = Client("MCP conformance suite", "conformance", "small")
CLAUDE = Client("Claude Code", "claude", "agents")
CODEX = Client("Codex CLI", "codex", "agents")
GEMINI = Client("Gemini CLI", "gemini", "agents")


def require(client: Client) -> None:
    """Skip the test if the client isn't installed as locked; fail it if everything must run."""
    folder = INSTALLED / client.folder
    lock = (LOCKS / client.folder / "package-lock.json").read_bytes()
    installed = folder / "package-lock.json"
    if not (folder / "ready").exists() or not installed.exists() or installed.read_bytes() != lock:
        (pytest.fail if ALL else pytest.skip)(f"{client.title} isn't installed as locked: make e2e does it")
    if client.folder == "agents" and not ALL:
        pytest.skip(f"{client.title} is run by make e2e only")


def version(client: Client) -> str:
    """Return the client's title with the version that it reports."""
    said = subprocess.run(
        [client.command, "--version"],
        env=environment(Path(os.environ["HOME"])), capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    number = next(word for word in said.stdout.split() if word[0].isdigit())
    return f"{client.title} {number}"


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return a client's environment: a home of its own, no telemetry, no updates, no network except loopback."""
    folders = [home / "bin", *(INSTALLED / name / "node_modules" / ".bin" for name in ("small", "agents"))]
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join([*map(str, folders), os.defpath, os.environ["PATH"]]),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
        "DO_NOT_TRACK": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "GEMINI_TELEMETRY_ENABLED": "false",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        **more,
    }


@contextmanager
def started(command: Sequence[str], home: Path, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Run a client in the home's folder `work`, with pipes for stdin and stdout; its group ends with the block.

    What it writes on stderr is appended to the home's `stderr`.
    """
    (home / "work").mkdir(exist_ok=True)
    with (
        (home / "stderr").open("a") as errors,
        subprocess.Popen(
            command, cwd=home / "work", env=environment(home, **more), start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8",
        ) as process,
    ):  # fmt: skip
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run(command: Sequence[str], home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a client until it ends, without input."""
    errors = home / "stderr"
    before = errors.stat().st_size if errors.exists() else 0
    with started(command, home, **more) as process:
        written, _ = process.communicate(timeout=SECONDS)
    said = errors.read_bytes()[before:].decode(errors="replace")
    return subprocess.CompletedProcess(command, process.returncode, written, said)


def machine(home: Path) -> Path:
    """Make `home` the home of a user who has worked with all three agents, and has agtrace on the PATH.

    That agtrace is ours with a recorder on both pipes: a client's requests to the server and the server's answers are
    in the home's `asked` and `answered`.
    """
    for provider in ("claude", "codex", "gemini"):
        shutil.copytree(SAMPLES / provider, home / f".{provider}")
    recorder = home / "bin" / "agtrace"
    recorder.parent.mkdir()
    ours, asked, answered, log = (
        shlex.quote(str(path)) for path in (AGTRACE, home / "asked", home / "answered", home / "log")
    )
    recorder.write_text(
        f'#!/bin/sh\n[ "$1" = mcp ] || exec {ours} "$@"\ntee -a {asked} | {ours} "$@" 2>> {log} | tee -a {answered}\n'
    )
    recorder.chmod(0o755)
    return home


def exchanged(home: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the parameters of every tool call that reached the server, with the result that the server sent.

    The clients call one tool at a time, so the two come in the same order.
    """
    calls = [message["params"] for message in _messages(home / "asked") if message.get("method") == "tools/call"]
    results = [message.get("result", {}) for message in _messages(home / "answered")]
    return list(zip(calls, [result for result in results if "content" in result], strict=True))


def _messages(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.read_bytes().split(b"\n") if line]
