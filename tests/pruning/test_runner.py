"""`agtrace run` as a process: every way of a run, and that an agent behaves as without it.

The agent and the servers are processes as well (`pretend_agent.py`, `pretend_server.py`). Whatever happens, nothing may
be left at the end: no process, no port, no file.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agtrace.pruning.agents import AGENTS, TOKEN_VARIABLE
from agtrace.pruning.states import RunLog
from tests.agtrace.pseudo_terminal import Terminal
from tests.pruning.driving import SECONDS, until

HERE = Path(__file__).parent
MARK = "AGTRACE_RUN_OF_A_TEST"
"""A variable that all processes of a test have."""


class Running:
    """A run that is under way."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process, self._folder = process, folder
        self._said = b""

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of the log, each of which must be JSON."""
        return [json.loads(line) for line in (self._folder / "stderr").read_bytes().split(b"\n")[:-1]]

    def awaited(self, event: str) -> dict[str, Any]:
        """Wait for an event of the log."""
        name = f"mcp_pruner.{event}"
        return until(
            lambda: next((one for one in self.log if one.get("event") == name and "at" in one), None),
            lambda: f"no {event} in {self.log}",
        )

    def agent(self) -> dict[str, Any]:
        """Wait for the agent, and return what it was given."""
        self.hears("here")
        found: dict[str, Any] = json.loads((self._folder / "agent").read_text())
        return found

    def tell(self, word: object) -> None:
        """Write a line to the agent's stdin."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n".encode())
        self.process.stdin.flush()

    def hears(self, word: str) -> str:
        """Wait until the agent writes a line with this word, and return it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said += line
            if word in line.decode():
                return line.decode().rstrip("\n")
        raise AssertionError(f"no {word} in {self._said!r}, {self.log}")

    def end(self, word: object = 0) -> Running:
        """Tell the agent to end, and wait for the end of the run."""
        with suppress(BrokenPipeError):
            self.tell(word)
        return self.result()

    def result(self) -> Running:
        """Wait for the end of the run."""
        assert self.process.stdout is not None
        self.code = self.process.wait(SECONDS)
        self._said += self.process.stdout.read()
        return self

    @property
    def said(self) -> str:
        """What the agent wrote to stdout."""
        return self._said.decode()

    @property
    def events(self) -> list[str]:
        """The names of the log events, in order."""
        return [record["event"].removeprefix("mcp_pruner.") for record in self.log if "event" in record]

    def of(self, event: str) -> dict[str, Any]:
        """The fields of the only event of this name."""
        (found,) = (one for one in self.log if one.get("event") == f"mcp_pruner.{event}" and "at" in one)
        return {name: value for name, value in found.items() if name not in ("event", "at")}


class Machine:
    """Where runs are started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in AGENTS:
            shutil.copy(HERE / "pretend_agent.py", self.programs / name)
            (self.programs / name).chmod(0o755)

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a run."""
        path = os.pathsep.join([str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        out = str(self.folder / "agent")
        return {**os.environ, "PATH": path, "AGENT_OUT": out, MARK: str(self.folder), **more}

    @contextmanager
    def started(self, command: Sequence[str], more: Mapping[str, str], **how: Any) -> Iterator[Running]:
        """Run a command; afterwards nothing may be left of it."""
        with (
            (self.folder / "stderr").open("wb") as errors,
            subprocess.Popen(
                command, env=self.environment(more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, **how
            ) as process,
        ):
            running = Running(process, self.folder)
            try:
                yield running
                assert process.wait(SECONDS) is not None
            finally:
                process.kill()
        self.check_nothing_is_left(running.log)

    def run(self, *behaviours: str, provider: str = "claude", words: Sequence[str] = (), **more: str) -> Any:
        """Run an agent with a server that behaves like this, or isn't there, as a context."""
        server = [sys.executable, "-S", str(HERE / "pretend_server.py"), *behaviours]
        server = ["/nowhere/server"] if "isn't there" in behaviours else server
        command = [sys.executable, str(HERE / "run_with.py"), provider, *server, "--", provider, *words]
        return self.started(command, more)

    def command(self, *words: str, **more: str) -> Any:
        """Run `agtrace run` itself, as a context."""
        return self.started([sys.executable, "-m", "agtrace", "run", *words], more)

    def check_nothing_is_left(self, log: Sequence[Mapping[str, Any]]) -> None:
        """Check that no process, port or file is left; what was killed may take a moment to be gone."""
        until(lambda: not processes(self.folder), lambda: f"left: {[one.command for one in processes(self.folder)]}")
        for port in {record["port"] for record in log if record.get("port")}:
            until(partial(_is_free, port), lambda: "a port is still listened on")
        until(lambda: not [*self.folder.glob("data/run-*")], lambda: "a file is left")


def _is_free(port: int) -> bool:
    """Whether nobody listens; a test of another worker may, for a moment, on what has become free."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


class Process(NamedTuple):
    """A process of a test."""

    pid: int
    command: str
    environment: dict[str, str]


def processes(folder: Path) -> list[Process]:
    """Return all processes of a test."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (entry / "environ").read_bytes().decode(errors="replace")
            if f"{MARK}={folder}\0" in environment:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                pairs = (pair.partition("=") for pair in environment.split("\0"))
                found.append(Process(int(entry.name), command, {name: value for name, _, value in pairs}))
    return found


def server_of(folder: Path) -> Process:
    """Wait for the server of a test, and return it."""
    return until(
        lambda: next((one for one in processes(folder) if "AGTRACE_HTTP_TOKEN" in one.environment), None)
    )  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with agents."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("what is left of a run can be seen on Linux only")
    return Machine(tmp_path)


@pytest.fixture
def run_words() -> list[str]:
    """A run with a server that is well."""
    server = [sys.executable, "-S", str(HERE / "pretend_server.py")]
    return [sys.executable, str(HERE / "run_with.py"), "claude", *server, "--", "claude"]


# -- every way of a run ----------------------------------------------------------------------------


def test_without_a_server_an_agent_is_told_of_none(machine: Machine) -> None:
    with machine.command("--provider", "claude", "--no-pruner") as running:
        given = running.agent()
        ran = running.end(7)
    assert (ran.code, ran.events) == (7, ["disabled", "not_running"])
    assert ran.of("disabled") == {"reason": "config_disabled"}
    assert (given["arguments"], given["file"]) == ([], None)


def test_the_token_of_a_server_is_in_its_environment_and_in_no_argument(machine: Machine) -> None:
    with machine.run("silent", AGTRACE_PRUNER__STARTUP_TIMEOUT_MS="120000") as running:
        server = server_of(machine.folder)
        assert re.fullmatch("[0-9a-f]{64}", token := server.environment["AGTRACE_HTTP_TOKEN"])
        assert all(token not in one.command for one in processes(machine.folder))
        assert running.log == []
        assert os.getsid(server.pid) == server.pid != os.getsid(running.process.pid)
        running.process.send_signal(signal.SIGTERM)
        assert running.result().code == -signal.SIGTERM


@pytest.mark.thorough
def test_an_agent_is_told_of_a_server_that_is_ready(machine: Machine) -> None:
    with machine.run("garbage", words=["-p", "go"]) as running:
        given = running.agent()
        event = running.awaited("ready")
        server = server_of(machine.folder)
        ran = running.end(7)
    assert (event["host"], event["pid"]) == ("127.0.0.1", server.pid)
    mode, content = given["file"].split(" ", 1)
    token = server.environment["AGTRACE_HTTP_TOKEN"]
    url, headers = f"http://127.0.0.1:{event['port']}/mcp", {"Authorization": f"Bearer {token}"}
    entry = {"type": "http", "url": url, "headers": headers}
    assert (mode, json.loads(content)) == ("600", {"mcpServers": {"agtrace_prune": entry}})
    assert given["arguments"][1:] == ["-p", "go"] and given["arguments"][0].startswith("--mcp-config=")
    assert token not in given["environment"].values()
    assert (ran.code, ran.events) == (7, ["ready", "ready", "ready", "stopped"])  # two of them are the server's
    outputs = [record["output"] for record in ran.log if "output" in record]
    assert outputs == ["\ufffd\ufffd", "mcp_pruner.ready", "to stdout (token)"]


@pytest.mark.thorough
def test_settings_that_cannot_be_used_leave_the_agent_without_a_server(machine: Machine) -> None:
    with machine.command("--provider", "claude", PRUNER_TIMEOUT_MS="soon") as running:
        given = running.agent()
        ran = running.end(7)
    assert (ran.code, ran.events) == (7, ["config_invalid", "disabled", "not_running"])
    (problem,) = ran.of("config_invalid")["problems"]
    assert problem.startswith("PRUNER_TIMEOUT_MS: expected") and "soon" not in problem  # it might be a secret
    assert ran.of("disabled") == {"reason": "config_invalid"}
    assert given["arguments"] == []


@pytest.mark.thorough
def test_a_run_that_is_ended_while_its_server_starts_starts_no_agent(machine: Machine) -> None:
    with machine.run("silent", AGTRACE_PRUNER__STARTUP_TIMEOUT_MS="120000") as running:
        server_of(machine.folder)
        running.process.send_signal(signal.SIGINT)
        ran = running.result()
    assert (ran.code, ran.events, ran.said) == (-signal.SIGINT, ["stopped"], "")


class Way(NamedTuple):
    """What a server does while its agent works, and what the log says of it: events in order, fields of some."""

    server: tuple[str, ...]
    """How it behaves."""
    events: tuple[str, ...]
    fields: dict[str, dict[str, Any]]
    signal: signal.Signals | None = None
    """What it gets once it is ready."""
    variables: dict[str, str] | None = None


NO_SERVER = ("start_failed", "not_running")
LOST = ("degraded", "shutdown_after_degraded")
IN_DEPTH = ("exits", "ends", "is never ready", "refuses", "hangs", "doesn't end")
KILLED = {"exit_code": None, "signal": "SIGKILL"}
ENDED = {"exit_code": 4, "signal": None}
SLOW = {"AGTRACE_PRUNER__STARTUP_TIMEOUT_MS": "600"}
HASTY = {"AGTRACE_PRUNER__SHUTDOWN_TIMEOUT_MS": "100"}
MISSING = {"error": "No such file or directory"}
EXITED = {"error": "the server ended with exit code 3"}
GONE = {"failures": 3, "error": "/healthz: Connection refused"}
HANGS = {"failures": 3, "error": "/healthz: no answer in time"}

SERVERS = {
    "exits": Way(("exits",), NO_SERVER, {"start_failed": EXITED}),
    "isn't there": Way(("isn't there",), ("spawn_error", *NO_SERVER), {"spawn_error": MISSING}),
    "is never ready": Way(
        ("not ready", "stubborn"), ("start_timeout", *NO_SERVER), {"start_timeout": {"timeout_ms": 600}}, None, SLOW
    ),
    "works": Way(("leaves a child",), ("ready", "stopped"), {"stopped": {"exit_code": 0}}),
    "is killed": Way(("",), ("ready", "exited", *LOST), {"degraded": KILLED}, signal.SIGKILL),
    "ends": Way(
        ("leaves a child",), ("ready", "exited", *LOST), dict.fromkeys(("exited", LOST[1]), ENDED), signal.SIGUSR1
    ),
    "refuses": Way(
        ("",), ("ready", "unreachable", *LOST), {"unreachable": GONE, LOST[1]: KILLED}, signal.SIGUSR2
    ),
    "hangs": Way(("",), ("ready", "unreachable", *LOST), {"unreachable": HANGS}, signal.SIGSTOP),
    "doesn't end": Way(
        ("stubborn",), ("ready", "kill_escalated", "stopped"),
        {"kill_escalated": {"timeout_ms": 100}, "stopped": KILLED}, None, HASTY,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name in IN_DEPTH)) for name in SERVERS]
)
def test_an_agent_works_to_its_end_whatever_its_server_does(machine: Machine, name: str) -> None:
    """Agents that are started after a loss aren't told of the server any more."""
    way = SERVERS[name]
    with machine.run(*way.server, **(way.variables or {})) as running:
        given = running.agent()
        if way.signal:
            os.kill(running.awaited("ready")["pid"], way.signal)
            running.awaited("degraded")
            running.tell("told")
            assert running.hears("told") == 'told 600 {"mcpServers": {}}'
        ran = running.end(7)
    assert (ran.code, tuple(ran.events)) == (7, way.events)
    assert (given["file"] is None) == ("ready" not in way.events)
    for event, fields in way.fields.items():
        assert ran.of(event).items() >= fields.items(), event


# -- an agent is as it would be without us ---------------------------------------------------------


@pytest.mark.parametrize(("word", "code"), [(255, 255), ("-15", -15)])
def test_a_run_ends_as_its_agent_ends(machine: Machine, word: object, code: int) -> None:
    with machine.command("--provider", "claude", "--no-pruner", "--", "claude", "a b", "") as running:
        given = running.agent()
        ran = running.end(word)
    assert (ran.code, given["arguments"]) == (code, ["a b", ""])


def test_a_command_that_is_not_there_or_no_program_ends_as_in_a_shell(machine: Machine) -> None:
    (machine.programs / "codex").chmod(0o644)
    for name, code, why in (("nothing", 127, "No such file or directory"), ("codex", 126, "Permission denied")):
        with machine.command(
            "--provider", "codex", "--no-pruner", "--log", str(machine.folder / "log"), name
        ) as running:
            assert running.process.wait(SECONDS) == code
            assert (machine.folder / "stderr").read_text() == f"agtrace: can't run {name}: {why}\n"
            (machine.folder / "stderr").write_bytes(b"")
    events = [json.loads(line)["event"] for line in (machine.folder / "log").read_text().splitlines()]
    assert events == ["mcp_pruner.disabled", "mcp_pruner.not_running"] * 2
    assert (machine.folder / "log").stat().st_mode & 0o777 == 0o600


@pytest.mark.thorough
def test_signals_reach_the_agent_and_the_run_ends_only_with_it(machine: Machine) -> None:
    """Also SIGINT, as there is no terminal that could have sent it to both."""
    with machine.run() as running:
        running.agent()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT):
            running.process.send_signal(number)
            assert running.hears("SIG") == number.name
        ran = running.end(7)
    assert (ran.code, ran.events) == (7, ["ready", "stopped"])
    assert ran.said.count("SIG") == 5


@pytest.mark.thorough
def test_an_agent_inherits_ignored_signals_and_open_files_but_none_of_ours(
    machine: Machine, run_words: list[str]
) -> None:
    file = (machine.folder / "open").open("w+")
    command = ["sh", "-c", 'trap "" HUP INT; exec "$@"', "sh", *run_words]
    with machine.started(command, {}, pass_fds=(file.fileno(),)) as running:
        given = running.agent()
        links = Path("/proc", str(given["pid"]), "fd")
        opened = {int(link.name): link.readlink() for link in links.iterdir()}
        status = Path("/proc", str(given["pid"]), "status").read_text()
        running.process.send_signal(signal.SIGHUP)
        ran = running.end(7)
    assert {number for number in opened if number > 2} == {file.fileno()}
    ignored = int(re.findall(r"SigIgn:\s+(\w+)", status)[0], 16)
    numbers = {number for number in range(1, 32) if ignored >> (number - 1) & 1}
    assert numbers == {signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ}  # Python itself ignores two
    assert (ran.code, ran.said) == (7, "here\n")


@pytest.mark.thorough
def test_an_agent_whose_file_cannot_be_written_runs_without_the_server(machine: Machine) -> None:
    (machine.folder / "file").write_text("")
    with machine.run(AGTRACE_DATA_DIR=str(machine.folder / "file" / "data")) as running:
        given = running.agent()
        ran = running.end(7)
    assert (ran.code, ran.events, given["arguments"]) == (7, ["start_failed", "not_running"], [])
    assert ran.of("start_failed")["error"].endswith("Not a directory")


@pytest.mark.thorough
def test_whoever_cannot_wait_for_the_end_of_a_server_gets_it_at_once(machine: Machine) -> None:
    with machine.run("stubborn", AGTRACE_PRUNER__SHUTDOWN_TIMEOUT_MS="60000") as running:
        agent = running.agent()["pid"]
        running.tell(7)
        until(lambda: agent not in [one.pid for one in processes(machine.folder)])
        until(lambda: running.process.send_signal(signal.SIGINT) or running.process.poll() is not None)
        ran = running.result()
    assert (ran.code, ran.events) == (7, ["ready", "kill_escalated", "stopped"])


@pytest.mark.parametrize("behaviour", ["", pytest.param("stubborn", marks=pytest.mark.thorough)])
def test_nothing_is_left_when_the_runner_itself_is_killed(machine: Machine, behaviour: str) -> None:
    """The agent isn't ours to kill: here it ends with its stdin."""
    with machine.run(behaviour) as running:
        running.agent()
        assert len([*machine.folder.glob("data/run-*")]) == 1
        running.process.kill()
        running.process.wait(SECONDS)
        assert running.process.stdin is not None
        running.process.stdin.close()


@pytest.mark.thorough
def test_codex_is_told_by_arguments_and_a_variable(machine: Machine) -> None:
    with machine.run(provider="codex", words=["exec", "go"]) as running:
        given = running.agent()
        port = running.awaited("ready")["port"]
        token = server_of(machine.folder).environment["AGTRACE_HTTP_TOKEN"]
        assert [*machine.folder.glob("data/run-*")] == []
        ran = running.end(7)
    assert given["arguments"] == [
        "-c", f'mcp_servers.agtrace_prune.url="http://127.0.0.1:{port}/mcp"',
        "-c", f'mcp_servers.agtrace_prune.bearer_token_env_var="{TOKEN_VARIABLE}"',
        "exec", "go",
    ]  # fmt: skip
    assert given["environment"][TOKEN_VARIABLE] == token
    assert (ran.code, ran.events) == (7, ["ready", "stopped"])


def test_a_command_that_names_no_agent_runs_as_it_is_and_that_is_told(machine: Machine) -> None:
    with machine.command("--provider", "claude", "--", "sh", "-c", "exit 9") as running:
        running.process.wait(SECONDS)
        told, *lines = (machine.folder / "stderr").read_text().splitlines()
        (machine.folder / "stderr").write_bytes(b"")
    assert told == "agtrace: the command doesn't name claude, so it runs without the server"
    assert [json.loads(line).get("reason") for line in lines] == ["no_agent_in_command", None]
    assert running.process.returncode == 9


# -- at a terminal ---------------------------------------------------------------------------------


class AtTerminal(Terminal):
    """A command at a terminal, and what its user has not yet awaited."""

    def __init__(self, machine: Machine, command: Sequence[str], **more: str) -> None:
        self.text = ""
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            os.execvpe(command[0], command, machine.environment(more))

    def sees(self, text: str) -> None:
        """Wait until a text is written that hasn't been awaited yet."""
        self.until(text, SECONDS)
        self.text = self.plain.partition(text)[2]

    def resize(self, lines: int, columns: int) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@pytest.mark.thorough
def test_keys_and_sizes_reach_an_agent_at_a_terminal_once_and_the_log_is_kept_off_it(
    machine: Machine, run_words: list[str]
) -> None:
    terminal = AtTerminal(machine, run_words)
    terminal.sees("here")
    terminal.resize(40, 100)
    terminal.sees("SIGWINCH")
    for _ in range(3):
        terminal.press("\x03")
        terminal.sees("SIGINT")
    terminal.press("42\n")
    assert terminal.end() == 42
    assert "SIGINT" not in terminal.text and "mcp_pruner" not in terminal.text
    log = machine.folder / "data" / "run.log"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [record["event"] for record in records] == ["mcp_pruner.ready", "mcp_pruner.stopped"]
    assert log.stat().st_mode & 0o777 == 0o600
    machine.check_nothing_is_left(records)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell with job control")
def test_an_agent_is_stopped_and_continued_as_a_job_of_a_shell(machine: Machine, run_words: list[str]) -> None:
    terminal = AtTerminal(machine, ["bash", "--norc", "--noprofile", "-i"], PS1="$ ", HISTFILE="")
    for _ in range(2):
        terminal.press(" ".join(run_words) + "\n")
        terminal.sees("here")
        terminal.press("\x1a")
        terminal.sees("Stopped")
        terminal.sees("$ ")
        terminal.press("fg\n")
        terminal.sees("claude\r\n")
        terminal.press("9\n")
        terminal.sees("$ ")
        terminal.press("echo code=$?\n")
        terminal.sees("code=9\r")
    terminal.press("exit 3\n")
    assert terminal.end() == 3
    machine.check_nothing_is_left([])


# -- the log ---------------------------------------------------------------------------------------


def test_the_log_in_the_data_folder_begins_anew_when_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    file = tmp_path / "data" / "run.log"
    file.write_bytes(b"{}\n" * 400_000)
    log = RunLog.usual()
    log.write({"number": 1})
    log.close()
    assert file.read_text() == '{"number": 1}\n'
    assert (tmp_path / "data" / "run.log.1").stat().st_size == 1_200_000
