"""The HTTP transport against what the mcp package's client never sends: raw requests, and pages of other origins."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agtrace.asking import claude_log
from tests.conftest import keep_rules
from tests.e2e.test_http import Listening, listening

SESSION = "fb3cff44-13ae-41a6-a6df-f287e0552835"
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
ACCEPTED = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(compiled_rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    home = tmp_path_factory.mktemp("machine") / "home"
    keep_rules(compiled_rules, home.parent / "data")
    claude_log(home / ".claude", SESSION).prompt("Serve")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "AGTRACE_HTTP_TOKEN"):
            patch.delenv(name, raising=False)
        with listening(home) as found:
            yield found


def said(server: Listening, request: str | bytes) -> list[int]:
    """The statuses of all answers to raw bytes; none where the connection is closed without one."""
    answered = b""
    sent = request.encode("latin-1") if isinstance(request, str) else request
    with socket.create_connection(("127.0.0.1", server.port), timeout=300) as connection, suppress(ConnectionError):
        connection.sendall(sent)  # it may be closed before all was sent
        while piece := connection.recv(65_536):
            answered += piece
    lines = answered.split(b"\r\n")
    return [int(line.split()[1]) for line in lines if line.startswith(b"HTTP/1.1 ")]


def post(server: Listening, path: str = "/mcp", more: str = "", body: str = LIST, host: str | None = None) -> str:
    """A request as a client would send it, with more headers."""
    more += "".join(f"{name}: {text}\r\n" for name, text in server.shown.items())
    head = f"Host: {host or f'127.0.0.1:{server.port}'}\r\n{more}Content-Length: {len(body)}\r\nConnection: close\r\n"
    return f"POST {path} HTTP/1.1\r\n{ACCEPTED}{head}\r\n{body}"


def test_a_plain_request_is_answered(server: Listening) -> None:
    """What the others differ from."""
    assert said(server, post(server)) == [200]


def test_who_names_no_host_or_two_of_them_is_refused(server: Listening) -> None:
    known = f"127.0.0.1:{server.port}"
    assert said(server, f"POST /mcp HTTP/1.0\r\n{ACCEPTED}Content-Length: {len(LIST)}\r\n\r\n{LIST}") in ([421], [400])
    for host in (f"evil.example\r\nHost: {known}", f"{known}\r\nHost: evil.example", f"{known}, evil.example", ""):
        assert said(server, post(server, host=host or " ")) in ([421], [400], []), host
    assert said(server, post(server, path=f"http://{known}/mcp", host="evil.example")) == [421]
    for name in (
        "evil.example",
        "127.0.0.1.",
        "2130706433",
        "0.0.0.0",
        "127.1",
        "[::ffff:127.0.0.1]",
        "user@127.0.0.1",
    ):
        assert said(server, post(server, host=f"{name}:{server.port}")) == [421], name


def test_no_page_of_another_origin_gets_anything(server: Listening) -> None:
    """Also one of this machine under another port or scheme, and one that asks first what it may."""
    own = f"127.0.0.1:{server.port}"
    for origin in ("http://localhost:3000", f"https://{own}", "file://", "null", f"http://{own}.evil.example",
                   f"http://evil.example/http://{own}", f"http://{own}/", f"chrome-extension://{'a' * 32}",
                   f"http://{own}, http://evil.example"):  # fmt: skip
        assert said(server, post(server, more=f"Origin: {origin}\r\n")) == [403], origin
        asked = {"Access_Control_Request_Method": "POST", "Origin": origin}
        status, headers, _ = server.request("OPTIONS", "/mcp", **asked)
        assert status == 403 and "access-control-allow-origin" not in headers
    both = f"Origin: http://{own}\r\nOrigin: http://evil.example\r\n"
    assert said(server, post(server, more=both)) in ([200], [400], [403]), "a browser sends one"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_page_may_send_without_asking_is_no_request(server: Listening, kind: str) -> None:
    """A form, an image, a beacon: these come without a question before, from old browsers without an origin."""
    form = post(server).replace("Content-Type: application/json\r\n", f"Content-Type: {kind}\r\n" if kind else "")
    assert 400 <= said(server, form)[0] < 500


def test_no_request_hides_in_another(server: Listening) -> None:
    """What a front server may read as one request is never answered as two; the last one closes the connection."""
    hidden = post(server).replace("Connection: close\r\n", "")
    last = f"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n"
    coded = (f"Transfer-Encoding{code}" for code in (": chunked", ": xchunked", ": chunked, identity", " : chunked"))
    for head in (*coded, "Content-Length: 5", "Content-Length: +5", "Content-Length: -1"):
        outer = post(server, more=f"{head}\r\n", body=f"0\r\n\r\n{hidden}").replace("Connection: close\r\n", "", 1)
        answers = said(server, outer + last)
        assert 200 not in answers, (head, answers)


@pytest.mark.parametrize(
    "path",
    ["//mcp", "/mcp/..", "/MCP", "/mcp/../healthz", "/mcp%2f", "/..%2fmcp", "/mcp;x", "/../../etc/passwd", "/%00"],
)
def test_a_path_is_one_of_three_or_none(server: Listening, path: str) -> None:
    """A slash too many is led to the address without it, at the host that was asked."""
    assert said(server, post(server, path=path))[0] in (307, 400, 404, 405)


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PUT", "PATCH", "DELETE", "PROPFIND", "GET", "HEAD"])
def test_nothing_but_post_asks(server: Listening, method: str) -> None:
    request = post(server).replace("POST", method, 1)
    assert said(server, request)[0] in (400, 404, 405)
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
    assert 101 not in said(server, post(server, more=upgrade))


@pytest.mark.thorough
def test_headers_without_end_are_not_gathered(server: Listening) -> None:
    """A head of more than 64 KB, a line of it, a name of it: refused or cut off, and the next one is answered."""
    for more in ("X: " + "a" * 500_000, "a" * 500_000 + ": x", "\r\n".join(f"X-{n}: x" for n in range(20_000))):
        assert said(server, post(server, more=f"{more}\r\n")) in ([400], [413], [431], [])
    assert said(server, "POST /mcp HTTP/1.1\r\nX: \x00\x01\r\n\r\n") in ([400], [421], [])
    assert said(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200) in ([400], [])
    assert said(server, post(server)) == [200]
