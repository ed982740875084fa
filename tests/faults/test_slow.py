"""Slow searches: other requests don't wait for them, and they wait for each other only while the cores are busy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.parallel.pool import cores

from tests.agtrace.asking import claude_log
from tests.e2e.test_http import listening
from tests.faults.serving import SLOW, Server, call, line, serving

pytestmark = pytest.mark.thorough

SECONDS = 2
"""After which a search is stopped."""
SLOW_ONES = range(100, 100 + 2 * cores())
"""The numbers of as many slow searches as take every core twice."""


TOKEN = "a-token-of-the-tests"
KNOWN = {
    "Authorization": f"Bearer {TOKEN}", "Content_Type": "application/json",
    "Accept": "application/json, text/event-stream",
}  # fmt: skip


def write_log(folder: Path) -> None:
    claude_log(folder, "fb3cff44-13ae-41a6-a6df-f287e0552835").prompt("when is the tide high " * 40)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server over a log in which a search takes as long as it may."""
    write_log(tmp_path / ".claude")
    given = {"HOME": str(tmp_path), "AGTRACE_DATA_DIR": str(tmp_path / "data")}
    with serving(tmp_path / "stderr", **given, AGTRACE_SEARCH_TIMEOUT_SECONDS=str(SECONDS)) as server:
        server.greet()
        server.send(call(1, "list_sessions"))
        assert said(server.answer(1))["data"]["sessions"]
        yield server


def said(message: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = message["result"]["structuredContent"]
    return value


def search_slowly(server: Server) -> None:
    server.send(b"".join(call(number, "search_event_previews", order="newest", **SLOW) for number in SLOW_ONES))


def arrivals(server: Server, count: int) -> list[int]:
    """The numbers of the next answers in their order."""
    return [message["id"] for _, message in zip(range(count), server.messages(), strict=False)]


def test_slow_searches_are_done_on_all_cores_in_the_order_of_coming_and_nothing_else_waits(server: Server) -> None:
    others = {
        2: call(2, "list_sessions"),
        3: call(3, "read_artifact", ref="ax://health"),
        4: call(4, "get_event_details", session_id="fb3cff44", event_index=0),
        5: line("resources/read", 5, uri="ax://health"),
    }
    search_slowly(server)
    server.send(b"".join(others.values()))
    numbers = arrivals(server, len(others) + len(SLOW_ONES))
    assert set(numbers[: len(others)]) == set(others)
    first, second = numbers[len(others) :][: cores()], numbers[len(others) :][cores() :]
    assert set(first) == set(SLOW_ONES[: cores()]) and set(second) == set(SLOW_ONES[cores() :])


def test_over_http_a_health_check_is_answered_before_any_of_the_slow_searches_asked_earlier(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_log(home / ".claude")
    came: list[str] = []

    def search() -> None:
        http.request("POST", "/mcp", call(1, "search_event_previews", order="newest", **SLOW), **KNOWN)
        came.append("search")

    given = {"AGTRACE_HTTP_TOKEN": TOKEN, "AGTRACE_SEARCH_TIMEOUT_SECONDS": "600"}
    with ThreadPoolExecutor(len(SLOW_ONES)) as clients, listening(home, **given) as http:
        while json.loads(http.request("GET", "/readyz", **KNOWN)[2])["ready"] is False:
            pass
        for _ in SLOW_ONES:
            clients.submit(search)
        for path in ("/healthz", "/readyz", "/healthz"):
            assert http.request("GET", path, **KNOWN)[0] == 200
        assert came == []


def test_a_search_that_is_called_off_while_it_waits_takes_no_turn(server: Server) -> None:
    search_slowly(server)
    waiting = SLOW_ONES[cores() :]
    server.send(b"".join(line("notifications/cancelled", requestId=number) for number in waiting))
    server.send(call(2, "search_event_previews", order="newest", query="tide"))
    came = arrivals(server, cores() + 1)
    assert set(came) == {*SLOW_ONES[: cores()], 2}, "one that was called off has been answered"
    assert came[0] != 2, "it took the turn of the first that ended"


def test_searches_that_are_called_off_leave_no_threads_behind(server: Server) -> None:
    for number in range(200, 260):
        server.send(call(number, "search_event_previews", order="newest", **SLOW))
        server.send(line("notifications/cancelled", requestId=number))
    server.send(call(2, "list_sessions"))
    assert said(server.answer(2))["success"]
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    assert int(status.partition("Threads:")[2].split()[0]) < 10 + cores()
