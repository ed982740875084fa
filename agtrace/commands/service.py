"""`agtrace service`: a user service that keeps the index fresh."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agtrace.commands.errors import TROUBLE, USAGE, fail, tell
from agtrace.commands.printing import print_lines
from agtrace.settings import load

if TYPE_CHECKING:
    from agtrace.upkeep.service import Service


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
    found = _service()
    if apply:
        _install(found)
    elif remove:
        _remove(found)
    else:
        _show(found)


def _service() -> Service:
    from agtrace.upkeep.service import Unsupported, service

    executable = os.path.abspath(shutil.which("agtrace") or sys.argv[0])
    user = os.getuid() if hasattr(os, "getuid") else 0
    try:
        return service(sys.platform, executable, _absolute(load().environment), Path.home(), user)
    except Unsupported as why:
        fail(str(why), TROUBLE)


def _absolute(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with absolute paths: a service runs in another folder."""
    paths = ("AGTRACE_DATA_DIR", "AGTRACE_CONFIG")
    return {name: os.path.abspath(value) if name in paths and value else value for name, value in environment.items()}


def _show(found: Service) -> None:
    state = "not installed"
    if found.path.is_file():
        runs = _run([found.status], quietly=True) is None
        state = "installed and running" if runs else "installed, but not running"
    lines = [f"The service is {state}. `agtrace service --apply` writes this to {found.path}:", ""]
    lines += [f"  {line}" for line in found.content.decode().splitlines()]
    lines += ["", "and runs:", "", *(f"  {shlex.join(command)}" for command in found.start), "", found.hint]
    print_lines(lines)


def _install(found: Service) -> None:
    if found.path.is_file() and found.kind == "launchd":
        _run(found.stop, quietly=True)  # one that is loaded would refuse the new file
    try:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        partial = found.path.with_name(f".{found.path.name}.partial")
        partial.write_bytes(found.content)
        partial.replace(found.path)
    except OSError as error:
        fail(f"can't write {found.path}: {error.strerror or error}", USAGE)
    print_lines([f"written: {found.path}"])
    failed = _run(found.start)
    if failed is not None:
        fail(f"the service is not running: {failed}", TROUBLE)
    print_lines(["the index is kept fresh from now on", found.hint])


def _remove(found: Service) -> None:
    if not found.path.is_file():
        print_lines(["the service is not installed"])
        return
    failed = _run(found.stop)
    if failed is not None:
        tell(failed)
    found.path.unlink(missing_ok=True)
    _run(found.after_removal, quietly=True)
    print_lines([f"removed: {found.path}"])


def _run(commands: Iterable[tuple[str, ...]], *, quietly: bool = False) -> str | None:
    """Run commands, one after the other; return what failed, or None."""
    for command in commands:
        if not quietly:
            print_lines([shlex.join(command)])
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command[0]} can't be run ({getattr(error, 'strerror', None) or error})"
        if done.returncode:
            told = " ".join(done.stderr.split())
            return f"{shlex.join(command)} failed{f' ({told})' if told else ''}"
    return None
