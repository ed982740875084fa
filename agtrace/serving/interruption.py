"""Ctrl-C ends a command at once, whatever it is doing: the index bears the end of its writer at any moment.

No `KeyboardInterrupt` is raised: between imports, in another one's callback or behind a long call into C it would come
as a traceback, late, or not at all. A thread is told of the signal, even while the main thread is in C.

This is the first that is loaded: it loads next to nothing, so that there is little time before it works.
"""

from __future__ import annotations

import _thread
import os
import signal

INTERRUPTED = 130
"""The exit code of what Ctrl-C ended (128 + SIGINT)."""

together = _thread.RLock()
"""Held over steps that belong together: Ctrl-C waits until they are done."""

last_words = [b"\n"]
"""What is written to a terminal in the end, the last one first."""


def end_at_interrupt() -> None:
    """Have SIGINT end the process with `INTERRUPTED`, unless it is ignored, as by `nohup`, or another handler takes it.

    To be called in the main thread.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.signal(signal.SIGINT, _leave)
    told, telling = os.pipe()
    os.set_blocking(telling, False)
    signal.set_wakeup_fd(telling, warn_on_full_buffer=False)
    _thread.start_new_thread(_wait, (told,))
    signal.signal(signal.SIGINT, _told)


def _leave(_signal: int, _frame: object) -> None:
    os._exit(INTERRUPTED)


def _told(_signal: int, _frame: object) -> None:
    """Do nothing: the thread does."""


def _wait(told: int) -> None:
    while True:
        if signal.SIGINT in os.read(told, 64) and signal.getsignal(signal.SIGINT) is _told:
            with together:
                _end()


def _end() -> None:
    from agtrace.serving.ending import end

    try:
        if os.isatty(2):
            os.write(2, b"".join(reversed(last_words)))
    finally:
        end(INTERRUPTED)
