"""Lists: `agtrace sessions` and `projects`, and `count` for figures by group."""

from __future__ import annotations

from typing import Any, get_args

import click
from agtrace_schema.requests import Access, CountOf, GroupBy, SessionKind, Sort

from agtrace.commands.asking import ask, described, listed
from agtrace.commands.options import (
    Groups,
    Tokens,
    as_json,
    check_fields,
    check_whole,
    count_options,
    cursor,
    every,
    failed,
    fields,
    limit,
    list_options,
    one_of,
    path,
)
from agtrace.commands.printing import print_json


@click.command()
@limit
@every
@cursor
@as_json
def projects(as_json: bool, everything: bool, **filters: Any) -> None:
    """List projects, the most recently active first, each with its sessions, tokens and cost.

    A project is a repository with all its worktrees and clones, or a folder that none is known of. Its name is what
    --project takes elsewhere.
    """
    check_whole(everything, as_json=as_json)
    answer = listed("get_project_info", filters, ("projects",), everything=everything, one_page=as_json)
    if as_json:
        print_json(answer.value)
    else:
        from agtrace.render.lists import projects as shown

        shown(answer.value, answer.next_calls)


@click.command()
@click.option("--by", "group_by", type=Groups(get_args(GroupBy)), required=True, help="The groups.")
@click.option("--measure", type=one_of(CountOf), help="What is counted; by default calls.")
@click.option("--session", "session_id", metavar="SESSION", help="Only one session: its id or the beginning of it.")
@click.option("--kind", type=one_of(SessionKind), help="Leave out sub-agents, or all others.")
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
    if as_json:
        print_json(answer.value)
    else:
        from agtrace.render.figures import counts

        counts(answer.value, answer.next_calls, by, counted)


@click.command()
@click.option("--query", metavar="TEXT", help="Only with this text in the title or a request.")
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
@click.option("--ids", "whole_ids", is_flag=True, help="Show ids in full, as the agents' own commands take them.")
@every
@fields
@list_options
def sessions(as_json: bool, everything: bool, whole_ids: bool, **filters: Any) -> None:
    """List sessions, newest first; `$0.17+` is a cost of at least that.

    `began` is how long ago a session began, `last` how long ago something happened in it. Where a terminal has room for
    only one of them, that is `began` in a list by start. In a pipe, all columns are there. `--all` lists all sessions.

    \b
      agtrace sessions --failures --since yesterday
      agtrace sessions --path src/store.py
      agtrace sessions --commit 3fa9c21
      agtrace sessions --project . --all
    """
    check_fields(filters["fields"], as_json=as_json)
    check_whole(everything, as_json=as_json)
    answer = listed("list_sessions", filters, ("sessions",), everything=everything, one_page=as_json)
    if as_json:
        print_json(answer.value)
    else:
        from agtrace.render.lists import WHOLE_IDS
        from agtrace.render.lists import sessions as shown
        from agtrace.render.terminal import OUT, fills

        whole = whole_ids or not fills() or OUT.width >= WHOLE_IDS
        about = described(item["id"] for item in answer.value["data"].get("sessions", [])) if whole else {}
        shown(answer.value, answer.next_calls, filters["sort"], about, whole_ids=whole)
