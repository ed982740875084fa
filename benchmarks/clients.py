"""Agents that search over MCP: the official client, connected to `agtrace mcp` over stdio."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from benchmarks.ground import AGTRACE, Machine
from benchmarks.queries import Query

SEARCH = "search_event_previews"


class Called(NamedTuple):
    """One search, as the client experienced it."""

    milliseconds: float
    error: str
    """Empty if there was an answer."""


@asynccontextmanager
async def connected(machine: Machine) -> AsyncIterator[Client]:
    """Yield a client with its own server, whose log is discarded."""
    server = StdioServerParameters(command=AGTRACE, args=["mcp"], env=machine.environment)
    with Path("/dev/null").open("w") as log:
        async with Client(stdio_client(server, log)) as client:
            await client.list_tools()
            yield client


async def call(client: Client, query: Query, *, ranked: bool = False) -> Called:
    """Search once."""
    began = time.perf_counter()
    error = ""
    try:
        result = await client.call_tool(SEARCH, query.ranked if ranked else query.arguments)
        if result.is_error:
            error = str(result.structured_content)
    except MCPError as trouble:
        error = str(trouble)
    return Called(1000 * (time.perf_counter() - began), error)
