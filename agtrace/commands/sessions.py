"""Lists: `agtrace sessions` and `projects`, `sql` for figures of any kind, `search` for events that hold a text."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from agtrace_schema.events import EventType
from agtrace_schema.requests import Access, EventKind, SessionKind, Sort

from agtrace.commands.asking import described, list_answer, pages, print_list
from agtrace.commands.errors import TROUBLE
from agtrace.commands.options import (
    Tokens,
    as_json,
    every,
    failed,
    limit,
    list_options,
    one_of,
    path,
)
from agtrace.commands.printing import print_lines


@click.command()
@limit
@every
@as_json
def projects(as_json: bool, everything: bool, **filters: Any) -> None:
    """List projects, the most recently active first, each with its sessions, tokens and cost.

    A project is a repository with all its worktrees and clones, or a folder that none is known of. Its name is what
    --project takes elsewhere.
    """
    if as_json:
        print_list("get_project_info", filters, "projects", everything=everything)
    else:
        answer = list_answer("get_project_info", filters, "projects", everything=everything)
        from agtrace.render.lists import projects as shown

        shown(answer.value, answer.next_calls)


@click.command()
@click.argument("statement", metavar="SELECT")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each row.")
def sql(statement: str, as_json: bool) -> None:
    """Run a SELECT of SQLite over views of the index, which `agtrace show ax://sql` describes.

    \b
      agtrace sql 'SELECT tool, count(*), sum(failed) FROM tool_calls GROUP BY 1 ORDER BY 3 DESC'
      agtrace sql "SELECT path, count(*) FROM files WHERE access = 'write' GROUP BY 1 ORDER BY 2 DESC LIMIT 9"
    """
    found = [answer.value["data"] for answer in pages("run_sql", {"sql": statement})]
    columns, rows = found[0]["columns"], [row for data in found for row in data["rows"]]
    if as_json:
        print_lines(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in rows)
    elif rows:
        from agtrace.render.figures import statement as shown

        shown(columns, rows)


@click.command()
@click.option("--query", metavar="TEXT", help="Only with this text in the title or a request.")
@click.option("--model", metavar="TEXT", help="Only where a model answered whose name contains this.")
@click.option("--branch", metavar="TEXT", help="Only those begun on a branch whose name contains this.")
@path
@click.option("--access", type=one_of(Access), help="Only where a tool did this to the file.")
@click.option("--kind", type=one_of(SessionKind), help="Leave out sub-agents, or all others.")
@click.option("--sort", type=one_of(Sort), help="By start, by a measure, the largest first, or by who pushed them.")
@click.option("--min-tokens", type=Tokens(), metavar="N", help="Only with at least N tokens: 50000, 50k, 1.5M.")
@click.option(
    "--failures/--no-failures", "--failed/--not-failed", "has_failures", default=None,
    help="Only with failed tool calls, or without.",
)  # fmt: skip
@click.option("--commit", metavar="HASH|TEXT|any", help="Only with this commit: its hash, or a text in its subject.")
@click.option("--pr", metavar="NUMBER|URL|any", help="Only those of a pull request, or of any.")
@every
@list_options
def sessions(as_json: bool, everything: bool, **filters: Any) -> None:
    """List sessions, newest first; `$0.17+` is a cost of at least that.

    `began` is how long ago a session began, `last` how long ago something happened in it. Where a terminal has room for
    only one of them, that is `began` in a list by start. In a pipe, all columns are there. `--all` lists all sessions.

    \b
      agtrace sessions --failures --since yesterday
      agtrace sessions --path src/store.py
      agtrace sessions --commit 3fa9c21
      agtrace sessions --project . --all
    """
    if as_json:
        print_list("list_sessions", filters, "sessions", everything=everything)
    else:
        answer = list_answer("list_sessions", filters, "sessions", everything=everything)
        from agtrace.render.lists import WHOLE_IDS
        from agtrace.render.lists import sessions as shown
        from agtrace.render.terminal import OUT, fills

        whole = not fills() or OUT.width >= WHOLE_IDS
        about = described(item["id"] for item in answer.value["data"].get("sessions", [])) if whole else {}
        shown(answer.value, answer.next_calls, filters["sort"], about, whole_ids=whole)


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
@every
@list_options
def search(words_of_query: tuple[str, ...], as_json: bool, by_session: bool, everything: bool, **filters: Any) -> None:
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
    wanted = {"query": query, **filters}
    if as_json:
        answer = print_list("search_event_previews", wanted, "matches", everything=everything)
    else:
        answer = list_answer("search_event_previews", wanted, "matches", everything=everything)
        by_words = "sessions" in answer.value["data"]
        looked_for = query.split() if by_words else [] if filters["regex"] else [query]
        texts = [text for text in looked_for if text]
        from agtrace.render.lists import matches
        from agtrace.render.terminal import fills

        data = answer.value["data"]
        about = described([one["session_id"] for one in data["matches"]] + [one[0] for one in data.get("others", ())])
        matches(answer.value, answer.next_calls, texts, about, whole_ids=not fills())
    if not _has_found(answer.value["data"], query):
        sys.exit(TROUBLE)


def _has_found(data: dict[str, Any], query: str) -> bool:
    """Whether an answer has anything of a query: sessions with words that only begin like its words don't count."""
    from agtrace_indexer.texts.ranked_words import query_words  # not needed by --help

    nowhere = data.get("nowhere", [])
    return bool(data["matches"]) and (not nowhere or len(nowhere) < len(query_words(query)))
