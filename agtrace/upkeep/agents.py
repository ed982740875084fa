"""What `agtrace setup` knows about each coding agent: how to add our MCP server to it, and where that is written.

Nothing here runs a command, writes a file or looks at the environment: the caller does, and asks first.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    add_arguments: Callable[[Sequence[str]], list[str]]
    """Writes the agent's own arguments, up to where our command starts, for variables of the form `NAME=value`."""
    remove_arguments: tuple[str, ...]
    """The agent's own arguments that remove an earlier entry; empty where adding replaces it in one step."""
    put_back_arguments: tuple[str, ...]
    """Those that write an entry as it was, which follows as JSON; empty where none is ever removed."""
    home_variable: str
    """The environment variable that moves the agent's settings."""
    config_file: str
    """The settings file, relative to the user's home directory."""
    moved_config_file: str
    """The settings file, relative to the folder that `home_variable` names."""
    write_snippet: Callable[[str, Mapping[str, str]], str]
    """Writes the entry for our executable and its variables in the settings file's language."""
    read_servers: Callable[[str], Any]
    """Reads the servers from the text of the settings file. Raises `ValueError`, `LookupError` or `TypeError`."""


def _claude_snippet(executable: str, variables: Mapping[str, str]) -> str:
    return _json_snippet({"type": "stdio", **_server(executable, variables)})


def _gemini_snippet(executable: str, variables: Mapping[str, str]) -> str:
    return _json_snippet(_server(executable, variables))


def _codex_snippet(executable: str, variables: Mapping[str, str]) -> str:
    arguments = ", ".join(_toml_string(argument) for argument in SERVER_ARGUMENTS)
    text = f"[mcp_servers.{SERVER_NAME}]\ncommand = {_toml_string(executable)}\nargs = [{arguments}]\n"
    if variables:
        text += f"\n[mcp_servers.{SERVER_NAME}.env]\n"
    return text + "".join(f"{name} = {_toml_string(value)}\n" for name, value in variables.items())


def _server(executable: str, variables: Mapping[str, str]) -> dict[str, object]:
    environment = {"env": dict(variables)} if variables else {}
    return {"command": executable, "args": list(SERVER_ARGUMENTS), **environment}


def _options(name: str, variables: Sequence[str]) -> list[str]:
    return [part for variable in variables for part in (name, variable)]


def _json_snippet(server: dict[str, object]) -> str:
    return json.dumps({"mcpServers": {SERVER_NAME: server}}, indent=2, ensure_ascii=False) + "\n"


def _toml_string(value: object) -> str:
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


AGENTS: dict[str, Agent] = {
    "claude": Agent(
        title="Claude Code",
        executable="claude",
        add_arguments=lambda variables: [
            "mcp",
            "add",
            "--scope",
            "user",
            SERVER_NAME,
            *_options("--env", variables),
            "--",
        ],
        remove_arguments=("mcp", "remove", "--scope", "user", SERVER_NAME),
        put_back_arguments=("mcp", "add-json", "--scope", "user", SERVER_NAME),
        home_variable="CLAUDE_CONFIG_DIR",
        config_file=".claude.json",
        moved_config_file=".claude.json",
        write_snippet=_claude_snippet,
        read_servers=lambda text: json.loads(text)["mcpServers"],
    ),
    "codex": Agent(
        title="Codex CLI",
        executable="codex",
        add_arguments=lambda variables: ["mcp", "add", SERVER_NAME, *_options("--env", variables), "--"],
        remove_arguments=(),
        put_back_arguments=(),
        home_variable="CODEX_HOME",
        config_file=".codex/config.toml",
        moved_config_file="config.toml",
        write_snippet=_codex_snippet,
        read_servers=lambda text: tomllib.loads(text)["mcp_servers"],
    ),
    "gemini": Agent(
        title="Gemini CLI",
        executable="gemini",
        add_arguments=lambda variables: ["mcp", "add", "--scope", "user", *_options("--env", variables), SERVER_NAME],
        remove_arguments=(),
        put_back_arguments=(),
        home_variable="GEMINI_CLI_HOME",
        config_file=".gemini/settings.json",
        moved_config_file=".gemini/settings.json",
        write_snippet=_gemini_snippet,
        read_servers=lambda text: json.loads(text)["mcpServers"],
    ),
}
"""The agents that `agtrace setup` can be asked for, by the name the user types."""


def add_command(agent: Agent, executable: str, variables: Mapping[str, str]) -> list[str]:
    """The command line that adds our server for all of the user's projects, with these environment variables.

    `executable` is how the agent shall start us: a name on its PATH or, better, an absolute path.
    """
    written = [f"{name}={value}" for name, value in variables.items()]
    return [agent.executable, *agent.add_arguments(written), executable, *SERVER_ARGUMENTS]


def remove_command(agent: Agent) -> list[str] | None:
    """The command line that must run before `add_command` where an earlier entry stands in its way."""
    return [agent.executable, *agent.remove_arguments] if agent.remove_arguments else None


def put_back_command(agent: Agent, entry: Mapping[str, Any]) -> list[str]:
    """The command line that writes an entry again which `remove_command` took away."""
    return [agent.executable, *agent.put_back_arguments, json.dumps(entry, ensure_ascii=False)]


def snippet(agent: Agent, executable: str, variables: Mapping[str, str]) -> str:
    """The text that a person who edits settings by hand adds to `config_path`; it ends with a newline.

    Claude Code's is also what a project's `.mcp.json` holds.
    """
    return agent.write_snippet(executable, variables)


def entry_in(agent: Agent, settings: str) -> dict[str, Any] | None:
    """Our entry in the text of the agent's settings file; None where there is none.

    Raises `ValueError` where the text can't be read and yet names us.
    """
    try:
        entry = agent.read_servers(settings)[SERVER_NAME]
        return dict(entry)
    except LookupError:
        return None
    except (ValueError, TypeError, RecursionError) as error:
        if SERVER_NAME not in settings:
            return None
        raise ValueError(f"can't be read ({error})") from error


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
