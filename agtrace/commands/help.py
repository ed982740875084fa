"""`agtrace help`: the help of agtrace, or of one command."""

from __future__ import annotations

import click


@click.command("help")
@click.argument("command", required=False)
@click.pass_context
def help_of(ctx: click.Context, command: str | None) -> None:
    """Show what agtrace can do, or how one COMMAND is used."""
    above = ctx.parent
    assert above is not None and isinstance(above.command, click.Group)
    if command is None:
        click.echo(above.get_help())
        return
    name, found, _ = above.command.resolve_command(above, [command])
    assert found is not None
    click.echo(found.get_help(click.Context(found, info_name=name, parent=above)))
