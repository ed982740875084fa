"""Watches the server's messages: completes the span of each and takes its figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from opentelemetry.trace import StatusCode, get_current_span
from pydantic import ValidationError

from agtrace.answers.telemetry.request import Request
from agtrace.serving.otel.attributes import ERROR_CODE, METHOD, OTHER, PROMPT, TOOL, Attributes, allowed
from agtrace.serving.otel.figures import TRANSPORTS, Figures

Context = ServerRequestContext[Any, Any]

_SESSION = "mcp-session-id"
_CANCELLED = "cancelled"


class Monitor:
    """Watches messages and answers, and never changes or delays one. Safe to use from several threads."""

    def __init__(self, figures: Figures | None, now: Callable[[], float] = time.monotonic) -> None:
        """Watch; without `figures`, only spans are completed."""
        self._figures, self._now = figures, now

    async def observe(self, context: Context, call_next: CallNext) -> HandlerResult:
        """Handle a message within its span, which the SDK has made."""
        began, outcome = self._now(), Attributes()
        try:
            result = await call_next(context)
            outcome = _outcome(result)
        except BaseException as error:
            outcome = _failure(error)
            raise
        else:
            return result
        finally:
            with suppress(Exception):  # watching must never cost an answer
                self._note(context, outcome, self._now() - began)

    def record(self, request: Request) -> None:
        """Take the figures of an answer."""
        if self._figures is not None:
            self._figures.answer(request)

    def _note(self, context: Context, outcome: Attributes, seconds: float) -> None:
        attributes, span = _described(context) | outcome, get_current_span()
        if span.is_recording():
            span.set_attributes(allowed(attributes))
            if outcome.get("error.type") == _CANCELLED:  # the SDK sets the status of every other failure
                span.set_status(StatusCode.ERROR)
        if self._figures is not None:
            self._figures.operation(seconds, attributes)


def _described(context: Context) -> Attributes:
    """Return the attributes of a message; only some of the values may be sent."""
    known = METHOD in allowed({METHOD: context.method})
    attributes = {METHOD: context.method if known else OTHER, "mcp.protocol.version": context.protocol_version}
    name = str((context.params or {}).get("name"))
    if context.method == "tools/call":
        attributes |= {"gen_ai.operation.name": "execute_tool", TOOL: name}
    elif context.method == "prompts/get":
        attributes[PROMPT] = name
    return attributes | _carried(context)


def _carried(context: Context) -> Attributes:
    """Return the attributes of the transport that carried a message."""
    if context.request is None:
        return TRANSPORTS["stdio"]
    version = context.request.scope.get("http_version", "")
    session = context.request.headers.get(_SESSION, "")
    return {**TRANSPORTS["http"], "network.protocol.version": version, "mcp.session.id": session}


def _outcome(result: HandlerResult) -> Attributes:
    """Return what is to be said of a result: nothing, unless it is the error of a tool."""
    match result:
        case {"isError": True, "structuredContent": value}:
            return {"error.type": "tool_error", **_code(value)}
    return {}


def _failure(error: BaseException) -> Attributes:
    """Return what is to be said of a message that was answered with an error of the protocol, or not at all."""
    if isinstance(error, MCPError):
        return _status(error.error.code) | _code(error.error.data)
    if isinstance(error, ValidationError):
        return _status(types.INVALID_PARAMS)
    cancelled = isinstance(error, anyio.get_cancelled_exc_class())
    return {"error.type": _CANCELLED if cancelled else type(error).__qualname__}


def _status(code: int) -> Attributes:
    return {"error.type": str(code), "rpc.response.status_code": str(code)}


def _code(value: object) -> Attributes:
    """Return the code of our own error, in an answer or in the data of the protocol's error."""
    error = value.get("error") if isinstance(value, Mapping) else None
    return {ERROR_CODE: error["code"]} if isinstance(error, Mapping) and "code" in error else {}
