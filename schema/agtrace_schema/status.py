"""The models of the state of index, server and answers: ax://health and /healthz."""

from __future__ import annotations

from typing import Literal

from agtrace_schema.model import Model

# -- ax://health, /healthz --------------------------------------------------------------------------


class IndexHealth(Model):
    """The state of the index, and how far it is behind the logs; None is unknown."""

    state: Literal["ready", "catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed, or the index can't be read, at the moment."""
    sessions: int
    sub_agents: int = 0
    events: int
    logs: int
    """Files that contain sessions, including those deleted since."""
    bytes: int | None = None
    """On disk; absent for a team's index, whose server knows."""
    newest_event: str | None = None
    unread: list[str] | None = None
    """Logs and stores of agents that can't be read, the first three; `agtrace doctor` has all."""
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
    """The state of index and server."""

    started_at: str | None = None
    index: IndexHealth
    answers: AnswerHealth | None = None
    telemetry: TelemetryHealth | None = None
    """None if nothing is recorded, or the file can't be read."""
    configuration: Configuration
