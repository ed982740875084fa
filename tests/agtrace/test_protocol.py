"""What the server does of the protocol beside tools: cancellation, progress, completion, resources, one page a list."""

from __future__ import annotations

import json
import time
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, TextResourceContents

from agtrace.serving import server
from agtrace.settings import load
from agtrace.settings.live import Live
from tests.agtrace.asking import Asker, claude_log

ONE = "0badc0de-0000-4000-8000-000000000001"
SLOW = {"query": r"^(([^x]*)*|y)*zz\1q$", "regex": True}


def client_of(folder: Path) -> Client:
    settings = load({"AGTRACE_DATA_DIR": str(folder / "data"), "HOME": str(folder)})
    return Client(server.make_server(Live.fixed(settings)))


def test_a_search_that_is_given_up_stops_its_work_and_was_reported_on(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE)
    for number in range(20):
        log.prompt(f"{number} zz " * 2_000)
    Asker(tmp_path / "data", tmp_path / "logs")
    told: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async def story() -> None:
        async with client_of(tmp_path) as client:
            await client.call_tool("list_sessions", {})
            with anyio.move_on_after(2.5) as given_up:
                await client.call_tool("search_event_previews", SLOW, progress_callback=note)
            used = time.process_time()
            found = await client.call_tool("search_event_previews", {"query": "zz", "order": "newest", "limit": 1})
            await anyio.sleep(0.5)
            assert given_up.cancelled_caught and not found.is_error
            assert time.process_time() - used < 1

    anyio.run(story)
    assert told[0] == 1


def test_sessions_are_completed_listed_and_read_as_text_and_a_made_up_cursor_is_refused(tmp_path: Path) -> None:
    claude_log(tmp_path / "logs", ONE, cwd="/srv/tidepool").prompt("Mend the tide.").say("a line\n" * 9_000)
    Asker(tmp_path / "data", tmp_path / "logs")

    async def completed(client: Client, name: str, begun: str) -> list[str]:
        prompt = PromptReference(type="ref/prompt", name="diagnose_session")
        return (await client.complete(prompt, {"name": name, "value": begun})).completion.values

    async def story() -> None:
        async with client_of(tmp_path) as client:
            assert await completed(client, "session_id", "0BAD") == [ONE[:8]]
            assert await completed(client, "project", "tide") == ["tidepool"]
            assert await completed(client, "id1", "x") == []
            *_, listed = (await client.list_resources()).resources
            health = (await client.call_tool("read_artifact", {"ref": "ax://health"})).structured_content
            assert json.loads(health["data"]["text"])["answers"]["count"] == 0, "nobody called a tool until now"
            (text,) = (await client.read_resource(listed.uri)).contents
            assert isinstance(text, TextResourceContents) and text.mime_type == listed.mime_type == "text/markdown"
            assert "Mend the tide.\n" in text.text and "goes on]" in text.text
            opened = await client.call_tool("get_event_details", {"session_id": ONE, "event_index": 1})
            assert [part.type for part in opened.content] == ["text", "resource_link"]
            for lists in (client.list_tools, client.list_resources, client.list_prompts):
                with pytest.raises(MCPError) as refused:
                    await lists(cursor="made up")
                assert refused.value.error.code == -32602

    anyio.run(story)
