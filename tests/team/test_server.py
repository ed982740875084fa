"""A team's index served to an agent: the real process, asked by a real MCP client."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.team.teams import Team

AGTRACE = str(Path(sys.executable).with_name("agtrace"))


def test_an_agent_finds_what_a_colleague_shared(team: Team, samples: Path) -> None:
    team.add("ann", "eve")
    pushed = team.push(samples, "ann", "team").new
    environment = {**os.environ, "AGTRACE_TEAM": team.url("eve")}
    server = StdioServerParameters(command=AGTRACE, args=["--index", "team", "mcp"], env=environment)

    async def story() -> dict[str, Any]:
        with anyio.fail_after(60):
            async with Client(stdio_client(server)) as client:
                tools = (await client.list_tools()).tools
                assert all("user" in tool.input_schema["properties"] for tool in tools)
                told: dict[str, Any] = {}
                for tool, arguments in (
                    ("list_sessions", {"limit": 50, "user": "ann"}),
                    ("search_event_previews", {"query": "database is locked"}),
                    ("list_sessions", {"user": "eve"}),
                ):
                    result = await client.call_tool(tool, arguments)
                    assert not result.is_error, result.content
                    told[f"{tool} {arguments.get('user')}"] = result.structured_content
                best = told["search_event_previews None"]["data"]["best"]["sessions"][0]["session_id"]
                opened = await client.call_tool("get_session_details", {"session_id": best})
                assert not opened.is_error
                return told

    told = anyio.run(story)
    listed = told["list_sessions ann"]["data"]["sessions"]
    assert len(listed) <= len(pushed) and {one["user"] for one in listed} == {"Ann"}
    assert told["list_sessions eve"]["data"]["sessions"] == []
