"""How our server gets into each agent's settings."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import pytest
from agtrace_indexer.providers.setup import SERVER_NAME

from agtrace.upkeep.agents import AGENTS, add_command, config_path, entry_in, remove_command, take_out_command

HOME = Path("/home/mira")
STRANGE = 'C:\\Program Files\\agtrace "beta" \x7f 潮汐 🐟.exe'


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("claude", "claude mcp add --scope user agtrace --env 'A=x y' --env B=1 -- /opt/bin/agtrace mcp"),
        ("codex", "codex mcp add agtrace --env 'A=x y' --env B=1 -- /opt/bin/agtrace mcp"),
        ("gemini", "gemini mcp add --scope user --env 'A=x y' --env B=1 agtrace /opt/bin/agtrace mcp"),
    ],
)
def test_the_command_carries_environment_variables(name: str, command: str) -> None:
    """`make e2e` shows with each agent that they arrive."""
    assert shlex.join(add_command(AGENTS[name](), "/opt/bin/agtrace", {"A": "x y", "B": "1"})) == command


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("variables", [{}, {"A": 'x "y" \x7f 潮', "B_2": ""}])
def test_what_a_snippet_says_is_read_from_the_settings(name: str, variables: dict[str, str]) -> None:
    agent = AGENTS[name]()
    entry = entry_in(agent, agent.write_snippet(STRANGE, variables))
    assert entry is not None
    assert (entry["command"], entry.get("env", {})) == (STRANGE, variables)


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("text", ["", "{}", '{"mcpServers": {}}', "// a comment\n{}", "[mcp_servers.other]", "[]"])
def test_settings_without_us_have_no_entry(name: str, text: str) -> None:
    assert entry_in(AGENTS[name](), text) is None


@pytest.mark.parametrize("name", AGENTS)
def test_settings_that_name_us_and_cannot_be_read_are_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="can't be parsed"):
        entry_in(AGENTS[name](), '// mine\n{"mcpServers": {"agtrace": 1}}')


def test_an_earlier_entry_is_removed_where_adding_does_not_replace_it() -> None:
    """`make e2e` shows with each agent that setup can be repeated."""
    assert remove_command(AGENTS["claude"]()) == ["claude", "mcp", "remove", "--scope", "user", "agtrace"]
    assert [remove_command(AGENTS[name]()) for name in ("codex", "gemini")] == [None, None]


def test_every_agent_can_take_the_server_out() -> None:
    commands = {name: shlex.join(take_out_command(load())) for name, load in AGENTS.items()}
    assert commands == {
        "claude": "claude mcp remove --scope user agtrace",
        "codex": "codex mcp remove agtrace",
        "gemini": "gemini mcp remove --scope user agtrace",
    }


@pytest.mark.parametrize("executable", ["agtrace", STRANGE])
def test_a_snippet_is_a_part_of_the_agents_settings(executable: str) -> None:
    entry = {"command": executable, "args": ["mcp"]}
    claude, codex, gemini = (AGENTS[name]().write_snippet(executable, {}) for name in ("claude", "codex", "gemini"))
    assert json.loads(claude) == {"mcpServers": {SERVER_NAME: {"type": "stdio", **entry}}}
    assert tomllib.loads(codex) == {"mcp_servers": {SERVER_NAME: entry}}
    assert json.loads(gemini) == {"mcpServers": {SERVER_NAME: entry}}


@pytest.mark.parametrize(
    ("name", "environment", "path"),
    [
        ("claude", {}, "/home/mira/.claude.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": "/srv/claude"}, "/srv/claude/.claude.json"),
        ("codex", {}, "/home/mira/.codex/config.toml"),
        ("codex", {"CODEX_HOME": "/srv/codex"}, "/srv/codex/config.toml"),
        ("gemini", {}, "/home/mira/.gemini/settings.json"),
        ("gemini", {"GEMINI_CLI_HOME": "/srv/gemini"}, "/srv/gemini/.gemini/settings.json"),
        ("codex", {"CODEX_HOME": ""}, "/home/mira/.codex/config.toml"),
        ("codex", {"CLAUDE_CONFIG_DIR": "/srv/claude"}, "/home/mira/.codex/config.toml"),
    ],
)
def test_the_settings_file_follows_the_agents_own_variable(name: str, environment: dict[str, str], path: str) -> None:
    assert config_path(AGENTS[name](), HOME, environment) == Path(path)
