"""A real server with the real client: its answers, its errors, its log."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from tests.agtrace.terminal import AGTRACE
from tests.secrets.planting import Planted
from tests.secrets.questions import begun_since, recognisable

_VARIABLES = ("HOME", "AGTRACE_DATA_DIR", "PATH", "PYTHONPATH")


def of_server(planted: Sequence[Planted], *, whole: bool) -> Iterator[tuple[str, str]]:
    """Yield (where, text) of a conversation about some sessions over stdio, and of the server's stderr.

    Without `whole` the report, which is asked for once, is about a part of the sessions.
    """
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    server = StdioServerParameters(command=str(AGTRACE), args=["mcp"], env=variables)
    said: list[tuple[str, str]] = []

    async def talk() -> None:
        with anyio.fail_after(300):
            async with Client(stdio_client(server, errlog=log)) as client:
                report = f"ax://report/{begun_since(whole=whole)}"
                said.append(("resource", await _outcome(lambda: client.read_resource(report))))
                for each in planted:
                    for where, ask in _requests(client, each):
                        said.append((where, await _outcome(ask)))

    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        anyio.run(talk)
        log.seek(0)
        said.append(("stderr of the server", log.read()))
    yield from said


def _requests(client: Client, planted: Planted) -> Iterator[tuple[str, Callable[[], Awaitable[Any]]]]:
    session, told = planted.session, recognisable(planted.case)
    for uri in (f"ax://session/{session}", f"ax://event/{session}/0", f"ax://analysis/{session}"):
        yield "resource", lambda uri=uri: client.read_resource(uri)
    yield "resource that isn't there", lambda: client.read_resource(f"ax://session/{told}")
    yield "unknown tool", lambda: client.call_tool(told, {})
    yield "call", lambda: client.call_tool("search_event_previews", {"order": "newest", "query": told})
    yield "call", lambda: client.call_tool("get_session_details", {"session_id": session, "detail_level": "full"})
    yield "unknown prompt", lambda: client.get_prompt(told, {})
    yield "prompt", lambda: client.get_prompt("find_past_work", {"problem": planted.case.text})
    yield "prompt", lambda: client.get_prompt("find_past_work", {told: "x"})


async def _outcome(ask: Callable[[], Awaitable[Any]]) -> str:
    try:
        answer = await ask()
    except MCPError as error:
        return f"{error.error}"
    except ValueError as error:  # an address that the client itself refuses to send
        return "" if "url" in str(error).lower() else str(error)
    return str(answer.model_dump_json())
