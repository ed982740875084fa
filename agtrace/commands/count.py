"""`agtrace count`: count calls or tokens by group."""

from __future__ import annotations

from typing import Any

import click

from agtrace.commands.asking import ask
from agtrace.commands.options import COUNTED, GROUPS, KINDS, Groups, count_options, failed, path
from agtrace.commands.printing import leave


@click.command()
@click.option("--by", "group_by", type=Groups(GROUPS), required=True, help="The groups.")
@click.option("--measure", type=click.Choice(COUNTED), help="What is counted; by default calls.")
@click.option("--session", "session_id", metavar="SESSION", help="Only one session: its id or the beginning of it.")
@click.option("--kind", type=click.Choice(KINDS), help="Leave out sub-agents, or all others.")
@click.option("--tool", help="Only calls of this tool.")
@path
@failed
@count_options
def count(as_json: bool, **wanted: Any) -> None:
    """Count calls, failed calls or tokens by group, the largest first.

    \b
      agtrace count --by tool --measure failed
      agtrace count --by program --since 7d
      agtrace count --by model --measure tokens
    """
    answer = ask("count_events", wanted)
    by: Any = wanted["group_by"]
    counted: Any = wanted["measure"] or "calls"

    def for_person() -> None:
        from agtrace.render.counts import counts

        counts(answer.value, answer.next_calls, by, counted)

    leave(answer.value, as_json, for_person)
