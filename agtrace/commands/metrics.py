"""`agtrace metrics`: how fast and how large the answers of the servers were."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

import click
from agtrace_schema.own_tools import PRUNING_TOOLS, TOOLS
from agtrace_schema.requests import RequestOutcome, RequestsBy

from agtrace.commands.errors import tell
from agtrace.commands.options import plain_json
from agtrace.commands.printing import print_json


@click.command()
@click.option("--tool", type=click.Choice((*TOOLS, *PRUNING_TOOLS)), metavar="TOOL", help="Only requests to this tool.")
@click.option("--since", metavar="TIME", help="Only requests from this time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="Only requests up to this time, a day (today, 2026-11-03) included.")
@click.option("--outcome", type=click.Choice(get_args(RequestOutcome)), help="Only requests that ended like this.")
@click.option("--by", type=click.Choice(get_args(RequestsBy)), help="The groups, by default tool.")
@click.option("--ab", is_flag=True, help="Compare answers with and without protection (the setting `ab.mode`).")
@plain_json
def metrics(
    as_json: bool, ab: bool, since: str | None, until: str | None, by: RequestsBy | None, **wanted: Any
) -> None:
    """Show what servers were asked, and how fast, how large and how complete their answers were.

    Servers record figures and codes in telemetry.sqlite3 in the data folder, for as many days as the setting
    telemetry.keep_days says, and nothing of what was asked or answered. The setting telemetry.enabled turns that off;
    the file can be deleted at any time.

    Of the answers, `paginated` are pages of a list, `chunked` chunks of a long text, `summarized` digests (`mode`) and
    `pruned` outputs without what a question wasn't about; `cut` ones lack parts that no cursor continues, `oversized`
    ones didn't fit in the form they were asked for, and `stale` ones (in --json) come from an index that was behind.

    \b
      agtrace metrics --since 1d
      agtrace metrics --outcome oversized --by client
    """
    from agtrace_indexer import redact

    from agtrace.answers.telemetry.store import Wanted
    from agtrace.settings import load
    from agtrace.times import period

    if ab and by:
        raise click.UsageError("--by can't be combined with --ab, which compares the sides of a comparison")
    settings, now = load(), datetime.now(UTC)
    redact.use(settings.data_dir)  # whose rules are compiled already
    if not settings.telemetry.enabled:
        tell("nothing is recorded now: the setting telemetry.enabled is off")
    asked = Wanted(**period(since, until, now)._asdict(), by=None if ab else by or "tool", **wanted)
    from agtrace_schema.model import dump

    from agtrace.answers.telemetry import figures

    if ab:
        sides = figures.comparison(settings.telemetry_file, asked)
        if as_json:
            print_json(dump(sides))
        else:
            from agtrace.render.figures import comparison

            comparison(sides)
        return
    found = figures.metrics(settings.telemetry_file, asked)
    if as_json:
        print_json(dump(found))
    else:
        from agtrace.render.figures import metrics as shown

        shown(found, by or "tool")
