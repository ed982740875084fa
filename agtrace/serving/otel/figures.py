"""The figures that are sent: how long messages and sessions took, and how large answers were."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from opentelemetry.metrics import MeterProvider

from agtrace import __version__
from agtrace.answers.clients import known
from agtrace.answers.telemetry.request import Request
from agtrace.serving.otel.attributes import ERROR_CODE, TOOL, Attributes, allowed

_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""The boundaries that the conventions advise."""
_BYTES = (256, 512, 1_024, 2_048, 4_096, 6_144, 8_192, 10_240, 16_384, 32_768, 65_536, 102_400)
_TOKENS = (64, 128, 256, 512, 1_024, 1_536, 2_048, 2_560, 4_096, 8_192, 16_384, 32_768)

TRANSPORTS: Mapping[str, Attributes] = {
    "stdio": {"network.transport": "pipe"},
    "http": {"network.transport": "tcp", "network.protocol.name": "http"},
}
"""The attributes of each transport."""

_OF_OPERATIONS = frozenset(
    {
        *("mcp.method.name", "mcp.protocol.version", "gen_ai.operation.name", TOOL, "gen_ai.prompt.name"),
        *("error.type", "rpc.response.status_code"),
        *("network.transport", "network.protocol.name", "network.protocol.version"),
    }
)
"""Those of a span that have few values."""


class Figures:
    """Takes figures of messages and answers. Safe to use from several threads."""

    def __init__(self, meters: MeterProvider, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._began = now, now()
        self._session: Attributes | None = None
        meter = meters.get_meter("agtrace", __version__)
        self._operation_duration = meter.create_histogram(
            "mcp.server.operation.duration",
            unit="s",
            description="From the arrival of a request or notification until its answer is sent or it is dealt with.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._session_duration = meter.create_histogram(
            "mcp.server.session.duration",
            unit="s",
            description="The duration of a session over stdio.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._size = meter.create_histogram(
            "agtrace.response.size",
            unit="By",
            description="The size of an answer about traces.",
            explicit_bucket_boundaries_advisory=_BYTES,
        )
        self._tokens = meter.create_histogram(
            "agtrace.response.tokens",
            unit="{token}",
            description="The estimated tokens of an answer about traces.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )

    def operation(self, seconds: float, attributes: Attributes) -> None:
        """Take the duration of a message with the attributes of its span."""
        few = {name: value for name, value in allowed(attributes).items() if name in _OF_OPERATIONS}
        self._operation_duration.record(seconds, few)
        version, transport = few.get("mcp.protocol.version"), few["network.transport"]
        if self._session is None and transport == "pipe" and version in HANDSHAKE_PROTOCOL_VERSIONS:
            self._session = {"mcp.protocol.version": version, "network.transport": transport}

    def answer(self, request: Request) -> None:
        """Take the figures of an answer about traces."""
        described = {TOOL: request.tool, **TRANSPORTS[request.transport]}
        if client := known(request.client):
            described["agtrace.client"] = client
        if request.outcome != "ok":
            described[ERROR_CODE] = request.outcome
        few = allowed(described)
        self._size.record(request.bytes, few)
        self._tokens.record(request.tokens, few)

    def session_ends(self) -> None:
        """Take the duration of the session, if there was one: only with a handshake, and over stdio, is there any."""
        if self._session is not None:
            self._session_duration.record(self._now() - self._began, self._session)
