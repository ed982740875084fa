"""`agtrace mcp`: serve the index to an agent, over stdio or HTTP; show the token and the lines to paste."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import replace

import click

from agtrace.commands import serve
from agtrace.commands.errors import USAGE, fail
from agtrace.commands.options import Address
from agtrace.problems import SettingError
from agtrace.settings import Settings, load


@click.command()
@click.option("--http", "address", type=Address(), help="Serve over HTTP here, at /mcp; port 0 picks a free one.")
@click.option("--no-token", is_flag=True, help="With --http on loopback: answer anyone on this machine.")
@click.option("--show-token", is_flag=True, help="Print the token that clients must send, and exit.")
def mcp(address: tuple[str, int] | None, no_token: bool, show_token: bool) -> None:
    """Serve the index to an agent, over MCP on stdin and stdout.

    With --http it listens on an address, under /mcp, and answers clients that send the token: AGTRACE_HTTP_TOKEN, or
    one that is generated at the first start and kept in the data folder. It also answers /healthz and /readyz, and
    /metrics for Prometheus, and says on stderr where it listens; at a terminal, also how to add it to each agent.

    \b
      agtrace mcp --http 127.0.0.1:8765
      curl -H "Authorization: Bearer $(agtrace mcp --show-token)" http://127.0.0.1:8765/healthz
    """
    if show_token and (address or no_token):
        raise click.UsageError("--show-token can't be combined with other options")
    if no_token and not address:
        raise click.UsageError("--no-token needs --http")
    if show_token:
        sys.stdout.write(f"{_with_token(load()).http_token}\n")
    elif address is None:
        serve()
    else:
        _serve_http(*address, with_token=not no_token)


def _serve_http(host: str, port: int, *, with_token: bool) -> None:
    """Run the MCP server on this address until it is asked to stop."""
    found = load()
    from agtrace.serving.ending import end
    from agtrace.serving.http_transport import serve_http

    try:
        code = serve_http(_with_token(found) if with_token else _without_token(found), host, port, _tell)
    except OSError as error:
        fail(f"can't listen on {host}, port {port}: {error.strerror or error}", USAGE)
    end(code)


def _with_token(found: Settings) -> Settings:
    from agtrace.serving.http_token import load_token

    return found if found.http_token else replace(found, http_token=load_token(found.token_file))


def _without_token(found: Settings) -> Settings:
    if found.http_token:
        raise SettingError("AGTRACE_HTTP_TOKEN is set: unset it, or leave out --no-token")
    return found


def _tell(found: Settings, url: str) -> None:
    """Show a person at a terminal the lines that add the server to each agent.

    The token isn't in them: the shell fetches it, so neither the screen nor its history keeps it. If stderr isn't a
    terminal, it is a log of JSON lines, and nothing is printed.
    """
    if not sys.stderr.isatty():
        return
    from agtrace.upkeep.agents import commands_over_http

    place = found.environment.get("AGTRACE_DATA_DIR")
    same_place = f"AGTRACE_DATA_DIR={shlex.quote(os.path.abspath(found.data_dir))} " if place else ""
    executable = shlex.quote(os.path.abspath(shutil.which("agtrace") or sys.argv[0]))
    token = f"$({same_place}{executable} mcp --show-token)" if found.http_token else None
    lines = "".join(f"  {line}\n" for line in commands_over_http(url, token))
    sys.stderr.write(f"To add this server to an agent, paste its line into a shell:\n\n{lines}\n")
    sys.stderr.flush()
