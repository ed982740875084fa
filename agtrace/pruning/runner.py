"""A run of an agent with a server of its own that prunes: the states `run:*`, one after the other.

Whatever becomes of the server, the agent runs, and ends, as it would without us. Everything happens in one thread: it
waits for signals and for what the server writes, and now and then asks it for `/healthz`.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agtrace.problems import NotStarted
from agtrace.pruning.agents import WITHOUT_SERVERS, Agent, AgentInput, Signals, place, stop_like_agent
from agtrace.pruning.processes import Guard
from agtrace.pruning.states import Log, Run, RunLog, StateMachine
from agtrace.settings.environment import command_line, config_file, data_dir, environment_of

if TYPE_CHECKING:
    from agtrace.settings.model import Pruner

HOST = "127.0.0.1"
"""Where servers of runs listen."""

SERVER_TOKEN = "AGTRACE_HTTP_TOKEN"
"""The variable from which the server takes the token."""

_NEVER = float("inf")
_CONNECT_FAILURES = 3
"""The failed attempts to connect after which a server is given up."""
_READY_EVERY = 0.05
"""Seconds between two questions whether the server is ready."""

_MOST_AT_ONCE, _LONGEST_LINE = 65_536, 16_384
_AFTER_KILL = 5.0
"""Seconds within which the system ends a killed process."""

_CHANGED_BY_PYTHON = [signal.SIGPIPE, *([signal.SIGXFSZ] if hasattr(signal, "SIGXFSZ") else [])]
"""Signals that this process ignores, because it is written in Python; the agent shouldn't."""


class Health(NamedTuple):
    """How a running server is watched."""

    every: float = 3.0
    """Seconds between two questions."""
    patience: float = 2.0
    """Seconds within which each must be answered."""


class Plan(NamedTuple):
    """What to run, and how."""

    agent: Agent
    command: Sequence[str]
    wanted: bool
    """Whether the user wants a server."""
    log: RunLog
    server: Sequence[str] = ()
    """The command that starts the server; none for ours."""
    health: Health = Health()


def run(plan: Plan) -> int:
    """Run an agent until it ends; return its exit code as `subprocess` has it, below 0 for a signal.

    Returns the same for a signal that comes before it is started. Raises `NotStarted`.
    """
    with Signals() as signals:
        return _Runner(plan, signals).run()


class _Runner:
    def __init__(self, plan: Plan, signals: Signals) -> None:
        self._plan, self._signals = plan, signals
        self._machine: StateMachine[Run] = StateMachine(Run.INIT, Log(plan.log.write))
        self._file = Path()
        self._child: Child | None = None
        self._settings: Pruner | None = None
        self._told = AgentInput()
        self._next_question, self._failures = _NEVER, 0

    def run(self) -> int:
        try:
            self._prepare()
            asked = self._signals.asked
            try:
                return self._watched(self._started()) if asked is None else -asked
            finally:
                self._shut_down()
        finally:
            if self._child is not None:
                self._child.kill()
                self._child.close()

    # -- run:init, run:mcp_pruner_starting -----------------------------------------------------------

    def _prepare(self) -> None:
        if not self._plan.wanted:
            self._machine.go("disabled", reason="config_disabled")
        elif place(self._plan.agent, self._plan.command) is None:
            self._machine.go("disabled", reason="no_agent_in_command")
        else:
            from agtrace.pruning.configuration import configured  # takes longer to load than everything else here

            found = configured()
            self._settings = found.settings.pruner
            if found.problems:
                self._machine.go("invalid configuration", problems=list(found.problems), reason="config_invalid")
            elif not self._settings.enabled:
                self._machine.go("disabled", reason="config_disabled")
            else:
                self._machine.go("enabled")
                self._start_server(self._settings)

    def _start_server(self, settings: Pruner) -> None:
        token = os.urandom(32).hex()
        last = time.monotonic() + settings.startup_timeout_ms / 1_000
        self._file = Path(os.path.abspath(data_dir()), f"run-{os.urandom(8).hex()}.json")
        environment = {**environment_of(), SERVER_TOKEN: token}

        def relay(line: bytes) -> None:
            self._plan.log.relay(line.replace(token.encode(), b"(token)"))

        try:
            self._child = Child(self._plan.server or _our_server(), environment, self._file, relay)
        except OSError as error:
            self._machine.go("spawn failed", error=error.strerror or str(error))
            return
        while self._machine.state is Run.STARTING and self._signals.asked is None:
            self._await_readiness(self._child, token, last)

    def _await_readiness(self, child: Child, token: str, last: float) -> None:
        if child.has_ended():
            self._machine.go("start failed", error=f"the server {child.ended}")
            return
        left = last - time.monotonic()
        why = "the server didn't say that it is ready"
        if child.port is not None and left > 0:
            why = _no_answer(child.port, "/readyz", min(left, self._plan.health.patience))
            if not why:
                self._advertise(child, child.port, token)
                return
        if last <= time.monotonic():
            child.kill()
            timeout = self._settings.startup_timeout_ms if self._settings else None
            self._machine.go("start timed out", timeout_ms=timeout, error=why)
            return
        self._wait(min(last, time.monotonic() + _READY_EVERY))

    def _advertise(self, child: Child, port: int, token: str) -> None:
        told = self._plan.agent.told(f"http://{HOST}:{port}/mcp", token, self._file)
        try:
            if told.file:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with open(
                    os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8"
                ) as written:
                    written.write(told.file)
        except OSError as error:
            child.kill()
            self._machine.go("start failed", error=f"{self._file}: {error.strerror or error}")
            return
        self._next_question = time.monotonic() + self._plan.health.every
        self._told = told
        self._machine.go("ready", host=HOST, port=port, pid=child.pid)

    # -- while the agent runs ------------------------------------------------------------------------

    def _started(self) -> int:
        command = list(self._plan.command)
        at = place(self._plan.agent, command) or len(command)
        command[at:at] = self._told.arguments
        environment = {**environment_of(), **self._told.environment}
        try:
            agent = os.posix_spawnp(command[0], command, environment, setsigdef=_CHANGED_BY_PYTHON)
        except OSError as error:
            raise NotStarted(command[0], error) from error
        self._signals.adopt(agent)
        return agent

    def _watched(self, agent: int) -> int:
        while True:
            number, status = os.waitpid(agent, os.WNOHANG | os.WUNTRACED)
            if number and os.WIFSTOPPED(status):
                stop_like_agent()
            elif number:
                self._signals.release()
                return os.waitstatus_to_exitcode(status)
            elif self._machine.state is Run.RUNNING and self._child is not None and self._settings is not None:
                self._look_after(self._child, self._settings)
            self._wait(self._next_question)

    def _look_after(self, child: Child, settings: Pruner) -> None:
        if child.has_ended():
            self._lose(child, "server exited", error=f"the server {child.ended}")
        elif time.monotonic() >= self._next_question and child.port is not None:
            why = _no_answer(child.port, "/healthz", self._plan.health.patience)
            self._failures = self._failures + 1 if why else 0
            self._next_question = time.monotonic() + self._plan.health.every
            if self._failures >= _CONNECT_FAILURES:
                child.kill()
                self._lose(child, "server unreachable", error=f"/healthz: {why}", failures=self._failures)

    def _lose(self, child: Child, condition: str, *, error: str, failures: int | None = None) -> None:
        """Go to `run:mcp_pruner_degraded`; agents that are started later aren't told of the server any more."""
        self._next_question = _NEVER
        if self._told.file:
            with suppress(OSError):
                self._file.write_text(WITHOUT_SERVERS)
        ended = child.ended or Ended()
        self._machine.go(condition, exit_code=ended.exit_code, signal=ended.signal, error=error, failures=failures)

    # -- run:shutdown --------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        since = time.monotonic()
        with self._machine.during("agent ended") as fields:
            if self._child is not None:
                self._end(self._child)
                ended = self._child.ended or Ended()
                fields |= {"exit_code": ended.exit_code, "signal": ended.signal}
            fields["duration_ms"] = round((time.monotonic() - since) * 1_000)

    def _end(self, child: Child) -> None:
        """Ask the server to end, and kill it if it doesn't in time, or as soon as somebody is asking for an end."""
        if child.has_ended():
            return
        timeout = self._settings.shutdown_timeout_ms if self._settings else 0
        last = time.monotonic() + timeout / 1_000
        self._signals.asked = None
        child.ask_to_end()
        while not child.has_ended() and time.monotonic() < last and self._signals.asked is None:
            self._wait(last)
        if not child.has_ended():
            child.kill()
            self._machine.go("server doesn't end", pid=child.pid, timeout_ms=timeout)

    def _wait(self, until: float) -> None:
        """Wait for a signal, a child's end, or something from the server, at most until this monotonic time."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._signals, selectors.EVENT_READ)
            if self._child is not None and (output := self._child.fileno()) is not None:
                selector.register(output, selectors.EVENT_READ)
            selector.select(None if until == _NEVER else max(0.0, until - time.monotonic()))
        self._signals.clear()
        if self._child is not None:
            self._child.listen()


def _our_server() -> list[str]:
    file, named = config_file()
    settings = (part for key, value in command_line().items() for part in ("--set", f"{key}={value}"))
    options = [*(["--config", str(file)] if named else []), *settings]
    return [sys.executable, "-P", "-m", "agtrace", *options, "prune", "--http", f"{HOST}:0"]


# -- the server as a child --------------------------------------------------------------------------


class Ended(NamedTuple):
    """How a process ended."""

    exit_code: int | None = None
    signal: str | None = None
    """The name of the signal that ended it, such as SIGKILL."""

    @classmethod
    def of(cls, returncode: int) -> Ended:
        """Return how a process with this code of `subprocess` ended."""
        if returncode >= 0:
            return cls(returncode)
        try:
            return cls(signal=signal.Signals(-returncode).name)
        except ValueError:
            return cls(signal=str(-returncode))

    def __str__(self) -> str:
        return f"ended by {self.signal}" if self.signal else f"ended with exit code {self.exit_code}"


class Child:
    """A server that was started; for use in one thread."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], file: Path, relay: Callable[[bytes], None]
    ) -> None:
        """Start it; `relay` gets each line that it writes but the first that says it is ready. Raises `OSError`."""
        self._file, self._relay = file, relay
        self._process = subprocess.Popen(
            command, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.ended: Ended | None = None
        try:
            self._guard: Guard | None = Guard(self.pid, file)
        except OSError:  # then a killed run leaves its server behind
            self._guard = None
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._unfinished = b""
        self._open = True
        self.port: int | None = None
        """Where it listens, once it has said so."""

    @property
    def pid(self) -> int:
        """The number of its process and of its group."""
        return self._process.pid

    def fileno(self) -> int | None:
        """Return the descriptor of its output, as long as there may be more."""
        return self._output if self._open else None

    def listen(self) -> bool:
        """Take up some of what it has written; return whether there may be more."""
        try:
            received = os.read(self._output, _MOST_AT_ONCE) if self._open else b""
        except BlockingIOError:
            return False
        self._open = bool(received)
        *lines, rest = (self._unfinished + received).split(b"\n")
        if not self._open or len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        self._unfinished = rest
        for line in lines:
            if self.port is None and (port := _port(line)) is not None:
                self.port = port
            else:
                self._relay(line)
        return self._open

    def has_ended(self) -> bool:
        """Look whether it has ended; if so, end what is left of its group."""
        if self.ended is None and (code := self._process.poll()) is not None:
            self._settle(code)
        return self.ended is not None

    def ask_to_end(self) -> None:
        """Send SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and its group at once."""
        if self.ended is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._settle(self._process.wait(_AFTER_KILL))

    def close(self) -> None:
        """Release everything after its end: the pipe, the file, the guard."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
        if self._guard is not None:
            self._guard.dismiss()

    def _settle(self, returncode: int) -> None:
        self.ended = Ended.of(returncode)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        last = time.monotonic() + 1  # somebody else may have its output, and write on and on
        while time.monotonic() < last and self.listen():
            pass


def _port(line: bytes) -> int | None:
    """Return the port in the record of a server that is ready; None for any other line."""
    if b"mcp_pruner.ready" not in line:
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    port = record.get("port") if isinstance(record, dict) and record.get("event") == "mcp_pruner.ready" else None
    return port if isinstance(port, int) and 0 < port < 65_536 else None


def _no_answer(port: int, path: str, patience: float) -> str:
    """Return why a server on this machine doesn't answer with 200 within so many seconds; nothing if it does."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(HOST, port, timeout=patience)
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except TimeoutError:
        return "no answer in time"
    except OSError as error:
        return error.strerror or str(error)
    except HTTPException as error:
        return type(error).__name__
    finally:
        connection.close()
    return "" if status == 200 else f"answered {status}"
