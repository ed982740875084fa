"""`agtrace analyze`: show the health of a session."""

from __future__ import annotations

import click

from agtrace.commands.asking import ask
from agtrace.commands.options import as_json, session_ids
from agtrace.commands.printing import leave


@click.command()
@click.argument("session", shell_complete=session_ids)
@as_json
def analyze(session: str, as_json: bool) -> None:
    """Show what went wrong in a session: failed tools, repeated calls, token use, each with its events."""
    answer = ask("analyze_session", {"session_id": session, "include_loops": True})

    def for_person() -> None:
        from agtrace.render.analysis import analysis

        analysis(answer.value)

    leave(answer.value, as_json, for_person)
