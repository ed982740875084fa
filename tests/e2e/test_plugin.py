"""The plugin in Claude Code itself, offline: valid, installed, connected, and at work when a session ends."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.agents import ClaudeCode
from tests.e2e.clients import AGTRACE, CLAUDE, SECONDS, machine, require, run
from tests.e2e.model_server import Call, ModelServer
from tests.plugin import PLUGIN, ROOT, Bell, program


@pytest.fixture(autouse=True)
def claude(versions: Callable[..., str], record_property: Callable[[str, object], None]) -> None:
    """Claude Code, if it is installed."""
    require(CLAUDE)
    record_property("client", versions(CLAUDE))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A machine on which the plugin is installed from the checkout."""
    home = machine(tmp_path / "machine")
    for command in (["marketplace", "add", str(ROOT)], ["install", "agtrace@agtrace"]):
        done = run(["claude", "plugin", *command], home)
        assert done.returncode == 0, done.stdout + done.stderr
    return home


@pytest.mark.parametrize("part", [ROOT, PLUGIN], ids=["marketplace", "plugin"])
def test_claude_code_finds_no_fault_in_it(part: Path, tmp_path: Path) -> None:
    checked = run(["claude", "plugin", "validate", "--strict", str(part)], machine(tmp_path / "machine"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "Validation passed" in checked.stdout


def test_it_is_installed_and_its_server_connects(home: Path) -> None:
    (listed,) = json.loads(run(["claude", "plugin", "list", "--json"], home).stdout)
    assert (listed["id"], listed["enabled"]) == ("agtrace@agtrace", True)
    assert ClaudeCode().connected(home) == ["plugin:agtrace:agtrace"]


def test_the_model_gets_the_skill_and_the_tools_and_the_session_is_indexed_when_it_ends(
    home: Path, tmp_path: Path
) -> None:
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    ours = shlex.quote(str(AGTRACE))
    waiting = f'read -r _ < {go.path}\n{ours} "$@"\necho "$@" $? > {bell.path}'
    program(home / "bin" / "agtrace", f'[ "$1" = index ] || exec {ours} "$@"\n{waiting}')
    command = ["claude", "-p", "go", "--allowedTools", "mcp__plugin_agtrace_agtrace", "--output-format", "json"]
    with ModelServer(ClaudeCode.wire, [Call("list_sessions", {"limit": 3})]) as model:
        ended = run(
            command, home, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="none", MCP_CONNECTION_NONBLOCKING="0"
        )
    assert ended.returncode == 0, ended.stdout[-2_000:] + ended.stderr[-2_000:]
    assert "past-sessions" in json.dumps(model.requests), "the skill is offered"
    go.path.write_text("Claude Code has ended\n")
    assert bell.rung(SECONDS) == "index 0\n"
    session = json.loads(ended.stdout)["session_id"]
    listed = json.loads(run(["agtrace", "sessions", "--limit", "1", "--json"], home).stdout)["data"]["sessions"]
    assert [session.startswith(item["id"].rstrip("…")) for item in listed] == [True]
