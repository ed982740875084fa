"""The time that `agtrace` takes to start: `python -m benchmarks.start [ROUNDS] [--home FOLDER]`.

The server is compared with a minimal server of the same SDK, which has an empty list of tools. Commands that only
print, and those of every day, are compared with an interpreter that does nothing. In every round each of them starts
once, and a ratio is the median of the rounds' ratios, so it holds on a busy machine too. All run from compiled
bytecode, on an index of the sample sessions, or of the logs of a home that `--home` names, with only HOME and the
folder of the index set. Times are from the start of the process; those after a pause are from the request.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

ROUNDS = 30
PAUSE = 1.0
"""Seconds between the handshake and the first request, for a client that thinks in between."""

SAMPLES = Path(__file__).resolve().parents[1] / "sample_sessions"
AGTRACE = str(Path(sys.executable).with_name("agtrace"))

BARE = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def list_tools(context, params):
    return types.ListToolsResult(tools=[])


async def main():
    server = Server("bare", on_list_tools=list_tools)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
"""

SERVERS = {
    "bare": [sys.executable, "-c", BARE],
    "agtrace mcp": [AGTRACE, "mcp"],
}
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "agtrace --version": [AGTRACE, "--version"],
    "agtrace --help": [AGTRACE, "--help"],
    "agtrace search --help": [AGTRACE, "search", "--help"],
    "agtrace index --help": [AGTRACE, "index", "--help"],
    "agtrace sessions": [AGTRACE, "sessions"],
    "agtrace projects": [AGTRACE, "projects"],
    "agtrace show last": [AGTRACE, "show", "last"],
    "agtrace search": [AGTRACE, "search", "connection refused"],
}

CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
CALL = {"name": "search_event_previews", "arguments": {"query": "error"}}

Times = dict[str, list[float]]
"""Milliseconds of each round, by what was measured."""


class Connection:
    """A newly started server, and the client's ends of its pipes."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, method: str, params: dict[str, Any]) -> None:
        """Send a request and wait for its answer."""
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert self._process.stdout
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer and not answer["result"].get("isError"), answer

    def initialize(self) -> None:
        """Do the handshake, as every client of this protocol version does."""
        self.ask("initialize", CLIENT)

    def initialized(self) -> None:
        """Acknowledge the handshake."""
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def close(self) -> None:
        """Close its input and wait for it to end."""
        self._process.communicate(timeout=60)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def measure(rounds: int, environment: dict[str, str]) -> Times:
    """Start everything once in each round."""
    times: Times = defaultdict(list)
    for number in range(rounds + 1):
        seen = {**_servers(environment), **_commands(environment)}
        if number:  # the first round only compiles and fills the caches
            for name, seconds in seen.items():
                times[name].append(1000 * seconds)
    return times


def _servers(environment: dict[str, str]) -> dict[str, float]:
    seen = {}
    for name, command in SERVERS.items():
        connection = Connection(command, environment)
        connection.initialize()
        seen[f"{name}: initialize"] = time.perf_counter() - connection.started
        connection.initialized()
        connection.ask("tools/list", {})
        seen[f"{name}: tools/list"] = time.perf_counter() - connection.started
        if name != "bare":
            connection.ask("tools/call", CALL)
            seen[f"{name}: first call"] = time.perf_counter() - connection.started
        connection.close()
    return seen | _after_a_pause(environment)


def _after_a_pause(environment: dict[str, str]) -> dict[str, float]:
    """Measure the waits of a client that pauses before its first request."""
    connection = Connection(SERVERS["agtrace mcp"], environment)
    connection.initialize()
    connection.initialized()
    time.sleep(PAUSE)
    seen = {}
    for what, method, params in (
        ("after a pause: tools/list", "tools/list", {}),
        ("after a pause: first call", "tools/call", CALL),
        ("after a pause: second call", "tools/call", CALL),
    ):
        before = time.perf_counter()
        connection.ask(method, params)
        seen[what] = time.perf_counter() - before
    connection.close()
    return seen


def _commands(environment: dict[str, str]) -> dict[str, float]:
    seen = {}
    for name, command in COMMANDS.items():
        before = time.perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        seen[name] = time.perf_counter() - before
    return seen


def _table(times: Times) -> str:
    lines = [f"{'ms':<36}{'median':>8}{'p95':>8}{'ratio':>8}  of"]
    for what, given in times.items():
        base = _compared_with(what)
        line = f"{what:<36}{statistics.median(given):>8.1f}{_p95(given):>8.1f}"
        if base:
            ratios = (one / other for one, other in zip(given, times[base], strict=True))
            line += f"{statistics.median(ratios):>8.2f}  {base}"
        lines.append(line)
    return "\n".join(lines)


def _compared_with(what: str) -> str | None:
    if what.startswith("agtrace mcp: "):
        return "bare: initialize" if what.endswith("initialize") else "bare: tools/list"
    return "python -c pass" if what.startswith("agtrace ") else None


def _p95(given: list[float]) -> float:
    return sorted(given)[int(0.95 * (len(given) - 1) + 0.5)]


def _with_samples(home: Path) -> Path:
    """Put the sample sessions into the agents' places of a home."""
    for agent in ("claude", "codex", "gemini"):
        shutil.copytree(SAMPLES / agent, home / f".{agent}")
    return home


def _machine(home: Path, scratch: Path) -> dict[str, str]:
    """Index the logs of a home, with the index and the bytecode in another folder."""
    unset = ("AGTRACE_", "CLAUDE_", "CODEX_", "GEMINI_", "XDG_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    environment |= {"HOME": str(home), "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
    environment["AGTRACE_DATA_DIR"] = str(scratch / "data")
    subprocess.run([AGTRACE, "index"], env=environment, stdout=subprocess.DEVNULL, check=True)
    return environment


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description="Measure how long agtrace starts.")
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    parser.add_argument("--home", type=Path, help="a folder with the logs of agents in their places [the samples]")
    given = parser.parse_args()
    rounds = given.rounds
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        home = given.home or _with_samples(scratch / "home")
        times = measure(rounds, _machine(home.resolve(), scratch))
    sys.stdout.write(f"{rounds} rounds, {os.cpu_count()} cores, Python {sys.version.split()[0]}\n{_table(times)}\n")


if __name__ == "__main__":
    main()
