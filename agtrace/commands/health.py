"""`agtrace health`: the status of the index."""

from __future__ import annotations

import sys

import click

from agtrace.commands.errors import TROUBLE
from agtrace.commands.options import as_json
from agtrace.commands.printing import leave


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

    def for_person() -> None:
        from agtrace.render.health import health

        health(found)

    leave(dump(found), as_json, for_person)
    sys.exit(TROUBLE if found.index.problem or found.configuration.problem else 0)
