"""The three coding agents: whether they say that they are connected, and a run with a model of ours.

Also what an agent wraps around an answer before its model sees it (`unwrapped`), as observed with the versions that
`npm/agents` locks.
"""

from __future__ import annotations

import json
import re
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO, Any

from agtrace.settings.limits import CLIENTS
from tests.e2e.clients import CLAUDE, CODEX, GEMINI, Client, run, started
from tests.e2e.model_server import GenerateContent, Messages, ModelServer, Responses, Result, Wire


class Agent(ABC):
    """A coding agent to which `agtrace setup` has added agtrace."""

    client: Client
    setup: str
    """Its name for `agtrace setup`."""
    limit: int
    """The most bytes that agtrace sends it."""
    takes: int
    """The largest text that it shows whole, with what it wraps around it, as measured: characters, for Codex bytes."""
    marks_errors = True
    """Whether the model learns that a result is an error from more than the result itself."""
    wire: Wire
    around: str
    """An expression for what the model is shown, with the `answer` in it."""

    def prepare(self, home: Path) -> None:  # noqa: B027  # most agents need nothing
        """Write the settings of a user who has signed in."""

    @abstractmethod
    def connected(self, home: Path) -> list[str]:
        """Return the servers to which the agent says it is connected."""

    @abstractmethod
    def drive(self, home: Path, model: ModelServer) -> subprocess.CompletedProcess[str]:
        """Run the agent until its model is done."""

    def unwrapped(self, result: Result) -> Any:
        """Return the JSON in what the model is shown; raise ValueError unless there is exactly one."""
        shown = re.fullmatch(self.around, result.text, re.DOTALL)
        if shown is None:
            raise ValueError(f"not what is put around an answer: {result.text[:200]} ... {result.text[-200:]}")
        return json.loads(shown["answer"])


class ClaudeCode(Agent):
    """Shows a link and the structured content, or the text of an error."""

    client, setup, limit, wire = CLAUDE, "claude", CLIENTS["claude-code"], Messages()
    takes = 50_000
    around = r"(\[Resource link: (\S+)\] \2)?(?P<answer>\{.*)"

    def connected(self, home: Path) -> list[str]:
        said = run(["claude", "mcp", "list"], home).stdout
        return re.findall(r"^(\S+): .* - ✔ Connected$", said, re.MULTILINE)

    def drive(self, home: Path, model: ModelServer) -> subprocess.CompletedProcess[str]:
        command = ["claude", "-p", "go", "--allowedTools", "mcp__agtrace", "--output-format", "json"]
        variables = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"}
        return run(
            command, home, **variables, MCP_CONNECTION_NONBLOCKING="0"
        )  # else it begins before servers are there


class CodexCli(Agent):
    """Shows only the structured content, after the time that the call took, and doesn't mark errors."""

    client, setup, limit, wire = CODEX, "codex", CLIENTS["codex-mcp-client"], Responses()
    takes = 48_000
    around = r"Wall time: [\d.]+ seconds\nOutput:\n(?P<answer>.*)"
    marks_errors = False

    def __init__(self, model: str = "gpt-5.5") -> None:
        """`model` is one that Codex knows; any other is shown at most 12,000 bytes of an answer."""
        self._model = model

    def connected(self, home: Path) -> list[str]:
        """Return the servers that the app server lists, as `codex mcp list` doesn't connect to them."""
        with started(["codex", "app-server"], home) as server:
            assert server.stdin and server.stdout
            client = {"clientInfo": {"name": "agtrace-tests", "version": "0"}}
            _ask(server.stdin, server.stdout, 0, "initialize", client)
            listed = _ask(server.stdin, server.stdout, 1, "mcpServerStatus/list", {})
        return [status["serverInfo"]["name"] for status in listed["data"] if status["tools"]]

    def drive(self, home: Path, model: ModelServer) -> subprocess.CompletedProcess[str]:
        provider = f'{{name="scripted",base_url="{model.url}/v1",wire_api="responses"}}'
        settings = {
            "model": self._model,
            "model_provider": "scripted",
            "model_providers.scripted": provider,
            "mcp_servers.agtrace.required": "true",  # else it begins before the server is there
            "analytics.enabled": "false",
            "check_for_update_on_startup": "false",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return run(["codex", "exec", "--skip-git-repo-check", "--json", *options, "go"], home)


class GeminiCli(Agent):
    """Shows the text, marked as untrusted, and a link; for an error the whole result, with both copies."""

    client, setup, limit, wire = GEMINI, "gemini", CLIENTS["gemini-cli-mcp-client"], GenerateContent()
    takes = 40_000
    around = r"<untrusted_context>\n(?P<answer>.*)\n</untrusted_context>(\nResource Link: (\S+) at \3)?"

    def prepare(self, home: Path) -> None:
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        }
        (home / ".gemini" / "settings.json").write_text(json.dumps(settings))

    def connected(self, home: Path) -> list[str]:
        said = run(["gemini", "mcp", "list"], home)
        return re.findall(r"^✓ (\S+): .* - Connected$", said.stdout + said.stderr, re.MULTILINE)

    def drive(self, home: Path, model: ModelServer) -> subprocess.CompletedProcess[str]:
        command = ["gemini", "--prompt", "go", "--yolo", "--model", "gemini-3-flash"]
        return run(command, home, GOOGLE_GEMINI_BASE_URL=model.url, GEMINI_API_KEY="none")

    def unwrapped(self, result: Result) -> Any:
        if not result.marked_as_error:
            return super().unwrapped(result)
        ((_, whole),) = [part["functionResponse"].popitem() for part in json.loads(result.text.split(" response: ")[1])]
        if json.loads(whole["content"][0]["text"]) != whole["structuredContent"]:
            raise ValueError(f"the two copies differ: {result.text[:200]}")
        return whole["structuredContent"]


AGENTS: list[Agent] = [ClaudeCode(), CodexCli(), GeminiCli()]


def _ask(to: IO[str], answers: IO[str], number: int, method: str, params: dict[str, Any]) -> Any:
    """Return the result of a request to Codex's app server, skipping notifications."""
    to.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
    to.flush()
    for line in answers:
        message = json.loads(line)
        if message.get("id") == number:
            return message["result"]
    raise ValueError(f"no answer to {method}")
