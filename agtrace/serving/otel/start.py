"""Starts to send spans and figures, if the user's variables ask for it and the extra is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agtrace.answers.log import log_to_stderr
from agtrace.serving.otel.asked import Asked, asked

if TYPE_CHECKING:
    from agtrace.serving.otel.monitor import Monitor

_MISSING = "the OTEL_ variables ask for telemetry, but the extra isn't installed: pip install 'agtrace[otel]'"


def started(environment: Mapping[str, str]) -> Monitor | None:
    """Start what these variables ask for, and return what watches the server; None if there is nothing to watch for.

    What can't be done is said in one line of the log: it costs no answer.
    """
    wanted = asked(environment)
    found, problems = _monitor(wanted) if wanted.traces or wanted.metrics else (None, [])
    problems = [*wanted.problems, *problems]
    if problems:
        log_to_stderr({"event": "opentelemetry", "level": "warning", "problem": "; ".join(problems)})
    return found


def _monitor(wanted: Asked) -> tuple[Monitor | None, list[str]]:
    try:
        from agtrace.serving.otel.sending import monitor  # takes 0.3 s: it loads OpenTelemetry's SDK

        return monitor(wanted), []
    except ImportError:
        return None, [_MISSING]
    except Exception as error:  # noqa: BLE001  # the boundary: the SDK raises anything for variables that it can't use
        from agtrace_indexer.redact import redact

        return None, [redact(f"OpenTelemetry can't be set up: {type(error).__name__}: {error}")]
