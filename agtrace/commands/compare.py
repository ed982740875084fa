"""`agtrace compare`: show two sessions side by side."""

from __future__ import annotations

import click

from agtrace.commands.asking import ask
from agtrace.commands.options import as_json, session_ids
from agtrace.commands.printing import leave


@click.command()
@click.argument("id1", metavar="SESSION", shell_complete=session_ids)
@click.argument("id2", metavar="SESSION", shell_complete=session_ids)
@as_json
def compare(id1: str, id2: str, as_json: bool) -> None:
    """Compare two sessions, even of different agents: tools, files, failures, tokens, time and outcome."""
    answer = ask("compare_sessions", {"id1": id1, "id2": id2})

    def for_person() -> None:
        from agtrace.render.comparison import comparison

        comparison(answer.value)

    leave(answer.value, as_json, for_person)
