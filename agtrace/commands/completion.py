"""`agtrace completion`: the script by which a shell completes commands, options and ids of sessions."""

from __future__ import annotations

import sys

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_AGTRACE_COMPLETE"
"""The variable by which Click is asked for completions."""


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
    sys.stdout.write(f"{made(above.command, {}, 'agtrace', _VARIABLE).source().strip()}\n")
