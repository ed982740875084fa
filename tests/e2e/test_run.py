"""Claude Code and Codex CLI themselves under `agtrace run`, offline; a model of ours reads with a question."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agtrace.pruning.agents import NAME
from tests.e2e.clients import CLAUDE, CODEX, Client, machine, require, run
from tests.e2e.model_server import Call, Messages, ModelServer, Responses, Wire
from tests.pruning.misbehaving import pruning

QUESTION = "Keep the function that decides how long a retry waits, with its constants"
LOSE_THE_SERVER = "kill -KILL $PPID"
"""A command that ends the server that runs it, which is its parent."""


class Agent(NamedTuple):
    """An agent, and how it is driven."""

    provider: str
    client: Client
    wire: Callable[[str], Wire]
    command: Callable[[ModelServer], list[str]]
    variables: Callable[[ModelServer], dict[str, str]] = lambda model: {}


def claude(_model: ModelServer) -> list[str]:
    """Return the command of Claude Code."""
    return ["claude", "-p", "go", "--allowedTools", f"mcp__{NAME}", "--output-format", "json"]


def codex(model: ModelServer) -> list[str]:
    """Return the command of Codex CLI, whose user has approved all tools of the server."""
    settings = {
        "model": "gpt-5.5",
        "model_provider": "scripted",
        "model_providers.scripted": f'{{name="scripted",base_url="{model.url}/v1",wire_api="responses"}}',
        f"mcp_servers.{NAME}.required": "true",  # else it begins before the server is there
        f"mcp_servers.{NAME}.default_tools_approval_mode": '"approve"',
        "analytics.enabled": "false",
        "check_for_update_on_startup": "false",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return ["codex", "exec", "--skip-git-repo-check", "--json", *options, "go"]


def for_claude(model: ModelServer) -> dict[str, str]:
    """Return the variables of Claude Code."""
    return {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none", "MCP_CONNECTION_NONBLOCKING": "0"}


AGENTS = [Agent("claude", CLAUDE, Messages, claude, for_claude), Agent("codex", CODEX, Responses, codex)]


@pytest.fixture(params=AGENTS, ids=lambda agent: agent.provider)
def agent(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None], versions: Callable[[Client], str]
) -> Agent:
    """Each agent in turn, if it is installed."""
    found: Agent = request.param
    require(found.client)
    record_property("client", versions(found.client))
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of a user who works on a module."""
    home = machine(tmp_path / "machine")
    (home / "work").mkdir()
    other = "".join(f"def other_{number}(value):\n    return value * {number}\n\n\n" for number in range(200))
    wanted = "RETRY_SECONDS = 0.5\n\n\ndef retry_wait(attempt):\n    return RETRY_SECONDS * 2 ** attempt\n\n\n"
    (home / "work" / "waiting.py").write_text(other[: len(other) // 2] + wanted + other[len(other) // 2 :])
    return home


class Ran(NamedTuple):
    """What came of a run."""

    ended: subprocess.CompletedProcess[str]
    events: list[dict[str, Any]]
    model: ModelServer

    def named(self, prefix: str) -> list[str]:
        """The names of the log events that begin with this."""
        return [event["event"] for event in self.events if event["event"].startswith(prefix)]


def drive(agent: Agent, home: Path, calls: Sequence[Call], *options: str, **variables: str) -> Ran:
    """Run the agent until its model has made these calls and is done."""
    with ModelServer(agent.wire(NAME), calls) as model:
        command = ["agtrace", "run", "--provider", agent.provider, *options, "--log", str(home / "run.log"), "--"]
        ended = run([*command, *agent.command(model)], home, **agent.variables(model), **variables)
    assert model.unknown == [], "the agent asked for more than a model"
    lines = (json.loads(line) for line in (home / "run.log").read_text().splitlines())
    return Ran(ended, [line for line in lines if "event" in line], model)


def test_an_agent_reads_with_a_question_and_uses_every_tool(agent: Agent, home: Path) -> None:
    calls = [
        Call("read", {"file_path": "waiting.py", "context_focus_question": QUESTION}),
        Call("bash", {"command": "echo from the shell"}),
        Call("grep", {"pattern": "RETRY_SECONDS = "}),
    ]
    ran = drive(agent, home, calls)
    assert ran.ended.returncode == 0, ran.ended.stdout[-2_000:] + ran.ended.stderr[-2_000:]
    assert {tool.name.rpartition("__")[2] for tool in ran.model.offered} == {"read", "bash", "grep"}
    read, bash, grep = (result.text for result in ran.model.seen)
    assert "RETRY_SECONDS * 2 ** attempt" in read and "lines left out" in read and len(read) < 5_000
    assert "from the shell" in bash and "waiting.py" in grep
    assert ran.named("mcp_pruner.") == ["mcp_pruner.ready", "mcp_pruner.stopped"]
    assert ran.named("tool.respond") == ["tool.respond_ok"] * 3
    assert ran.named("pruner.") == ["pruner.call_start", "pruner.call_ok"]
    assert [*home.rglob("run-*.json")] == []


def test_an_agent_goes_on_when_the_server_is_lost(agent: Agent, home: Path) -> None:
    calls = [Call("bash", {"command": LOSE_THE_SERVER}), Call("read", {"file_path": "waiting.py"})]
    ran = drive(agent, home, calls)
    assert ran.ended.returncode == 0, ran.ended.stdout[-2_000:] + ran.ended.stderr[-2_000:]
    assert len(ran.model.seen) == 2 and all("retry_wait" not in result.text for result in ran.model.seen)
    lost = [f"mcp_pruner.{event}" for event in ("ready", "exited", "degraded", "shutdown_after_degraded")]
    assert ran.named("mcp_pruner.") == lost


@pytest.mark.parametrize(
    ("pruner", "failure"), [("dead", "http_error"), ("slow", "timeout"), ("lying", "invalid_response")]
)
def test_an_agent_gets_the_file_as_it_is_from_a_pruner_that_is(
    agent: Agent, home: Path, pruner: str, failure: str
) -> None:
    with pruning() as service:
        service.silent, service.reply = pruner == "slow", {"pruned_code": 100_000 * "longer "}
        url = "http://127.0.0.1:9/prune" if pruner == "dead" else service.url
        asked = [Call("read", {"file_path": "waiting.py", "context_focus_question": QUESTION})]
        ran = drive(agent, home, asked, JEEVES_PRUNER_ENDPOINT=url, PRUNER_TIMEOUT_MS="1000")
        assert ran.ended.returncode == 0, ran.ended.stdout[-2_000:] + ran.ended.stderr[-2_000:]
        assert ran.named("pruner.") == ["pruner.call_start", f"pruner.{failure}", "pruner.call_failed"]
        assert ran.named("tool.respond") == ["tool.respond_ok"]
        assert "def other_0(" in ran.model.seen[0].text and len(ran.model.seen[0].text) > 9_000


def test_an_agent_without_the_server_is_offered_nothing(agent: Agent, home: Path) -> None:
    ran = drive(
        agent._replace(command=lambda model: without_settings_of_the_server(agent.command(model))),
        home,
        [],
        "--no-pruner",
    )
    assert ran.ended.returncode == 0, ran.ended.stdout[-2_000:] + ran.ended.stderr[-2_000:]
    assert ran.model.requests != [] and ran.model.offered == []
    assert all(NAME not in json.dumps(request) for request in ran.model.requests)
    assert ran.named("") == ["mcp_pruner.disabled", "mcp_pruner.not_running"]


def without_settings_of_the_server(command: list[str]) -> list[str]:
    """Return a command without options about the server: Codex takes no settings of one that it isn't told of."""
    about = {at for at, word in enumerate(command) if word.startswith(f"mcp_servers.{NAME}.")}
    return [word for at, word in enumerate(command) if at not in about and at + 1 not in about]
