"""The MCP server `agtrace prune`: `read`, `bash` and `grep` with a question, over stdio or HTTP.

Over HTTP it is reached with a token on known names only: whoever reaches `bash` is the user.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar

import anyio
import mcp_types as types
from agtrace_indexer import redact
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agtrace import __version__
from agtrace.answers.log import capture_library_logs, log_to_stderr
from agtrace.answers.telemetry.recorder import Recorder
from agtrace.pruning.arguments import input_schema
from agtrace.pruning.configuration import Configured
from agtrace.pruning.output import ToolContext, inherited
from agtrace.pruning.request import AppState, RequestTrace, answered, request_of
from agtrace.pruning.states import Log
from agtrace.pruning.tools import TOOLS, Tool
from agtrace.serving.connections import Connection, listen, run
from agtrace.serving.http_auth import Auth, KnownNames, known_names
from agtrace.serving.server import origin_of
from agtrace.serving.stdio_transport import serve
from agtrace.settings.environment import environment_of
from agtrace.text.kept_texts import KeptTexts

LARGEST_REQUEST = 1_048_576
MOST_REQUESTS = 256
"""The most requests at a time over HTTP, at work or waiting."""

INSTRUCTIONS = (
    "read, bash and grep as usual. With `context_focus_question`, a whole sentence that names what to keep, a long "
    "output comes back as the lines that it is about; what is left out is named by line numbers, and `read` with the "
    "`ref` of the answer as file_path shows it."
)

_EXCHANGE = "agtrace.exchange"
_UNREADABLE = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.REQUEST_ENTITY_TOO_LARGE})


def make_server(app: AppState, traces: Traces) -> Server[Any]:
    """Return the server with its tools, not yet connected to a transport."""
    settings = app.configured.settings
    recorder = Recorder(settings.telemetry_file)
    recorder.keep_days = settings.telemetry.keep_days
    listed = types.ListToolsResult(tools=[_described(name, tool) for name, tool in TOOLS.items()])

    async def list_tools(
        context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        trace = RequestTrace(app.log, params.name)
        with anyio.CancelScope() as turn:
            traces.begin(context, trace, turn)
            result = await answered(app, trace, params.arguments or {})
            with suppress(Exception):  # counting answers must never cost one
                if app.configured.settings.telemetry.enabled:
                    at, ms = time.time(), trace.ms
                    recorder.record(request_of(result, origin_of(context), tool=trace.tool, at=at, ms=ms))
            return result
        traces.forget(context.request_id, trace)
        raise MCPError(types.CONNECTION_CLOSED, "the client left")  # reaches nobody

    async def examined(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Note a call that never gets to its tool."""
        params = ctx.params or {}
        is_call = isinstance(params.get("name"), str) and isinstance(params.get("arguments"), Mapping | None)
        if ctx.method == "tools/call" and not is_call:
            traces.malformed(params.get("name"))
        return await call_next(ctx)

    server: Server[Any] = Server(
        "agtrace-prune",
        version=__version__,
        title="agtrace prune",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware = [examined, *server.middleware]
    return server


def _described(name: str, tool: Tool) -> types.Tool:
    return types.Tool(
        name=name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema(tool.arguments),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.only_reads,
            destructive_hint=not tool.only_reads,
            open_world_hint=not tool.only_reads,
        ),
    )


class Traces:
    """The requests whose answers are not yet written, by what the transports know them by.

    Only the event loop uses it.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._over_stdio: dict[str, list[RequestTrace]] = {}
        """By id; nothing keeps a client from using one again before it has the answer."""

    def begin(self, context: ServerRequestContext[Any, Any], trace: RequestTrace, turn: anyio.CancelScope) -> None:
        """Note a request; over HTTP, `turn` is cancelled when its client leaves."""
        if context.request is None:
            self._over_stdio.setdefault(repr(context.request_id), []).append(trace)
        else:
            context.request.scope[_EXCHANGE].begin(trace, turn)

    def unreadable(self, why: str) -> None:
        """Note what can't be read as a message."""
        RequestTrace(self._log).go("unreadable", error=why)

    def malformed(self, name: object) -> None:
        """Note a call whose parameters the protocol doesn't allow."""
        trace = RequestTrace(self._log, name if isinstance(name, str) else "")
        trace.go("accepted")
        trace.go("invalid", validation_errors=["params"])

    def sent(self, id: types.RequestId) -> None:
        """Note that the answer to a request was written to stdout."""
        if (trace := self._ended(id)) is not None:
            trace.written()

    def unsent(self, id: types.RequestId, error: str) -> None:
        """Note that the answer to a request couldn't be written to stdout."""
        if (trace := self._ended(id)) is not None:
            trace.unwritten(error)

    def _ended(self, id: types.RequestId) -> RequestTrace | None:
        ended = next((one for one in self._over_stdio.get(repr(id), ()) if one.is_over), None)
        if ended is not None:
            self.forget(id, ended)
        return ended

    def forget(self, id: types.RequestId | None, trace: RequestTrace) -> None:
        """Forget a request, and its id with the last one that has it."""
        begun = self._over_stdio.get(repr(id), [])
        if trace in begun:
            begun.remove(trace)
        if not begun:
            self._over_stdio.pop(repr(id), None)


class _Exchange:
    """A request over HTTP and what came of it."""

    def __init__(self) -> None:
        self._begun: list[tuple[RequestTrace, anyio.CancelScope]] = []
        self._left = self.complete = False
        self.status = 0

    def begin(self, trace: RequestTrace, turn: anyio.CancelScope) -> None:
        self._begun.append((trace, turn))
        if self._left:
            turn.cancel()

    def leave(self) -> None:
        if self.complete:
            return
        self._left = True
        for _, turn in self._begun:
            turn.cancel()

    def end(self, traces: Traces) -> None:
        for trace, _ in self._begun:
            trace.unwritten("the client left") if self._left else trace.written()
        if not self._begun and self.status in _UNREADABLE:
            traces.unreadable(f"HTTP status {self.status}")


class _Noticing:
    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        self._app, self._traces = app, traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange, arrived = _Exchange(), anyio.Event()
        scope[_EXCHANGE] = exchange

        async def received() -> Message:
            message = await receive()
            if not message.get("more_body", False):
                arrived.set()
            return message

        async def sent(message: Message) -> None:
            exchange.status = message.get("status", exchange.status)
            await send(message)
            exchange.complete = message["type"] == "http.response.body" and not message.get("more_body", False)

        async def watch() -> None:
            await arrived.wait()
            if (await receive())["type"] == "http.disconnect":
                exchange.leave()

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await self._app(scope, received, sent)
            group.cancel_scope.cancel()
        exchange.end(self._traces)


class _Client(Connection):
    """A connection whose client may keep it for as long as its command runs."""

    most_open: ClassVar[int] = 2 * MOST_REQUESTS


_PR_SET_DUMPABLE = 4
"""Of prctl(2): whether other processes of the user may look into this one."""


def app_state(configured: Configured) -> AppState:
    """Return what the requests of this process share, and log what is wrong with its settings."""
    log = Log(log_to_stderr)
    if configured.problems:
        log.write("mcp_pruner.config_invalid", problems=list(configured.problems))
    settings = configured.settings
    redact.use(settings.data_dir)
    threading.Thread(target=redact.redact, args=("",), daemon=True).start()  # compiles the rules, if nobody has
    environment = inherited(environment_of(), settings.pruner.environment)
    _hide_environment()
    return AppState(configured, log, ToolContext(Path.cwd(), environment, KeptTexts(settings.kept_outputs)))


def _hide_environment() -> None:
    """Keep commands from reading, in /proc, what this process has in its environment and they don't get (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)


def serve_stdio(configured: Configured) -> None:
    """Serve on stdin and stdout until the process ends, together with its client. Raises `SettingError`."""
    app = app_state(configured)
    traces = Traces(app.log)
    serve(make_server(app, traces), traces)


def serve_http(configured: Configured, host: str, port: int, token: str | None) -> int:
    """Serve on this address until SIGTERM or SIGINT; return the exit code.

    When it is ready, that is one line of JSON on stderr. Raises `SettingError` if it can't listen there.
    """
    capture_library_logs()
    app = app_state(configured)
    with listen(host, port) as listening:
        port = listening.getsockname()[1]
        return run(_application(app, host, port, token), listening, _Client)


def _application(app: AppState, host: str, port: int, token: str | None) -> Starlette:
    traces, names = Traces(app.log), known_names(host, port)
    manager = StreamableHTTPSessionManager(
        make_server(app, traces),
        json_response=True,
        stateless=True,
        security_settings=names,
        max_request_body_size=LARGEST_REQUEST,
    )

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            app.log.write("mcp_pruner.ready", host=host, port=port, pid=os.getpid())
            yield

    return Starlette(
        routes=[
            Route("/mcp", Auth(_Noticing(manager.handle_request, traces), token, MOST_REQUESTS)),
            Route("/healthz", _well),
            Route("/readyz", _well),
        ],
        middleware=[Middleware(KnownNames, names)],
        lifespan=running,
    )


async def _well(request: Request) -> Response:
    """Answer a probe: a server that answers can be used."""
    return JSONResponse({"status": "ok"})
