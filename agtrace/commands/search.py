"""`agtrace search`: find events that contain a text, or the sessions that have them."""

from __future__ import annotations

import sys
from typing import Any

import click
from agtrace_indexer.texts.ranked_words import query_words
from agtrace_schema.events import EventType
from agtrace_schema.requests import EventKind

from agtrace.commands.asking import described, listed
from agtrace.commands.errors import TROUBLE
from agtrace.commands.options import (
    check_whole,
    every,
    failed,
    list_options,
    one_of,
    path,
)
from agtrace.commands.printing import print_json


@click.command()
@click.argument("words_of_query", metavar="QUERY", nargs=-1, required=True)
@click.option("--regex", is_flag=True, help="QUERY is a regular expression; ^ and $ match at line ends.")
@click.option("--newest", "order", flag_value="newest", help="List every event that contains QUERY, newest first.")
@click.option("--oldest", "order", flag_value="oldest", help="The same, oldest first.")
@click.option("--by-session", is_flag=True, help="List each session once, with its number of matches.")
@click.option("--session", "session_id", metavar="SESSION", help="Only one session: its id or the beginning of it.")
@click.option("--kind", type=one_of(EventKind), help="Only events of this kind.")
@click.option("--type", "event_type", type=click.Choice([*map(str, EventType)]), hidden=True)
@click.option("--tool", help="Only calls and results of this tool.")
@path
@failed
@click.option("--ids", "whole_ids", is_flag=True, help="Show the ids of sessions in full.")
@every
@list_options
def search(
    words_of_query: tuple[str, ...], as_json: bool, by_session: bool, everything: bool, whole_ids: bool, **filters: Any
) -> None:
    """Find the sessions that the words of QUERY are about, best first, or the events that contain it.

    Exit code 1: nothing was found.

    \b
      agtrace search 'retry of a locked database'
      agtrace search 'database is locked' --newest --failed
      agtrace search ModuleNotFoundError --by-session --since 30d
      agtrace search '' --path store.py --session fb3cff44
    """
    query = " ".join(words_of_query)
    filters["group_by"] = "session" if by_session else None
    check_whole(everything, as_json=as_json)
    wanted = {"query": query, **filters}
    answer = listed("search_event_previews", wanted, ("matches", "sessions"), everything=everything, one_page=as_json)
    by_words = "best" in answer.value.get("data", {})
    looked_for = query.split() if by_words else [] if filters["regex"] else [query]
    texts = [text for text in looked_for if text]
    if as_json:
        print_json(answer.value)
    else:
        from agtrace.render.lists import matches
        from agtrace.render.terminal import fills

        about = described(_sessions_in(answer.value["data"]))
        matches(answer.value, answer.next_calls, texts, about, whole_ids=whole_ids or not fills())
    if not _has_found(answer.value["data"], query) and filters["cursor"] is None:
        sys.exit(TROUBLE)


def _has_found(data: dict[str, Any], query: str) -> bool:
    """Whether an answer has anything of a query: sessions with words that only begin like its words don't count."""
    nowhere = data.get("best", {}).get("nowhere", [])
    return bool(_sessions_in(data)) and (not nowhere or len(nowhere) < len(query_words(query)))


def _sessions_in(data: dict[str, Any]) -> list[str]:
    best = data.get("best", {})
    several = [*data.get("matches", []), *data.get("sessions", []), *best.get("sessions", [])]
    return [*(each["session_id"] for each in several), *(other[0] for other in best.get("others", []))]
