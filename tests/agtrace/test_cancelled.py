"""A request that its client gave up holds nothing up, and one that takes long is reported on."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
from mcp import Client

from agtrace.serving import server
from agtrace.settings import load
from agtrace.settings.live import Live
from tests.agtrace.asking import Asker, claude_log

SLOW = {"query": r"^(([^x]*)*|y)*zz\1q$", "regex": True}


def test_a_search_that_is_given_up_stops_its_work_and_was_reported_on(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", "0badc0de-0000-4000-8000-000000000001")
    for number in range(20):
        log.prompt(f"{number} zz " * 2_000)
    Asker(tmp_path / "data", tmp_path / "logs")
    settings = load({"AGTRACE_DATA_DIR": str(tmp_path / "data"), "HOME": str(tmp_path)})
    told: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async def story() -> None:
        async with Client(server.make_server(Live.fixed(settings))) as client:
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
