"""The MCP Inspector's command line, strict, in both protocol eras and over both transports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agtrace.serving.prompts import PROMPTS
from agtrace.tools import TOOLS
from tests.e2e.clients import ALL, INSPECTOR, Client, machine, require, run
from tests.e2e.test_http import listening

TOOL_ERROR = 5
"""The exit code for a result with isError; 6 would be a fault in a schema."""


class Inspected(NamedTuple):
    """What the Inspector makes of an answer."""

    code: int
    result: dict[str, Any]
    said: str
    """Warnings and errors."""


Inspect = Callable[..., Inspected]

ERAS = ["legacy", "modern"]
MODERN = pytest.mark.parametrize("era", ERAS if ALL else ["modern"], indirect=True)
"""Outside of `make e2e` the handshake era is asked for tools alone; test_resources asks both for resources."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine with sample sessions, which are indexed, and the Inspector."""
    require(INSPECTOR)
    home = machine(tmp_path_factory.mktemp("home"))
    assert run(["agtrace", "index"], home).returncode == 0
    return home


@pytest.fixture(autouse=True)
def named(home: Path, versions: Callable[[Client], str], record_property: Callable[[str, object], None]) -> None:
    """Every test names the Inspector's version."""
    record_property("client", versions(INSPECTOR))


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """The handshake era, or that of 2026-07-28."""
    return request.param


@pytest.fixture(params=["stdio", "http"] if ALL else ["stdio"])
def inspect(request: pytest.FixtureRequest, home: Path, era: str) -> Iterator[Inspect]:
    """Run the Inspector with one method."""

    def inspected(*target: str) -> Inspect:
        def ask(method: str, *options: str) -> Inspected:
            asked = ["--cli", *target, "--protocol-era", era, "--method", method, "--format", "json", *options]
            ended = run([INSPECTOR.command, *asked], home)
            result = json.loads(ended.stdout)["result"] if ended.stdout.strip() else {}
            return Inspected(ended.returncode, result, ended.stderr)

        return ask

    if request.param == "stdio":
        (home / "asked").write_text("")
        yield inspected("agtrace", "mcp")
        methods = [json.loads(line)["method"] for line in (home / "asked").read_text().splitlines()]
        assert ("initialize" in methods) is (era == "legacy")
    else:
        with listening(home, "127.0.0.1:0", "--no-token", AGTRACE_DATA_DIR="") as server:  # with the index of stdio
            yield inspected("--transport", "http", "--server-url", server.url)


def test_the_tools_have_schemas_that_every_client_can_read(inspect: Inspect) -> None:
    listed = inspect("tools/list", "--strict")
    assert (listed.code, listed.said) == (0, "")
    assert [tool["name"] for tool in listed.result["tools"]] == list(TOOLS)


def test_an_answer_is_valid_for_the_output_schema_and_so_is_an_error(inspect: Inspect) -> None:
    """The Inspector throws away what the schema doesn't admit."""
    answered = inspect("tools/call", "--tool-name", "list_sessions", "--tool-args-json", '{"limit": 2}')
    assert (answered.code, answered.said) == (0, "")
    assert answered.result["structuredContent"]["data"]["sessions"][1]["id"]
    refused = inspect("tools/call", "--tool-name", "list_sessions", "--tool-args-json", '{"limit": 51}')
    assert refused.code == TOOL_ERROR
    assert refused.result["structuredContent"]["error"]["code"] == "invalid_parameter"
    for sent in (answered.result, refused.result):
        assert json.loads(sent["content"][0]["text"]) == sent["structuredContent"]


@MODERN
def test_resources_are_listed_and_read(inspect: Inspect) -> None:
    assert [resource["uri"] for resource in inspect("resources/list").result["resources"]][:1] == ["ax://health"]
    templates = inspect("resources/templates/list").result["resourceTemplates"]
    assert "ax://session/{id}" in [template["uriTemplate"] for template in templates]
    read = inspect("resources/read", "--uri", "ax://session/e97a4b06")
    assert (read.code, read.said) == (0, "")
    assert "surge" in read.result["contents"][0]["text"].lower()
    nobody = inspect("resources/read", "--uri", "ax://session/nobody")
    assert nobody.code == 1
    assert "Session not found: nobody" in nobody.said


@MODERN
def test_prompts_are_listed_and_got(inspect: Inspect) -> None:
    assert [prompt["name"] for prompt in inspect("prompts/list").result["prompts"]] == list(PROMPTS)
    got = inspect("prompts/get", "--prompt-name", "find_past_work", "--prompt-args", "problem=a locked database")
    assert (got.code, got.said) == (0, "")
    assert "a locked database" in got.result["messages"][0]["content"]["text"]
