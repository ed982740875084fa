"""The entry point of `agtrace`: it starts the MCP server directly, or runs a command."""

from __future__ import annotations

import gc
import os
import sys
from io import TextIOWrapper

try:
    from agtrace.serving.interruption import end_at_interrupt
    from agtrace.settings.environment import load_no_plugins
except KeyboardInterrupt:  # pressed before any other handler is in place
    os._exit(130)

_OBJECTS = 200_000
"""New objects after which Python looks for garbage, more than a start makes: looking after every 700, as by default,
costs a tenth of the time that reading logs takes, and of a command's start."""

CLOSED_PIPE = 141
"""The exit code when the reader closes the pipe early, as for a program ended by SIGPIPE (128 + 13)."""


_STARTING_OTHERS = {"prune", "resume", "run", "service", "setup"}
"""The commands that start programs of others, which inherit the environment."""

_ONLY_READING = {
    *("analyze", "compare", "cost", "lessons", "projects", "search", "sessions", "show", "sql"),
    "why",
}
"""The commands after which nothing is left to be done: taking a process apart costs a fifth of the time of these."""


def main() -> None:
    """Run `agtrace` with the process's arguments. The server starts without loading the command line."""
    gc.set_threshold(_OBJECTS)
    if _STARTING_OTHERS.isdisjoint(sys.argv):
        load_no_plugins()
    end_at_interrupt()
    _stand_in("stderr", "w")
    if sys.argv[1:] == ["mcp"]:
        from agtrace.commands import serve

        serve()
        return
    _stand_in("stdin", "r")
    _stand_in("stdout", "w")
    if sys.argv[1:] == ["statusline"]:
        from agtrace.commands import print_status_line

        print_status_line(sys.stdin.buffer)
        return
    from agtrace.commands.group import agtrace

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout = _Stream.of(sys.stdout)
    if isinstance(sys.stderr, TextIOWrapper):
        sys.stderr = _Stream.of(sys.stderr)
    code = 0
    try:
        try:
            agtrace.main(prog_name="agtrace")
        except SystemExit as ended:
            if not isinstance(ended.code, int | None):
                raise
            code = ended.code or 0
        finally:
            sys.stdout.flush()
    except _Unwritten as failure:
        _end(failure.why)
    except Exception:
        _end_if_damaged()
        raise
    if _ONLY_READING.isdisjoint(sys.argv[1:2]):
        sys.exit(code)
    from agtrace.serving.ending import end

    sys.stderr.flush()
    end(code)


def _stand_in(name: str, mode: str) -> None:
    """Replace a stream that was closed before the process began by one to the null device, like `> /dev/null`."""
    if getattr(sys, name) is None:
        nowhere = os.fdopen(os.open(os.devnull, os.O_RDWR), mode)
        setattr(sys, name, nowhere)
        setattr(sys, f"__{name}__", nowhere)  # keeps it open, even if the other name is rebound


class _Unwritten(Exception):
    """stdout or stderr can't be written.

    Not an `OSError`: those are reported as trouble with the index, and Click and Rich turn them into exit code 1.
    """

    def __init__(self, why: OSError) -> None:
        super().__init__(str(why))
        self.why = why


class _Stream(TextIOWrapper):
    """stdout or stderr, raising `_Unwritten` when it can't be written."""

    @classmethod
    def of(cls, stream: TextIOWrapper) -> _Stream:
        """Wrap a stream; characters that the terminal's encoding lacks are replaced, since logs may hold any."""
        return cls(
            stream.buffer, stream.encoding, "replace",
            line_buffering=stream.line_buffering, write_through=stream.write_through,
        )  # fmt: skip

    def write(self, text: str, /) -> int:
        """Write a text. Raises `_Unwritten`."""
        try:
            return super().write(text)
        except OSError as error:
            raise _Unwritten(error) from error

    def flush(self) -> None:
        """Write what is buffered. Raises `_Unwritten`."""
        try:
            super().flush()
        except OSError as error:
            raise _Unwritten(error) from error


def _end_if_damaged() -> None:
    """End the process with a message about the damage, if the index is damaged: any other error may follow from it."""
    from agtrace.commands.errors import UNREADABLE, fail
    from agtrace.index.trouble import damage_in
    from agtrace.settings.environment import data_dir

    database = data_dir() / "index.sqlite3"
    problem = damage_in(database) if database.exists() else None
    if problem is not None:
        fail(problem.message, UNREADABLE, problem.hint or "")


def _end(why: OSError) -> None:
    """End the process: silently if the reader closed the pipe (`agtrace report | head -1`), else with the reason."""
    from agtrace.commands.errors import USAGE, fail

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # what is still buffered can't be written
    if not isinstance(why, BrokenPipeError):
        fail(f"can't write: {why.strerror or why}", USAGE)
    os.dup2(nowhere, sys.stderr.fileno())
    sys.exit(CLOSED_PIPE)
