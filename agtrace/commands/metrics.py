"""`agtrace metrics`: how fast and how large the answers of the servers were."""

from __future__ import annotations

from datetime import UTC, datetime
from types import ModuleType
from typing import Any, get_args

import click
from agtrace_schema.requests import RequestOutcome, RequestsBy

from agtrace.commands.options import plain_json
from agtrace.commands.printing import leave
from agtrace.settings.environment import places


@click.command()
@click.option("--tool", help="Only requests to this tool.")
@click.option("--since", metavar="TIME", help="Only requests from this time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="Only requests up to this time, written as for --since.")
@click.option("--outcome", type=click.Choice(get_args(RequestOutcome)), help="Only requests that ended like this.")
@click.option("--by", type=click.Choice(get_args(RequestsBy)), default="tool", show_default=True, help="The groups.")
@click.option("--ab", is_flag=True, help="Compare answers with and without protection (the setting `ab.mode`).")
@plain_json
def metrics(as_json: bool, ab: bool, since: str | None, until: str | None, **wanted: Any) -> None:
    """Show what servers were asked, and how fast, how large and how complete their answers were.

    Servers record figures and codes in telemetry.sqlite3 in the data folder, for 30 days, and nothing of what was asked
    or answered. The setting telemetry.enabled turns that off; the file can be deleted at any time.

    \b
      agtrace metrics --since 1d
      agtrace metrics --outcome oversized --by client
    """
    from agtrace_indexer import redact
    from agtrace_schema.answers import dump

    from agtrace.answers.telemetry.figures import comparison
    from agtrace.answers.telemetry.figures import metrics as figures
    from agtrace.answers.telemetry.store import Wanted
    from agtrace.times import moment

    settings, now = places(), datetime.now(UTC)
    redact.use(settings.data_dir)  # whose rules are compiled already
    from_, to = since and moment("since", since, now), until and moment("until", until, now, end=True)
    asked = Wanted(since=from_ or None, until=to or None, **wanted)
    if ab:
        sides = comparison(settings.telemetry_file, asked)
        leave(dump(sides), as_json, lambda: _render().comparison(sides))
    else:
        found = figures(settings.telemetry_file, asked)
        leave(dump(found), as_json, lambda: _render().metrics(found, wanted["by"]))


def _render() -> ModuleType:
    from agtrace.render import metrics

    return metrics
