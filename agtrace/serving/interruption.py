"""Ctrl-C ends a command at once, whatever it is doing: the index survives the end of its writer at any moment.

No `KeyboardInterrupt` is raised: during imports, in a library's callback or after a long call into C it would show as a
traceback, arrive late, or not at all. A thread receives the signal, even while the main thread is in C.

This module is loaded first and imports next to nothing, so that it works as early as possible.
"""

from __future__ import annotations

import _thread
import os
import signal

INTERRUPTED = 130
"""The exit code after Ctrl-C (128 + SIGINT)."""

together = _thread.RLock()
"""A lock to hold during steps that belong together: Ctrl-C waits until they are done."""

last_words = [b"\n"]
"""Bytes to write to a terminal at the end, the last item first."""

_OURS = b"\xff"
"""Written to the thread by the handler itself; no signal has this number."""


def end_at_interrupt() -> None:
    """Make SIGINT end the process with `INTERRUPTED`, unless it is ignored, as with `nohup`, or handled elsewhere.

    Call it in the main thread.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    told, telling = os.pipe()
    os.set_blocking(telling, False)
    signal.set_wakeup_fd(telling, warn_on_full_buffer=False)

    def handle(_signal: int, _frame: object) -> None:
        """Leave the signal to the thread, even if others handle it from now on."""
        os.write(telling, _OURS)

    _thread.start_new_thread(_wait, (told, handle))
    signal.signal(signal.SIGINT, handle)


def _wait(told: int, handle: object) -> None:
    while True:
        said = os.read(told, 64)
        if _OURS in said or (signal.SIGINT in said and signal.getsignal(signal.SIGINT) is handle):
            with together:
                from agtrace.serving.ending import end

                try:
                    if os.isatty(2):
                        os.write(2, b"".join(reversed(last_words)))
                finally:
                    end(INTERRUPTED)
