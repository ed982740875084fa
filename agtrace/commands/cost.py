"""`agtrace cost`: what was spent, by day, week, month, project, model, agent or user."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click
from agtrace_schema.requests import CostBy

from agtrace.commands.errors import tell
from agtrace.commands.options import Groups, plain_json, project, provider
from agtrace.commands.printing import leave
from agtrace.commands.selecting import Filters, selected

if TYPE_CHECKING:
    from agtrace_schema.costs import Costs


@click.command()
@click.option("--by", type=Groups(get_args(CostBy)), default="day", show_default=True, help="The groups.")
@click.option("--since", metavar="TIME", help="Only what was spent from this time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="Only what was spent up to this time, written as for --since.")
@project
@provider
@click.option("--no-dollars", is_flag=True, help="Only tokens, for those who pay by subscription.")
@plain_json
def cost(by: CostBy, no_dollars: bool, as_json: bool, **filters: str | None) -> None:
    """Show what was spent, in tokens and dollars: days, weeks and months in time order, all others by cost.

    Tokens belong to the day on which they were spent, whenever the session began. Days are UTC days, weeks begin on
    Monday. What a session copied from another counts once. Sub-agents are rolled up into the session that started them;
    a session counts once in each row, and once in the total.

    \b
      agtrace cost --by week
      agtrace cost --by project --since 30d
      agtrace cost --by model --project . --no-dollars
    """
    from agtrace_schema.model import dump

    found = made(Filters(**filters), by, dollars=not no_dollars)
    if found.behind:
        tell(found.behind)

    def for_person() -> None:
        from agtrace.render.costs import costs

        costs(found)

    leave(dump(found), as_json, for_person)


def made(filters: Filters, by: CostBy, *, dollars: bool) -> Costs:
    """Sum up what was spent, with secrets masked as in every answer."""
    from agtrace.report.costs import costs
    from agtrace.shaping.output import printed

    with selected(filters) as (connection, selection, _, prices, lacking):
        return printed(costs(connection, selection, by, prices=prices, dollars=dollars, behind=lacking))
