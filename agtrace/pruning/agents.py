"""How each agent is told the address of a run's server, only for this run, and gets its signals as without us.

The token is never in an argument, which every user of the machine can read. As observed with Claude Code 2.1.329 and
Codex CLI 0.169.0, both take these arguments directly behind the program's name, before any subcommand and prompt.

The agent stays in our process group, so what a terminal sends (Ctrl-C, Ctrl-Z, a new size) reaches it directly. What
somebody sends to this process alone is passed on.
"""

from __future__ import annotations

import json
import os
import re
import signal
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

NAME = "agtrace_prune"
"""The server's name in the agents, and so a part of the names of its tools."""

TOKEN_VARIABLE = "MCP_TOKEN_OF_AGTRACE_PRUNE"
"""What Codex finds the token under. Not named like a setting of ours: those make every `agtrace` look for more."""


class AgentInput(NamedTuple):
    """What an agent is given."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    """Variables beside those that it has anyway."""
    file: str = ""
    """The content of a file that only the user may read; without any, none is needed."""


class Agent(NamedTuple):
    """An agent that can be told of a server when it is started."""

    program: str
    packages: tuple[str, ...]
    """Names under which launchers such as `npx` know it."""
    told: Callable[[str, str, Path], AgentInput]
    """Returns what to give it, from the server's address and token, and from where the file will be."""


def _claude(url: str, token: str, file: Path) -> AgentInput:
    """Return what Claude Code needs; with `=`, as the option would take a prompt behind it for another file."""
    entry = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
    return AgentInput((f"--mcp-config={file}",), file=json.dumps({"mcpServers": {NAME: entry}}))


def _codex(url: str, token: str, _file: Path) -> AgentInput:
    settings = {"url": url, "bearer_token_env_var": TOKEN_VARIABLE}
    pairs = (("-c", f'mcp_servers.{NAME}.{key}="{value}"') for key, value in settings.items())
    return AgentInput(tuple(part for pair in pairs for part in pair), {TOKEN_VARIABLE: token})


AGENTS = {
    "claude": Agent("claude", ("@anthropic-ai/claude-code",), _claude),
    "codex": Agent("codex", ("@openai/codex",), _codex),
}

WITHOUT_SERVERS = json.dumps({"mcpServers": {}})
"""What stands in the file once the server is lost, for agents that are started later."""


def place(agent: Agent, command: Sequence[str]) -> int | None:
    """Return where in a command the agent's arguments begin: behind the first word that names it; None without one.

    So `claude -p go`, `/opt/bin/claude`, `npx -y @openai/codex@0.169.0 exec go`, `env A=1 claude`. Arguments added to
    any other program, such as `sh` or `make`, could keep it from running.
    """
    for position, word in enumerate(command):
        package = re.sub(r"(?<=.)@[^/]*$", "", word)
        if word.replace("\\", "/").rpartition("/")[2] == agent.program or package in agent.packages:
            return position + 1
    return None


# -- signals ---------------------------------------------------------------------------------------

_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
_OF_JOB_CONTROL = (signal.SIGTSTP, signal.SIGCONT)


class Signals:
    """Takes signals in the place of an agent, as a context in the main thread. One that is ignored stays so."""

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        """The last signal that asked for an end while there was no agent."""
        self._agent: int | None = None
        self._woken, self._waking = os.pipe()

    def __enter__(self) -> Signals:
        for end in (self._woken, self._waking):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, self._take)
        for number in (*_FROM_TERMINAL, *_PASSED_ON):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._take)
        return self

    def __exit__(self, *error: object) -> None:
        """Ignore what comes from now on: the process is ending, as its agent ended."""
        for number in (*_FROM_TERMINAL, *_PASSED_ON):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.close(self._woken)
        os.close(self._waking)

    def fileno(self) -> int:
        """Return a descriptor that can be read after a signal."""
        return self._woken

    def clear(self) -> None:
        """Take note of all signals up to now."""
        with suppress(BlockingIOError):
            while os.read(self._woken, 512):
                pass

    def adopt(self, agent: int) -> None:
        """Pass signals on to this process from now on, also one that came while it was being started."""
        self._agent = agent
        if self.asked is not None:
            self._send(self.asked)
            self.asked = None

    def release(self) -> None:
        """Note that the agent has ended."""
        self._agent = None

    def _take(self, number: int, _frame: FrameType | None) -> None:
        taken = signal.Signals(number)
        if taken is signal.SIGCHLD:
            return
        if self._agent is None:
            self.asked = self.asked if taken in _OF_JOB_CONTROL else taken
        elif taken not in _FROM_TERMINAL or not _terminal_sends_signals():
            self._send(taken)

    def _send(self, number: signal.Signals) -> None:
        if self._agent is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._agent, number)


def _terminal_sends_signals() -> bool:
    """Whether a key at a terminal sends signals to our group, so that the agent got this one as well."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        local_modes = termios.tcgetattr(terminal)[3]
        return os.tcgetpgrp(terminal) == os.getpgrp() and bool(local_modes & termios.ISIG)
    except (OSError, termios.error):
        return False
    finally:
        os.close(terminal)


def stop_like_agent() -> None:
    """Stop this process, as its agent has stopped, so that the shell takes over; return when the shell lets us go on.

    Does nothing without a shell that could do so: the system ignores the signal then.
    """
    before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, before)


def end_like(number: int) -> None:
    """End this process by a signal, as its agent ended; without another core file."""
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
