"""The plugin for Claude Code: its manifests, its skill, and what its hook does. `tests/e2e` has Claude Code itself."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import agtrace
from agtrace.tools import TOOLS
from agtrace.tools.arguments import input_schema, parse
from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import AGTRACE, agtrace_here
from tests.plugin import PLUGIN, ROOT, SKILL, Bell, hook, manifest, program

SESSION = "fb3cff44-13ae-41a6-a6df-f287e0552835"
ENDED = b'{"session_id": "x", "hook_event_name": "SessionEnd", "reason": "exit"}'
SECONDS = 300


def test_manifests_have_what_claude_code_needs_and_the_version_of_the_package() -> None:
    """Required are names without spaces, an owner and a source: https://code.claude.com/docs/en/plugin-marketplaces."""
    marketplace, plugin = (
        manifest(ROOT / ".claude-plugin" / "marketplace.json"),
        manifest(PLUGIN / ".claude-plugin" / "plugin.json"),
    )
    (entry,) = marketplace["plugins"]
    for named in (marketplace, plugin, entry):
        assert re.fullmatch(r"[a-z][a-z0-9-]*", named["name"]) and named["description"]
    assert marketplace["owner"]["name"]
    assert (ROOT / entry["source"]).resolve() == PLUGIN and entry["source"].startswith("./")
    assert (entry["name"], entry["description"]) == (plugin["name"], plugin["description"])
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {entry["version"], plugin["version"], agtrace.__version__} == {package["version"]}
    assert plugin["license"] == package["license"]


def test_the_server_is_the_one_that_setup_adds() -> None:
    assert manifest(PLUGIN / ".mcp.json") == {"mcpServers": {"agtrace": {"command": "agtrace", "args": ["mcp"]}}}


def skill() -> tuple[dict[str, Any], str]:
    """The head of the skill, and its text."""
    _, head, text = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), text


def test_the_skill_is_short_and_says_when_it_helps() -> None:
    """Names and descriptions are limited: https://code.claude.com/docs/en/skills."""
    head, text = skill()
    assert head["name"] == SKILL.parent.name and set(head) == {"name", "description"}
    assert len(head["description"]) <= 1024 and "Use when" in head["description"]
    assert len(text.splitlines()) <= 40


def test_the_skill_calls_tools_that_there_are_with_arguments_that_they_take() -> None:
    _, text = skill()
    named = re.findall(r"`(\w+)(\([^`]*\))?`", text)
    calls = [(name, ast.parse(name + given).body[0]) for name, given in named if given]
    assert len(calls) >= 4
    for name, statement in calls:
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        given = {keyword.arg: ast.literal_eval(_json(keyword.value)) for keyword in statement.value.keywords}
        parse(TOOLS[name].arguments, given)
    arguments = {field for tool in TOOLS.values() for field in input_schema(tool.arguments)["properties"]}
    words = {"hint", "event_index", "session_id", "project", "summary", "turn_index", "context_focus_question"}
    unknown = {name for name, _ in named} - set(TOOLS) - arguments - words
    assert unknown == set()


def _json(value: ast.expr) -> ast.expr:
    """`true` and `false` as Python writes them."""
    named = {"true": True, "false": False}
    return ast.Constant(named[value.id]) if isinstance(value, ast.Name) else value


def run_hook(home: Path, path: str) -> subprocess.CompletedProcess[bytes]:
    """Run the hook as Claude Code does: by a shell, with the event on stdin."""
    environment = {"HOME": str(home), "PATH": path, "AGTRACE_DATA_DIR": os.environ["AGTRACE_DATA_DIR"]}
    return subprocess.run(
        ["/bin/sh", "-c", hook()["command"]], input=ENDED, env=environment, capture_output=True, timeout=SECONDS
    )


def silent(ended: subprocess.CompletedProcess[bytes]) -> bool:
    return (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_at_the_end_of_a_session_it_is_indexed(own_home: Path, tmp_path: Path) -> None:
    claude_log(own_home / ".claude", SESSION).prompt("Why does the tide table end in May?")
    bell = Bell(tmp_path / "bell")
    program(tmp_path / "bin" / "agtrace", f'{AGTRACE} "$@"\necho "$@" $? > {bell.path}')
    assert silent(run_hook(own_home, f"{tmp_path / 'bin'}:{os.environ['PATH']}"))
    assert bell.rung(SECONDS) == "index 0\n"
    (found,) = agtrace_here("sessions", "--json").json()["data"]["sessions"]
    assert SESSION.startswith(found["id"].rstrip("…"))


def test_the_hook_returns_while_agtrace_is_still_at_work_and_outlives_it(own_home: Path, tmp_path: Path) -> None:
    started, done = Bell(tmp_path / "started"), Bell(tmp_path / "done")
    os.mkfifo(tmp_path / "go")
    waiting = f"echo on > {started.path}\nread -r _ < {tmp_path / 'go'}\necho off > {done.path}"
    program(tmp_path / "bin" / "agtrace", waiting)
    assert silent(run_hook(own_home, f"{tmp_path / 'bin'}:{os.environ['PATH']}"))
    assert started.rung(SECONDS) == "on\n"
    assert done.rung(0) == "", "it waits, and the hook has ended"
    (tmp_path / "go").write_text("\n")
    assert done.rung(SECONDS) == "off\n"


@pytest.mark.parametrize("script", [None, "echo no >&2; exit 3", "kill -9 $$"], ids=["missing", "failing", "killed"])
def test_the_hook_never_fails_and_says_nothing(script: str | None, own_home: Path, tmp_path: Path) -> None:
    if script:
        program(tmp_path / "bin" / "agtrace", script)
    assert silent(run_hook(own_home, f"{tmp_path / 'bin'}:/usr/bin:/bin"))
    assert list(own_home.iterdir()) == []


def test_claude_code_need_not_wait_for_the_hook() -> None:
    """Claude Code gives hooks at a session's end 1.5 seconds, unless one asks for more."""
    assert hook()["timeout"] <= 5 and " & }" in hook()["command"]
