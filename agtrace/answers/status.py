"""The status of index and server: the same figures for ax://health, /healthz, /readyz and `agtrace health`."""

from __future__ import annotations

import sqlite3
import time

from agtrace_indexer.index.questions import state
from agtrace_indexer.redact import redact
from agtrace_schema.database import VERSION
from agtrace_schema.status import Configuration, Health, IndexHealth, TelemetryHealth

from agtrace.answers.metrics import Metrics
from agtrace.answers.telemetry import store
from agtrace.index.chosen import bytes_on_disk, index_of
from agtrace.index.freshness import Freshness
from agtrace.problems import SettingError
from agtrace.sessions.prices import load as load_prices
from agtrace.settings.live import Loaded
from agtrace.settings.model import Settings
from agtrace.text.lines import one_line
from agtrace.times import iso

_LONGEST_PROBLEM = 400
_HOUR = 3600


def look(loaded: Loaded, *, refresh_seconds: float = 10) -> Health:
    """Return the figures without a running server. Raises `IndexUnavailable` if the index can't be opened."""
    settings = loaded.settings
    try:
        load_prices(settings.prices)
        problem = None
    except SettingError as error:
        problem = str(error)
    index = index_of(settings)
    freshness = index.refresh(refresh_seconds)
    with index.reader() as reader:
        return health(reader.connection, loaded, freshness, problem=problem)


def health(
    connection: sqlite3.Connection | None,
    loaded: Loaded,
    freshness: Freshness,
    metrics: Metrics | None = None,
    *,
    started: float | None = None,
    problem: str | None = None,
    dropped: int | None = None,
) -> Health:
    """Return the current figures. `connection` is None without an index; `metrics`, `started` and `dropped` are a
    server's.

    `started` is in seconds since 1970 UTC; `problem` says why a setting is ignored.
    """
    settings = loaded.settings
    return Health(
        started_at=None if started is None else iso(round(1000 * started)),
        index=_index(connection, settings, freshness),
        answers=None if metrics is None else metrics.health(),
        telemetry=_telemetry(settings, dropped) if settings.telemetry.enabled else None,
        configuration=_configuration(loaded, problem),
    )


def _configuration(loaded: Loaded, problem: str | None) -> Configuration:
    faults = [*map(str, loaded.faults), *([problem] if problem else [])]
    more = f"; and {len(faults) - 1:,} more: `agtrace config check` names them" if len(faults) > 1 else ""
    return Configuration(
        version=loaded.settings.version,
        file=None if loaded.file is None else _line(str(loaded.file)),
        loaded_at=None if loaded.at is None else iso(round(1000 * loaded.at)),
        problem=_line(faults[0], _LONGEST_PROBLEM - len(more)) + more if faults else None,
        needs_restart=list(loaded.restart) or None,
    )


def _index(connection: sqlite3.Connection | None, settings: Settings, freshness: Freshness) -> IndexHealth:
    totals = state.EMPTY if connection is None else state.totals(connection)
    return IndexHealth(
        state=freshness.state,
        files_behind=freshness.files_behind,
        bytes_behind=freshness.bytes_behind,
        problem=freshness.problem and _line(freshness.problem),
        sessions=totals.sessions,
        events=totals.events,
        logs=totals.logs,
        bytes=bytes_on_disk(settings),
        newest_event=iso(totals.newest_event),
        tables_version=VERSION,
    )


def _telemetry(settings: Settings, dropped: int | None) -> TelemetryHealth | None:
    since = round(1000 * (time.time() - _HOUR))
    try:
        rows, recent = store.count(settings.telemetry_file), store.sums_since(settings.telemetry_file, since)
    except sqlite3.Error:
        return None
    return TelemetryHealth(
        rows=rows,
        dropped=dropped,
        last_hour=recent.requests,
        paginated_share=round(recent.paginated / (recent.requests or 1), 4),
        mean_bytes=round(recent.bytes / (recent.requests or 1)),
        oversized_share=round(recent.oversized / (recent.requests or 1), 4),
    )


def _line(text: str, most: int = _LONGEST_PROBLEM) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()  # a key or a path may hold what is no letter
    return one_line(redact(text), most)
