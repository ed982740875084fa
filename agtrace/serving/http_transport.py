"""The HTTP transport: streamable HTTP at /mcp for both protocol eras; /healthz, /readyz and /metrics for operators.

Connections have no state: every request is answered on its own, with one JSON body. Clients must send the token, which
is optional only on loopback. Only known host names and web origins are answered, so that no web page can reach the
server through a host name of its own (DNS rebinding).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import anyio
import anyio.lowlevel
from agtrace_schema.model import dump
from agtrace_schema.status import Health
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agtrace.answers.log import capture_library_logs, log_to_stderr
from agtrace.answers.telemetry.prometheus import Exposition, RequestCounts
from agtrace.problems import SettingError
from agtrace.serving.connections import listen, run
from agtrace.serving.http_auth import Auth, KnownNames, bracketed, is_loopback, known_names, shows, without_token
from agtrace.serving.server import CLIENT, CONNECTION, LARGEST_REQUEST, RequestThreads, make_server
from agtrace.settings.limits import known_client
from agtrace.settings.live import Live
from agtrace.settings.model import Settings

_MOST_GLANCES = 16
"""Probes without a token that may wait at a time to learn whether the index is ready."""
_GLANCE_SECONDS = 1
"""How old their answer may be."""
_SESSION = "mcp-session-id"
_GREETING = "agtrace.greeting"
_UNKNOWN = "other"
"""Stands for an unknown client in a session id."""


def serve_http(live: Live, host: str, port: int, tell: Callable[[Settings, str], None]) -> int:
    """Serve on this address until SIGTERM or SIGINT; return the exit code. Port 0 means any free port.

    `http.token` of the settings is the token that clients must send. `tell` gets the URL once the server listens.
    Raises `SettingError` for a host that needs a token, and if the server can't listen on the address.
    """
    settings = live.current.settings
    if settings.http.token is None and not is_loopback(host):
        raise SettingError(f"{host} can be reached from other machines: leave out --no-token, or listen on 127.0.0.1")
    capture_library_logs()
    with listen(host, port) as listening:
        port = listening.getsockname()[1]
        counts = RequestCounts(known_client)
        threads = RequestThreads(live, [counts])
        live.follow_signal()
        threading.Thread(target=threads.answers.health, daemon=True).start()  # starts indexing
        url = f"http://{bracketed(host)}:{port}/mcp"
        log_to_stderr({"event": "listening", "url": url})
        tell(settings, url)
        return run(application(live, threads, counts, host, port), listening)


def application(live: Live, threads: RequestThreads, counts: RequestCounts, host: str, port: int) -> Starlette:
    """Return the routes, behind the check of hosts and origins; `counts` are those of the threads."""
    settings = live.current.settings
    security = known_names(host, port, settings.http.hosts, settings.http.origins)
    server = make_server(live, threads)
    server.middleware.append(_remember_client)
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        security_settings=security,
        max_request_body_size=LARGEST_REQUEST,
    )
    probes = _Probes(threads, settings.http.token)
    exposition = Exposition(counts, threads.answers.health, threads.answers.dropped)
    return Starlette(
        routes=[
            Route("/mcp", Auth(_Remembering(manager.handle_request), settings.http.token)),
            Route("/healthz", probes.alive),
            Route("/readyz", probes.ready),
            Route("/metrics", _Scrapes(exposition, settings.http.token).answer),
        ],
        middleware=[
            Middleware(KnownNames, security),
            Middleware(
                CORSMiddleware,
                allow_origins=settings.http.origins,
                allow_methods=["POST"],
                allow_headers=["authorization", "mcp-protocol-version", "mcp-method", "mcp-name", _SESSION],
                expose_headers=[_SESSION],
            ),
        ],
        lifespan=lambda _: manager.run(),
    )


class _Remembering:
    """Notes the client and the connection of a request, and names the client in the session id it is given."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = Request(scope).headers.get(_SESSION, "")
        scope[CLIENT] = known_client(session.partition(".")[0])
        scope[CONNECTION] = session or "{0[0]}:{0[1]}".format(scope.get("client") or ("", 0))
        await self._app(scope, receive, _naming(scope, send))


class _Probes:
    """Probes for operators: all figures for clients with access to /mcp, otherwise only whether the server is well."""

    def __init__(self, threads: RequestThreads, token: str | None) -> None:
        self._threads, self._token = threads, token
        self._room = anyio.CapacityLimiter(2)  # separate threads, so that requests never keep probes waiting
        self._glancing, self._glanced, self._is_ready = anyio.Lock(), float("-inf"), False

    async def alive(self, request: Request) -> Response:
        """Answer 200 as long as the process lives."""
        if not shows(request, self._token):
            return JSONResponse({"status": "ok"})
        figures = await self._look()
        return JSONResponse({"status": "ok", **dump(figures)})

    async def ready(self, request: Request) -> Response:
        """Answer 200 if the index can be used, 503 while it is being built or can't be read."""
        if not shows(request, self._token):
            return await self._glance()
        index = (await self._look()).index
        is_ready = index.state != "building"
        told = dump(index)
        return JSONResponse({"ready": is_ready, **told}, 200 if is_ready else 503)

    async def _glance(self) -> Response:
        """Say whether the index is ready, without a token: one check serves all probes within a second."""
        if self._glancing.statistics().tasks_waiting >= _MOST_GLANCES:
            return JSONResponse({"ready": self._is_ready}, 503, {"Retry-After": "1"})
        async with self._glancing:
            if time.monotonic() >= self._glanced + _GLANCE_SECONDS:
                self._is_ready = (await self._look()).index.state != "building"
                self._glanced = time.monotonic()
        return JSONResponse({"ready": self._is_ready}, 200 if self._is_ready else 503)

    async def _look(self) -> Health:
        return await anyio.to_thread.run_sync(self._threads.answers.health, limiter=self._room)


class _Scrapes:
    """Answers monitoring, which needs the token: unlike a probe, it can be told nothing without."""

    def __init__(self, exposition: Exposition, token: str | None) -> None:
        self._exposition, self._token = exposition, token
        self._room = anyio.CapacityLimiter(2)  # separate threads, as for probes, which don't wait for it either

    async def answer(self, request: Request) -> Response:
        """Answer with the page, in the format that the client accepts."""
        if not shows(request, self._token):
            return without_token()
        accept = ",".join(request.headers.getlist("accept"))
        page, content_type = await anyio.to_thread.run_sync(self._exposition.page, accept, limiter=self._room)
        return Response(page, headers={"Content-Type": content_type})


async def _remember_client(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Note the client: in the handshake era only `initialize` names it; later requests carry the session id."""
    if ctx.method == "initialize" and ctx.params is not None and ctx.request is not None:
        info = ctx.params.get("clientInfo")
        name = info.get("name") if isinstance(info, Mapping) else None
        ctx.request.scope[_GREETING] = known_client(name if isinstance(name, str) else None) or _UNKNOWN
    return await call_next(ctx)


def _naming(scope: Scope, send: Send) -> Send:
    """Answer `initialize` with a session id that names the client if it is known; a session has no other state."""

    async def named(message: Message) -> None:
        client = scope.get(_GREETING)
        if client is not None and message["type"] == "http.response.start":
            session = (_SESSION.encode(), f"{client}.{uuid4().hex}".encode())
            message = {**message, "headers": [*message["headers"], session]}
        await send(message)

    return named
