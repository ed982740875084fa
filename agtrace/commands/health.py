"""`agtrace health`: the status of the index."""

from __future__ import annotations

import sys

import click

from agtrace.commands.asking import usable
from agtrace.commands.errors import TROUBLE
from agtrace.commands.options import as_json
from agtrace.commands.printing import leave


@click.command()
@as_json
def health(as_json: bool) -> None:
    """Show the status of the index: its state, how far it is behind, its size. Exits 1 if there is trouble.

    A server reports the same, and the sizes of its answers, as the resource ax://health and at /healthz.
    """
    from agtrace_schema.answers import dump

    from agtrace.answers.status import look

    found = look(usable())

    def for_person() -> None:
        from agtrace.render.health import health

        health(found)

    leave(dump(found), as_json, for_person)
    sys.exit(TROUBLE if found.index.problem or found.configuration.problem else 0)
