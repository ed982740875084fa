"""The status of index and server, the same for ax://health, /healthz and /readyz; and its counts."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from agtrace_indexer.index.queries import events, upkeep
from agtrace_indexer.index.queries.events import with_texts
from agtrace_indexer.index.queries.usage import answer_tokens
from agtrace_indexer.redact import redact
from agtrace_schema.database import VERSION
from agtrace_schema.status import AnswerHealth, Configuration, Health, IndexHealth, TelemetryHealth

from agtrace.answers.telemetry import store
from agtrace.index.reader import bytes_on_disk
from agtrace.index.trouble import Freshness
from agtrace.settings.live import Loaded
from agtrace.settings.model import Settings
from agtrace.shaping.shape import Answer, estimated_tokens
from agtrace.text.lines import one_line
from agtrace.times import iso

WINDOW_SECONDS = 300
FEWEST = 20
SHARE = 0.05
_MOST_NAMED = 3


class OversizedAlert:
    """Watches answers that don't fit: more than 5 % of those of the last five minutes, if these are at least 20.

    Safe to use from several threads.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._window: deque[tuple[float, str, bool]] = deque()
        self._oversized = 0
        self._quiet_until = 0.0

    def note(self, tool: str, *, oversized: bool) -> dict[str, Any] | None:
        """Note an answer; return the log record of the alert if there is one now, at most once in a window."""
        with self._lock:
            now = self._now()
            self._window.append((now, tool, oversized))
            self._oversized += oversized
            self._forget(now)
            if not self._is_on() or now < self._quiet_until:
                return None
            self._quiet_until = now + WINDOW_SECONDS
            worst = Counter(name for _, name, too_large in self._window if too_large).most_common(_MOST_NAMED)
            share = round(self._oversized / len(self._window), 3)
            return {
                "event": "alert.oversized_rate",
                "level": "warning",
                "share": share,
                "requests": len(self._window),
                "tools": dict(worst),
            }

    @property
    def on(self) -> bool:
        """Whether the share is too large now; it is off again as soon as the window is clean."""
        with self._lock:
            self._forget(self._now())
            return self._is_on()

    def _is_on(self) -> bool:
        return len(self._window) >= FEWEST and self._oversized > SHARE * len(self._window)

    def _forget(self, now: float) -> None:
        while self._window and self._window[0][0] <= now - WINDOW_SECONDS:
            self._oversized -= self._window.popleft()[2]


_REMEMBERED = 1_000


class Metrics:
    """Counts of answers. Safe to use from several threads; recording takes microseconds."""

    def __init__(self, alert: OversizedAlert | None = None) -> None:
        self._alert = alert or OversizedAlert(time.time)
        self._lock = threading.Lock()
        self._tools: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._sizes: deque[int] = deque(maxlen=_REMEMBERED)
        self._bytes = self._largest = self._oversized = self._offered = self._continued = 0

    def record(self, tool: str, arguments: Mapping[str, Any], given: Answer, size: int) -> dict[str, Any] | None:
        """Count an answer of `size` bytes; return the log record of an alert if it causes one."""
        value = given.value
        continuation = value.get("pagination") or value.get("chunk") or {}
        with self._lock:
            self._tools[tool] += 1
            self._bytes += size
            self._sizes.append(size)
            self._largest = max(self._largest, size)
            self._oversized += given.asked_bytes is not None
            self._offered += continuation.get("next_cursor") is not None
            self._continued += not given.is_error and arguments.get("cursor") is not None
            if given.is_error:
                self._errors[value["error"]["code"]] += 1
        return self._alert.note(tool, oversized=given.asked_bytes is not None)

    def health(self) -> AnswerHealth:
        """Return the figures so far."""
        from statistics import median  # only if asked for

        with self._lock:
            count = self._tools.total()
            return AnswerHealth(
                count=count,
                errors=self._errors.total(),
                error_codes=dict(sorted(self._errors.items())),
                by_tool=dict(sorted(self._tools.items())),
                mean_bytes=round(self._bytes / count) if count else 0,
                median_bytes=round(median(self._sizes)) if self._sizes else 0,
                largest_bytes=self._largest,
                oversized_attempts=self._oversized,
                oversized_share=_share(self._oversized, count),
                oversized_alert=self._alert.on,
                continuable=self._offered,
                continued=self._continued,
                continued_share=_share(self._continued, self._offered),
            )


def _share(part: int, whole: int) -> float:
    return round(min(part / whole, 1), 3) if whole else 0


_CHECKED, _CLOSE = 1_000, 0.2


def estimates(connection: sqlite3.Connection) -> dict[str, Any]:
    """Compare the estimated tokens of the newest answers with what the models that read them counted (002, FR-014).

    `median` is that of estimated by counted tokens, `close` the share that differs by no more than a fifth.
    """
    from statistics import median

    found = []
    for session, index, tokens in answer_tokens(connection, _CHECKED):
        if tokens and tokens > 0:
            (read,) = with_texts(connection, events.several(connection, session, [index]))
            found.append(estimated_tokens(len(read.text)) / tokens)
    close = sum(abs(ratio - 1) <= _CLOSE for ratio in found)
    return {"answers": len(found), "median": round(median(found or [0]), 2), "close": _share(close, len(found))}


_LONGEST_PROBLEM = 400
_HOUR = 3600


def health(
    connection: sqlite3.Connection | None,
    loaded: Loaded,
    freshness: Freshness,
    metrics: Metrics,
    *,
    started: float,
    problem: str | None,
    dropped: int | None,
) -> Health:
    """Return the current figures. `connection` is None without an index, `started` is in seconds since 1970 UTC,
    `problem` says why a setting is ignored.
    """
    settings = loaded.settings
    return Health(
        started_at=iso(round(1000 * started)),
        index=_index(connection, settings, freshness),
        answers=metrics.health(),
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
    totals = {} if connection is None else upkeep.totals(connection)
    return IndexHealth(
        state=freshness.state,
        files_behind=freshness.files_behind,
        bytes_behind=freshness.bytes_behind,
        problem=freshness.problem and _line(freshness.problem),
        sessions=totals.get("sessions", 0),
        sub_agents=totals.get("sub_agents", 0),
        events=totals.get("events", 0),
        logs=totals.get("logs", 0),
        bytes=bytes_on_disk(settings),
        newest_event=iso(totals.get("newest_event")),
        unread=None if connection is None else [*map(_line, upkeep.unread(connection)[:_MOST_NAMED])] or None,
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
