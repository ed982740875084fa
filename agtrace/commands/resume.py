"""`agtrace resume`: the agent's own command that continues a session, in the folder where it ran."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agtrace.commands.asking import open_index
from agtrace.commands.errors import TROUBLE, fail, tell
from agtrace.commands.options import plain_json, session_ids
from agtrace.commands.printing import leave_lines

if TYPE_CHECKING:
    from agtrace.sessions.resuming import Resuming


@click.command()
@click.argument("session", shell_complete=session_ids)
@click.option("--exec", "run", is_flag=True, help="Run the command in place of agtrace.")
@plain_json
def resume(session: str, run: bool, as_json: bool) -> None:
    """Print the agent's own command that continues a session, with the folder where it ran, or run it.

    \b
      agtrace resume fb3cff44          cd /home/mira/tidepool && claude --resume fb3cff44-...
      agtrace resume fb3cff44 --exec
    """
    found = _resuming(session)
    if found.parent_of:
        tell(f"{found.parent_of} is a sub-agent: this continues the session that started it")
    if found.log_gone:
        tell("its log is gone: the agent doesn't know the session any more; `agtrace show` still has it")
    if found.folder is None:
        tell("its folder isn't known: the log doesn't say where it ran; go there first")
    elif not Path(found.folder).is_dir():
        tell(f"its folder is not here: {found.folder}")
    if run:
        _run(found)
    value = {"command": found.command, "folder": found.folder, "log_gone": found.log_gone}
    leave_lines(value, as_json, [found.line])


def _resuming(given: str) -> Resuming:
    """Return how a session is continued. Raises `SessionNotFound` or `AmbiguousSessionPrefix`."""
    from agtrace.sessions.query import find_session, short_id
    from agtrace.sessions.resuming import resuming

    with closing(open_index()) as connection:
        session = find_session(connection, given)
        found = resuming(connection, session)
        if found.why_not:
            fail(f"{short_id(connection, session.uid)} can't be continued: {found.why_not}", TROUBLE)
    return found


def _run(found: Resuming) -> None:
    """Become the agent. Raises `SystemExit` if that isn't possible."""
    program = shutil.which(found.command[0])
    if program is None:
        fail(f"{found.command[0]} isn't on the PATH", TROUBLE)
    if found.folder is not None:
        if not (os.path.isdir(found.folder) and os.access(found.folder, os.X_OK)):
            fail(f"can't change to {found.folder}: it isn't there, or closed to you", TROUBLE)
        os.chdir(found.folder)
    sys.stdout.flush()
    os.execv(program, found.command)
