"""The HTTP transport: streamable HTTP at /mcp for both protocol eras, and /healthz and /readyz for who runs it.

Nothing is kept in a connection: every request is answered by itself, with one JSON body. It listens on loopback
unless a token is set, and answers only to the names and web origins that it knows, so that no web page can reach it
through a name of its own (DNS rebinding).
"""

from __future__ import annotations

import hmac
import ipaddress
import signal
import socket
import threading
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any
from uuid import uuid4

import anyio
import uvicorn
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agtrace.problems import SettingError
from agtrace.serving.clients import known
from agtrace.serving.ending import end
from agtrace.serving.logs import log_to_stderr, take_libraries
from agtrace.serving.server import CLIENT, LARGEST_REQUEST, Desk, make_server
from agtrace.settings import Settings

MOST_REQUESTS = 32
"""At a time."""
_BODY_SECONDS = 20
"""How long the next piece of a body may take."""
_LAST_SECONDS = 0.7
"""How long answers may take that are being made when the process is told to end."""
_WILDCARDS = frozenset({"0.0.0.0", "::"})
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_SESSION = "mcp-session-id"
_GREETING = "agtrace.greeting"


def serve_http(settings: Settings, host: str, port: int) -> int:
    """Serve on this address until SIGTERM or SIGINT; gives the exit code. Port 0 is any free one.

    Raises `SettingError` for a host that needs a token, `OSError` where the address can't be listened on.
    """
    if settings.http_token is None and not _is_loopback(host):
        raise SettingError(f"{host} can be reached from other machines: set AGTRACE_HTTP_TOKEN, or listen on 127.0.0.1")
    take_libraries()
    with _listen(host, port) as listening:
        port = listening.getsockname()[1]
        desk = Desk(settings)
        server = _Process(
            uvicorn.Config(
                application(settings, desk, host, port),
                log_config=None,
                access_log=False,
                lifespan="on",
                ws="none",
                server_header=False,
                proxy_headers=False,
            )
        )
        threading.Thread(target=desk.answers.health, daemon=True).start()  # begins to index what there is
        log_to_stderr({"event": "listening", "url": f"http://{_bracketed(host)}:{port}/mcp"})
        server.run(sockets=[listening])
    return server.exit_code


def application(settings: Settings, desk: Desk, host: str, port: int) -> Starlette:
    """The routes, behind the check of hosts and origins."""
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=_allowed_hosts(settings, host, port),
        allowed_origins=[*(f"http://{form}" for form in _forms(_LOOPBACK, port)), *settings.http_origins],
    )
    server = make_server(settings, desk)
    server.middleware.append(_remember_client)
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        security_settings=security,
        max_request_body_size=LARGEST_REQUEST,
    )
    probes = _Probes(desk, settings.http_token)
    return Starlette(
        routes=[
            Route("/mcp", _Door(manager.handle_request, settings.http_token)),
            Route("/healthz", probes.alive),
            Route("/readyz", probes.ready),
        ],
        middleware=[
            Middleware(_KnownNames, security),
            Middleware(
                CORSMiddleware,
                allow_origins=settings.http_origins,
                allow_methods=["POST"],
                allow_headers=["authorization", "mcp-protocol-version", "mcp-method", "mcp-name", _SESSION],
                expose_headers=[_SESSION],
            ),
        ],
        lifespan=lambda _: manager.run(),
    )


class _KnownNames:
    """Refuses whatever asks for a host, or comes from a web page, that isn't known."""

    def __init__(self, app: ASGIApp, security: TransportSecuritySettings) -> None:
        self._app, self._names = app, TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = await self._names.validate_request(Request(scope)) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)


class _Door:
    """What a request passes before its body is read: the token, the method, the room."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token, self._inside = app, token, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        refused = self._refusal(request)
        if refused is not None:
            await refused(scope, receive, send)
            return
        self._inside += 1
        try:
            scope[CLIENT] = known(request.headers.get(_SESSION, "").partition(".")[0])
            await self._app(scope, _in_time(receive), _naming(scope, send))
        except TimeoutError:
            await _refused(408, "The body didn't come in time.")(scope, receive, send)
        finally:
            self._inside -= 1

    def _refusal(self, request: Request) -> Response | None:
        if not _shows(request, self._token):
            return _refused(401, "Send the token as `Authorization: Bearer`.", {"WWW-Authenticate": "Bearer"})
        if request.method != "POST":
            return _refused(405, "Only POST is answered: there are no sessions and no streams.", {"Allow": "POST"})
        if self._inside >= MOST_REQUESTS:
            return _refused(503, f"{MOST_REQUESTS} requests are being answered; try again.", {"Retry-After": "1"})
        return None


class _Probes:
    """How the process is, for who runs it: the figures for who may ask at /mcp, else only whether it is well."""

    def __init__(self, desk: Desk, token: str | None) -> None:
        self._desk, self._token = desk, token
        self._room = anyio.CapacityLimiter(2)  # of their own: questions never keep them waiting

    async def alive(self, request: Request) -> Response:
        """200 as long as the process lives."""
        figures = await anyio.to_thread.run_sync(self._desk.answers.health, limiter=self._room)
        told = figures.model_dump(mode="json", exclude_none=True) if _shows(request, self._token) else {}
        return JSONResponse({"status": "ok", **told})

    async def ready(self, request: Request) -> Response:
        """200 when the index can be answered from, 503 while it is being built or can't be read."""
        index = (await anyio.to_thread.run_sync(self._desk.answers.health, limiter=self._room)).index
        told = index.model_dump(mode="json", exclude_none=True) if _shows(request, self._token) else {}
        is_ready = index.state != "building"
        return JSONResponse({"ready": is_ready, **told}, 200 if is_ready else 503)


class _Process(uvicorn.Server):
    """The server process: told to end, it lets answers go out that are nearly there, and ends within a second."""

    exit_code = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take SIGTERM or SIGINT."""
        self.exit_code = 130 if sig == signal.SIGINT else 0
        self.should_exit = True
        ending = threading.Timer(_LAST_SECONDS, end, (self.exit_code,))
        ending.daemon = True
        ending.start()


async def _remember_client(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Note who greets: in the handshake era only the greeting tells, and later requests bring the session id back."""
    if ctx.method == "initialize" and ctx.params is not None and ctx.request is not None:
        info = ctx.params.get("clientInfo")
        name = info.get("name") if isinstance(info, Mapping) else None
        ctx.request.scope[_GREETING] = known(name if isinstance(name, str) else None)
    return await call_next(ctx)


def _naming(scope: Scope, send: Send) -> Send:
    """Give a known client that greets a session id that says who it is; nothing else is known of a session."""

    async def named(message: Message) -> None:
        client = scope.get(_GREETING)
        if client is not None and message["type"] == "http.response.start":
            session = (_SESSION.encode(), f"{client}.{uuid4().hex}".encode())
            message = {**message, "headers": [*message["headers"], session]}
        await send(message)

    return named


def _in_time(receive: Receive) -> Receive:
    """Wait for the pieces of a body, but not for ever. Raises `TimeoutError`."""
    complete = False

    async def timed() -> Message:
        nonlocal complete
        if complete:
            return await receive()
        with anyio.fail_after(_BODY_SECONDS):
            message = await receive()
        complete = not message.get("more_body", False)
        return message

    return timed


def _shows(request: Request, token: str | None) -> bool:
    """Whether a request shows the token, where there is one; compared in constant time."""
    scheme, _, shown = request.headers.get("authorization", "").partition(" ")
    return token is None or (scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token.encode()))


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """An error of the protocol that belongs to no request."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    return JSONResponse(body, status, headers)


def _listen(host: str, port: int) -> socket.socket:
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listening = socket.create_server(address[:2], family=family, backlog=128)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted ones inherit it: 40 ms an answer
    return listening


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _allowed_hosts(settings: Settings, host: str, port: int) -> list[str]:
    """The values that a Host header may have: loopback's names, where it listens, and what the user named."""
    own = (*_LOOPBACK, *(() if host in _WILDCARDS else (_bracketed(host),)))
    return sorted({*_forms(own, port), *_forms(settings.http_hosts, port), *settings.http_hosts})


def _forms(names: Iterable[str], port: int) -> list[str]:
    """How clients write hosts: with the port, and at the port of HTTP without it."""
    return [form for name in names for form in (f"{name}:{port}", *([name] if port == 80 else []))]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
