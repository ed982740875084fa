"""`agtrace prune`: the tools read, bash and grep for an agent, which answer a question about a long output."""

from __future__ import annotations

import click

from agtrace.commands.options import Address, settings_options
from agtrace.problems import SettingError


@click.command()
@click.option("--http", "address", type=Address(), help="Serve over HTTP here, at /mcp; port 0 picks a free one.")
@settings_options
def prune(address: tuple[str, int] | None) -> None:
    """Serve read, bash and grep to an agent, over MCP on stdin and stdout.

    With `context_focus_question`, a long output comes back as the lines that the question is about; without it, or if
    anything goes wrong, as it is. The setting pruner.endpoint says which pruner is asked: by default a built-in one.

    \b
      claude mcp add --scope user agtrace_prune -- agtrace prune
      codex mcp add agtrace_prune -- agtrace prune

    With --http, clients must send the token, AGTRACE_HTTP_TOKEN or the one of `agtrace mcp --show-token`. A line on
    stderr says when it is ready. `agtrace run` does all of this for one run of an agent.
    """
    from agtrace.pruning.configuration import configured

    found = configured()
    if address is None:
        from agtrace.pruning.server import serve_stdio
        from agtrace.serving.ending import end_with_client

        end_with_client()
        serve_stdio(found)
        return
    from agtrace.pruning.server import serve_http
    from agtrace.serving.ending import end
    from agtrace.serving.http_door import is_loopback
    from agtrace.serving.http_token import load_token

    host, port = address
    if not is_loopback(host):
        raise SettingError(f"{host} can be reached from other machines: whoever reaches the server can run commands")
    settings = found.settings
    token = settings.http.token or load_token(settings.token_file)
    end(serve_http(found, host, port, token))
