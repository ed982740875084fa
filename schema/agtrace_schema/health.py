"""The models of how index, server and answers are: ax://health, /healthz and `agtrace health`."""

from __future__ import annotations

from typing import Literal

from agtrace_schema.answers import Model

# -- ax://health, /healthz, `agtrace health` --------------------------------------------------------


class IndexHealth(Model):
    """How the index is, and how far it lies behind the logs; None is unknown."""

    state: Literal["ready", "catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed, or the index not be read, at the moment."""
    sessions: int
    events: int
    logs: int
    """Files that hold sessions, also those that were deleted since."""
    bytes: int
    """On disk."""
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
    """Answers that didn't fit as they were asked for."""
    oversized_share: float
    oversized_alert: bool
    """Whether the share is above 5 %."""
    continuable: int
    """Answers that ended with a cursor."""
    continued: int
    """Answers that began at a cursor."""
    continued_share: float
    """Of those that ended with one."""


class Configuration(Model):
    """What the server was set to do."""

    version: str
    """Differs where the settings differ."""
    problem: str | None = None
    """Why a setting is done without."""


class Health(Model):
    """How index and server are; what only a server knows is absent from `agtrace health`."""

    started_at: str | None = None
    index: IndexHealth
    answers: AnswerHealth | None = None
    configuration: Configuration
