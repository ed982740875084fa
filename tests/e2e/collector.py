"""A collector of OpenTelemetry (OTLP over HTTP) for tests: it keeps what servers send, and the bytes as they came."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """What was sent. It answers at once unless it is `slow`: then it answers once `hurry` is set."""

    def __init__(self, url: str, *, slow: bool) -> None:
        self.url = url
        self.bodies: list[tuple[str, bytes]] = []
        """The path and the content of each request."""
        self.hurry = Event()
        if not slow:
            self.hurry.set()

    @property
    def sent(self) -> bytes:
        """Everything that was sent, as it came."""
        return b"".join(body for _, body in self.bodies)

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The attributes of every resource."""
        parsed = [ExportTraceServiceRequest.FromString(body) for path, body in self.bodies if path == "/v1/traces"]
        told = [spans.resource for request in parsed for spans in request.resource_spans]
        return [values(resource.attributes) for resource in told]

    @property
    def spans(self) -> list[Span]:
        """The spans, in the order of their ends."""
        parsed = [ExportTraceServiceRequest.FromString(body) for path, body in self.bodies if path == "/v1/traces"]
        scopes = [scope for request in parsed for spans in request.resource_spans for scope in spans.scope_spans]
        return sorted((span for scope in scopes for span in scope.spans), key=lambda span: span.end_time_unix_nano)

    @property
    def points(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """The newest points of each histogram, by its name: attributes and point."""
        found = {}
        for path, body in self.bodies:
            if path == "/v1/metrics":
                for told in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    for metric in (metric for scope in told.scope_metrics for metric in scope.metrics):
                        points = metric.histogram.data_points
                        found[metric.name] = [(values(point.attributes), point) for point in points]
        return found


def values(attributes: Any) -> dict[str, Any]:
    """The attributes of a message of OTLP."""

    def value(one: KeyValue) -> Any:
        return getattr(one.value, one.value.WhichOneof("value") or "string_value")

    return {one.key: value(one) for one in attributes}


@contextmanager
def collecting(*, slow: bool = False) -> Iterator[Collector]:
    """Run a collector on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.bodies.append((self.path, body))
            collector.hurry.wait()
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]  # a client that left
        collector = Collector(f"http://127.0.0.1:{server.server_port}", slow=slow)
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield collector
        finally:
            collector.hurry.set()
            server.shutdown()
