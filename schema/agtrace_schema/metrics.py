"""The models of `agtrace metrics` and ax://metrics: figures of the requests that servers answered."""

from __future__ import annotations

from agtrace_schema.model import Model


class Percentiles(Model):
    """The values that half, 95 % and 99 % of the requests don't exceed, and the largest one."""

    p50: float
    p95: float
    p99: float
    largest: float


class RequestFigures(Model):
    """The figures of some requests."""

    group: str | None = None
    """The tool, the client's name, the day or the hour (UTC) that they have in common; None for all."""
    requests: int
    errors: int
    error_codes: dict[str, int]
    milliseconds: Percentiles | None = None
    bytes: Percentiles | None = None
    tokens: Percentiles | None = None
    """Estimated."""
    total_tokens: int
    paginated_share: float
    """The share of the requests that were answered with a page of a list."""
    chunked_share: float
    """The share that was answered with a chunk of a long text."""
    summarized_share: float
    """The share that asked for a digest of a long text (`mode`)."""
    pruned_share: float
    cut_share: float
    """The share of the answers without parts that no cursor continues."""
    oversized: int
    """Answers that didn't fit in the form they were asked for."""
    oversized_asked_bytes: int
    """The sizes of these as they were asked for, added up."""
    oversized_bytes: int
    """The sizes of these as they were sent, added up."""
    stale: int
    """Answers from an index that was still behind the logs."""


class RequestMetrics(Model):
    """The figures of the requests of a period."""

    since: str | None = None
    """What was asked for, as is `until`."""
    until: str | None = None
    first: str | None = None
    """When the first of these requests was answered; likewise the last one."""
    last: str | None = None
    total: RequestFigures
    groups: list[RequestFigures]
    """By what was asked for, those with most requests first; days and hours in their order."""
    recorded: int
    """All requests in the telemetry file, which keeps as many days as `telemetry.keep_days` says."""
    dropped: int | None = None
    """Requests that this server couldn't record; None without a server."""


class ArmFigures(Model):
    """The requests on one side of a comparison of answers with and without protection."""

    arm: str
    """`protected` or `unprotected`."""
    connections: int
    requests: int
    requests_per_connection: float
    """How many calls a connection came to: smaller answers that need more calls show here."""
    errors: int
    error_share: float
    bytes: Percentiles
    """Of the answers that were sent."""
    tokens: Percentiles


class AbComparison(Model):
    """Answers with protection beside answers without."""

    since: str | None = None
    until: str | None = None
    arms: list[ArmFigures]
