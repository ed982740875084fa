"""`agtrace statusline`: a line for the bottom of Claude Code."""

from __future__ import annotations

import sys

import click


@click.command()
def statusline() -> None:
    """Print a line for Claude Code's status line: project, model, context, cost, failed calls, sessions that wait.

    Claude Code runs it as the command of `statusLine` in its settings.json, and gives it the session as JSON on stdin:

    \b
      "statusLine": {"type": "command", "command": "agtrace statusline"}

    It indexes nothing: failed calls and other sessions are as the index has them (`agtrace service` keeps it fresh).
    """
    from agtrace.commands import print_status_line

    print_status_line(sys.stdin.buffer)
