"""The end of the server: at once, whatever it is doing, and with every process that it has started."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def end(code: int = 0) -> NoReturn:
    """End the process: neither a search nor an indexing run may keep it, for nobody waits for an answer any more."""
    try:
        workers = sys.modules.get("agtrace_indexer.workers")  # it is loaded where logs are read on all cores
        if workers is not None:
            workers.end_all()
    finally:
        os._exit(code)
