"""The commands: each reads its arguments, calls the same functions as the MCP server, and prints.

Exit codes: 0 ok, 1 trouble found (by commands that look for it) or nothing found, 2 usage, 3 data can't be read.
"""

from __future__ import annotations

import gc
import sys
from typing import BinaryIO

from agtrace.problems import SettingError

_MOST_BYTES = 1_000_000
"""The most that is read of what Claude Code gives its status line."""


def serve() -> None:
    """Run the MCP server on stdin and stdout; the process ends with its client.

    It is defined here so that it starts without loading the command line.
    """
    from agtrace.serving.ending import end_with_client

    end_with_client()  # even while it is still starting
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        sys.stderr.write(
            "agtrace: waiting for an MCP client on stdin; Ctrl-C ends it (`agtrace setup` adds it to an agent)\n"
        )
        sys.stderr.flush()
    try:
        from agtrace.settings.live import Live

        live = Live.start()
        gc.disable()  # what the SDK loads stays for good: collecting garbage takes a twelfth of the start-up time
        from agtrace.serving.stdio_transport import serve_stdio

        gc.freeze()
        gc.enable()
        serve_stdio(live)
    except (SettingError, OSError) as error:
        from agtrace.commands.errors import USAGE, fail

        first, *more = str(error).split("\n")
        fail(first, USAGE, *more)


def print_status_line(stream: BinaryIO) -> None:
    """Print the status line for what a stream holds. It is defined here, so that it starts as quickly as it can."""
    from agtrace.answers.status_line import NOTHING, status_line
    from agtrace.settings.environment import data_dir

    given = b"" if stream.isatty() else stream.read(_MOST_BYTES)
    line = status_line(given, data_dir() / "index.sqlite3") if given else NOTHING
    sys.stdout.buffer.write(f"{line}\n".encode("utf-8", "replace"))
    sys.stdout.flush()
