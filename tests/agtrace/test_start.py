"""What `agtrace` loads, and when: a command that only prints, and a server's first answer, wait for nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import IO, Any

import pytest
from agtrace_indexer.providers.registry import AGENTS

from agtrace.commands.group import agtrace
from agtrace.serving.server import INSTRUCTIONS
from agtrace.tools import TOOLS

RUN = [sys.executable, "-X", "importtime", "-c", "import sys; from agtrace.cli import main; main()"]
LOADED = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$", re.MULTILINE)
HEAVY = {
    *("agtrace_indexer", "agtrace_schema", "sqlite3", "orjson", "zstandard", "itsdangerous"),
    *("rich", "platformdirs", "watchdog", "jinja2", "hyperscan", "prometheus_client"),
}
"""What answers need, or people, but neither the SDK nor a greeting."""

FACTS_OF_AGENTS = {
    "agtrace_indexer.events",
    "agtrace_indexer.events.tools",
    "agtrace_indexer.logs",
    "agtrace_indexer.logs.discovery",
    "agtrace_indexer.providers",
    "agtrace_indexer.providers.provider",
    "agtrace_indexer.providers.registry",
    "agtrace_indexer.providers.setup",
    *(f"agtrace_indexer.providers.{name}" for name in AGENTS),
}
"""What says which agents there are, and loads no parser."""

WORDS = {f"agtrace_schema{name}" for name in ("", ".own_tools", ".events", ".patterns", ".requests")}
"""The words of options: they load no model."""

SDK = {"mcp", "mcp_types", "pydantic", "pydantic_core"}


def families(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def loaded_by(stderr: str) -> set[str]:
    """The modules that a process loaded, as Python tells them on its stderr."""
    return set(LOADED.findall(stderr))


class Server:
    """The process of `agtrace mcp`, spoken to line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def send(self, method: str, number: int | None = None, **params: Any) -> None:
        """Send a request with a number, or a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        """The next message."""
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def greet(self) -> Any:
        """The answer to `initialize`."""
        client = {"name": "test", "version": "1"}
        self.send("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        return self.receive()["result"]

    def said(self) -> Any:
        """The next record of its log, where stderr is a pipe."""
        assert self._process.stderr
        return json.loads(self._process.stderr.readline())


@contextmanager
def serving(command: list[str], stderr: IO[str] | int) -> Iterator[Server]:
    """Run the server; one that hangs is killed."""
    with subprocess.Popen([*command, "mcp"], stdin=-1, stdout=-1, stderr=stderr, text=True) as process:
        hangs = Timer(30, process.kill)
        hangs.start()
        try:
            yield Server(process)
        finally:
            process.communicate()
            hangs.cancel()
    assert process.returncode == 0


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["search", "--help"]])
def test_what_only_prints_help_loads_no_server_no_database_and_no_models(arguments: list[str]) -> None:
    ended = subprocess.run([*RUN, *arguments], capture_output=True, text=True, timeout=300, check=True)
    assert ended.stdout
    loads_little(loaded_by(ended.stderr))


HELP = """
import sys
from agtrace.commands.group import agtrace

for name in sys.argv[1:]:
    try:
        agtrace.main([name, "--help"], prog_name="agtrace")
    except SystemExit as ended:
        assert not ended.code, name
    print("of", name)
    print("of", name, *sorted(sys.modules), file=sys.stderr)
"""


def test_the_help_of_a_command_loads_no_server_no_database_and_no_models() -> None:
    """Except that of `agtrace config`, which lists the settings from their model. All are printed by one process."""
    names = [name for name in agtrace.commands if name != "config"]
    ended = subprocess.run(
        [sys.executable, "-c", HELP, *names], capture_output=True, text=True, timeout=300, check=True
    )
    *helps, rest = re.split(r"^of .*\n", ended.stdout, flags=re.MULTILINE)
    assert len(helps) == len(names) and all(helps) and not rest
    for name, told in zip(names, ended.stderr.splitlines(), strict=True):
        _, of, *loaded = told.split()
        assert of == name
        loads_little(set(loaded))


def loads_little(loaded: set[str]) -> None:
    """Check what a command has loaded that only prints."""
    assert "agtrace.commands.group" in loaded
    assert families(loaded - WORDS) & (HEAVY | SDK) <= {"agtrace_indexer"}
    assert {name for name in loaded if name.startswith("agtrace_indexer.")} <= FACTS_OF_AGENTS


def test_a_greeting_is_answered_before_anything_is_loaded_that_only_answers_need(tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("w") as stderr, serving(RUN, stderr) as server:
        greeting = server.greet()
        loaded = loaded_by((tmp_path / "stderr").read_text())
    assert (greeting["serverInfo"]["name"], greeting["instructions"]) == ("agtrace", INSTRUCTIONS)
    assert "mcp.server.lowlevel" in loaded
    assert families(loaded) & {*HEAVY, "msgspec"} == set()
    ours = {name for name in loaded if name.split(".")[0] == "agtrace"}
    assert ours == {
        "agtrace",
        *(
            f"agtrace.{name}"
            for name in (
                *("answers", "answers.log", "cli", "commands", "problems"),
                *("settings", "settings.environment", "settings.live"),
                *("serving", "serving.ending", "serving.interruption", "serving.server", "serving.stdio_transport"),
            )
        ),
    }


@pytest.mark.thorough
def test_what_answers_need_loads_while_the_client_thinks_about_the_greeting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks nothing, and yet the server has read its prices: it says that it can't use them."""
    monkeypatch.setenv("AGTRACE_PRICES", str(tmp_path / "nothing.json"))
    with serving([sys.executable, "-m", "agtrace"], subprocess.PIPE) as server:
        server.greet()
        server.send("notifications/initialized")
        assert server.said()["event"] == "invalid_setting"


@pytest.mark.thorough
def test_a_client_that_asks_everything_at_once_gets_every_answer(tmp_path: Path) -> None:
    """Also one that never says that it has read the greeting."""
    with (tmp_path / "stderr").open("w") as stderr, serving(RUN, stderr) as server:
        server.greet()
        server.send("tools/list", 2)
        server.send("tools/call", 3, name="search_event_previews", arguments={"query": "error"})
        server.send("tools/call", 4, name="no_such_tool", arguments={})
        answers = {answer["id"]: answer for answer in (server.receive() for _ in range(3))}
    assert len(answers[2]["result"]["tools"]) == len(TOOLS)
    assert answers[3]["result"]["structuredContent"]["success"]
    assert "no_such_tool" in answers[4]["error"]["message"]
    loaded = loaded_by((tmp_path / "stderr").read_text())
    assert "agtrace.search.answers" in loaded  # Python tells only what import statements load
    assert families(loaded) & {"rich", "jinja2"} == set()
    assert {name for name in loaded if name.startswith(("agtrace.commands.", "agtrace.render"))} == set()


@pytest.mark.thorough
def test_only_the_server_over_http_loads_the_library_for_monitoring(tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("w") as stderr, serving(RUN, stderr) as server:
        server.greet()
        server.send("tools/call", 2, name="list_sessions", arguments={})
        assert server.receive()["result"]["structuredContent"]["success"]
        server.send("resources/read", 3, uri="ax://metrics/1d")
        assert server.receive()["result"]["contents"]
    loaded = loaded_by((tmp_path / "stderr").read_text())
    assert "agtrace.answers.telemetry.recorder" in loaded
    assert "prometheus_client" not in families(loaded) and "agtrace.answers.telemetry.prometheus" not in loaded


@pytest.mark.thorough
def test_a_server_collects_its_garbage_though_it_starts_without() -> None:
    code = (
        "import gc, os, sys; from agtrace.cli import main\n"
        "os._exit = lambda code: sys.exit(10 * gc.isenabled() + (gc.get_freeze_count() > 10_000))\n"
        "main()"
    )
    ended = subprocess.run([sys.executable, "-c", code, "mcp"], stdin=subprocess.DEVNULL, timeout=300, check=False)
    assert ended.returncode == 11
