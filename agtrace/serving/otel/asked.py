"""What the standard variables of OpenTelemetry ask for. This module loads nothing of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Signal = Literal["TRACES", "METRICS"]

_EXPORTERS = ("otlp", "console")
_PROTOCOL = "http/protobuf"


class Asked(NamedTuple):
    """Where spans and figures shall go; nowhere by default."""

    traces: tuple[str, ...] = ()
    """`otlp`, `console` or both."""
    metrics: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """What is asked for and can't be done, a sentence each."""

    @property
    def is_anything(self) -> bool:
        """Whether there is something to do or to say."""
        return any(self)


def asked(environment: Mapping[str, str]) -> Asked:
    """Return what the variables ask for.

    An endpoint is enough to send spans and figures; `OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` say more exactly
    what goes where. `OTEL_SDK_DISABLED=true` overrides everything.
    """
    if _value(environment, "OTEL_SDK_DISABLED").lower() == "true":
        return Asked()
    traces, no_traces = _exporters(environment, "TRACES")
    metrics, no_metrics = _exporters(environment, "METRICS")
    return Asked(traces, metrics, (*no_traces, *no_metrics))


def _exporters(environment: Mapping[str, str], signal: Signal) -> tuple[tuple[str, ...], list[str]]:
    """Return the exporters of a signal that can be used, and what is wrong with the others."""
    usable, problems = [], []
    for name in _named(environment, signal):
        variable, protocol = _protocol(environment, signal)
        if name not in _EXPORTERS:
            problems.append(f"OTEL_{signal}_EXPORTER: expected otlp, console or none, got {name!r}")
        elif name == "otlp" and protocol != _PROTOCOL:
            problems.append(f"{variable}: expected {_PROTOCOL}, got {protocol!r}, so no {signal.lower()} are sent")
        else:
            usable.append(name)
    return tuple(usable), problems


def _named(environment: Mapping[str, str], signal: Signal) -> list[str]:
    """Return the exporters that are asked for, each once."""
    given = _value(environment, f"OTEL_{signal}_EXPORTER").lower()
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    if not given and any(_value(environment, name) for name in endpoints):
        given = "otlp"
    return [name for name in dict.fromkeys(part.strip() for part in given.split(",")) if name not in ("", "none")]


def _protocol(environment: Mapping[str, str], signal: Signal) -> tuple[str, str]:
    """Return the protocol that is asked for, with the variable that does."""
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if given := _value(environment, name):
            return name, given
    return "", _PROTOCOL


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()
