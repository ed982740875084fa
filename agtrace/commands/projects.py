"""`agtrace projects`: list the projects that sessions belong to."""

from __future__ import annotations

from typing import Any

import click

from agtrace.commands.asking import listed
from agtrace.commands.options import as_json, check_whole, cursor, every, limit
from agtrace.commands.printing import leave


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

    def for_person() -> None:
        from agtrace.render.lists import projects as shown

        shown(answer.value, answer.next_calls)

    leave(answer.value, as_json, for_person)
