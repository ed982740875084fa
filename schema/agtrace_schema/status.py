"""The state of index, server and answers (ax://health, /healthz, `agtrace health`), and figures of requests."""

from __future__ import annotations

from typing import Literal

from agtrace_schema.model import Model

# -- ax://health, /healthz, `agtrace health` --------------------------------------------------------


class IndexHealth(Model):
    """The state of the index, and how far it is behind the logs; None is unknown."""

    state: Literal["ready", "catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed, or the index can't be read, at the moment."""
    sessions: int
    events: int
    logs: int
    """Files that contain sessions, including those deleted since."""
    bytes: int | None = None
    """On disk; absent for a team's index, whose server knows."""
    newest_event: str | None = None
    tables_version: int


class AnswerHealth(Model):
    """The answers since the server started."""

    count: int
    errors: int
    error_codes: dict[str, int]
    by_tool: dict[str, int]
    mean_bytes: int
    median_bytes: int
    """Of the last thousand."""
    largest_bytes: int
    oversized_attempts: int
    """Answers that didn't fit in the form they were requested."""
    oversized_share: float
    oversized_alert: bool
    """Whether it is above 5 % of the answers of the last five minutes, if these are at least 20."""
    continuable: int
    """Answers that ended with a cursor."""
    continued: int
    """Answers that began at a cursor."""
    continued_share: float
    """As a share of those that ended with a cursor."""


class TelemetryHealth(Model):
    """The recorded requests."""

    rows: int
    """In the telemetry file, which keeps as many days as `telemetry.keep_days` says."""
    dropped: int | None = None
    """Requests that this server couldn't record; None without a server."""
    last_hour: int
    """The requests of the last hour, of all servers."""
    paginated_share: float
    """Of these, as are the following: answered with a page of a list."""
    mean_bytes: int
    oversized_share: float


class Configuration(Model):
    """The configuration of the server."""

    version: str
    """Differs whenever the settings differ."""
    file: str | None = None
    """The path of the configuration file; None if there is none."""
    loaded_at: str | None = None
    """When its settings were put to use."""
    problem: str | None = None
    """Why a setting, or what the file says now, is ignored."""
    needs_restart: list[str] | None = None
    """The settings that changed since the server was started but are put to use only when it is started again."""


class Health(Model):
    """The state of index and server; `agtrace health` leaves out what only a server knows."""

    started_at: str | None = None
    index: IndexHealth
    answers: AnswerHealth | None = None
    telemetry: TelemetryHealth | None = None
    """None if nothing is recorded, or the file can't be read."""
    configuration: Configuration


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
