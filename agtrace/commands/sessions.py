"""`agtrace sessions`: list sessions."""

from __future__ import annotations

from typing import Any

import click

from agtrace.commands.asking import ask
from agtrace.commands.options import ACCESSES, KINDS, SORTS, Tokens, check_fields, fields, list_options, path
from agtrace.commands.printing import leave


@click.command()
@click.option("--query", metavar="TEXT", help="Only with this text in the title or a request.")
@path
@click.option("--access", type=click.Choice(ACCESSES), help="Only where a tool did this to the file.")
@click.option("--kind", type=click.Choice(KINDS), help="Leave out sub-agents, or all others.")
@click.option("--sort", type=click.Choice(SORTS), help="By start, or by a measure, the largest first.")
@click.option("--min-tokens", type=Tokens(), metavar="N", help="Only with at least N tokens: 50000, 50k, 1.5M.")
@click.option("--failures/--no-failures", "has_failures", default=None, help="Only with failed tool calls, or without.")
@click.option("--commit", metavar="HASH|any", help="Only the one with this commit: a hash or its beginning; or any.")
@click.option("--pr", metavar="NUMBER|URL|any", help="Only those of a pull request, or of any.")
@fields
@list_options
def sessions(as_json: bool, **filters: Any) -> None:
    """List sessions, newest first.

    \b
      agtrace sessions --failures --since yesterday
      agtrace sessions --path src/store.py
      agtrace sessions --commit 3fa9c21
    """
    check_fields(filters["fields"], as_json=as_json)
    answer = ask("list_sessions", filters)

    def for_person() -> None:
        from agtrace.render.lists import sessions as shown

        shown(answer.value, answer.next_calls, filters["sort"])

    leave(answer.value, as_json, for_person)
