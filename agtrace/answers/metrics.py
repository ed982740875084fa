"""Counts and sizes of the answers since the process started, but nothing of their content."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from agtrace_schema.status import AnswerHealth

from agtrace.answers.telemetry.alert import OversizedAlert
from agtrace.shaping.shape import Answer

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
