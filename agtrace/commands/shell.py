"""What only prints: `agtrace completion` for a shell, and `statusline` for Claude Code."""

from __future__ import annotations

import sys

import click
from click.shell_completion import get_completion_class


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


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options and ids of sessions.

    \b
      bash, in ~/.bashrc:   eval "$(agtrace completion bash)"
      zsh, in ~/.zshrc:     eval "$(agtrace completion zsh)"
      fish:                 agtrace completion fish > ~/.config/fish/completions/agtrace.fish
    """
    above = ctx.parent
    made = get_completion_class(shell)
    assert above is not None and made is not None
    sys.stdout.write(f"{made(above.command, {}, 'agtrace', '_AGTRACE_COMPLETE').source().strip()}\n")
