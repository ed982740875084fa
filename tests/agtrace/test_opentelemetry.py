"""OpenTelemetry within the process: what the variables ask for, what spans and figures say, and what never gets out."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import anyio
import mcp.shared._otel
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from agtrace.answers.desk import Answers
from agtrace.serving.otel import sending
from agtrace.serving.otel.asked import Asked, asked
from agtrace.serving.otel.attributes import allowed
from agtrace.serving.otel.figures import Figures
from agtrace.serving.otel.monitor import Monitor
from agtrace.serving.otel.spans import Discreet
from agtrace.serving.server import Desk, make_server
from agtrace.settings import load
from agtrace.settings.live import Live

MARKER = "pelikanmarker"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
HERE = "http://127.0.0.1:4318"

# -- what is asked for -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "traces", "metrics"),
    [
        ({}, (), ()),
        ({"OTEL_SERVICE_NAME": "mine", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"}, (), ()),
        ({ENDPOINT: ""}, (), ()),
        ({ENDPOINT: HERE}, ("otlp",), ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": HERE}, ("otlp",), ()),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": HERE}, (), ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": "console"}, ("console",), ()),
        ({"OTEL_METRICS_EXPORTER": " OTLP, console,otlp"}, (), ("otlp", "console")),
        ({ENDPOINT: HERE, "OTEL_TRACES_EXPORTER": "none"}, (), ("otlp",)),
        ({ENDPOINT: HERE, "OTEL_SDK_DISABLED": "True"}, (), ()),
        ({ENDPOINT: HERE, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, ("otlp",), ("otlp",)),
    ],
)
def test_nothing_is_sent_unless_the_standard_variables_ask_for_it(
    variables: dict[str, str], traces: tuple[str, ...], metrics: tuple[str, ...]
) -> None:
    assert asked(variables) == Asked(traces, metrics)
    assert asked(variables).is_anything == bool(traces or metrics)


def test_what_is_asked_for_and_can_not_be_done_is_named() -> None:
    grpc = asked({ENDPOINT: HERE, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc", "OTEL_TRACES_EXPORTER": "zipkin,otlp"})
    assert grpc == Asked(
        ("otlp",),
        (),
        (
            "OTEL_TRACES_EXPORTER: expected otlp, console or none, got 'zipkin'",
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: expected http/protobuf, got 'grpc', so no metrics are sent",
        ),
    )


def test_the_user_names_the_service_and_we_do_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sending.resource().attributes["service.name"] == "agtrace"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=home,service.version=mine")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "traces")
    told = sending.resource().attributes
    assert (told["service.name"], told["service.version"]) == ("traces", "mine")
    assert told["deployment.environment.name"] == "home" and told["service.instance.id"]


# -- what spans and figures say --------------------------------------------------------------------


class Watched:
    """A server within the process, whose spans and figures are kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._kept, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(resource=Resource({}))
        tracers.add_span_processor(SimpleSpanProcessor(Discreet(self._kept)))
        monkeypatch.setattr(mcp.shared._otel, "_tracer", tracers.get_tracer("mcp-python-sdk"))
        self.figures = Figures(MeterProvider([self._reader]))
        self._desk = Desk(Live.fixed(load()))
        self._desk.monitor = Monitor(self.figures)
        self._desk.answers = Answers(load(), observers=[self._desk.monitor])

    def ask(self, story: Callable[[Client], Any], client: str = "test", **options: Any) -> None:
        """Tell a story to the server."""

        async def told() -> None:
            who = Implementation(name=client, version="1")
            async with Client(make_server(Live.fixed(load()), self._desk), client_info=who, **options) as one:
                await story(one)

        anyio.run(told)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The server's spans, in the order of their ends; the client within the process makes some, too."""
        return [span for span in self._kept.get_finished_spans() if span.kind is SpanKind.SERVER]

    def span(self, name: str) -> ReadableSpan:
        """The only span of this name."""
        found = [span for span in self.spans if span.name == name]
        assert len(found) == 1, [span.name for span in self.spans]
        return found[0]

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Attributes and point of a histogram."""
        data = self._reader.get_metrics_data()
        assert data is not None
        metrics = [m for r in data.resource_metrics for scope in r.scope_metrics for m in scope.metrics]
        return [(dict(p.attributes or {}), p) for m in metrics if m.name == name for p in m.data.data_points]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


async def hostile(client: Client) -> None:
    """Say the marker wherever a client chooses the text."""
    await client.call_tool("list_sessions", {"query": MARKER})
    await client.call_tool("get_session_details", {"session_id": MARKER})
    await client.call_tool("list_sessions", {"project": MARKER, MARKER: MARKER})
    for wrong in (
        lambda: client.call_tool(MARKER, {}),
        lambda: client.read_resource(f"ax://session/{MARKER}"),
        lambda: client.get_prompt(MARKER, {}),
        lambda: client.get_prompt("find_past_work", {MARKER: MARKER}),
    ):
        with pytest.raises(MCPError):
            await wrong()


def test_a_call_has_one_span_with_the_attributes_of_the_conventions(watched: Watched) -> None:
    async def story(client: Client) -> None:
        await client.call_tool("list_sessions", {})

    watched.ask(story, mode="legacy")
    span = watched.span("tools/call list_sessions")
    assert span.status.status_code is StatusCode.UNSET
    told = dict(span.attributes or {})
    assert told.pop("jsonrpc.request.id").isdecimal() and told.pop("mcp.protocol.version") == "2025-11-25"
    assert told == {
        "mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "list_sessions",
        "network.transport": "pipe",
    }  # fmt: skip
    assert {span.name for span in watched.spans} >= {"initialize", "notifications/initialized"}


def test_an_answer_that_is_an_error_says_so_with_its_code(watched: Watched) -> None:
    watched.ask(hostile, mode="legacy")
    failed = watched.span("tools/call get_session_details")
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes and failed.attributes["error.type"] == "tool_error"
    assert failed.attributes["agtrace.error.code"] == "session_not_found"
    unread = watched.span("resources/read").attributes
    assert unread and unread["error.type"] == unread["rpc.response.status_code"] == "-32002"
    assert unread["agtrace.error.code"] == "session_not_found"
    unknown = watched.span("tools/call").attributes
    assert unknown and unknown["error.type"] == "-32602" and "gen_ai.tool.name" not in unknown


def test_figures_have_the_conventions_names_and_few_values(watched: Watched) -> None:
    watched.ask(hostile, client="claude-code", mode="legacy")
    points = watched.points("mcp.server.operation.duration")
    assert points[0][1].explicit_bounds[:4] == (0.01, 0.02, 0.05, 0.1)
    told = {(a["mcp.method.name"], a.get("gen_ai.tool.name"), a.get("error.type")): point for a, point in points}
    assert told[("tools/call", "list_sessions", None)].count == 1
    assert told[("tools/call", "list_sessions", "tool_error")].count == 1
    assert told[("tools/call", None, "-32602")].count == 1
    assert told[("resources/read", None, "-32002")].count == 1
    assert not any({"jsonrpc.request.id", "mcp.session.id"} & attributes.keys() for attributes, _ in points)
    sizes = watched.points("agtrace.response.size")
    assert sum(point.count for _, point in sizes) == 4  # what isn't about traces has none
    assert {attributes["agtrace.client"] for attributes, _ in sizes} == {"claude-code"}
    assert {attributes.get("agtrace.error.code") for attributes, _ in sizes} == {
        None, "session_not_found", "invalid_parameter",
    }  # fmt: skip
    assert all(0 < point.sum < 10_000 for _, point in watched.points("agtrace.response.tokens"))


def test_a_session_has_a_duration_if_there_was_a_handshake(watched: Watched) -> None:
    async def story(client: Client) -> None:
        await client.call_tool("list_sessions", {})

    watched.ask(story, mode="auto")
    watched.figures.session_ends()
    assert watched.points("mcp.server.session.duration") == []
    watched.ask(story, mode="legacy")
    watched.figures.session_ends()
    ((attributes, point),) = watched.points("mcp.server.session.duration")
    assert attributes == {"mcp.protocol.version": "2025-11-25", "network.transport": "pipe"} and point.sum > 0


def test_nothing_that_a_client_wrote_is_in_a_span_or_a_figure(watched: Watched) -> None:
    watched.ask(hostile, client=MARKER)
    watched.ask(hostile, client=MARKER, mode="legacy")
    said = "".join(span.to_json() for span in watched.spans)
    for name in ("mcp.server.operation.duration", "agtrace.response.size", "agtrace.response.tokens"):
        said += str(watched.points(name))
    assert "tools/call list_sessions" in said and "prompts/get find_past_work" in said and MARKER not in said


def test_of_a_span_only_what_is_allowed_gets_out() -> None:
    kept, state = InMemorySpanExporter(), TraceState([("vendor", MARKER)])
    tracers = TracerProvider(resource=Resource({}))
    tracers.add_span_processor(SimpleSpanProcessor(Discreet(kept)))
    parent = SpanContext(1, 2, is_remote=True, trace_state=state, trace_flags=TraceFlags(1))
    attributes = {
        "mcp.method.name": "resources/read", "mcp.resource.uri": f"ax://{MARKER}", "jsonrpc.request.id": MARKER,
        "mcp.protocol.version": MARKER, "gen_ai.tool.name": MARKER, "gen_ai.prompt.name": MARKER,
        "error.type": f"what {MARKER}", "agtrace.error.code": MARKER, "mcp.session.id": f"claude-code.{MARKER}",
        "gen_ai.tool.call.arguments": MARKER, MARKER: "1",
    }  # fmt: skip
    within = set_span_in_context(NonRecordingSpan(parent))
    tracer = tracers.get_tracer("test")
    with tracer.start_as_current_span(MARKER, within, attributes=attributes, links=[Link(parent, {MARKER: 1})]) as span:
        span.record_exception(ValueError(MARKER))
        span.set_status(StatusCode.ERROR, MARKER)
    with tracer.start_as_current_span(MARKER):
        pass  # no message of the protocol
    (sent,) = kept.get_finished_spans()
    assert MARKER not in sent.to_json() and not sent.events and not sent.links
    assert (sent.name, dict(sent.attributes or {})) == ("resources/read", {"mcp.method.name": "resources/read"})
    assert sent.status.status_code is StatusCode.ERROR and sent.status.description is None
    assert sent.parent and (sent.parent.trace_id, sent.parent.span_id) == (1, 2) and not sent.parent.trace_state


def test_every_code_of_an_error_and_every_tool_may_be_sent() -> None:
    for code in ("internal_error", "search_timeout", "index_unavailable", "invalid_parameter"):
        assert allowed({"agtrace.error.code": code})
    assert all(allowed({"gen_ai.tool.name": name}) for name in Answers(load()).tools)


def test_a_monitor_that_fails_costs_no_answer(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(watched.figures, "operation", fail)
    monkeypatch.setattr(watched.figures, "answer", fail)

    async def story(client: Client) -> None:
        assert not (await client.call_tool("list_sessions", {})).is_error

    watched.ask(story)


# -- trouble ---------------------------------------------------------------------------------------


def test_whatever_goes_wrong_with_sending_is_one_line_a_minute_without_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("opentelemetry")
    monkeypatch.setattr(logger, "handlers", logger.handlers)
    monkeypatch.setattr(logger, "propagate", logger.propagate)
    sending.take_trouble()
    token = "ghp_" + "0123456789abcdefghijABCDEFGHIJ456789"
    for name in ("sdk.trace.export", "exporter.otlp"):
        logging.getLogger(f"opentelemetry.{name}").warning("Can't reach %s", f"https://{token}@collector")
        logging.getLogger(f"opentelemetry.{name}").error("Gone")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["from"] == "opentelemetry.sdk.trace.export" and token not in line


def test_nothing_waits_for_a_flush_that_takes_longer_than_it_may() -> None:
    never = threading.Event()
    stuck, failing = sending._Flush(never.wait), sending._Flush(lambda: 1 / 0)
    for flush in (stuck, failing):
        flush.start()
    sending.begin_last()
    sending.await_last(0.05)
    assert stuck.is_alive()
    never.set()
    stuck.join()
    failing.join()
