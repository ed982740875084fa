"""Messages that do no harm: too large, too deeply nested, too many at once, or not messages at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agtrace.serving.server import LARGEST_REQUEST
from tests.conftest import keep_rules
from tests.faults.serving import Server, call, line, memory, serving

pytestmark = pytest.mark.thorough

MEGABYTE = 1_000_000
DEEP = 100_000


@pytest.fixture(scope="module")
def running(compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that lives through the whole module, and has nothing but lines of JSON to log."""
    folder = tmp_path_factory.mktemp("limits")
    keep_rules(compiled_rules, folder / "data")
    errors = folder / "stderr"
    with serving(errors, HOME=str(folder), AGTRACE_DATA_DIR=str(folder / "data")) as server:
        server.greet()
        server.send(call(1, "list_sessions"))
        assert server.answer(1)["result"]["structuredContent"]["success"]
        yield server
    assert all(json.loads(record)["event"] != "internal_error" for record in errors.read_text().splitlines())


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    """Whatever is sent to it, it answers the next question."""
    yield running
    running.send(call(2, "list_sessions"))
    assert running.answer(2)["result"]["structuredContent"]["success"]


def test_a_line_of_a_hundred_megabytes_is_refused_in_bounded_memory(server: Server) -> None:
    before = memory(server.process.pid)
    server.send(b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": {"x": "')
    for _ in range(100):
        server.send(b"x" * MEGABYTE)
    server.send(b'"}}\n' + line("ping", 4))
    refused, answered = (message for _, message in zip(range(2), server.messages(), strict=False))
    assert refused["error"] == {"code": -32600, "message": "A message may have at most 1,048,576 bytes."}
    assert answered["id"] == 4
    assert memory(server.process.pid) - before < 20 * MEGABYTE


def test_the_longest_request_is_answered(server: Server) -> None:
    empty = call(3, "search_event_previews", order="newest", query="")
    server.send(call(3, "search_event_previews", order="newest", query="x" * (LARGEST_REQUEST + 1 - len(empty))))
    assert server.answer(3)["result"]["structuredContent"]["error"]["code"] == "invalid_parameter"


def test_many_requests_at_once_are_all_answered_in_bounded_memory(server: Server) -> None:
    """All are sent before the first answer is read, as a simple script does it."""
    numbers = range(10, 4_010)
    before = memory(server.process.pid)
    server.send(b"".join(line("ping", number) for number in numbers))
    answered = {message["id"] for _, message in zip(numbers, server.messages(), strict=False)}
    assert answered == set(numbers)
    assert memory(server.process.pid) - before < 30 * MEGABYTE


@pytest.mark.parametrize("first", [0, 6_000], ids=["each of its own id", "all of one id"])
def test_requests_without_end_wait_in_the_pipe_and_not_in_memory(first: int, tmp_path: Path) -> None:
    """The client never reads: of 60 MB of requests most stay where they are."""

    def send(server: Server) -> None:
        with suppress(OSError, ValueError):  # the end of the server
            for number in range(6_000):
                server.send(call(3 + max(number, first), "list_sessions", project="x" * 10_000))

    with serving(tmp_path / "stderr") as server:
        server.greet()
        server.send(call(2, "list_sessions", project="x"))
        server.answer(2)  # it needed the rules for secrets, which are compiled once
        before = memory(server.process.pid)
        sender = threading.Thread(target=send, args=(server,), daemon=True)
        sender.start()
        sender.join(2)
        assert sender.is_alive(), "all of it was taken"
        assert memory(server.process.pid) - before < 50 * MEGABYTE
        server.process.kill()
        sender.join()


@pytest.mark.parametrize(
    ("sent", "code", "number"),
    [
        (b"this is no protocol", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 3, "method"', -32700, None),
        (b"[" * DEEP, -32700, None),
        (b'{"a":' * DEEP + b"1" + b"}" * DEEP, -32700, None),
        (line("ping", 3, x="deep").replace(b'"deep"', b'{"a":' * DEEP + b"1" + b"}" * DEEP), -32700, None),
        (b'{"id": ' + b"9" * 10_000 + b"}", -32700, None),
        (b"\xff\xfe\x00", -32700, None),
        (b'[{"jsonrpc": "2.0", "id": 3, "method": "ping"}]', -32600, None),
        (b'{"jsonrpc": "1.0", "id": 3, "method": "ping"}', -32600, 3),
        (b'{"jsonrpc": "2.0", "id": "three", "method": 3}', -32600, "three"),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": {"x": "\\ud800"}}', -32600, 3),
        (b"null", -32600, None),
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_what_is_no_message_is_an_error_and_the_next_one_is_answered(
    sent: bytes, code: int, number: int | str | None, server: Server
) -> None:
    server.send(b"\n" + sent + b"\r\n \n")
    said = next(server.messages())
    assert (said["error"]["code"], said["id"]) == (code, number)
    assert len(json.dumps(said)) < 500


def test_text_that_is_no_utf_8_is_asked_for_as_it_can_be_read(server: Server) -> None:
    server.send(call(3, "search_event_previews", order="newest", query="tide").replace(b"tide", b"ti\xffde"))
    assert server.answer(3)["result"]["structuredContent"]["success"]


def test_requests_that_are_called_off_keep_no_place(server: Server) -> None:
    """More of them than may wait."""
    for number in range(10, 400):
        server.send(call(number, "list_sessions") + line("notifications/cancelled", requestId=number))
    server.send(line("ping", 400))
    assert server.answer(400)["result"] == {}


_POLLUTING = """
import os, sys

def pollute(event, _):
    if event == "sqlite3.connect":
        print("printed by mistake", flush=True)
        os.write(1, b"written by mistake")

sys.addaudithook(pollute)
"""


def test_what_a_library_prints_never_stands_between_the_answers(tmp_path: Path) -> None:
    """Here the interpreter prints whenever the index is opened; it comes out on stderr."""
    (tmp_path / "sitecustomize.py").write_text(_POLLUTING)
    with serving(tmp_path / "stderr", PYTHONPATH=str(tmp_path)) as server:
        server.greet()
        server.send(call(1, "list_sessions"))
        assert next(server.messages())["result"]["structuredContent"]["success"]
    assert "printed by mistake" in (tmp_path / "stderr").read_text()
