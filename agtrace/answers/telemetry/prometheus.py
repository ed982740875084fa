"""What monitoring reads of a server: its answers since it started and its index now, in Prometheus' text format.

Labels are names of our own (tools, codes, known clients), so that there are never many, and nothing of the user's is in
one. The counts are kept here and not in the library's instruments: one lock makes a page a single moment, and the
instruments would write files wherever a variable of the environment (PROMETHEUS_MULTIPROC_DIR) asks for that.

Only the HTTP server loads this module, as the library takes 0.1 s to load.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import accumulate
from typing import NamedTuple, get_args, get_type_hints

from agtrace_schema.status import Health, IndexHealth
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

from agtrace import __version__
from agtrace.answers.telemetry.store import Request

OTHER_CLIENT = "other"
"""The label of every client that isn't known: a client can report any name."""

_STATES: tuple[str, ...] = get_args(get_type_hints(IndexHealth)["state"])


class _Measure(NamedTuple):
    """What is measured of each request, as a histogram by tool."""

    name: str
    meaning: str
    bounds: tuple[float, ...]
    """The largest value of each bucket; one without a bound follows."""
    of: Callable[[Request], float]


_MEASURES = (
    _Measure(
        "agtrace_request_duration_seconds",
        "Time from a request to its answer.",
        (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        lambda request: request.ms / 1000,
    ),
    _Measure(
        "agtrace_response_bytes",
        "Size of an answer.",
        (512, 1_024, 2_048, 4_096, 6_144, 8_192, 10_240, 16_384, 32_768, 65_536, 102_400),
        lambda request: request.bytes,
    ),
    _Measure(
        "agtrace_response_tokens",
        "Estimated tokens of an answer.",
        (150, 300, 600, 1_200, 1_800, 2_400, 3_072, 4_800, 9_600, 19_200, 30_720),
        lambda request: request.tokens,
    ),
)
"""The bounds fit the usual largest answers (10 KB), the largest (100 KB) and the time limit of a search (30 s)."""


class _Distribution:
    """How many values are in each bucket, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds, self._counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value in the first bucket whose bound isn't below it."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Return (bound, number of values up to it) for each bucket."""
        return list(zip(map(floatToGoString, (*self._bounds, math.inf)), accumulate(self._counts), strict=True))


class RequestCounts:
    """Counts the requests of a server. Safe to use from several threads; recording takes microseconds."""

    def __init__(self, known: Callable[[str | None], str | None]) -> None:
        """Start at zero; `known` returns the known client that reports this name, or None."""
        self._known = known
        self._lock = threading.Lock()
        self._measured = [defaultdict[str, _Distribution](partial(_Distribution, it.bounds)) for it in _MEASURES]
        """By tool, of each measure."""
        self._requests: Counter[tuple[str, ...]] = Counter()
        """By tool, outcome, transport and client."""
        self._shaped: Counter[tuple[str, ...]] = Counter()
        """By tool and how it was made to fit."""
        self._oversized_asked_bytes = 0

    def record(self, request: Request) -> None:
        """Count a request."""
        tool, client = request.tool, self._known(request.client) or OTHER_CLIENT
        with self._lock:
            for measure, by_tool in zip(_MEASURES, self._measured, strict=True):
                by_tool[tool].add(measure.of(request))
            self._requests[tool, request.outcome, request.transport, client] += 1
            self._shaped.update((tool, how) for how in _shaped(request))
            if request.asked_bytes > request.bytes:
                self._oversized_asked_bytes += request.asked_bytes

    def collect(self) -> list[Metric]:
        """Return all counts, as of one moment."""
        with self._lock:
            return [
                *map(_histogram, _MEASURES, self._measured),
                _counter(
                    "agtrace_requests_total",
                    "Answered requests; the outcome is ok or the code of the error.",
                    ("tool", "outcome", "transport", "client"),
                    self._requests,
                ),
                _counter(
                    "agtrace_requests_shaped_total",
                    "Answers that were made to fit, by how; one can be of several kinds.",
                    ("tool", "how"),
                    self._shaped,
                ),
                CounterMetricFamily(
                    "agtrace_oversized_asked_bytes_total",
                    "Total size that answers which didn't fit would have had, in bytes.",
                    value=self._oversized_asked_bytes,
                ),
            ]


def _shaped(request: Request) -> Iterator[str]:
    for how in ("paginated", "chunked", "summarized", "pruned", "cut"):
        if getattr(request, how):
            yield how
    if request.asked_bytes > request.bytes:
        yield "oversized"


def _histogram(measure: _Measure, by_tool: Mapping[str, _Distribution]) -> Metric:
    family = HistogramMetricFamily(measure.name, measure.meaning, labels=["tool"])
    for tool, values in sorted(by_tool.items()):
        family.add_metric([tool], values.buckets(), values.sum)
    return family


def _counter(name: str, meaning: str, labels: tuple[str, ...], counts: Mapping[tuple[str, ...], int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=labels)
    for values, count in sorted(counts.items()):
        family.add_metric(values, count)
    return family


class _State:
    """The state of server and index, looked up whenever it is read."""

    def __init__(self, look: Callable[[], Health], dropped: Callable[[], int | None]) -> None:
        self._look, self._dropped = look, dropped

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of this moment; unknown ones are left out."""
        health = self._look()
        index = health.index
        behind = (0, 0) if index.state == "ready" else (index.files_behind, index.bytes_behind)
        yield InfoMetricFamily("agtrace_build", "The running version of agtrace.", {"version": __version__})
        if health.started_at is not None:
            started = datetime.fromisoformat(health.started_at).timestamp()
            yield _gauge("agtrace_start_time_seconds", "When the server started, in seconds since 1970 UTC.", started)
        states = GaugeMetricFamily("agtrace_index_state", "1 for the state that the index is in.", labels=["state"])
        for state in _STATES:
            states.add_metric([state], int(index.state == state))
        yield states
        yield _gauge("agtrace_index_behind_files", "Logs that changed and aren't indexed yet.", behind[0])
        yield _gauge("agtrace_index_behind_bytes", "Bytes of logs that aren't indexed yet.", behind[1])
        yield _gauge("agtrace_index_sessions", "Sessions in the index.", index.sessions)
        yield _gauge("agtrace_index_events", "Events in the index.", index.events)
        yield _gauge(
            "agtrace_configuration_valid",
            "1 if the settings are what their sources say, 0 if a fault keeps earlier ones or defaults in force.",
            int(health.configuration.problem is None),
        )
        dropped = self._dropped()  # asked directly: health has no figures of a file that can't be read
        if dropped is not None:
            yield CounterMetricFamily(
                "agtrace_telemetry_dropped_total",
                "Requests that couldn't be recorded in the telemetry file.",
                value=dropped,
            )


def _gauge(name: str, meaning: str, value: float | None) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)


class Exposition:
    """The page that monitoring reads. Safe to use from several threads."""

    def __init__(self, counts: RequestCounts, look: Callable[[], Health], dropped: Callable[[], int | None]) -> None:
        """Create it; `look` returns the current health, `dropped` what `Answers.dropped` does."""
        self._registry = CollectorRegistry()
        self._registry.register(counts)
        self._registry.register(_State(look, dropped))

    def page(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type: OpenMetrics if the Accept header asks for it, else the text format."""
        try:
            encode, content_type = choose_encoder(accept)
        except TypeError:  # a version that is no number
            encode, content_type = choose_encoder("")
        return encode(self._registry), content_type
