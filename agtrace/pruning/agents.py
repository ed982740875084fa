"""How each agent is told the address of a run's server: only for this run, and without a change of its settings.

The token is never in an argument, which every user of the machine can read. As observed with Claude Code 2.1.329 and
Codex CLI 0.169.0, both take these arguments directly behind the program's name, before any subcommand and prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

NAME = "agtrace_prune"
"""The server's name in the agents, and so a part of the names of its tools."""

TOKEN_VARIABLE = "MCP_TOKEN_OF_AGTRACE_PRUNE"
"""What Codex finds the token under. Not named like a setting of ours: those make every `agtrace` look for more."""


class Told(NamedTuple):
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
    told: Callable[[str, str, Path], Told]
    """Returns what to give it, from the server's address and token, and from where the file will be."""


def _claude(url: str, token: str, file: Path) -> Told:
    """Return what Claude Code needs; with `=`, as the option would take a prompt behind it for another file."""
    entry = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
    return Told((f"--mcp-config={file}",), file=json.dumps({"mcpServers": {NAME: entry}}))


def _codex(url: str, token: str, _file: Path) -> Told:
    settings = {"url": url, "bearer_token_env_var": TOKEN_VARIABLE}
    pairs = (("-c", f'mcp_servers.{NAME}.{key}="{value}"') for key, value in settings.items())
    return Told(tuple(part for pair in pairs for part in pair), {TOKEN_VARIABLE: token})


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
