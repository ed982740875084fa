"""The spans that are sent: those of the protocol's messages, rid of every text of the user's."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, Status

from agtrace.serving.otel.attributes import METHOD, OTHER, PROMPT, TOOL, allowed


class Discreet(SpanExporter):
    """Passes spans on to an exporter, with nothing in them but what may be sent.

    The texts of errors, exceptions and trace states go, and so does every span that isn't a message's.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export what may be sent of these spans."""
        return self._exporter.export([discreet(span) for span in spans if METHOD in (span.attributes or {})])

    def shutdown(self) -> None:
        """End the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Let the exporter send what it holds."""
        return self._exporter.force_flush(timeout_millis)


def discreet(span: ReadableSpan) -> ReadableSpan:
    """Return the span of a message without anything that its client or a log could have written."""
    attributes = {METHOD: OTHER, **allowed(span.attributes)}
    target = attributes.get(TOOL) or attributes.get(PROMPT)
    return ReadableSpan(
        name=f"{attributes[METHOD]} {target}" if target else attributes[METHOD],
        context=_stateless(span.context),
        parent=_stateless(span.parent),
        resource=span.resource,
        attributes=attributes,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _stateless(context: SpanContext | None) -> SpanContext | None:
    """Return a context without its state, which is a text of the client's."""
    return context and SpanContext(context.trace_id, context.span_id, context.is_remote, context.trace_flags)
