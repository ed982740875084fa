"""A run of an agent with a server of its own that prunes: the states `run:*`, one after the other.

Whatever becomes of the server, the agent runs, and ends, as it would without us. Everything happens in one thread: it
waits for signals, for what the server writes, and for its answers to `/healthz`.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agtrace.problems import NotStarted
from agtrace.pruning.agents import WITHOUT_SERVERS, Agent, Told, place
from agtrace.pruning.child import Child, Ended
from agtrace.pruning.events import Log
from agtrace.pruning.journal import Journal
from agtrace.pruning.loopback import HOST, Asking
from agtrace.pruning.signals import Signals, stop_like_agent
from agtrace.pruning.states import Course, Run
from agtrace.settings.environment import command_line, config_file, data_dir, given

if TYPE_CHECKING:
    from agtrace.settings.model import Pruner

SERVER_TOKEN = "AGTRACE_HTTP_TOKEN"
"""The variable from which the server takes the token."""

_NEVER = float("inf")
_READY_EVERY, _READY_PATIENCE = 0.05, 2.0
"""Seconds between two questions, and for an answer."""

_CHANGED_BY_PYTHON = [signal.SIGPIPE, *([signal.SIGXFSZ] if hasattr(signal, "SIGXFSZ") else [])]
"""Signals that this process ignores, because it is written in Python; the agent shouldn't."""


class Health(NamedTuple):
    """How a running server is watched."""

    every: float = 3.0
    """Seconds between two questions."""
    patience: float = 5.0
    """Seconds within which each must be answered."""


class Plan(NamedTuple):
    """What to run, and how."""

    agent: Agent
    command: Sequence[str]
    wanted: bool
    """Whether the user wants a server."""
    journal: Journal
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
    """One run."""

    def __init__(self, plan: Plan, signals: Signals) -> None:
        self._plan, self._signals = plan, signals
        self._course: Course[Run] = Course(Run.INIT, Log(plan.journal.write))
        self._file = Path()
        self._child: Child | None = None
        self._asking: Asking | None = None
        self._settings: Pruner | None = None
        self._told = Told()

    def run(self) -> int:
        try:
            self._prepare()
            asked = self._signals.asked
            try:
                return self._watched(self._started()) if asked is None else -asked
            finally:
                self._shut_down()
        finally:
            if self._asking is not None:
                self._asking.close()
            if self._child is not None:
                self._child.kill()
                self._child.close()

    # -- run:init, run:mcp_pruner_starting -----------------------------------------------------------

    def _prepare(self) -> None:
        """Go from `run:init` to the state in which the agent is started."""
        if not self._plan.wanted:
            self._course.go("disabled", reason="config_disabled")
        elif place(self._plan.agent, self._plan.command) is None:
            self._course.go("disabled", reason="no_agent_in_command")
        else:
            from agtrace.pruning.configuration import configured  # takes longer to load than everything else here

            found = configured()
            self._settings = found.settings.pruner
            if found.problems:
                self._course.go("invalid configuration", problems=list(found.problems), reason="config_invalid")
            elif not self._settings.enabled:
                self._course.go("disabled", reason="config_disabled")
            else:
                self._course.go("enabled")
                self._start_server(self._settings)

    def _start_server(self, settings: Pruner) -> None:
        token = os.urandom(32).hex()
        last = time.monotonic() + settings.startup_timeout_ms / 1_000
        self._file = Path(os.path.abspath(data_dir()), f"run-{os.urandom(8).hex()}.json")
        environment = {**given(), SERVER_TOKEN: token}
        try:
            self._child = Child(self._plan.server or _our_server(), environment, self._file, self._relay(token))
        except OSError as error:
            self._course.go("spawn failed", error=error.strerror or str(error))
            return
        while self._course.state is Run.STARTING and self._signals.asked is None:
            self._await_readiness(self._child, token, last)

    def _await_readiness(self, child: Child, token: str, last: float) -> None:
        """Wait for the next thing to happen while the server starts."""
        if child.has_ended():
            self._course.go("start failed", error=f"the server {child.ended}")
        elif time.monotonic() >= last:
            child.kill()
            timeout = self._settings.startup_timeout_ms if self._settings else None
            self._course.go("start timed out", timeout_ms=timeout, error=self._why_not_ready())
        elif child.port is not None and self._asking is None:
            self._asking = Asking(child.port, "/readyz", every=_READY_EVERY, patience=_READY_PATIENCE)
        elif child.port is not None and self._asking is not None and self._asking.step():
            self._advertise(child, child.port, token)
        else:
            self._wait(last)

    def _why_not_ready(self) -> str:
        if self._asking is None:
            return "the server didn't say that it is ready"
        return f"/readyz: {self._asking.error or 'no answer in time'}"

    def _advertise(self, child: Child, port: int, token: str) -> None:
        """Prepare what the agent is told, and go to `run:mcp_pruner_running`."""
        told = self._plan.agent.told(f"http://{HOST}:{port}/mcp", token, self._file)
        try:
            if told.file:
                _write(self._file, told.file)
        except OSError as error:
            child.kill()
            self._course.go("start failed", error=f"{self._file}: {error.strerror or error}")
            return
        every, patience = self._plan.health
        self._asking = Asking(port, "/healthz", every=every, patience=patience, first=every)
        self._told = told
        self._course.go("ready", host=HOST, port=port, pid=child.pid)

    def _relay(self, token: str) -> Callable[[bytes], None]:
        """Return what writes a line of the server's into the log, without the token."""
        return lambda line: self._plan.journal.relay(line.replace(token.encode(), b"(token)"))

    # -- while the agent runs ------------------------------------------------------------------------

    def _started(self) -> int:
        """Start the agent in the terminal and the group of this process, and return its number."""
        command = list(self._plan.command)
        at = place(self._plan.agent, command) or len(command)
        command[at:at] = self._told.arguments
        environment = {**given(), **self._told.environment}
        try:
            agent = os.posix_spawnp(command[0], command, environment, setsigdef=_CHANGED_BY_PYTHON)
        except OSError as error:
            raise NotStarted(command[0], error) from error
        self._signals.adopt(agent)
        return agent

    def _watched(self, agent: int) -> int:
        """Wait until the agent ends, and look after the server meanwhile; return its exit code."""
        failures = 0
        while True:
            number, status = os.waitpid(agent, os.WNOHANG | os.WUNTRACED)
            if number and os.WIFSTOPPED(status):
                stop_like_agent()
            elif number:
                self._signals.release()
                return os.waitstatus_to_exitcode(status)
            elif self._course.state is Run.RUNNING:
                failures = self._looked_after(failures)
            self._wait(_NEVER)

    def _looked_after(self, failures: int) -> int:
        """Notice if the server is lost; return how many questions in a row it hasn't answered."""
        child, asking, settings = self._child, self._asking, self._settings
        assert child is not None and asking is not None and settings is not None
        if child.has_ended():
            self._lose(child, "server exited", error=f"the server {child.ended}")
            return failures
        answered = asking.step()
        if answered is None:
            return failures
        failures = 0 if answered else failures + 1
        if failures >= settings.connect_failures:
            child.kill()
            self._lose(child, "server unreachable", error=f"/healthz: {asking.error}", failures=failures)
        return failures

    def _lose(self, child: Child, condition: str, *, error: str, failures: int | None = None) -> None:
        """Go to `run:mcp_pruner_degraded`; agents that are started later aren't told of the server any more."""
        if self._told.file:
            with suppress(OSError):
                self._file.write_text(WITHOUT_SERVERS)
        ended = child.ended or Ended()
        self._course.go(condition, exit_code=ended.exit_code, signal=ended.signal, error=error, failures=failures)
        if self._asking is not None:
            self._asking.close()

    # -- run:shutdown --------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """End the server, and go to `run:shutdown`."""
        since = time.monotonic()
        with self._course.going("agent ended") as fields:
            if self._child is not None:
                self._end(self._child)
                ended = self._child.ended or Ended()
                fields |= {"exit_code": ended.exit_code, "signal": ended.signal}
            fields["duration_ms"] = round((time.monotonic() - since) * 1_000)

    def _end(self, child: Child) -> None:
        """Ask the server to end, and kill it if it doesn't in time, or as soon as somebody is asking for an end."""
        if self._asking is not None:
            self._asking.close()
            self._asking = None
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
            self._course.go("server doesn't end", pid=child.pid, timeout_ms=timeout)

    # -- waiting -------------------------------------------------------------------------------------

    def _wait(self, until: float) -> None:
        """Wait for a signal, a child's end, or something from the server, at most until this monotonic time."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._signals, selectors.EVENT_READ)
            if self._child is not None and (output := self._child.fileno()) is not None:
                selector.register(output, selectors.EVENT_READ)
            if self._asking is not None and self._course.state in (Run.STARTING, Run.RUNNING):
                until = min(until, self._asking.due())
                if (awaited := self._asking.awaits()) is not None:
                    selector.register(*awaited)
            selector.select(None if until == _NEVER else max(0.0, until - time.monotonic()))
        self._signals.clear()
        if self._child is not None:
            self._child.listen()


def _our_server() -> list[str]:
    """Return the command that starts `agtrace prune` with the settings of this process."""
    file, named = config_file()
    settings = [f"{key}={value}" for key, value in command_line().items() if key != "http.token"]
    options = [*(["--config", str(file)] if named else []), *(part for one in settings for part in ("--set", one))]
    return [sys.executable, "-P", "-m", "agtrace", *options, "prune", "--http", f"{HOST}:0", "--with-parent"]


def _write(file: Path, content: str) -> None:
    """Write a new file that only its owner may read. Raises `OSError`."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as written:
        written.write(content)
