"""`agtrace pruner`: the built-in pruner as a service over HTTP."""

from __future__ import annotations

import click

from agtrace.commands.options import Address, settings_options
from agtrace.problems import SettingError


@click.command()
@click.option(
    "--http",
    "address",
    type=Address(),
    default="127.0.0.1:8000",
    show_default=True,
    help="Listen here; port 0 picks a free one.",
)
@settings_options
def pruner(address: tuple[str, int]) -> None:
    """Serve the built-in pruner over HTTP, with the same API as SWE-Pruner.

    POST /prune takes {"query": QUESTION, "code": TEXT} and answers with the lines that the question is about, in
    pruned_code. It needs no model and no GPU, and listens on loopback only.

    \b
      agtrace pruner --http 127.0.0.1:8000
      jq -Rs '{query: "Which timeout is used?", code: .}' server.py | curl -s --json @- http://127.0.0.1:8000/prune
    """
    from agtrace.pruning.pruners import serve
    from agtrace.serving.ending import end
    from agtrace.serving.http_door import is_loopback

    host, port = address
    if not is_loopback(host):
        raise SettingError(f"{host} can be reached from other machines, and the pruner has no token")
    end(serve(host, port))
