"""The end of the server: with its client, whatever it is doing, and with every process that it has started."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from typing import NoReturn

LAST_SECONDS = 0.5
"""How long answers may take that are being made when the client's input ends."""


def end(code: int = 0) -> NoReturn:
    """End the process: neither a search nor an indexing run may keep it, for nobody waits for an answer any more."""
    try:
        workers = sys.modules.get("agtrace_indexer.workers")  # it is loaded where logs are read on all cores
        if workers is not None:
            workers.end_all()
    finally:
        os._exit(code)


def end_with_client() -> None:
    """Have the process end once its client has closed either pipe, also where nobody comes to notice."""
    if sys.stdin is None or sys.stdout is None or not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(os.dup(0), getattr(select, "POLLRDHUP", 0))  # 0 and 1 will stand for something else
    poll.register(os.dup(1), 0)

    def wait() -> None:
        poll.poll()
        time.sleep(LAST_SECONDS)
        end()

    threading.Thread(target=wait, daemon=True).start()
