"""The group of commands and their options; each command's module loads when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from agtrace import __version__

Command = TypeVar("Command", bound=Callable[..., Any])

_PROVIDERS = ["claude_code", "codex", "gemini"]
_LEVELS = ["summary", "turns", "steps", "full"]
_EVENT_TYPES = ["User", "Message", "Reasoning", "ToolCall", "ToolResult", "TokenUsage", "Notification"]

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON: the answer that an agent gets over MCP.")


def _list_options(command: Command) -> Command:
    """The options of every list."""
    for option in (
        as_json,
        click.option("--cursor", help="Continue behind a page: the cursor that it ended with."),
        click.option("--limit", type=int, default=10, show_default=True, help="Most items, up to 50."),
        click.option("--until", metavar="TIME", help="Up to a time, written as for --since."),
        click.option("--since", metavar="TIME", help="From a time on: 2026-11-03, 12h, 7d, yesterday."),
        click.option(
            "--project", "project_hash", metavar="HASH", help="Of one project: its hash or the beginning of it."
        ),
        click.option("--provider", type=click.Choice(_PROVIDERS), help="Of one agent."),
    ):
        command = option(command)
    return command


class _InOrder(click.Group):
    """Lists its commands in the order in which one comes to need them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="The index lies in AGTRACE_DATA_DIR, by default in your platform's folder for user data. "
    "Nothing leaves the machine.",
)
@click.version_option(__version__, prog_name="agtrace")
def agtrace() -> None:
    """Find what your coding agents did: one local index over the logs of Claude Code, Codex and Gemini CLI.

    Begin with `agtrace index`, then `agtrace search TEXT`, or let an agent search: `agtrace setup claude`.
    """


@agtrace.command(short_help="Index the agents' logs; only what changed is read.")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(exists=True))
@click.option("--rebuild", is_flag=True, help="Read every log again that is still there.")
@click.option("--watch", is_flag=True, help="Stay, and index what changes within a second, until Ctrl-C.")
@click.option("--optimize", is_flag=True, help="Put the index in order instead: merge, and give free space back.")
@as_json
def index(paths: tuple[str, ...], rebuild: bool, watch: bool, optimize: bool, as_json: bool) -> None:
    """Index the agents' logs, or the given files and folders; only what changed is read.

    A PATH may hold logs of any of the agents, under any name, plain or .zst. It is kept fresh from
    then on: before every answer, or all the time with --watch. That prints a line (with --json, an
    object on a line) for each run that changed something.
    """
    if optimize and (paths or rebuild or watch):
        raise click.UsageError("--optimize stands alone")
    if watch:
        from agtrace.commands import watch as watching

        watching.run(paths, rebuild=rebuild, as_json=as_json)
        return
    from agtrace.commands import index

    if optimize:
        index.optimize(as_json=as_json)
        return
    index.run(paths, rebuild=rebuild, as_json=as_json)


@agtrace.command(short_help="Find the events that contain a text.")
@click.argument("query")
@click.option("--regex", is_flag=True, help="QUERY is a regular expression; ^ and $ are ends of lines.")
@click.option("--session", "session_id", metavar="SESSION", help="In one session: its id or the beginning of it.")
@click.option("--type", "event_type", type=click.Choice(_EVENT_TYPES), help="Events of one type.")
@click.option("--tool", help="Calls and results of one tool.")
@click.option("--failed/--not-failed", default=None, help="Only tool executions that failed, or none of them.")
@_list_options
def search(query: str, as_json: bool, **filters: Any) -> None:
    """Find the events that contain QUERY, newest first: literal text, case-insensitive, no syntax."""
    from agtrace.commands import show

    show.search(query, filters, as_json=as_json)


@agtrace.command(short_help="List sessions, newest first.")
@_list_options
def sessions(as_json: bool, **filters: Any) -> None:
    """List sessions, newest first."""
    from agtrace.commands import show

    show.sessions(filters, as_json=as_json)


@agtrace.command(short_help="Show a session, or one event whole.")
@click.argument("session", metavar="SESSION[:EVENT]")
@click.option("--level", type=click.Choice(_LEVELS), help="How far to unfold it; default summary, with --turn turns.")
@click.option("--turns", "level", flag_value="turns", help="The same as --level turns: every step with its tool calls.")
@click.option("--turn", "turn_index", type=int, help="Show one turn only.")
@click.option("--reasoning", is_flag=True, help="Quote the thinking beside each step (level turns).")
@click.option("--cursor", help="Continue behind a page: the cursor that it ended with.")
@as_json
def show(
    session: str, level: str | None, turn_index: int | None, reasoning: bool, cursor: str | None, as_json: bool
) -> None:
    """Show a session by its turns, or one event whole: `agtrace show fb3cff44:42`.

    Levels: summary (a line a turn), turns (every step and its tools), steps (what was thought, said, called and
    given back, each shortened), full (everything, verbatim).
    """
    from agtrace.commands import show

    show.show(session, level=level, turn_index=turn_index, reasoning=reasoning, cursor=cursor, as_json=as_json)


@agtrace.command(short_help="Show what went wrong in a session.")
@click.argument("session")
@as_json
def analyze(session: str, as_json: bool) -> None:
    """Show what went wrong in a session: failed tools, repeated calls, token use, each with its events."""
    from agtrace.commands import show

    show.analyze(session, as_json=as_json)


@agtrace.command(short_help="Compare two sessions.")
@click.argument("id1", metavar="SESSION")
@click.argument("id2", metavar="SESSION")
@as_json
def compare(id1: str, id2: str, as_json: bool) -> None:
    """Compare two sessions, also of different agents: tools, files, failures, tokens, time and outcome."""
    from agtrace.commands import compare

    compare.compare(id1, id2, as_json=as_json)


@agtrace.command(short_help="Show only the thinking of a session.")
@click.argument("session")
@click.option("--turn", "turn_index", type=int, help="Only of one turn.")
@click.option("--limit", type=int, default=10, show_default=True, help="Most thoughts, up to 50.")
@click.option("--cursor", help="Continue behind a page: the cursor that it ended with.")
@as_json
def reasoning(session: str, turn_index: int | None, limit: int, cursor: str | None, as_json: bool) -> None:
    """Show only the thinking of a session, each piece with what the model did next."""
    from agtrace.commands import compare

    compare.reasoning(session, turn_index=turn_index, limit=limit, cursor=cursor, as_json=as_json)


@agtrace.command(short_help="Serve the index to an agent (stdio).")
def mcp() -> None:
    """Serve the index to an agent, over MCP on stdin and stdout."""
    from agtrace.commands import serve

    serve()


@agtrace.command(short_help="Tell what was found and what not understood.")
@as_json
def doctor(as_json: bool) -> None:
    """Tell what was found where, what was not understood, and what to do. Exits 1 if anything is in trouble."""
    from agtrace.commands import doctor

    doctor.run(as_json=as_json)


@agtrace.command(short_help="Add the MCP server to an agent.")
@click.argument("agent", type=click.Choice(["claude", "codex", "gemini"]))
@click.option("--apply", is_flag=True, help="Run the command that adds the server, instead of showing it.")
def setup(agent: str, apply: bool) -> None:
    """Add the MCP server to an agent: shows the command, --apply runs it."""
    from agtrace.commands import setup

    setup.run(agent, apply=apply)
