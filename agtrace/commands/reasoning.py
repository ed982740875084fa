"""`agtrace reasoning`: show only the thinking of a session."""

from __future__ import annotations

from typing import Any

import click

from agtrace.commands.asking import ask
from agtrace.commands.options import as_json, cursor, limit, session_ids
from agtrace.commands.printing import leave


@click.command()
@click.argument("session", shell_complete=session_ids)
@click.option("--turn", "turn_index", type=int, help="Only one turn.")
@limit
@cursor
@as_json
def reasoning(session: str, as_json: bool, **asked: Any) -> None:
    """Show only the thinking of a session, each thought with what the model did next."""
    answer = ask("get_reasoning_chain", {"session_id": session, **asked})

    def for_person() -> None:
        from agtrace.render.reasoning import reasoning

        reasoning(answer.value)

    leave(answer.value, as_json, for_person)
