"""The state of things: `agtrace doctor`, which also rebuilds the index, and `metrics` of servers' answers."""

from __future__ import annotations

import sys
from datetime import datetime
from functools import partial
from typing import Any, get_args

import click
from agtrace_schema.own_tools import PRUNING_TOOLS, TOOLS
from agtrace_schema.requests import RequestOutcome, RequestsBy
from msgspec.structs import asdict

from agtrace.commands.asking import usable
from agtrace.commands.errors import TROUBLE, NoIndex, patiently, tell
from agtrace.commands.options import plain_json
from agtrace.commands.printing import print_json

_PATIENCE = 600
"""Seconds that a repair waits for another process that is writing."""


@click.command()
@click.option("--repair", is_flag=True, help="Repair a damaged index: read the logs and the archive again.")
@plain_json
def doctor(repair: bool, as_json: bool) -> None:
    """Show which logs were found, what wasn't understood, and what to do about it. Exits 1 if there is trouble.

    The whole index is checked for damage. --repair sets it aside and rebuilds it from the logs and the archive. It
    names the sessions that neither of them has, and exits 1 if there are any.
    """
    (_repair if repair else _examine)(as_json=as_json)


def _examine(*, as_json: bool) -> None:
    from agtrace_indexer.redact import use

    from agtrace.settings.live import Live
    from agtrace.upkeep.doctor import examine

    loaded = Live.start().current  # a configuration file that can't be used is part of the diagnosis
    use(loaded.settings.data_dir)
    found = examine(loaded)
    if as_json:
        print_json(found)
    else:
        from agtrace.render.doctor import doctor

        doctor(found)
    sys.exit(TROUBLE if found["trouble"] else 0)


def _repair(*, as_json: bool) -> None:
    from agtrace_indexer.run.rebuild import rebuild

    from agtrace.index.reader import home_roots

    chosen = usable()
    run = partial(rebuild, chosen.database, home_roots(chosen), archive=chosen.archive)
    try:
        done = patiently(lambda seconds: run(patience=seconds), _PATIENCE)
    except FileNotFoundError:
        raise NoIndex from None
    if as_json:
        from agtrace_indexer.redact import redact_json

        lost: Any = [one._asdict() for one in done.lost]
        print_json(redact_json({**asdict(done), "lost": lost, "old": str(done.old)}))
    else:
        from agtrace.render.doctor import repaired

        repaired(done)
    sys.exit(TROUBLE if done.lost or done.unread else 0)


@click.command()
@click.option("--tool", type=click.Choice((*TOOLS, *PRUNING_TOOLS)), metavar="TOOL", help="Only requests to this tool.")
@click.option("--since", metavar="TIME", help="Only requests from this time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="Only requests up to this time, a day (today, 2026-11-03) included.")
@click.option("--outcome", type=click.Choice(get_args(RequestOutcome)), help="Only requests that ended like this.")
@click.option("--by", type=click.Choice(get_args(RequestsBy)), help="The groups, by default tool.")
@click.option("--ab", is_flag=True, help="Compare answers with and without protection (the setting `ab.mode`).")
@click.option("--estimates", is_flag=True, help="Compare estimates of tokens with what models counted.")
@plain_json
def metrics(
    as_json: bool, ab: bool, estimates: bool, since: str | None, until: str | None, by: RequestsBy | None, **wanted: Any
) -> None:
    """Show what servers were asked, and how fast, how large and how complete their answers were.

    Servers record figures and codes in telemetry.sqlite3 in the data folder, for as many days as the setting
    telemetry.keep_days says, and nothing of what was asked or answered. The setting telemetry.enabled turns that off;
    the file can be deleted at any time.

    Of the answers, `paginated` are pages of a list, `chunked` chunks of a long text, `summarized` digests or condensed
    data, `pruned` outputs without what a question wasn't about; `cut` ones lack parts that no cursor continues,
    `oversized` ones didn't fit in the form they were asked for, `stale` ones (in --json) are of an index behind logs.

    \b
      agtrace metrics --since 1d
      agtrace metrics --outcome oversized --by client
    """
    from agtrace_indexer import redact

    from agtrace.answers.telemetry.store import RequestFilter
    from agtrace.settings import load
    from agtrace.times import period

    if ab and by:
        raise click.UsageError("--by can't be combined with --ab, which compares the sides of a comparison")
    settings, now = load(), datetime.now()
    redact.use(settings.data_dir)  # whose rules are compiled already
    if not settings.telemetry.enabled:
        tell("nothing is recorded now: the setting telemetry.enabled is off")
    asked = RequestFilter(**period(since, until, now)._asdict(), by=None if ab else by or "tool", **wanted)
    from agtrace_schema.model import dump

    from agtrace.answers.telemetry import store

    if estimates:
        from agtrace.answers import status
        from agtrace.index.reader import index_of
        from agtrace.render.terminal import OUT

        with index_of(settings).reader() as reader:
            checked = status.estimates(reader.connection)
        said = "{answers} answers in logs: estimated by counted tokens, median {median}; {close:.0%} within a fifth"
        print_json(checked) if as_json else OUT.print(said.format(**checked))
        return
    if ab:
        sides = store.comparison(settings.telemetry_file, asked)
        if as_json:
            print_json(dump(sides))
        else:
            from agtrace.render.figures import comparison

            comparison(sides)
        return
    found = store.metrics(settings.telemetry_file, asked)
    if as_json:
        print_json(dump(found))
    else:
        from agtrace.render.figures import metrics as shown

        shown(found, by or "tool")
