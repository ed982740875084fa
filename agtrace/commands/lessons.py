"""`agtrace lessons`: what keeps failing across the sessions of a project, and what worked in the end."""

from __future__ import annotations

import sys

import click

from agtrace.commands.errors import tell
from agtrace.commands.options import plain_json, project, provider
from agtrace.commands.printing import print_json
from agtrace.commands.selecting import Filters, selected


@click.command()
@project
@provider
@click.option("--since", metavar="TIME", help="Only sessions begun from this time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="Only sessions begun up to this time, written as for --since.")
@plain_json
def lessons(as_json: bool, **filters: str | None) -> None:
    """Show what keeps failing across sessions and what worked in the end: sentences to put into CLAUDE.md or AGENTS.md.

    A lesson failed with the same error in two sessions, or three times in one. Each has the commands that show the call
    that failed and the one that worked.

    \b
      agtrace lessons --project .
      agtrace lessons --since 30d
    """
    from agtrace_schema.model import dump

    from agtrace.report.lessons import lessons as learned
    from agtrace.report.lessons import text
    from agtrace.shaping.output import printed
    from agtrace.text.next_call import showing

    with selected(Filters(**filters)) as (connection, selection, now, prices, lacking):
        found = printed(learned(connection, selection, now=now, prices=prices))
    if lacking:
        tell(lacking)
    if as_json:
        print_json(dump(found))
    else:
        sys.stdout.write(text(found, showing))
