"""`agtrace service`: a user service that keeps the index fresh."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agtrace.commands.errors import tell
from agtrace.commands.printing import print_lines
from agtrace.settings import load
from agtrace.upkeep.installation import install, is_running

if TYPE_CHECKING:
    from agtrace.upkeep.service import Service

_PATHS = ("AGTRACE_DATA_DIR", "AGTRACE_CONFIG")


@click.command()
@click.option("--apply", is_flag=True, help="Write the file and start the service, now and at every login.")
@click.option("--remove", is_flag=True, help="Stop the service and delete its file.")
def service(apply: bool, remove: bool) -> None:
    """Keep the index fresh in the background: show the service that does; --apply installs it.

    Agents delete their logs after some time; with the service, the index has read them by then. It runs
    `agtrace index --watch` as a user service of systemd or launchd, with the folders that are set now.
    """
    if apply and remove:
        raise click.UsageError("--apply can't be combined with --remove")
    from agtrace.upkeep.service import service

    executable = os.path.abspath(shutil.which("agtrace") or sys.argv[0])
    user = os.getuid() if hasattr(os, "getuid") else 0
    found = service(sys.platform, executable, _absolute(load().environment), Path.home(), user)
    if apply:
        install(found, _say)
        print_lines(["the index is kept fresh from now on", found.hint])
    elif remove:
        _remove(found)
    else:
        state = "not installed"
        if found.path.is_file():
            state = "installed and running" if is_running(found) else "installed, but not running"
        print_lines(
            [
                f"The service is {state}. `agtrace service --apply` writes this to {found.path}:",
                "",
                *(f"  {line}".rstrip() for line in found.content.decode().splitlines()),
                "",
                "and runs:",
                "",
                *(f"  {shlex.join(command)}" for command in found.start),
                "",
                found.hint,
            ]
        )


def _absolute(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with absolute paths: a service runs in another folder."""
    return {name: os.path.abspath(value) if name in _PATHS and value else value for name, value in environment.items()}


def _remove(found: Service) -> None:
    from agtrace.upkeep.installation import remove

    if not found.path.is_file():
        print_lines(["the service is not installed"])
        return
    failed = remove(found, _say)
    if failed is not None:
        tell(failed)


def _say(line: str) -> None:
    print_lines([line])
