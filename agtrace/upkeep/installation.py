"""Installing the service that keeps the index fresh: its file is written, and the platform's commands are run."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterable

from agtrace.problems import NotInstalled
from agtrace.upkeep.service import Service

_SECONDS = 60
"""How long a command of the platform may take."""

Tell = Callable[[str], None]
"""Is told each step, as a line."""


def install(found: Service, tell: Tell) -> None:
    """Write the file and start the service. Raises `NotInstalled`; a file that was written then stays."""
    if found.path.is_file() and found.kind == "launchd":
        _run(found.stop)  # one that is loaded would refuse the new file
    try:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        partial = found.path.with_name(f".{found.path.name}.partial")
        partial.write_bytes(found.content)
        partial.replace(found.path)
    except OSError as error:
        raise NotInstalled(f"can't write {found.path}: {error.strerror or error}") from error
    tell(f"written: {found.path}")
    failed = _run(found.start, tell)
    if failed is not None:
        raise NotInstalled(f"the service is not running: {failed}")


def remove(found: Service, tell: Tell) -> str | None:
    """Stop the service and delete its file; return what failed while it was stopped, or None.

    Raises `NotInstalled` if the file can't be deleted.
    """
    failed = _run(found.stop, tell)
    try:
        found.path.unlink(missing_ok=True)
    except OSError as error:
        raise NotInstalled(f"can't delete {found.path}: {error.strerror or error}") from error
    _run(found.after_removal)
    tell(f"removed: {found.path}")
    return failed


def is_running(found: Service) -> bool:
    """Whether the platform says that the service runs."""
    return _run([found.status]) is None


def _run(commands: Iterable[tuple[str, ...]], tell: Tell | None = None) -> str | None:
    for command in commands:
        if tell is not None:
            tell(shlex.join(command))
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, errors="replace", timeout=_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command[0]} can't be run ({getattr(error, 'strerror', None) or error})"
        if done.returncode:
            told = " ".join(done.stderr.split())
            return f"{shlex.join(command)} failed{f' ({told})' if told else ''}"
    return None
