"""What `agtrace setup` knows about each coding agent: how to add our MCP server to it, and where that is written.

Nothing here runs a command, writes a file or looks at the environment: the caller does, and asks first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

SERVER_NAME = "agtrace"
"""The name under which agents list our server."""

SERVER_ARGUMENTS = ("mcp",)
"""The arguments that make our executable serve MCP over stdio."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One coding agent, as far as adding an MCP server to it goes."""

    title: str
    """The name people know it by."""
    executable: str
    """What to look for on the PATH."""
    add_arguments: tuple[str, ...]
    """The agent's own arguments, up to where our command starts."""
    remove_arguments: tuple[str, ...]
    """The agent's own arguments that remove an earlier entry; empty where adding replaces it."""
    home_variable: str
    """The environment variable that moves the agent's settings."""
    config_file: str
    """The settings file, relative to the user's home directory."""
    moved_config_file: str
    """The settings file, relative to the folder that `home_variable` names."""
    write_snippet: Callable[[str], str]
    """Writes the entry for our executable in the settings file's language."""


def _claude_snippet(executable: str) -> str:
    return _json_snippet({"type": "stdio", **_server(executable)})


def _gemini_snippet(executable: str) -> str:
    return _json_snippet(_server(executable))


def _codex_snippet(executable: str) -> str:
    server = _server(executable)
    arguments = ", ".join(_toml_string(argument) for argument in SERVER_ARGUMENTS)
    return f"[mcp_servers.{SERVER_NAME}]\ncommand = {_toml_string(server['command'])}\nargs = [{arguments}]\n"


def _server(executable: str) -> dict[str, object]:
    return {"command": executable, "args": list(SERVER_ARGUMENTS)}


def _json_snippet(server: dict[str, object]) -> str:
    return json.dumps({"mcpServers": {SERVER_NAME: server}}, indent=2, ensure_ascii=False) + "\n"


def _toml_string(value: object) -> str:
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


AGENTS: dict[str, Agent] = {
    "claude": Agent(
        title="Claude Code",
        executable="claude",
        add_arguments=("mcp", "add", "--scope", "user", SERVER_NAME, "--"),
        remove_arguments=("mcp", "remove", "--scope", "user", SERVER_NAME),
        home_variable="CLAUDE_CONFIG_DIR",
        config_file=".claude.json",
        moved_config_file=".claude.json",
        write_snippet=_claude_snippet,
    ),
    "codex": Agent(
        title="Codex CLI",
        executable="codex",
        add_arguments=("mcp", "add", SERVER_NAME, "--"),
        remove_arguments=(),
        home_variable="CODEX_HOME",
        config_file=".codex/config.toml",
        moved_config_file="config.toml",
        write_snippet=_codex_snippet,
    ),
    "gemini": Agent(
        title="Gemini CLI",
        executable="gemini",
        add_arguments=("mcp", "add", "--scope", "user", SERVER_NAME),
        remove_arguments=(),
        home_variable="GEMINI_CLI_HOME",
        config_file=".gemini/settings.json",
        moved_config_file=".gemini/settings.json",
        write_snippet=_gemini_snippet,
    ),
}
"""The agents that `agtrace setup` can be asked for, by the name the user types."""


def add_command(agent: Agent, executable: str) -> list[str]:
    """The command line that adds our server for all of the user's projects.

    `executable` is how the agent shall start us: a name on its PATH or, better, an absolute path.
    """
    return [agent.executable, *agent.add_arguments, executable, *SERVER_ARGUMENTS]


def remove_command(agent: Agent) -> list[str] | None:
    """The command line that must run before `add_command` where an earlier entry stands in its way."""
    return [agent.executable, *agent.remove_arguments] if agent.remove_arguments else None


def snippet(agent: Agent, executable: str) -> str:
    """The text that a person who edits settings by hand adds to `config_path`; it ends with a newline.

    Claude Code's is also what a project's `.mcp.json` holds.
    """
    return agent.write_snippet(executable)


def config_path(agent: Agent, home: Path, environment: Mapping[str, str]) -> Path:
    """The file in which the agent keeps the servers of all projects; it need not exist.

    `home` is the user's home directory. An empty variable counts as unset, as it does for the agents.
    """
    moved_to = environment.get(agent.home_variable)
    return Path(moved_to) / agent.moved_config_file if moved_to else home / agent.config_file


def commands_over_http(url: str, token: str | None) -> list[str]:
    """The lines for a shell that tell Claude Code, Codex and Gemini CLI of our server at `url`.

    `token` is what the shell puts the token for, inside of double quotes; None where none is asked for. Codex takes it
    from the environment alone, and must be started with it.
    """
    header = f' --header "Authorization: Bearer {token}"' if token else ""
    exported = f'export AGTRACE_HTTP_TOKEN="{token}"; ' if token else ""
    variable = " --bearer-token-env-var AGTRACE_HTTP_TOKEN" if token else ""
    return [
        f"claude mcp add --scope user --transport http {SERVER_NAME} {url}{header}",
        f"{exported}codex mcp add {SERVER_NAME} --url {url}{variable}",
        f"gemini mcp add --scope user --transport http {SERVER_NAME} {url}{header}",
    ]
