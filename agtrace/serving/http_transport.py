"""The HTTP transport: streamable HTTP at /mcp for both protocol eras, and /healthz and /readyz for who runs it.

Nothing is kept in a connection: every request is answered by itself, with one JSON body. It answers who shows the
token, which may be missing on loopback alone, and only to the names and web origins that it knows, so that no web page
can reach it through a name of its own (DNS rebinding).
"""

from __future__ import annotations

import hmac
import ipaddress
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any
from uuid import uuid4

import anyio
import anyio.lowlevel
import uvicorn
from agtrace_schema.health import Health
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

from agtrace.answers.log import log_to_stderr, take_libraries
from agtrace.problems import SettingError
from agtrace.serving.clients import known
from agtrace.serving.connections import Connection, listen
from agtrace.serving.ending import end
from agtrace.serving.server import CLIENT, LARGEST_REQUEST, Desk, make_server
from agtrace.settings import Settings

MOST_REQUESTS = 32
"""At a time."""
_SEAT_SECONDS = 1
"""How long a request waits for a seat."""
_MOST_GLANCES = 16
"""Probes that may wait at a time to be told, without a token, whether the index is ready."""
_GLANCE_SECONDS = 1
"""How old it may be what they are told."""
_LAST_SECONDS = 0.7
"""How long answers may take that are being made when the process is told to end."""
_WILDCARDS = frozenset({"0.0.0.0", "::"})
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_SESSION = "mcp-session-id"
_GREETING = "agtrace.greeting"


def serve_http(settings: Settings, host: str, port: int, tell: Callable[[Settings, str], None]) -> int:
    """Serve on this address until SIGTERM or SIGINT; gives the exit code. Port 0 is any free one.

    `settings.http_token` is what clients must show. `tell` is called with the address once it is listened on.
    Raises `SettingError` for a host that needs a token, `OSError` where the address can't be listened on.
    """
    if settings.http_token is None and not _is_loopback(host):
        raise SettingError(f"{host} can be reached from other machines: leave out --no-token, or listen on 127.0.0.1")
    take_libraries()
    with listen(host, port) as listening:
        port = listening.getsockname()[1]
        desk = Desk(settings)
        server = _Process(
            uvicorn.Config(
                application(settings, desk, host, port),
                http=Connection,
                loop="asyncio",
                log_config=None,
                access_log=False,
                lifespan="on",
                ws="none",
                server_header=False,
                proxy_headers=False,
            )
        )
        threading.Thread(target=desk.answers.health, daemon=True).start()  # begins to index what there is
        url = f"http://{_bracketed(host)}:{port}/mcp"
        log_to_stderr({"event": "listening", "url": url})
        tell(settings, url)
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
    """What a request passes before its body is read: the token, the method, and one of the seats there are.

    Where none is free, the oldest request whose body is still coming gives its seat to a new one. An answer needs no
    seat to go out: who doesn't take it keeps nobody waiting.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token
        self._seats = anyio.CapacityLimiter(MOST_REQUESTS)
        self._seated: dict[anyio.CancelScope, bool] = {}
        """The requests, oldest first, and whether their bodies have come whole."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        refused = self._refusal(request)
        if refused is not None:
            await refused(scope, receive, send)
            return
        scope[CLIENT] = known(request.headers.get(_SESSION, "").partition(".")[0])
        with anyio.CancelScope() as turn:
            if not await self._takes_seat(turn):
                full = f"{MOST_REQUESTS} requests are being answered; try again."
                await _refused(503, full, {"Retry-After": "1"})(scope, receive, send)
                return
            try:
                await self._app(scope, self._noticing(receive, turn), self._leaving(_naming(scope, send), turn))
            finally:
                self._leave(turn)
        if turn.cancelled_caught:
            await _refused(408, "The body didn't come in time.", {"Connection": "close"})(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if not _shows(request, self._token):
            return _refused(401, "Send the token as `Authorization: Bearer`.", {"WWW-Authenticate": "Bearer"})
        if request.method != "POST":
            return _refused(405, "Only POST is answered: there are no sessions and no streams.", {"Allow": "POST"})
        return None

    async def _takes_seat(self, turn: anyio.CancelScope) -> bool:
        """Take a seat; False where none gets free in time."""
        coming = [other for other, is_whole in self._seated.items() if not is_whole]
        if coming and not self._seats.available_tokens:
            self._leave(coming[0])
            coming[0].cancel()
        with anyio.move_on_after(_SEAT_SECONDS):
            await self._seats.acquire_on_behalf_of(turn)
            self._seated[turn] = False
        return turn in self._seated

    def _leave(self, turn: anyio.CancelScope) -> None:
        if self._seated.pop(turn, None) is not None:
            self._seats.release_on_behalf_of(turn)

    def _noticing(self, receive: Receive, turn: anyio.CancelScope) -> Receive:
        """Notice when a body has come whole, and end the request of a client that goes before."""

        async def noticed() -> Message:
            message = await receive()
            is_coming = self._seated.get(turn) is False
            if is_coming and message["type"] == "http.disconnect":
                turn.cancel()
                await anyio.lowlevel.checkpoint()
            elif is_coming and not message.get("more_body", False):
                self._seated[turn] = True
            return message

        return noticed

    def _leaving(self, send: Send, turn: anyio.CancelScope) -> Send:
        """Leave the seat when the answer begins to go out."""

        async def left(message: Message) -> None:
            self._leave(turn)
            await send(message)

        return left


class _Probes:
    """How the process is, for who runs it: the figures for who may ask at /mcp, else only whether it is well."""

    def __init__(self, desk: Desk, token: str | None) -> None:
        self._desk, self._token = desk, token
        self._room = anyio.CapacityLimiter(2)  # of their own: questions never keep them waiting
        self._glancing, self._glanced, self._is_ready = anyio.Lock(), float("-inf"), False

    async def alive(self, request: Request) -> Response:
        """200 as long as the process lives."""
        if not _shows(request, self._token):
            return JSONResponse({"status": "ok"})
        figures = await self._look()
        return JSONResponse({"status": "ok", **figures.model_dump(mode="json", exclude_none=True)})

    async def ready(self, request: Request) -> Response:
        """200 when the index can be answered from, 503 while it is being built or can't be read."""
        if not _shows(request, self._token):
            return await self._glance()
        index = (await self._look()).index
        is_ready = index.state != "building"
        told = index.model_dump(mode="json", exclude_none=True)
        return JSONResponse({"ready": is_ready, **told}, 200 if is_ready else 503)

    async def _glance(self) -> Response:
        """Whether the index is ready, for who shows no token: one look serves all who ask within a second."""
        if self._glancing.statistics().tasks_waiting >= _MOST_GLANCES:
            return JSONResponse({"ready": self._is_ready}, 503, {"Retry-After": "1"})
        async with self._glancing:
            if time.monotonic() >= self._glanced + _GLANCE_SECONDS:
                self._is_ready = (await self._look()).index.state != "building"
                self._glanced = time.monotonic()
        return JSONResponse({"ready": self._is_ready}, 200 if self._is_ready else 503)

    async def _look(self) -> Health:
        return await anyio.to_thread.run_sync(self._desk.answers.health, limiter=self._room)


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


def _shows(request: Request, token: str | None) -> bool:
    """Whether a request shows the token, where there is one; compared in constant time."""
    scheme, _, shown = request.headers.get("authorization", "").partition(" ")
    return token is None or (scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token.encode()))


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """An error of the protocol that belongs to no request."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    return JSONResponse(body, status, headers)


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
