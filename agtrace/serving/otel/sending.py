"""Sends spans and figures to a collector, beside the answers, and what is queued at the end of the process.

This is the only module that sets up OpenTelemetry's SDK. Where exactly things are sent, how often and with which
headers is up to the SDK's own variables (`OTEL_EXPORTER_OTLP_...`, `OTEL_BSP_...`, `OTEL_METRIC_EXPORT_...`).
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

from agtrace import __version__
from agtrace.answers.library_log import Lines
from agtrace.serving.otel.asked import Asked
from agtrace.serving.otel.figures import Figures
from agtrace.serving.otel.monitor import Monitor
from agtrace.serving.otel.spans import Discreet


def monitor(wanted: Asked) -> Monitor:
    """Start to send what is wanted, and return what watches.

    Raises `ImportError` if the exporter isn't installed, and whatever the SDK raises for variables that it can't use;
    then nothing is sent.
    """
    take_trouble()
    tracers = _tracers([_span_exporter(name) for name in wanted.traces]) if wanted.traces else None
    meters = _meters([_metric_exporter(name) for name in wanted.metrics]) if wanted.metrics else None
    if tracers is not None:
        trace.set_tracer_provider(tracers)  # the SDK of mcp makes its spans by this one
        _Flush(tracers.force_flush).start()
    if meters is None:
        return Monitor(None)
    figures = Figures(meters)
    _Flush(figures.session_ends, meters.force_flush).start()
    return Monitor(figures)


def _tracers(exporters: Iterable[SpanExporter]) -> TracerProvider:
    tracers = TracerProvider(resource=resource(), shutdown_on_exit=False)
    for exporter in exporters:
        tracers.add_span_processor(BatchSpanProcessor(Discreet(exporter)))
    return tracers


def _meters(exporters: Iterable[MetricExporter]) -> MeterProvider:
    readers: list[MetricReader] = [PeriodicExportingMetricReader(exporter) for exporter in exporters]
    return MeterProvider(readers, resource(), shutdown_on_exit=False)


def resource() -> Resource:
    """Return what the user says of this service, with our name and version where that says nothing."""
    ours = Resource({"service.name": "agtrace", "service.version": __version__})
    return Resource.create(ours.merge(OTELResourceDetector().detect()).attributes)


def _span_exporter(name: str) -> SpanExporter:
    if name == "console":
        return ConsoleSpanExporter(out=sys.stderr, formatter=lambda span: span.to_json(indent=None) + "\n")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _metric_exporter(name: str) -> MetricExporter:
    if name == "console":
        return ConsoleMetricExporter(out=sys.stderr, formatter=lambda data: data.to_json(indent=None) + "\n")
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter()


# -- trouble ---------------------------------------------------------------------------------------


class _Trouble(Lines):
    """Writes what goes wrong with sending: one line a minute, whatever it is."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless one was written within the last minute. An address may hold a key: it is masked."""
        from agtrace_indexer.redact import redact

        record.msg, record.args = redact(record.getMessage()), ()
        super().emit(record)

    def fault(self, record: logging.LogRecord) -> tuple[object, ...]:
        """Return the same for all."""
        return ()


def take_trouble() -> None:
    """Write warnings of OpenTelemetry as lines of the server's log."""
    logger = logging.getLogger("opentelemetry")
    logger.handlers, logger.propagate = [_Trouble()], False


# -- the end of the process ------------------------------------------------------------------------


class _Flush(threading.Thread):
    """Waits for the end of the process, to send what is queued then."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__(name="opentelemetry", daemon=True)
        self._steps = steps
        self.ending = threading.Event()

    def run(self) -> None:
        """Send once the process is ending."""
        self.ending.wait()
        with suppress(Exception):  # the process is ending: there is nobody to tell
            for step in self._steps:
                step()


def begin_last() -> None:
    """Begin to send everything that is queued, beside whatever else the end of the process needs."""
    for flush in _flushes():
        flush.ending.set()


def await_last(seconds: float) -> None:
    """Wait until everything is sent, but no longer than this: a collector may be slow, or gone."""
    last = time.monotonic() + seconds
    for flush in _flushes():
        flush.join(max(last - time.monotonic(), 0))


def _flushes() -> list[_Flush]:
    return [thread for thread in threading.enumerate() if isinstance(thread, _Flush)]
