"""The server over HTTP: the real process, called by the mcp package's client in both eras, and by raw requests."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation

from agtrace.settings.limits import CLIENTS
from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import agtrace_here
from tests.conftest import SAMPLES, keep_rules
from tests.depth import SECOND

AGTRACE = str(Path(sys.executable).with_name("agtrace"))
SECONDS = 300
TOKEN = "a-token-of-the-tests"
MODES = ["auto", "legacy"]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_sessions", {}),
    ("list_sessions", {"provider": "codex", "limit": 3}),
    ("get_project_info", {}),
    ("get_session_details", {"session_id": "d41f7a52", "detail_level": "turns"}),
    ("analyze_session", {"session_id": "d41f7a52", "include_loops": True}),
    ("search_event_previews", {"order": "newest", "query": "database is locked"}),
    ("get_event_details", {"session_id": "d41f7a52", "event_index": 853}),
    ("get_session_details", {"session_id": "nobody"}),
    ("list_sessions", {"limit": 51}),
]


class Listening:
    """A server that listens, and the headers that show its token."""

    def __init__(self, process: subprocess.Popen[str], first: Mapping[str, Any], token: str | None) -> None:
        assert first["event"] == "listening"
        self.process, self.url = process, str(first["url"])
        self.shown = {"Authorization": f"Bearer {token}"} if token else {}
        self.logged: list[dict[str, Any]] = []
        """What it wrote on stderr, once it has ended."""
        self.port = urlsplit(self.url).port or 0

    def request(
        self, method: str, path: str, body: str | bytes | Iterator[bytes] | None = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """The status, the headers and the text of an answer; `Authorization` replaces the token, empty by none."""
        headers = {name: text for name, text in {**self.shown, **headers}.items() if text}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode()
        finally:
            connection.close()

    def post(self, method: str, **headers: str) -> tuple[int, dict[str, str], str]:
        """A request of the handshake era, by itself."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
        accepted = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream"}
        return self.request("POST", "/mcp", body, **{**accepted, **headers})

    def client(self, mode: str, name: str = "test") -> Client:
        """A client that goes by this name and has been told the token."""
        transport = streamable_http_client(self.url, http_client=httpx2.AsyncClient(headers=self.shown, timeout=300))
        return Client(transport, mode=mode, client_info=Implementation(name=name, version="1"))


@contextmanager
def listening(
    home: Path,
    address: str = "127.0.0.1:0",
    *options: str,
    files: int | None = None,
    seconds: float = 60,
    **environment: str,
) -> Iterator[Listening]:
    """Run the server; it must be told to end, and end well, with nothing but lines of JSON on stderr.

    `files` is how many it may have open at a time; after so many seconds it hangs, and is killed.
    """
    variables = {**os.environ, "HOME": str(home), "AGTRACE_DATA_DIR": str(home.parent / "data"), **environment}
    limited = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"] if files else []
    command = [*limited, AGTRACE, "mcp", "--http", address, *options]
    with subprocess.Popen(command, env=variables, stdout=-1, stderr=-1, text=True) as process:
        hangs = Timer(seconds, process.kill)
        hangs.start()
        try:
            assert process.stderr
            first = next(record for record in map(json.loads, process.stderr) if record["event"] == "listening")
            kept = Path(variables["AGTRACE_DATA_DIR"]) / "http.token"
            token = variables.get("AGTRACE_HTTP_TOKEN") or (kept.read_text().strip() if kept.exists() else None)
            server = Listening(process, first, token)
            yield server
        finally:
            process.terminate()
            printed, logged = process.communicate()
            hangs.cancel()
    assert printed == ""
    server.logged = [json.loads(line) for line in logged.splitlines()]
    assert not [record for record in server.logged if record["event"] == "internal_error" or "trace" in record]


@pytest.fixture(scope="module")
def home(compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the sample sessions."""
    home = tmp_path_factory.mktemp("machine") / "home"
    keep_rules(compiled_rules, home.parent / "data")
    for agent in ("claude", "codex", "gemini"):
        shutil.copytree(SAMPLES / agent, home / f".{agent}")
    claude_log(home / ".claude", "b16e7e47-13ae-41a6-a6df-f287e0552835").call(
        "Bash", {"command": "tides"}, "\n".join(f"{number:05} {'high water ' * 40}" for number in range(400))
    )
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Listening]:
    """A server of the module, with the samples indexed."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "AGTRACE_MAX_RESPONSE_BYTES"):
            patch.delenv(name, raising=False)
        with listening(home, AGTRACE_CURSOR_TTL_SECONDS="31000000", seconds=900) as found:
            while json.loads(found.request("GET", "/readyz")[2])["state"] != "ready":
                pass  # it is being indexed
            yield found


async def answers(client: Client) -> dict[str, tuple[str, Any, bool]]:
    """What a client gets for every call."""
    given = {}
    async with client:
        await client.list_tools()
        for name, arguments in CALLS:
            result = await client.call_tool(name, arguments)
            assert result.content[0].type == "text"
            given[f"{name} {arguments}"] = (
                result.content[0].text, result.structured_content, bool(result.is_error),
            )  # fmt: skip
    return given


# -- what is answered ------------------------------------------------------------------------------


def test_every_answer_is_the_one_of_stdio_in_both_eras(home: Path, server: Listening) -> None:
    """One way out, whatever the transport: text and structured content are the same, byte for byte."""
    variables = {
        "HOME": str(home), "AGTRACE_DATA_DIR": str(home.parent / "data"), "AGTRACE_CURSOR_TTL_SECONDS": "31000000",
    }  # fmt: skip
    stdio = StdioServerParameters(command=AGTRACE, args=["mcp"], env=variables)

    async def ask() -> None:
        with anyio.fail_after(300):
            local = await answers(Client(stdio))
            assert len(local) == len(CALLS)
            for mode in MODES:
                assert await answers(server.client(mode)) == local

    anyio.run(ask)


@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_tool_is_the_protocols_error_and_the_next_request_is_answered(server: Listening, mode: str) -> None:
    async def ask() -> None:
        async with server.client(mode) as client:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("no_such_tool", {})
            assert refused.value.error.code == -32602
            assert not (await client.call_tool("list_sessions", {})).is_error

    anyio.run(ask)


def test_nothing_is_kept_between_requests(server: Listening) -> None:
    """A request of the handshake era is answered without a handshake, and no session id is given or needed."""
    status, headers, text = server.post("tools/list")
    assert status == 200 and json.loads(text)["result"]["tools"]
    assert "mcp-session-id" not in headers
    assert server.post("tools/list", Mcp_Session_Id="of-another-server")[0] == 200


@pytest.mark.parametrize("mode", MODES)
def test_a_known_client_is_never_sent_more_than_it_shows(server: Listening, mode: str) -> None:
    """In either era: also where only its greeting says who it is."""
    sizes = {}

    async def ask(name: str) -> None:
        async with server.client(mode, name) as client:
            arguments = {"session_id": "b16e7e47", "event_index": 1, "max_bytes": 102_400}
            result = await client.call_tool("get_event_details", arguments)
            assert result.content[0].type == "text"
            sizes[name] = len(result.content[0].text)

    for name in ("codex-mcp-client", "gemini-cli-mcp-client-agtrace", "test"):
        anyio.run(ask, name)
    assert 10_240 < sizes["codex-mcp-client"] <= CLIENTS["codex-mcp-client"] < 12_000
    assert sizes["codex-mcp-client"] < sizes["gemini-cli-mcp-client-agtrace"] <= 40_000 < sizes["test"]


# -- who is answered -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/readyz", "/metrics", "/", "/mcp/"])
def test_a_name_or_a_web_page_that_is_not_known_is_refused_everywhere(server: Listening, path: str) -> None:
    """DNS rebinding: a page that reaches loopback through a name of its own gets nothing."""
    method = "POST" if path == "/mcp" else "GET"
    for host in ("evil.example", f"evil.example:{server.port}", f"127.0.0.1.evil.example:{server.port}", "127.0.0.1"):
        assert server.request(method, path, Host=host)[0] == 421, host
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{server.port + 1}"):
        assert server.request(method, path, Origin=origin)[0] == 403, origin


def test_loopback_goes_by_its_three_names(server: Listening) -> None:
    for name in ("127.0.0.1", "localhost", "[::1]"):
        own = f"{name}:{server.port}"
        assert server.post("tools/list", Host=own, Origin=f"http://{own}")[0] == 200


@pytest.mark.thorough
def test_names_and_origins_of_the_user_are_answered_too(own_home: Path) -> None:
    """AGTRACE_HTTP_HOSTS with and without the port, AGTRACE_HTTP_ORIGINS as a browser asks."""
    page = "https://pages.example"
    with listening(
        own_home, AGTRACE_HTTP_HOSTS="traces.example, other.example:80", AGTRACE_HTTP_ORIGINS=page
    ) as server:
        assert server.post("tools/list", Host="traces.example")[0] == 200
        assert server.post("tools/list", Host=f"traces.example:{server.port}")[0] == 200
        assert server.post("tools/list", Host="other.example:80")[0] == 200
        assert server.post("tools/list", Host="third.example")[0] == 421
        asked = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "mcp-protocol-version"}
        status, headers, _ = server.request("OPTIONS", "/mcp", Origin=page, **asked)
        assert (status, headers["access-control-allow-origin"]) == (200, page)
        status, headers, _ = server.post("tools/list", Origin=page)
        assert (status, headers["access-control-allow-origin"]) == (200, page)
        assert server.post("tools/list", Origin="https://other.example")[0] == 403


@pytest.mark.thorough
@pytest.mark.parametrize("variables", [{}, {"AGTRACE_HTTP_TOKEN": TOKEN}], ids=["made", "named"])
def test_only_who_shows_the_token_is_answered(own_home: Path, variables: dict[str, str]) -> None:
    """Also on loopback, named by the user or made; a probe without it learns only whether the process is well."""
    with listening(own_home, **variables) as server:
        shown = server.shown["Authorization"]
        token = shown.removeprefix("Bearer ")
        for wrong in ("", token, f"{shown}x", "Bearer", f"Basic {token}", f"{shown[:-1]}\xff"):
            status, headers, text = server.post("tools/list", Authorization=wrong)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert token not in text
            for path, said in (("/healthz", {"status": "ok"}), ("/readyz", {"ready": True})):
                until(server, 200, path)
                assert json.loads(server.request("GET", path, Authorization=wrong)[2]) == said
        assert server.post("tools/list")[0] == 200
        assert {"index", "configuration"} <= set(json.loads(server.request("GET", "/healthz")[2]))
        assert "sessions" in json.loads(server.request("GET", "/readyz")[2])


@pytest.mark.thorough
def test_without_a_token_it_answers_only_on_loopback_and_only_where_that_is_said(own_home: Path) -> None:
    with listening(own_home, "127.0.0.1:0", "--no-token") as server:
        assert server.shown == {}
        assert server.post("tools/list")[0] == 200
    assert "--no-token" in refused("0.0.0.0:0", "--no-token")
    assert all("unset" in refused("127.0.0.1:0", "--no-token", AGTRACE_HTTP_TOKEN=it) for it in (TOKEN, "short"))


@pytest.mark.thorough
def test_other_machines_are_served_only_with_a_token(own_home: Path) -> None:
    for variables in ({}, {"AGTRACE_HTTP_TOKEN": TOKEN}):
        with listening(own_home, "0.0.0.0:0", **variables) as server:
            assert server.post("tools/list", Authorization="")[0] == 401
            assert server.post("tools/list")[0] == 200
            assert server.post("tools/list", Host="evil.example")[0] == 421


@pytest.mark.thorough
def test_a_token_that_could_be_guessed_gives_way_to_the_generated_one(own_home: Path) -> None:
    with listening(own_home, "0.0.0.0:0", AGTRACE_HTTP_TOKEN="too-short") as server:
        assert server.post("tools/list")[0] == 401
        generated = (own_home.parent / "data" / "http.token").read_text().strip()
        assert server.post("tools/list", Authorization=f"Bearer {generated}")[0] == 200


@pytest.mark.parametrize("address", ["127.0.0.1", ":8000", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x", ""])
def test_what_is_no_address_is_refused_with_a_sentence(address: str) -> None:
    said = agtrace_here("mcp", "--http", address)
    assert (said.code, said.out) == (2, "") and "HOST:PORT" in said.err


@pytest.mark.thorough
def test_a_port_that_is_taken_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "can't listen" in refused(f"127.0.0.1:{taken.getsockname()[1]}")


def refused(address: str, *options: str, **environment: str) -> str:
    """What the process says that will not serve there."""
    ended = subprocess.run(
        [AGTRACE, "mcp", "--http", address, *options],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback" not in ended.stderr
    return ended.stderr


# -- limits ----------------------------------------------------------------------------------------


def test_a_request_of_more_than_a_megabyte_is_refused(server: Listening) -> None:
    """Said beforehand or found while reading."""
    assert server.request("POST", "/mcp", b" " * 1_048_577)[0] == 413
    assert server.request("POST", "/mcp", iter([b" " * 600_000] * 2))[0] == 413
    padded = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}) + " " * 1_000_000
    sent = server.request(
        "POST", "/mcp", padded, Content_Type="application/json", Accept="application/json, text/event-stream"
    )
    assert sent[0] == 200


def test_there_are_no_streams_and_no_sessions_to_hold_open(server: Listening) -> None:
    for method in ("GET", "DELETE", "PUT"):
        status, headers, _ = server.request(method, "/mcp", Accept="text/event-stream")
        assert (status, headers["allow"]) == (405, "POST")
    for era in ("2025-11-25", "2026-07-28"):
        about = {"protocolVersion": era, "clientInfo": {"name": "test", "version": "1"}, "clientCapabilities": {}}
        meta = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
        asked: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
        asked["params"] = {"_meta": meta, "notifications": {"toolsListChanged": True}}
        _, headers, text = server.request(
            "POST", "/mcp", json.dumps(asked), Content_Type="application/json",
            Accept="application/json, text/event-stream",
            MCP_Protocol_Version=era, MCP_Method="subscriptions/listen",
        )  # fmt: skip
        assert headers["content-type"] == "application/json" and json.loads(text)["error"]["code"] == -32601


def test_a_request_that_does_not_come_whole_gives_way_to_a_new_one(server: Listening) -> None:
    """32 at a time are read; the oldest is told that it took too long, and who sends all at once is answered."""
    with ExitStack() as waiting:
        slow = [waiting.enter_context(half_a_request(server)) for _ in range(34)]
        assert until(server, 200)[0] == 200
        assert slow[0].recv(100).startswith(b"HTTP/1.1 408")
    assert server.post("tools/list")[0] == 200


def half_a_request(server: Listening) -> socket.socket:
    """A connection on which a body is promised that doesn't come."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=300)
    connection.sendall(raw(server, "{", 100))
    return connection


def raw(server: Listening, body: str, length: int) -> bytes:
    """A request in bytes, which says that its body has this length."""
    head = {"Host": f"127.0.0.1:{server.port}", "Content-Type": "application/json", "Content-Length": str(length)}
    head |= {"Accept": "application/json, text/event-stream", **server.shown}
    lines = "".join(f"{name}: {text}\r\n" for name, text in head.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n{body}".encode()


def until(server: Listening, status: int, probe: str | None = None) -> tuple[int, dict[str, str], str]:
    """Ask until this status comes."""
    end = time.monotonic() + SECONDS
    while True:
        answer = server.request("GET", probe) if probe else server.post("tools/list")
        if answer[0] == status or time.monotonic() > end:
            return answer


def test_what_is_no_request_is_refused_without_a_trace(server: Listening) -> None:
    accepted = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream"}
    for body in ("", "no json", "[]", "[" * 100_000, '{"jsonrpc": "2.0"}', "\x00", "9" * 5_000):
        for era in ({}, {"MCP_Protocol_Version": "2026-07-28"}, {"MCP_Protocol_Version": "1999-01-01"}):
            status, _, text = server.request("POST", "/mcp", body, **accepted, **era)
            assert 400 <= status < 500, (body[:20], era, text)
            assert "Traceback" not in text


# -- the process -----------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_probes_tell_the_figures_that_the_resource_tells(server: Listening) -> None:
    """Live as long as the process, ready when the index can be answered from."""
    status, _, text = server.request("GET", "/healthz")
    told = json.loads(text)
    assert (status, told["status"]) == (200, "ok")
    assert told["index"]["sessions"] >= 15 and told["configuration"]["version"]
    before = told["answers"]["count"]

    async def ask() -> None:
        async with server.client("auto") as client:
            await client.call_tool("list_sessions", {})

    anyio.run(ask)
    assert json.loads(server.request("GET", "/healthz")[2])["answers"]["count"] == before + 1
    status, _, text = server.request("GET", "/readyz")
    assert (status, json.loads(text)["ready"]) == (200, True)


@pytest.mark.thorough
def test_a_process_whose_index_can_not_be_made_lives_and_is_not_ready(own_home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with listening(own_home, AGTRACE_DATA_DIR=str(tmp_path / "file"), AGTRACE_HTTP_TOKEN=TOKEN) as server:
        end = time.monotonic() + SECONDS
        while "problem" not in (index := json.loads(server.request("GET", "/healthz")[2])["index"]):
            assert time.monotonic() < end
        assert "can't create" in index["problem"] and server.request("GET", "/healthz")[0] == 200
        status, _, text = server.request("GET", "/readyz")
        assert (status, json.loads(text)["ready"]) == (503, False)
        answer = json.loads(
            server.request(
                "POST", "/mcp",
                json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_sessions"}}),
                Content_Type="application/json", Accept="application/json, text/event-stream",
            )[2]
        )  # fmt: skip
        assert answer["result"]["structuredContent"]["error"]["code"] == "index_unavailable"


@pytest.mark.thorough
@pytest.mark.parametrize(("told", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_ends_within_a_second_whoever_is_connected(own_home: Path, told: signal.Signals, code: int) -> None:
    """Also while a body is awaited and a connection is kept."""
    with listening(own_home) as server:
        kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
        kept.request("GET", "/healthz")
        assert kept.getresponse().read()
        with half_a_request(server):
            began = time.monotonic()
            server.process.send_signal(told)
            assert server.process.wait(300) == code
            assert time.monotonic() - began < SECOND
        kept.close()
