"""The alert for answers that don't fit: more than 5 % of those of the last five minutes, if these are at least 20."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

WINDOW_SECONDS = 300
FEWEST = 20
SHARE = 0.05
_TOOLS_NAMED = 3


class OversizedAlert:
    """Watches the share of answers that didn't fit as they were asked for. Safe to use from several threads."""

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
            worst = Counter(name for _, name, too_large in self._window if too_large).most_common(_TOOLS_NAMED)
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
