"""`agtrace doctor` says what was found and what is wrong, and rebuilds the index; `agtrace health` says how it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from agtrace.commands.asking import usable
from agtrace.commands.errors import TROUBLE, NoIndex, patiently
from agtrace.commands.options import as_json, plain_json
from agtrace.commands.printing import print_json

if TYPE_CHECKING:
    from agtrace_indexer.rebuild import Rebuilt


@click.command()
@as_json
def health(as_json: bool) -> None:
    """Show the status of the index: its state, how far it is behind, its size. Exits 1 if there is trouble.

    A server reports the same, and the sizes of its answers, as the resource ax://health and at /healthz. This command
    reads the configuration file itself: what it says of it need not be what a server read before.
    """
    from agtrace_indexer.redact import use
    from agtrace_schema.model import dump

    from agtrace.answers.status import look
    from agtrace.settings.live import Live

    loaded = Live.start().current  # a file that can't be used is told here, and costs nothing else
    use(loaded.settings.data_dir)
    found = look(loaded)
    if as_json:
        print_json(dump(found))
    else:
        from agtrace.render.doctor import health

        health(found)
    sys.exit(TROUBLE if found.index.problem or found.configuration.problem else 0)


_PATIENCE = 600
"""Seconds that a repair waits for another process that is writing."""


@click.command()
@click.option("--repair", is_flag=True, help="Repair a damaged index: read the logs again, keep what is archived.")
@plain_json
def doctor(repair: bool, as_json: bool) -> None:
    """Show which logs were found, what wasn't understood, and what to do about it. Exits 1 if there is trouble.

    The whole index is checked for damage. --repair rebuilds it from the logs, and from what can still be
    read of sessions whose logs are gone. It names what is lost, keeps the old file next to the new one, and
    exits 1 if anything is lost.
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
    done = rebuilt()
    if as_json:
        from agtrace_indexer.redact import redact_json

        lost: Any = [one._asdict() for one in done.lost]
        print_json(redact_json({**asdict(done), "lost": lost, "old": str(done.old)}))
    else:
        from agtrace.render.doctor import repaired

        repaired(done)
    sys.exit(TROUBLE if done.lost or done.unread else 0)


def rebuilt() -> Rebuilt:
    """Rebuild the index, waiting for another process that is writing."""
    from agtrace_indexer.rebuild import rebuild

    from agtrace.index.reader import home_roots

    chosen = usable()
    try:
        return patiently(lambda seconds: rebuild(chosen.database, home_roots(chosen), patience=seconds), _PATIENCE)
    except FileNotFoundError:
        raise NoIndex from None
