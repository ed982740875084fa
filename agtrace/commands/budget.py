"""`agtrace budget`: every tool asked over sessions of the index, the size of its answers against what they may take."""

from __future__ import annotations

import sys

import click

from agtrace.commands.asking import answers, ask, usable
from agtrace.commands.errors import TROUBLE
from agtrace.commands.options import plain_json
from agtrace.commands.printing import leave


@click.command(short_help="Measure the answers that an agent gets.")
@click.argument("session", required=False)
@click.option("--sessions", "most", type=click.IntRange(min=1), default=50, show_default=True, help="Most sessions.")
@plain_json
def budget(session: str | None, most: int, as_json: bool) -> None:
    """Ask every tool over a session, or the newest ones, and print how large its answers are.

    Each kind of call stands beside the bytes that it may take. Exits 1 if an answer is larger.
    """
    from agtrace.index.reader import Reader
    from agtrace.upkeep.sizes import chosen, measure

    ask(*("list_sessions", {}) if session is None else ("get_session_details", {"session_id": session}))
    sizes = measure(answers(), chosen(Reader(usable()).connection, session, most))
    leave(sizes.model_dump(mode="json", exclude_none=True), as_json, lambda render: render.sizes(sizes))
    sys.exit(TROUBLE if sizes.over_budget else 0)
