"""The entry point of `agtrace`: straight to the MCP server, or to the commands for people."""

from __future__ import annotations

import sys
from io import TextIOWrapper


def main() -> None:
    """Run `agtrace` with the process's arguments. The server starts without loading the command line."""
    if sys.argv[1:] == ["mcp"]:
        from agtrace.commands import serve

        serve()
        return
    from agtrace.commands.group import agtrace

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # logs hold letters that not every terminal has
    agtrace.main(prog_name="agtrace")
