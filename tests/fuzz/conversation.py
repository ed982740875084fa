"""Mutated requests to the real server over stdio, and checks of everything that it says."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import jsonschema

from agtrace.problems import Problem
from agtrace.serving.server import LARGEST_REQUEST
from agtrace.settings import ABSOLUTE_MAX_BYTES
from agtrace.shaping.shape import Answer
from tests.agtrace.asking import budget, check, check_shape, schema_of
from tests.fuzz import laws
from tests.fuzz.asked import Asked, Known, request
from tests.fuzz.judging import write
from tests.fuzz.mutants import mutant
from tests.fuzz.sources import authored

SECONDS = 30.0
"""The most seconds for an answer, even on a busy machine: a search is stopped after `SEARCH`."""

SEARCH = "1"
MUTANTS, WHOLE = 20, 40
"""The number of logs below the server's home: mutants, and unchanged ones."""

_PYTHON = re.compile(
    r"Traceback \(most|object at 0x|site-packages|pydantic|validation error|NoneType|[a-z]+\.py\b|\b[A-Z]\w+Error\b|"
    r"Exception|unhashable|codec can't|positional argument"
)
"""The text of a Python exception."""

FIRST_ID = 1_000
"""The id of the first request."""

_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
_FIRST: tuple[tuple[str, dict[str, Any]], ...] = (("list_sessions", {"limit": 50}), ("get_project_info", {}))
"""The first requests, whose answers make something known."""

Following = Callable[[int, Known, Random], Asked]


class Finding(NamedTuple):
    """Something that the server must not say, or failed to say."""

    law: str
    what: str
    frame: bytes


class Server:
    """The server as a process; a thread reads what it says."""

    def __init__(self, home: Path) -> None:
        self._errors = (home / "stderr").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agtrace", "mcp"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env={"HOME": str(home), "AGTRACE_DATA_DIR": str(home / "data"), "PATH": os.defpath,
                 "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "AGTRACE_SEARCH_TIMEOUT_SECONDS": SEARCH},
        )  # fmt: skip
        self.said: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.put(line)
        self.said.put(None)

    def send(self, frame: bytes) -> None:
        """Send a line. Raises `BrokenPipeError` if the server has ended."""
        assert self.process.stdin is not None
        self.process.stdin.write(frame + b"\n")
        self.process.stdin.flush()

    def end(self) -> int | None:
        """Close its input; return its exit code, or None if it doesn't end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.process.kill()
            self.process.wait()
            self._errors.close()


@contextmanager
def home(random: Random) -> Iterator[Path]:
    """Make a home with logs of all agents, some of them mutants."""
    sources = authored()
    with tempfile.TemporaryDirectory(dir=laws.memory()) as folder:
        logs = Path(folder) / ".claude" / "projects"
        write([mutant(sources, random) for _ in range(MUTANTS)], logs / "mutants")
        for number, source in enumerate(random.sample(sources, min(WHOLE, len(sources)))):
            path = logs / f"{number:03}" / source.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.content)
        yield Path(folder)


def converse(random: Random, requests: int, following: Following = request) -> list[Finding]:
    """Send this many requests to one server, by default mutated ones; return what is wrong with what it says."""
    with home(random) as folder:
        server = Server(folder)
        try:
            found = list(_conversed(server, random, requests, following))
        finally:
            code = server.end()
        if code != 0:
            found.append(Finding("end", f"the server ended with {code}", b""))
        return [*found, *_logged(folder / "stderr")]


def _conversed(server: Server, random: Random, requests: int, following: Following) -> Iterator[Finding]:
    asked, known = Asked(_message("initialize", _HELLO, 0), 0), Known()
    try:
        _exchange(server, asked)
        server.send(_message("notifications/initialized"))
        for number, (tool, arguments) in enumerate(_FIRST, 1):
            asked = Asked(
                _message("tools/call", {"name": tool, "arguments": arguments}, number), number, tool, arguments
            )
            yield from _answered(server, asked, known)
        for number in range(FIRST_ID, FIRST_ID + requests):
            asked = following(number, known, random)
            yield from _answered(server, asked, known)
    except (TimeoutError, OSError) as error:
        yield Finding("silence", f"{type(error).__name__}: {error}", asked.frame)


def _answered(server: Server, asked: Asked, known: Known) -> Iterator[Finding]:
    """Ask, judge everything that is said, and learn from it. Raises `TimeoutError` and `OSError` if nothing is said."""
    for message in _exchange(server, asked):
        wrong = _wrong(message, asked)
        if wrong:
            yield Finding("reply", f"{wrong}\n\n{json.dumps(message)[:3_000]}", asked.frame)
        else:
            _learn(known, asked, message)


def _exchange(server: Server, asked: Asked) -> list[Any]:
    """Send a line and wait for its answer, or for that to a ping if none is required; return all messages so far."""
    server.send(asked.frame)
    awaited: Any = asked.id if len(asked.frame) <= LARGEST_REQUEST else None  # the server doesn't read a longer one
    if awaited is None:
        awaited = f"ping {id(asked)}"
        server.send(_message("ping", None, awaited))
    said = []
    while True:
        try:
            line = server.said.get(timeout=SECONDS)
        except queue.Empty:
            raise TimeoutError(f"no answer within {SECONDS:.0f} s") from None
        if line is None:
            raise BrokenPipeError("the server has ended")
        try:
            said.append(json.loads(line))
        except ValueError:
            said.append(line.decode("utf-8", "replace"))
            continue
        if isinstance(said[-1], dict) and said[-1].get("id") == awaited:
            return said


def _message(method: str, params: Any = None, number: Any = None) -> bytes:
    frame = {"jsonrpc": "2.0", "method": method, "id": number, "params": params}
    return json.dumps({name: value for name, value in frame.items() if value is not None}).encode()


def _wrong(message: Any, asked: Asked) -> str | None:
    """Return what is wrong with something that the server said; None if nothing is."""
    try:
        _check(message, asked)
    except (AssertionError, jsonschema.ValidationError) as error:
        return str(error)[:1_000] or "an assertion"
    return None


def _check(message: Any, asked: Asked) -> None:
    assert isinstance(message, dict) and message.get("jsonrpc") == "2.0", "no message of JSON-RPC"
    assert len(json.dumps(message, ensure_ascii=False).encode()) < 3 * ABSOLUTE_MAX_BYTES, (
        "a reply larger than any answer"
    )
    if "error" in message:
        error = message["error"]
        assert "result" not in message, "a result next to an error"
        assert isinstance(error["code"], int) and isinstance(error["message"], str) and error["message"], "an error"
        _check_words(error["message"], asked)
        assert error["code"] != -32603, "an internal error"
    elif "result" in message and asked.id == message.get("id") and asked.tool is not None:
        _check_answer(message["result"], asked)


def _check_answer(result: Any, asked: Asked) -> None:
    (content,) = result["content"]
    given = Answer(content["text"], result["structuredContent"], bool(result.get("isError")))
    assert asked.tool is not None
    schema_of(asked.tool).validate(given.value)
    check(given, budget(asked.tool, asked.arguments))
    check_shape(asked.tool, given)
    if given.is_error:
        assert given.value["error"]["code"] in CODES, given.value["error"]["code"]
        _check_words(given.value["error"]["message"], asked)


CODES = frozenset(kind.code for kind in Problem.__subclasses__()) - {"internal_error"}
"""The codes of errors that an answer may have."""


def _check_words(text: str, asked: Asked) -> None:
    """Check that an error is about the request, not our code; the request itself may be quoted."""
    found = next((piece[0] for piece in _PYTHON.finditer(text) if piece[0].encode() not in asked.frame), None)
    assert found is None, f"an exception's text: {found}"


def _learn(known: Known, asked: Asked, message: Any) -> None:
    """Remember ids and cursors from an answer."""
    value = message.get("result", {}).get("structuredContent") if isinstance(message, dict) else None
    if not isinstance(value, dict) or asked.tool is None or message.get("id") != asked.id:
        return
    data = value.get("data", {})
    found = [item["id"] for item in data.get("sessions", []) if isinstance(item.get("id"), str)]
    known.sessions = sorted({*known.sessions, *found} - {"none"}) or known.sessions
    known.projects += [item["hash"] for item in data.get("projects", []) if isinstance(item.get("hash"), str)]
    following = value.get("pagination", {}).get("next_cursor") or value.get("chunk", {}).get("next_cursor")
    if following is not None and len(known.cursors) < 200:
        known.cursors.append((asked.tool, dict(asked.arguments), following))


def _logged(errors: Path) -> Iterator[Finding]:
    """Yield what is wrong with a server's log, which must be lines of JSON and report no defect."""
    for line in errors.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            yield Finding("stderr", line.decode("utf-8", "replace")[:2_000], b"")
            continue
        if record.get("event") == "internal_error" or "trace" in record:
            yield Finding("defect", json.dumps(record, indent=1).replace("\\n", "\n")[:4_000], b"")
