"""Resources and prompts as a client uses them: the real process over stdio, in both eras."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from tests.conftest import SAMPLES

pytestmark = pytest.mark.thorough

AGTRACE = str(Path(sys.executable).with_name("agtrace"))
MODES = ["auto", "legacy"]
NOT_FOUND = {"auto": -32602, "legacy": -32002}
"""2026-07-28 says invalid params; the handshake era has a code of its own."""

Story = Callable[[Client], Awaitable[None]]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """The era of the protocol."""
    return str(request.param)


@pytest.fixture
def tell(own_home: Path, tmp_path: Path, mode: str) -> Callable[[Story], None]:
    """Run a story with a server of its own, over the sample sessions."""
    for agent in ("claude", "codex", "gemini"):
        shutil.copytree(SAMPLES / agent, own_home / f".{agent}")
    variables = {"HOME": str(own_home), "AGTRACE_DATA_DIR": str(tmp_path / "data")}
    server = StdioServerParameters(command=AGTRACE, args=["mcp"], env=variables)

    def run(story: Story) -> None:
        async def connected() -> None:
            with anyio.fail_after(300):
                async with Client(server, mode=mode) as client:
                    while "index" in (await call(client, "list_sessions")):
                        pass  # it is being indexed
                    await story(client)

        anyio.run(connected)

    return run


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The value of an answer."""
    value: dict[str, Any] = (await client.call_tool(name, arguments)).structured_content
    return value


async def read(client: Client, uri: str) -> dict[str, Any]:
    """The value of a resource."""
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    assert (content.mime_type, str(content.uri)) == ("application/json", uri)
    value: dict[str, Any] = json.loads(content.text)
    return value


def test_the_lists_are_short_the_same_for_everybody_and_may_be_kept(tell: Callable[[Story], None], mode: str) -> None:
    """Nothing endless is listed: sessions and events are reached by templates."""

    async def story(client: Client) -> None:
        resources = await client.list_resources()
        assert [str(resource.uri) for resource in resources.resources][:1] == ["ax://health"]
        assert len(resources.resources) == 12
        templates = await client.list_resource_templates()
        assert [template.uri_template for template in templates.resource_templates] == [
            "ax://session/{id}", "ax://event/{session}/{index}", "ax://analysis/{session}",
            "ax://report/{since}", "ax://lessons/{project}", "ax://why/{+place}", "ax://metrics/{since}",
        ]  # fmt: skip
        lists = [resources, templates, await client.list_prompts(), await client.list_tools()]
        assert all(listed.next_cursor is None for listed in lists)
        if mode == "auto":
            assert {(listed.ttl_ms, listed.cache_scope) for listed in lists[1:3]} == {(3_600_000, "public")}
            assert lists[3].ttl_ms == 0  # page sizes may be configured at any time
        capabilities = client.server_capabilities
        assert capabilities.resources and not capabilities.resources.subscribe
        assert capabilities.prompts

    tell(story)


def test_a_resource_is_what_read_artifact_answers(tell: Callable[[Story], None]) -> None:
    """One way out."""

    async def story(client: Client) -> None:
        uri = "ax://analysis/d41f7a52"
        assert await read(client, uri) == await call(client, "read_artifact", ref=uri)
        for uri in ("ax://session/d41f7a52", "ax://event/d41f7a52/853"):
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, TextResourceContents) and content.mime_type == "text/markdown"
            assert content.text.startswith((await call(client, "read_artifact", ref=uri))["data"]["text"]), uri
        health = json.loads((await read(client, "ax://health"))["data"]["text"])
        assert [health["index"][name] for name in ("state", "sessions", "sub_agents")] == ["ready", 14, 5]
        assert health["answers"]["by_tool"]["read_artifact"] == 6

    tell(story)


NO_RESOURCES = {
    "ax://session/nobody": "session_not_found",
    "ax://session/01a1113": "ambiguous_session_prefix",
    "ax://event/d41f7a52/99999": "invalid_event_index",
    "ax://nothing/d41f7a52": "invalid_artifact_ref",
    "file:///etc/passwd": "invalid_artifact_ref",
    "ax://event/d41f7a52/first": "invalid_artifact_ref",
}


def test_what_is_no_resource_is_an_error_with_our_words_and_its_address(
    tell: Callable[[Story], None], mode: str
) -> None:
    async def story(client: Client) -> None:
        for uri, code in NO_RESOURCES.items():
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            error = refused.value.error
            assert (error.code, error.data["uri"]) == (NOT_FOUND[mode], uri)
            told = (await call(client, "read_artifact", ref=uri))["error"]
            assert error.data["error"] == told and error.message.startswith(told["message"].rstrip("."))
            assert told["code"] == code, uri

    tell(story)
