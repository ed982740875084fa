"""The answer contract over both transports: byte for byte the answers given without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import cycle, product, repeat
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.agtrace.asking import YEAR, Asker
from tests.conftest import keep_rules
from tests.worlds import WORLDS, World, calls, strange_calls

pytestmark = pytest.mark.thorough

AGTRACE = str(Path(sys.executable).with_name("agtrace"))
EVERY = 1 if os.environ.get("AGTRACE_E2E") else 31
"""Of so many calls one is made: all of them in `make e2e`, as in test_contract without a transport."""
SECONDS = 300


FEW = ("empty", "outputs", "emoji")
"""The worlds outside of `make e2e`."""


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> World:
    return request.param


@pytest.fixture(scope="module")
def folder(world: World, compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(world.name)
    keep_rules(compiled_rules, folder / "data")
    world.build(folder / "home")
    return folder


@pytest.fixture(scope="module")
def asker(folder: Path) -> Asker:
    return Asker(folder / "data", folder / "home", ttl=YEAR)


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
        async with Client(streamable_http_client(url), mode=mode) as client:
            yield client


def ways() -> Iterator[tuple[World, Any, str]]:
    """Which worlds are asked over which transport, and in which mode; outside of `make e2e` each over one."""
    if os.environ.get("AGTRACE_E2E"):
        yield from product(WORLDS, (stdio, http), ("auto", "legacy"))
    else:
        few = (world for world in WORLDS if world.name in FEW)
        yield from zip(few, cycle((stdio, http)), repeat("auto"), strict=False)


def named(part: Any) -> str:
    return part if isinstance(part, str) else part.name if isinstance(part, World) else part.__name__


@pytest.mark.parametrize(("world", "transport", "mode"), list(ways()), ids=named, indirect=["world"], scope="module")
def test_both_transports_give_what_was_answered(
    world: World, folder: Path, asker: Asker, transport: Any, mode: str
) -> None:
    """Answers and errors; the text and the structured copy are identical."""
    asked = [*calls(world), *strange_calls()]
    chosen = [call for call in asked[mode == "legacy" :: EVERY] if call[1].get("ref") != "ax://health"]

    async def ask() -> None:
        with anyio.fail_after(SECONDS):
            async with transport(folder, mode) as client:
                listed = await client.list_tools()
                schemas = {tool.name: tool.output_schema for tool in listed.tools}
                for name, arguments in chosen:
                    result = await client.call_tool(name, arguments)
                    expected = asker.anything(name, **arguments)
                    if '"seen":' in result.content[0].text:
                        continue  # what was sent in this connection isn't sent again
                    assert [block.text for block in result.content[:1]] == [expected.text]
                    assert result.structured_content == json.loads(expected.text) == expected.value
                    assert bool(result.is_error) is expected.is_error
                    jsonschema.validate(result.structured_content, schemas[name])

    anyio.run(ask)
