"""`agtrace mcp --http`: serve over HTTP, and show the token and what to paste."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import replace

from agtrace.commands import USAGE, fail, settings
from agtrace.problems import SettingError
from agtrace.serving.http_token import load_token
from agtrace.settings import Settings
from agtrace.upkeep.agents import commands_over_http


def run(host: str, port: int, *, with_token: bool) -> None:
    """Run the MCP server on this address until it is told to end."""
    found = settings()
    from agtrace.serving.ending import end
    from agtrace.serving.http_transport import serve_http

    try:
        code = serve_http(_with_token(found) if with_token else _without_token(found), host, port, _tell)
    except SettingError as error:
        fail(str(error), USAGE)
    except OSError as error:
        fail(f"can't listen on {host}, port {port}: {error.strerror or error}", USAGE)
    end(code)


def show_token() -> None:
    """Print the token that clients must show, for a shell to take."""
    try:
        sys.stdout.write(f"{_with_token(settings()).http_token}\n")
    except SettingError as error:
        fail(str(error), USAGE)


def _with_token(found: Settings) -> Settings:
    return found if found.http_token else replace(found, http_token=load_token(found.token_file))


def _without_token(found: Settings) -> Settings:
    if found.http_token:
        raise SettingError("AGTRACE_HTTP_TOKEN is set: leave out --no-token, or unset it")
    return found


def _tell(found: Settings, url: str) -> None:
    """Tell a person at a terminal what to paste, so that an agent knows of the server.

    The token isn't in it: the shell fetches it, and neither the screen nor its history keeps it. Where stderr is no
    terminal it is a log, and stays one of JSON lines.
    """
    if not sys.stderr.isatty():
        return
    place = found.environment.get("AGTRACE_DATA_DIR")
    same_place = f"AGTRACE_DATA_DIR={shlex.quote(os.path.abspath(found.data_dir))} " if place else ""
    executable = shlex.quote(os.path.abspath(shutil.which("agtrace") or sys.argv[0]))
    token = f"$({same_place}{executable} mcp --show-token)" if found.http_token else None
    lines = "".join(f"  {line}\n" for line in commands_over_http(url, token))
    sys.stderr.write(f"To tell an agent of this server, paste its line into a shell:\n\n{lines}\n")
    sys.stderr.flush()
