"""SIGHUP: a running server reads its configuration file at once, as operators expect of a server."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from agtrace.settings.live import Live


def follow(live: Live) -> None:
    """Read the settings again whenever this process gets SIGHUP; on Windows there is none."""
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is None:
        return

    def reload(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=live.reload, name="reload", daemon=True).start()  # a handler mustn't wait for a lock

    signal.signal(hang_up, reload)
