"""The commands: each reads its arguments, calls the same functions as the MCP server, and prints.

Exit codes: 0 ok, 1 trouble found (by commands that look for it), 2 usage, 3 data can't be read.
"""

from __future__ import annotations

import gc

from agtrace.problems import SettingError


def serve() -> None:
    """Run the MCP server on stdin and stdout; the process ends with its client.

    It is defined here so that it starts without loading the command line.
    """
    from agtrace.serving.ending import end_with_client

    end_with_client()  # even while it is still starting
    try:
        _serve()
    except (SettingError, OSError) as error:
        from agtrace.commands.errors import USAGE, fail

        first, *more = str(error).split("\n")
        fail(first, USAGE, *more)


def _serve() -> None:
    from agtrace.settings.live import Live

    live = Live.start()
    gc.disable()  # what the SDK loads stays for good: collecting garbage takes a twelfth of the start-up time
    from agtrace.serving.stdio_transport import serve_stdio

    gc.freeze()
    gc.enable()
    serve_stdio(live)
