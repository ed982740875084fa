"""Clients that ask many things at once, over stdio and HTTP; whatever one notices goes into a list of troubles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

from tests.faults.serving import HELLO, call
from tests.stress.examined import ANSWER_SIZES
from tests.stress.questions import Question

AT_ONCE = 8
"""The number of questions being answered at any time."""
_SECONDS = 120
"""Anything that takes longer counts as hanging."""
_TOKEN = "a-token-of-the-tests"
_HEADERS = {
    "Authorization": f"Bearer {_TOKEN}", "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}  # fmt: skip

Ask = Callable[[int, Question], Any]
"""Sends a question with its number; returns the message that answers it."""


class Server:
    """A process of `agtrace` whose index is examined continuously."""

    def __init__(self, environment: dict[str, str], log: Path, *arguments: str, often: bool) -> None:
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.stress.examined", *["--often"] * often]
        self._log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [*command, *arguments], stdin=-1, stdout=-1, stderr=errors, env={**os.environ, **environment}
            )

    def ended(self) -> str:
        """How it ended, and its last words; empty while it is running."""
        code = self.process.poll()
        return "" if code is None else f"it ended with {code}: {self.said()[-3000:]}"

    def said(self) -> str:
        """What it wrote to stderr."""
        return self._log.read_text(errors="replace")

    def end(self) -> None:
        """End it, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def over_stdio(
    environment: dict[str, str], log: Path, questions: list[Question], seconds: float, seed: int, *, often: bool
) -> tuple[int, list[str]]:
    """Ask a server over its pipes for some time; return the number of answers, and what was wrong."""
    with _ended(Server(environment, log, "mcp", often=often), seconds) as server:
        asked, answered, troubles = dict[int, Question](), 0, list[str]()
        random, numbers, end = Random(seed), count(1), time.monotonic() + seconds
        stdin, stdout = server.process.stdin, server.process.stdout
        assert stdin and stdout

        def ask() -> None:
            number, question = next(numbers), random.choice(questions)
            asked[number] = question
            stdin.write(call(number, question.tool, **question.arguments))
            stdin.flush()

        try:
            stdin.write(HELLO)
            stdin.flush()
            stdout.readline()
            for _ in range(AT_ONCE):
                ask()
            while asked and (line := stdout.readline()):
                message = json.loads(line)
                question = asked.pop(message["id"])
                troubles += _troubles(question, message)
                answered += 1
                if time.monotonic() < end:
                    ask()
        except OSError as error:
            troubles.append(f"{error!r}")
        if asked:
            server.process.wait(_SECONDS)
        return answered, [*troubles, *_of(server)]


def over_http(
    environment: dict[str, str], log: Path, questions: list[Question], seconds: float, seed: int, *, often: bool
) -> tuple[int, list[str]]:
    """Ask a server over HTTP for some time, including its health; return the number of answers, and what was wrong."""
    environment = {**environment, "AGTRACE_HTTP_TOKEN": _TOKEN}
    with _ended(Server(environment, log, "mcp", "--http", "127.0.0.1:0", often=often), seconds) as server:
        port, end = _port(server), time.monotonic() + seconds

        def ask(client: int) -> tuple[int, list[str]]:
            random, troubles = Random(f"{seed}/{client}"), list[str]()
            connection = HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
            for number in count(1):
                if time.monotonic() >= end:
                    break
                question = random.choice(questions)
                try:
                    connection.request("POST", "/mcp", call(number, question.tool, **question.arguments), _HEADERS)
                    troubles += _troubles(question, json.loads(connection.getresponse().read()))
                    connection.request("GET", "/healthz", headers=_HEADERS)
                    problem = json.loads(connection.getresponse().read())["index"].get("problem")
                    troubles += [f"/healthz: {problem}"] if problem else []
                except (OSError, HTTPException, ValueError) as error:
                    troubles.append(f"{question.tool}: {error!r}")
                    break
            connection.close()
            return number, troubles

        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(ask, range(AT_ONCE)))
        troubles = [trouble for _, of_client in found for trouble in of_client]
        return sum(number for number, _ in found), [*troubles, *_of(server)]


def in_process(environment: dict[str, str], log: Path, session: str, *, often: bool) -> tuple[int, list[str]]:
    """Let `benchmarks.answer_sizes` make all its calls on a session."""
    with _ended(Server(environment, log, ANSWER_SIZES, session, often=often)) as server:
        server.process.communicate()
        return 1, [f"answer_sizes: {server.ended()}"] if server.process.returncode else []


@contextmanager
def _ended(server: Server, seconds: float = 0) -> Iterator[Server]:
    """Yield a server that is ended afterwards, even if it hangs beyond the time in which it is asked."""
    hangs = Timer(seconds + _SECONDS, server.process.kill)
    hangs.start()
    try:
        yield server
    finally:
        hangs.cancel()
        server.end()


def _port(server: Server) -> int:
    end = time.monotonic() + _SECONDS
    while not server.said().endswith("\n") and not server.ended() and time.monotonic() < end:
        time.sleep(0.02)
    first: str = json.loads(server.said().splitlines()[0])["url"]
    return int(first.rpartition(":")[2].partition("/")[0])


def _troubles(question: Question, message: Any) -> list[str]:
    value = message.get("result", {}).get("structuredContent")
    if value is not None and question.is_answered_by(value) and "problem" not in value.get("index", {}):
        return []
    return [f"{question.tool} {question.arguments}: {json.dumps(message)[:600]}"]


def _of(server: Server) -> list[str]:
    """Return the troubles of a server that should still be running."""
    defects = [line[:2000] for line in server.said().splitlines() if '"internal_error"' in line]
    return [*defects, *filter(None, [server.ended()])]
