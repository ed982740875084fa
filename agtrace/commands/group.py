"""The group of commands and their options; each command's module loads when it runs."""

from __future__ import annotations

from typing import Any

import click
from agtrace_indexer.providers.registry import AGENTS, SETUPS, TITLES

from agtrace import __version__
from agtrace.commands.options import (
    Address,
    as_json,
    cursor,
    fields,
    list_options,
    path,
    plain_json,
    text_options,
)

_LEVELS = ["summary", "turns", "steps", "full"]
_EVENT_TYPES = ["User", "Message", "Reasoning", "ToolCall", "ToolResult", "TokenUsage", "Notification"]


class _InOrder(click.Group):
    """Lists its commands in the order in which one comes to need them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what was typed wrongly is repeated without secrets."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            from agtrace_indexer.redact import redact

            vars(error)["message"] = redact(error.message)
            raise


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=f"""Find what your coding agents did: one local index over the logs of {TITLES}.

    Begin with `agtrace index`, then `agtrace search TEXT`, or let an agent search: `agtrace setup claude`.
    """,
    epilog="The index lies in AGTRACE_DATA_DIR, by default in your platform's folder for user data. "
    "Nothing leaves the machine.",
)
@click.version_option(__version__, prog_name="agtrace")
def agtrace() -> None:
    """Find what coding agents did."""


@agtrace.command(short_help="Index the agents' logs; only what changed is read.")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(exists=True))
@click.option("--rebuild", is_flag=True, help="Read every log again that is still there.")
@click.option("--watch", is_flag=True, help="Stay, and index what changes within a second, until Ctrl-C.")
@click.option("--optimize", is_flag=True, help="Put the index in order instead: merge, and give free space back.")
@plain_json
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
@click.option("--words", type=click.Choice(["event", "turn"]), help="All words of QUERY, in one event or one turn.")
@click.option("--regex", is_flag=True, help="QUERY is a regular expression; ^ and $ are ends of lines.")
@click.option("--oldest", is_flag=True, help="Oldest first.")
@click.option("--by-session", is_flag=True, help="Each session once, with how many matches it has.")
@click.option("--session", "session_id", metavar="SESSION", help="In one session: its id or the beginning of it.")
@click.option("--type", "event_type", type=click.Choice(_EVENT_TYPES), help="Events of one type.")
@click.option("--tool", help="Calls and results of one tool.")
@path
@click.option("--failed/--not-failed", default=None, help="Only tool executions that failed, or none of them.")
@click.option("--own", "include_own", is_flag=True, help="Also the calls that agents made to agtrace itself.")
@list_options
def search(query: str, as_json: bool, oldest: bool, by_session: bool, **filters: Any) -> None:
    """Find the events that contain QUERY, newest first: literal text, case-insensitive, no syntax.

    \b
      agtrace search 'database is locked' --failed
      agtrace search 'locked retry' --words turn
      agtrace search ModuleNotFoundError --by-session --since 30d
      agtrace search '' --path store.py --session fb3cff44
    """
    from agtrace.commands import show

    filters["order"] = "oldest" if oldest else None
    filters["group_by"] = "session" if by_session else None
    show.search(query, filters, as_json=as_json)


@agtrace.command(short_help="List sessions, newest first.")
@click.option("--query", metavar="TEXT", help="With a text in the title or in a request.")
@path
@click.option("--min-tokens", type=int, metavar="N", help="That took at least so many tokens.")
@click.option("--failures/--no-failures", "has_failures", default=None, help="With failed tool calls, or without any.")
@fields
@list_options
def sessions(as_json: bool, **filters: Any) -> None:
    """List sessions, newest first.

    \b
      agtrace sessions --failures --since yesterday
      agtrace sessions --path src/store.py
    """
    from agtrace.commands import show

    show.sessions(filters, as_json=as_json)


@agtrace.command(short_help="Show a session, or one event whole.")
@click.argument("place", metavar="SESSION[:EVENT]")
@click.option("--level", type=click.Choice(_LEVELS), help="How far to unfold it; default summary, with --turn turns.")
@click.option("--turns", "level", flag_value="turns", help="The same as --level turns: every step with its tool calls.")
@click.option("--turn", "turn_index", type=int, help="Show one turn only.")
@click.option("--reasoning", is_flag=True, help="Quote the thinking beside each step (level turns).")
@click.option(
    "--sections", metavar="NAME,NAME",
    help="Only these, in full: session, stats, children, turns, tools, files, failures, models.",
)  # fmt: skip
@text_options
@fields
@cursor
@as_json
def show(place: str, as_json: bool, **asked: Any) -> None:
    """Show a session by its turns, or one event whole.

    Levels: summary (a line a turn), turns (every step and its tools), steps (what was thought, said, called and
    given back, each shortened), full (everything, verbatim).

    \b
      agtrace show fb3cff44 --turn 3
      agtrace show fb3cff44 --sections failures,files
      agtrace show fb3cff44:42 --lines 1:50
      agtrace show fb3cff44:42 --mode minimal
    """
    from agtrace.commands import show

    show.show(place, asked, as_json=as_json)


@agtrace.command(short_help="Print what a reference (ax://...) refers to.")
@click.argument("ref")
@text_options
@cursor
@as_json
def read(ref: str, as_json: bool, **asked: Any) -> None:
    """Print what REF refers to, as text: every answer names such a reference as its artifact_ref.

    \b
      agtrace read ax://event/fb3cff44/42
      agtrace read ax://session/fb3cff44 --lines 1:200
      agtrace read ax://analysis/fb3cff44
      agtrace read ax://health
    """
    from agtrace.commands import show

    show.read(ref, asked, as_json=as_json)


@agtrace.command(short_help="Show what went wrong in a session.")
@click.argument("session")
@as_json
def analyze(session: str, as_json: bool) -> None:
    """Show what went wrong in a session: failed tools, repeated calls, token use, each with its events."""
    from agtrace.commands import show

    show.analyze(session, as_json=as_json)


@agtrace.command(short_help="Tell the health of many sessions.")
@click.option("--project", metavar="P", help="Of one project: its path, the end of it, or the beginning of its hash.")
@click.option("--provider", type=click.Choice(list(AGENTS)), help="Of one agent.")
@click.option("--since", metavar="TIME", help="That began from a time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="That began up to a time, written as for --since.")
@click.option("--html", metavar="FILE", help="Write a page for a browser, one file without network; - is stdout.")
@plain_json
@click.option("--markdown", is_flag=True, help="Print Markdown, for the summary of a CI run.")
@click.option("--fail-under", type=click.IntRange(0, 100), metavar="N", help="Exit 1 if a scored session is below N.")
@click.option("--mean", "by_mean", is_flag=True, help="With --fail-under: if the mean of the scores is.")
def report(
    html: str | None, as_json: bool, markdown: bool, fail_under: int | None, by_mean: bool, **filters: str | None
) -> None:
    """Tell the health of all sessions, or of a project, a period, an agent: scores, how they ended, what fails,
    what it costs, the worst ones; and what got better or worse than in the same time before.

    A session is in the period in which it began. Its sub-agents are rolled up into it.

    \b
      agtrace report --since 7d
      agtrace report --project tidepool --html report.html
      agtrace report --since 1d --markdown --fail-under 60
    """
    from agtrace.commands.report import Filters, Ways, run

    run(Filters(**filters), Ways(html, as_json, markdown), fail_under=fail_under, by_mean=by_mean)


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
@cursor
@as_json
def reasoning(session: str, turn_index: int | None, limit: int, cursor: str | None, as_json: bool) -> None:
    """Show only the thinking of a session, each piece with what the model did next."""
    from agtrace.commands import compare

    compare.reasoning(session, turn_index=turn_index, limit=limit, cursor=cursor, as_json=as_json)


@agtrace.command(short_help="Serve the index to an agent (stdio, or HTTP).")
@click.option("--http", "address", type=Address(), help="Serve HTTP there, at /mcp; port 0 is any free one.")
@click.option("--no-token", is_flag=True, help="With --http on loopback: answer whoever is on this machine.")
@click.option("--show-token", is_flag=True, help="Print the token that clients must show, and end.")
def mcp(address: tuple[str, int] | None, no_token: bool, show_token: bool) -> None:
    """Serve the index to an agent, over MCP on stdin and stdout.

    With --http it listens there, at /mcp, and answers who shows the token: AGTRACE_HTTP_TOKEN, or one that is made at
    the first start and kept in the data folder. It also answers /healthz and /readyz, and says on stderr where it
    listens; at a terminal, also how agents are told of it.

    \b
      agtrace mcp --http 127.0.0.1:8765
      curl -H "Authorization: Bearer $(agtrace mcp --show-token)" http://127.0.0.1:8765/healthz
    """
    if show_token and (address or no_token):
        raise click.UsageError("--show-token stands alone")
    if no_token and not address:
        raise click.UsageError("--no-token goes with --http")
    if address is None and not show_token:
        from agtrace.commands import serve

        serve()
        return
    from agtrace.commands import mcp_http

    if address is None:
        mcp_http.show_token()
    else:
        mcp_http.run(*address, with_token=not no_token)


@agtrace.command(short_help="Tell how index and configuration are.")
@as_json
def health(as_json: bool) -> None:
    """Tell how the index is: its state, how far it lies behind, its size. Exits 1 if it is in trouble.

    A server tells the same, and the sizes of its answers, as the resource ax://health and at /healthz.
    """
    from agtrace.commands import health

    health.run(as_json=as_json)


@agtrace.command(short_help="Tell what was found and what not understood.")
@click.option("--repair", is_flag=True, help="Make a damaged index sound: read the logs again, keep what is archived.")
@plain_json
def doctor(repair: bool, as_json: bool) -> None:
    """Tell what was found where, what was not understood, and what to do. Exits 1 if anything is in trouble.

    The whole index is looked at for damage. --repair makes a sound one of a damaged one: from the logs, and from what
    can still be read of sessions whose logs are gone. It names what is lost, keeps the damaged file beside the new
    one, and exits 1 if anything is lost.
    """
    from agtrace.commands import doctor

    if repair:
        doctor.repair(as_json=as_json)
    else:
        doctor.run(as_json=as_json)


@agtrace.group(short_help="List what is kept fresh, or take it away.", invoke_without_command=True)
@plain_json
@click.pass_context
def roots(context: click.Context, as_json: bool) -> None:
    """List the files and folders that are kept fresh; `agtrace roots remove PATH` takes one away."""
    if context.invoked_subcommand is None:
        from agtrace.commands import roots

        roots.show(as_json=as_json)


@roots.command(short_help="Keep a file or folder fresh no more.")
@click.argument("path", type=click.Path())
@plain_json
def remove(path: str, as_json: bool) -> None:
    """Keep a file or folder fresh no more. Its sessions stay, as archived ones do, until `agtrace forget`.

    A plain `agtrace index` doesn't bring it back, `agtrace index PATH` does.
    """
    from agtrace.commands import roots

    roots.take_away(path, as_json=as_json)


@agtrace.command(short_help="Take sessions out of the index for good.")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option("--project", metavar="P", help="Of one project: its path, the end of it, or the beginning of its hash.")
@click.option("--before", metavar="TIME", help="That ended before a time: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would be forgotten.")
@plain_json
def forget(
    sessions: tuple[str, ...], project: str | None, before: str | None, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Take sessions out of the index for good: those named, or all that fit; with several conditions, where all hold.

    With a session go its sub-agents. Nothing of them is left in the index or beside it but a digest of each id, so that
    they are not read again, not even into a new index. The agents' own logs stay where they are; one without an id
    is known by its place, and read again where it is moved. It shows what goes and asks first: the index is written
    anew, which needs as much room as it has. AGTRACE_KEEP_DAYS does the same by age, all the time.

    \b
      agtrace forget fb3cff44
      agtrace forget --project tidepool --before 90d --dry-run
    """
    from agtrace.commands import forget as forgetting

    forgetting.run(sessions, project, before, yes=yes, dry_run=dry_run, as_json=as_json)


@agtrace.command(short_help="Measure the answers that an agent gets.")
@click.argument("session", required=False)
@click.option("--sessions", "most", type=click.IntRange(min=1), default=50, show_default=True, help="Most sessions.")
@plain_json
def budget(session: str | None, most: int, as_json: bool) -> None:
    """Ask every tool over a session, or the newest ones, and print how large its answers are.

    Each kind of call stands beside the bytes that it may take. Exits 1 if an answer is larger.
    """
    from agtrace.commands import budget

    budget.run(session, most=most, as_json=as_json)


@agtrace.command(short_help="Add the MCP server to an agent.")
@click.argument("agent", type=click.Choice(list(SETUPS)))
@click.option("--apply", is_flag=True, help="Run the command that adds the server, instead of showing it.")
def setup(agent: str, apply: bool) -> None:
    """Add the MCP server to an agent: shows the command, --apply runs it."""
    from agtrace.commands import setup

    setup.run(agent, apply=apply)
