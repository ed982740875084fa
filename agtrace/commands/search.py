"""`agtrace search`: find the events that contain a text, or the sessions that have them."""

from __future__ import annotations

from typing import Any

import click

from agtrace.commands.asking import ask
from agtrace.commands.options import EVENT_TYPES, WORDS, list_options, path
from agtrace.commands.printing import leave


@click.command()
@click.argument("query")
@click.option("--words", type=click.Choice(WORDS), help="All words of QUERY, in one event or one turn.")
@click.option("--regex", is_flag=True, help="QUERY is a regular expression; ^ and $ are ends of lines.")
@click.option("--oldest", is_flag=True, help="Oldest first.")
@click.option("--by-session", is_flag=True, help="Each session once, with how many matches it has.")
@click.option("--session", "session_id", metavar="SESSION", help="In one session: its id or the beginning of it.")
@click.option("--type", "event_type", type=click.Choice(EVENT_TYPES), help="Events of one type.")
@click.option("--tool", help="Calls and results of one tool.")
@path
@click.option("--failed/--not-failed", default=None, help="Only tool executions that failed, or none of them.")
@click.option("--own", "include_own", is_flag=True, help="Also the calls that agents made to agtrace itself.")
@list_options
def search(query: str, as_json: bool, oldest: bool, by_session: bool, **filters: Any) -> None:
    """Find the events that contain QUERY, newest first: literal text, case-insensitive, no syntax.

    \b
      agtrace search 'database is locked' --failed
      agtrace search 'locked retry' --words turn
      agtrace search ModuleNotFoundError --by-session --since 30d
      agtrace search '' --path store.py --session fb3cff44
    """
    filters["order"] = "oldest" if oldest else None
    filters["group_by"] = "session" if by_session else None
    answer = ask("search_event_previews", {"query": query, **filters})
    looked_for = query.split() if filters["words"] else [] if filters["regex"] else [query]
    texts = [text for text in looked_for if text]
    leave(answer.value, as_json, lambda render: render.matches(answer.value, answer.next_calls, texts))
