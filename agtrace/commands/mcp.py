"""`agtrace mcp`: serve the index to an agent, over stdio or HTTP; show the token and the lines to paste."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import click

from agtrace.commands import serve
from agtrace.commands.errors import tell
from agtrace.commands.options import Address, settings_options
from agtrace.problems import SettingError

if TYPE_CHECKING:
    from agtrace.settings.model import Settings


@click.command()
@click.option("--http", "address", type=Address(), help="Serve over HTTP here, at /mcp; port 0 picks a free one.")
@click.option("--no-token", is_flag=True, help="With --http on loopback: answer anyone on this machine.")
@click.option("--show-token", is_flag=True, help="Print the token that clients must send, and exit.")
@settings_options
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
        from agtrace.serving.http_auth import load_token
        from agtrace.settings.live import Live
        from agtrace.settings.sources import fault_sentences

        loaded = Live.start().current  # as the server does, which leaves out a file that can't be used
        for fault in fault_sentences(loaded.faults):
            tell(fault)
        found = loaded.settings
        sys.stdout.write(f"{found.http.token or load_token(found.token_file)}\n")
    elif address is None:
        serve()
    else:
        _serve_http(*address, with_token=not no_token)


def _serve_http(host: str, port: int, *, with_token: bool) -> None:
    from agtrace.serving.http_auth import load_token
    from agtrace.settings.live import Live

    live = Live.start()
    settings, faults = live.current.settings, live.current.faults
    if not with_token and (settings.http.token or any(fault.key == "http.token" for fault in faults)):
        raise SettingError("http.token (AGTRACE_HTTP_TOKEN) is set: unset it, or leave out --no-token")
    if with_token and not settings.http.token:
        live.use_token(load_token(settings.token_file))
    from agtrace.serving.ending import end
    from agtrace.serving.http_transport import serve_http

    end(serve_http(live, host, port, _tell))


def _tell(settings: Settings, url: str) -> None:
    """Show a person at a terminal the lines that add the server to each agent.

    The token isn't in them: the shell fetches it into the agent's environment, so no screen, history, argument or
    settings keep it. If stderr isn't a terminal, it is a log of JSON lines, and nothing is printed.
    """
    if not sys.stderr.isatty():
        return
    from agtrace.settings.environment import platform_data_dir
    from agtrace.upkeep.agents import AGENTS

    same_place = ""
    if settings.data_dir != platform_data_dir():
        same_place = f"AGTRACE_DATA_DIR={shlex.quote(os.path.abspath(settings.data_dir))} "
    executable = shlex.quote(os.path.abspath(shutil.which("agtrace") or sys.argv[0]))
    token = f"$({same_place}{executable} mcp --show-token)" if settings.http.token else None
    lines = "".join(f"  {load().over_http(url, token)}\n" for load in AGENTS.values())
    sys.stderr.write(f"To add this server to an agent, paste its line into a shell, and start it there:\n\n{lines}\n")
    sys.stderr.flush()
