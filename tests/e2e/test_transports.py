"""The answer contract over both transports: byte for byte the answers given without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from agtrace.shaping.shape import Answer
from tests.agtrace.asking import YEAR, Asker
from tests.conftest import keep_rules
from tests.e2e.clients import ALL
from tests.worlds import WORLDS, World, calls, strange_calls

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(not ALL, reason="make e2e makes all these calls")]

AGTRACE = str(Path(sys.executable).with_name("agtrace"))
SECONDS = 300


@pytest.fixture(scope="module", params=WORLDS, ids=lambda world: world.name)
def world(request: pytest.FixtureRequest) -> World:
    return request.param


@pytest.fixture(scope="module")
def folder(world: World, compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(world.name)
    keep_rules(compiled_rules, folder / "data")
    world.build(folder / "home")
    return folder


@pytest.fixture(scope="module")
def expected(world: World, folder: Path) -> list[tuple[str, dict[str, Any], Answer]]:
    """Every call of this world and its share of the strange ones, with what is answered in a new connection."""
    asker = Asker(folder / "data", folder / "home", ttl=YEAR, connection="any")
    asked = [*calls(world), *[*strange_calls()][WORLDS.index(world) :: len(WORLDS)]]
    return [(name, of, asker.anything(name, **of)) for name, of in asked if of.get("ref") != "ax://health"]


def environment(folder: Path) -> dict[str, str]:
    return {
        "HOME": str(folder / "home"),
        "AGTRACE_DATA_DIR": str(folder / "data"),
        "AGTRACE_CURSOR_TTL_SECONDS": str(YEAR),
        "PATH": os.environ["PATH"],
    }


@contextmanager
def http_server(folder: Path) -> Iterator[str]:
    """A server of this folder's index on a free port, for whoever asks; gives its address."""
    command = [AGTRACE, "mcp", "--http", "127.0.0.1:0", "--no-token"]
    with subprocess.Popen(command, env=environment(folder), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = next(line["url"] for line in map(json.loads, process.stderr) if line["event"] == "listening")
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield url
        finally:
            process.terminate()


@asynccontextmanager
async def stdio(folder: Path, mode: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(command=AGTRACE, args=["mcp"], env=environment(folder))
    with (folder / "stderr").open("w") as errors:
        async with Client(stdio_client(server, errors), mode=mode) as client:
            yield client


@asynccontextmanager
async def http(folder: Path, mode: str) -> AsyncIterator[Client]:
    with http_server(folder) as url:
        one = httpx2.AsyncClient(headers={"Mcp-Session-Id": "one"}, timeout=SECONDS)  # however often it reconnects
        async with Client(streamable_http_client(url, http_client=one), mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", ("auto", "legacy"))
@pytest.mark.parametrize("transport", (stdio, http))
def test_both_transports_give_what_was_answered(
    folder: Path, expected: list[tuple[str, dict[str, Any], Answer]], transport: Any, mode: str
) -> None:
    """Answers and errors; the text and the structured copy are identical."""

    async def ask() -> None:
        async with transport(folder, mode) as client:
            listed = await client.list_tools()
            schemas = {tool.name: Draft202012Validator(tool.output_schema or {}) for tool in listed.tools}
            for name, arguments, answer in expected:
                with anyio.fail_after(SECONDS):
                    result = await client.call_tool(name, arguments)
                assert [block.text for block in result.content[:1]] == [answer.text]
                assert result.structured_content == json.loads(answer.text) == answer.value
                assert bool(result.is_error) is answer.is_error
                schemas[name].validate(result.structured_content)

    anyio.run(ask)
