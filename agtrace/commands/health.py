"""`agtrace health`: how the index is."""

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
    """Tell how the index is: its state, how far it lies behind, its size. Exits 1 if it is in trouble.

    A server tells the same, and the sizes of its answers, as the resource ax://health and at /healthz.
    """
    from agtrace_schema.answers import dump

    from agtrace.answers.status import look

    found = look(usable())
    leave(dump(found), as_json, lambda render: render.health(found))
    sys.exit(TROUBLE if found.index.problem or found.configuration.problem else 0)
