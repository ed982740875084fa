"""A team's index served to an agent: the real process, asked by a real MCP client."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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

    async def story() -> None:
        with anyio.fail_after(60):
            async with Client(stdio_client(server)) as client:
                tools = (await client.list_tools()).tools
                assert all("user" in tool.input_schema["properties"] for tool in tools)
                for user, names in (("ann", {"Ann"}), ("eve", set())):
                    result = await client.call_tool("list_sessions", {"limit": 50, "user": user})
                    assert result.structured_content is not None
                    listed = result.structured_content["data"]["sessions"]
                    assert len(listed) <= len(pushed) and {one["user"] for one in listed} == names
                result = await client.call_tool("get_session_details", {"session_id": pushed[0]})
                assert not result.is_error

    anyio.run(story)
