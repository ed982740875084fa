"""What is done with a session elsewhere: `agtrace export` passes it on, `agtrace resume` continues it."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agtrace.commands.asking import Filters, open_index, selected, usable
from agtrace.commands.errors import TROUBLE, USAGE, fail, tell
from agtrace.commands.options import Span, plain_json, session_ids
from agtrace.commands.printing import leave_lines, write

if TYPE_CHECKING:
    from agtrace.conversation.export import Exported, ExportOptions
    from agtrace.sessions.query import Resuming


STDOUT = "-"


@click.command()
@click.argument("session", required=False, shell_complete=session_ids)
@click.option("--markdown", "form", flag_value="markdown", help="Markdown (the default).")
@click.option("--html", "form", flag_value="html", help="One page for a browser, without scripts; it works offline.")
@click.option("--jsonl", "form", flag_value="jsonl", help="A line of JSON for each event.")
@click.option("--otel", "form", flag_value="otel", help="OpenTelemetry spans in JSON lines, without any text.")
@click.option("--sqlite", metavar="FILE", help="All sessions, as a database: `datasette FILE` shows it.")
@click.option("--turns", type=Span("turns", 0), help="Only these turns, counted from 0: 2:5, 2:, :5 or 2.")
@click.option("--thinking", is_flag=True, help="With --markdown: the model's thinking, too.")
@click.option("--tools", is_flag=True, help="With --markdown: arguments and results of tools in full.")
@click.option("--images", is_flag=True, help="With --html: the images, too, in which nothing is masked.")
@click.option("--out", metavar="FILE", help="Write a file that only you can read; by default, print it.")
@click.option("--force", is_flag=True, help="With --out: replace a file that exists.")
def export(
    session: str | None,
    form: str | None,
    sqlite: str | None,
    turns: tuple[int | None, int | None] | None,
    thinking: bool,
    tools: bool,
    images: bool,
    out: str | None,
    force: bool,
) -> None:
    """Export a session as a conversation to pass on: requests, answers, tool calls, and what was masked in them.

    Secrets are masked and counted by kind, and paths in anybody's home folder begin with ~. Read it before you send it.

    \b
      agtrace export last --html --out conversation.html
      agtrace export fb3cff44 --turns 2:5
      agtrace export fb3cff44 --markdown --tools --thinking
      agtrace export fb3cff44 --jsonl
      agtrace export --sqlite sessions.db
    """
    if sqlite is not None:
        _export_all(Path(sqlite), force=force)
        return
    if session is None:
        raise click.MissingParameter(param_type="argument", param_hint="SESSION")
    from agtrace_indexer.redact.engine import looking

    from agtrace.conversation.export import ExportOptions, Form

    kind = Form(form or Form.MARKDOWN)
    if kind is not Form.MARKDOWN and (thinking or tools):
        has = "no texts" if kind is Form.OTEL else "everything"
        fail(f"{'--thinking' if thinking else '--tools'} is for --markdown; --{kind} has {has}", USAGE)
    if images and kind is not Form.HTML:
        fail("--images is for --html", USAGE)
    to_file = out not in (None, STDOUT)
    if force and not to_file:
        fail("--force needs --out FILE", USAGE)
    images_of = usable().database if images else None
    with looking(possible=True):
        found = _exported(session, ExportOptions(kind, turns or (None, None), thinking, tools, images_of))
        _leave(found, Path(str(out)) if to_file else None, force=force)
    if images:
        tell("nothing in its images is masked: look at them before you send it")


def _export_all(path: Path, *, force: bool) -> None:
    """Write all sessions into a database, a table for each view of `agtrace sql`."""
    from agtrace_indexer.index.queries.views import export

    from agtrace.tools.run_sql import views_of

    with (
        selected(Filters()) as (connection, _, now, prices, _),
        closing(views_of(connection, now, prices, whole_ids=True)) as views,
    ):
        target = write(path, partial(export, views), replace=force)
    tell(f"written to {target}: datasette {target}")


def _exported(session: str, options: ExportOptions) -> Exported:
    from agtrace.conversation.export import export
    from agtrace.sessions.query import find_session

    with selected(Filters()) as (connection, _, now, prices, _):
        found = find_session(connection, session)
        if options.form == "otel" and found.started_at is None:
            fail(f"the log of {session} has no times, which spans need; --jsonl has all of it", USAGE)
        return export(connection, found, options, home=str(Path.home()), now=now, prices=prices)


def _leave(found: Exported, path: Path | None, *, force: bool) -> None:
    from agtrace.conversation.cleaning import in_words

    if path is None:
        sys.stdout.writelines(found.pieces)
        sys.stdout.flush()
        return
    tell(f"written to {write(path, found.pieces, replace=force)}", f"masked: {in_words(found.masked)}")


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
        program = shutil.which(found.command[0])
        if program is None:
            fail(f"{found.command[0]} isn't on the PATH", TROUBLE)
        if found.folder is not None:
            if not (os.path.isdir(found.folder) and os.access(found.folder, os.X_OK)):
                fail(f"can't change to {found.folder}: it isn't there, or closed to you", TROUBLE)
            os.chdir(found.folder)
        sys.stdout.flush()
        os.execv(program, found.command)
    value = {"command": found.command, "folder": found.folder, "log_gone": found.log_gone}
    leave_lines(value, as_json, [found.line])


def _resuming(given: str) -> Resuming:
    """Return how a session is continued. Raises `SessionNotFound` or `AmbiguousSessionPrefix`."""
    from agtrace.sessions.query import find_session, resuming, short_id

    with closing(open_index()) as connection:
        session = find_session(connection, given)
        result = resuming(connection, session)
        if result.why_not:
            fail(f"{short_id(connection, session.uid)} can't be continued: {result.why_not}", TROUBLE)
    return result
