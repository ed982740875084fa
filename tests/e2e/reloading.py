"""A real server and one client of it, over stdio or HTTP, whose configuration file a test writes as it likes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

AGTRACE = str(Path(sys.executable).with_name("agtrace"))
SECONDS = 300
"""What doesn't come within this time doesn't come."""


def until(holds: Callable[[], Any]) -> Any:
    """Return what holds as soon as it does."""
    end = time.monotonic() + SECONDS
    while not (found := holds()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.03)
    return found


def replace(file: Path, content: str | bytes) -> None:
    """Give a file another content at once, as careful editors do."""
    beside = file.with_name(f"{file.name}.new")
    beside.write_bytes(content.encode() if isinstance(content, str) else content)
    beside.replace(file)


def bytes_allowed(answer: Mapping[str, Any]) -> int:
    """The tokens that an answer may take, by what it says of its budget."""
    budget = answer["budget"]
    return int(budget["estimated_tokens"] + budget["budget_remaining"])


def tokens(size: int) -> int:
    """The tokens that `bytes_allowed` returns for so many bytes."""
    return -(-size * 12 // 40)


class Running:
    """A server and its client."""

    def __init__(self, portal: BlockingPortal, client: Client, file: Path, log: Path, home: Path) -> None:
        self.portal, self.client, self.file, self.home = portal, client, file, home
        self._log, self._read_from = log, 0
        self.pid = 0
        self.url = ""
        self.shown: dict[str, str] = {}

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of a call, as the protocol has it."""
        return self.portal.call(self.client.call_tool, tool, arguments)

    def text(self, tool: str, **arguments: Any) -> str:
        """The text of an answer, which must be the structured one as well."""
        result = self.call(tool, **arguments)
        text: str = result.content[0].text
        assert json.loads(text) == result.structured_content
        return text

    def ask(self, tool: str = "list_sessions", **arguments: Any) -> dict[str, Any]:
        """An answer."""
        value: dict[str, Any] = json.loads(self.text(tool, **arguments))
        return value

    def page(self, **arguments: Any) -> int:
        """The number of sessions of a page."""
        return len(self.ask(**arguments)["data"]["sessions"])

    @property
    def configuration(self) -> dict[str, Any]:
        """What the server says of its configuration: /healthz, or ax://health."""
        if self.url:
            answer = httpx2.get(self.url.replace("/mcp", "/healthz"), headers=self.shown, timeout=SECONDS).json()
        else:
            given = self.portal.call(self.client.read_resource, "ax://health")
            answer = json.loads(json.loads(given.contents[0].text)["data"]["text"])  # type: ignore[union-attr]
        found: dict[str, Any] = answer["configuration"]
        return found

    def set(self, **values: Any) -> None:
        """Write settings into the file, in JSON."""
        replace(self.file, json.dumps(values))

    def hang_up(self) -> None:
        os.kill(self.pid, signal.SIGHUP)

    def forget_log(self) -> None:
        """Leave out what was logged until now."""
        self._read_from = self._log.stat().st_size

    @property
    def logged(self) -> str:
        return self._log.read_bytes()[self._read_from :].decode()

    def events(self, event: str) -> list[dict[str, Any]]:
        """What was logged of a kind."""
        whole = self.logged.rpartition("\n")[0]
        return [line for line in map(json.loads, whole.splitlines()) if line["event"] == event]

    def agtrace(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """What a command says that has the same file, home and data."""
        variables = {**variables_of(self.home), "AGTRACE_CONFIG": str(self.file), **environment}
        return subprocess.run([AGTRACE, *arguments], env=variables, capture_output=True, text=True, timeout=SECONDS)


def variables_of(home: Path) -> dict[str, str]:
    """The environment of a process with this home, whose data folder is beside it."""
    return {"HOME": str(home), "AGTRACE_DATA_DIR": str(home.parent / "data"), "PATH": os.environ["PATH"]}


@contextmanager
def running(way: str, home: Path, file: Path, *options: str, **environment: str) -> Iterator[Running]:
    """Start a server whose configuration is this file, unless the options or variables say something else."""
    log = file.with_name(f"{way}.log")
    named = {} if options or "XDG_CONFIG_HOME" in environment else {"AGTRACE_CONFIG": str(file)}
    variables = {**variables_of(home), **named, **environment}
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        opened = {"stdio": _over_stdio, "http": _over_http}[way]
        yield stack.enter_context(
            portal.wrap_async_context_manager(opened(portal, home, file, log, list(options), variables))
        )


@asynccontextmanager
async def _over_stdio(
    portal: BlockingPortal, home: Path, file: Path, log: Path, options: list[str], variables: dict[str, str]
) -> Any:
    number = log.with_suffix(".pid")
    shell = ["-c", f'echo $$ > "{number}"; exec "$@"', "sh", AGTRACE, "mcp", *options]
    server = StdioServerParameters(command="/bin/sh", args=shell, env=variables)
    with log.open("w") as errors:
        async with Client(stdio_client(server, errors), client_info=_WHO) as client:
            found = Running(portal, client, file, log, home)
            found.pid = int(number.read_text())
            yield found


@asynccontextmanager
async def _over_http(
    portal: BlockingPortal, home: Path, file: Path, log: Path, options: list[str], variables: dict[str, str]
) -> Any:
    command = [AGTRACE, "mcp", "--http", "127.0.0.1:0", *options]
    with log.open("w") as errors, subprocess.Popen(command, env=variables, stderr=errors) as process:
        try:
            url = until(lambda: _url_in(log))
            token = variables.get("AGTRACE_HTTP_TOKEN") or (home.parent / "data" / "http.token").read_text().strip()
            shown = {"Authorization": f"Bearer {token}"}
            transport = streamable_http_client(url, http_client=httpx2.AsyncClient(headers=shown, timeout=SECONDS))
            async with Client(transport, client_info=_WHO) as client:
                found = Running(portal, client, file, log, home)
                found.pid, found.url, found.shown = process.pid, url, shown
                yield found
        finally:
            process.terminate()


_WHO = Implementation(name="tester", version="1")


def _url_in(log: Path) -> str | None:
    lines = log.read_text().rpartition("\n")[0].splitlines()
    return next((line["url"] for line in map(json.loads, lines) if line["event"] == "listening"), None)
