"""The group of all commands, which lists them; a command's module is loaded when the command runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import click
from agtrace_indexer.providers.registry import TITLES
from msgspec import Struct

from agtrace import __version__
from agtrace.commands.errors import explained
from agtrace.commands.options import index_options, settings_options


class _Listed(Struct, frozen=True):
    """A command's line in `agtrace --help`, and how to load it."""

    says: str
    load: Callable[[], click.Command]


_COMMANDS = {
    "index": _Listed(
        "Index the agents' logs; only what changed is read.",
        lambda: import_module("agtrace.commands.index").index,
    ),
    "search": _Listed(
        "Find past sessions by words, or events that contain a text.",
        lambda: import_module("agtrace.commands.search").search,
    ),
    "sessions": _Listed(
        "List sessions, newest first.",
        lambda: import_module("agtrace.commands.sessions").sessions,
    ),
    "projects": _Listed(
        "List projects, with their sessions and cost.",
        lambda: import_module("agtrace.commands.projects").projects,
    ),
    "watch": _Listed(
        "Show what running sessions do, as they go.",
        lambda: import_module("agtrace.commands.watch").watch,
    ),
    "statusline": _Listed(
        "Print a line for Claude Code's status line.",
        lambda: import_module("agtrace.commands.statusline").statusline,
    ),
    "count": _Listed(
        "Count calls or tokens by tool, file, model, day ...",
        lambda: import_module("agtrace.commands.count").count,
    ),
    "cost": _Listed(
        "Show what was spent by day, project, model ...",
        lambda: import_module("agtrace.commands.cost").cost,
    ),
    "show": _Listed(
        "Read a session as a conversation, or one event.",
        lambda: import_module("agtrace.commands.show").show,
    ),
    "why": _Listed(
        "Show which session wrote a line of a file.",
        lambda: import_module("agtrace.commands.why").why,
    ),
    "resume": _Listed(
        "Print or run what continues a session.",
        lambda: import_module("agtrace.commands.resume").resume,
    ),
    "open": _Listed(
        "Read and search sessions in the browser.",
        lambda: import_module("agtrace.commands.open").open_,
    ),
    "export": _Listed(
        "Export a conversation, without secrets.",
        lambda: import_module("agtrace.commands.export").export,
    ),
    "read": _Listed(
        "Print what a reference (ax://...) points to.",
        lambda: import_module("agtrace.commands.read").read,
    ),
    "analyze": _Listed(
        "Show what went wrong in a session.",
        lambda: import_module("agtrace.commands.analyze").analyze,
    ),
    "report": _Listed(
        "Report the health of many sessions.",
        lambda: import_module("agtrace.commands.report").report,
    ),
    "lessons": _Listed(
        "Show what keeps failing, and what worked.",
        lambda: import_module("agtrace.commands.lessons").lessons,
    ),
    "compare": _Listed(
        "Compare two sessions.",
        lambda: import_module("agtrace.commands.compare").compare,
    ),
    "reasoning": _Listed(
        "Show only the thinking of a session.",
        lambda: import_module("agtrace.commands.reasoning").reasoning,
    ),
    "mcp": _Listed(
        "Serve the index to an agent (stdio, or HTTP).",
        lambda: import_module("agtrace.commands.mcp").mcp,
    ),
    "prune": _Listed(
        "Serve read, bash and grep that answer a question.",
        lambda: import_module("agtrace.commands.prune").prune,
    ),
    "pruner": _Listed(
        "Serve the built-in pruner over HTTP.",
        lambda: import_module("agtrace.commands.pruner").pruner,
    ),
    "run": _Listed(
        "Run an agent with a server that prunes.",
        lambda: import_module("agtrace.commands.run").run,
    ),
    "health": _Listed(
        "Show the status of index and configuration.",
        lambda: import_module("agtrace.commands.health").health,
    ),
    "config": _Listed(
        "Show the settings, check a configuration file.",
        lambda: import_module("agtrace.commands.config").config,
    ),
    "metrics": _Listed(
        "Show what servers were asked, how fast and how large the answers were.",
        lambda: import_module("agtrace.commands.metrics").metrics,
    ),
    "doctor": _Listed(
        "Show what was found and what is wrong.",
        lambda: import_module("agtrace.commands.doctor").doctor,
    ),
    "roots": _Listed(
        "List what is kept fresh, or remove some.",
        lambda: import_module("agtrace.commands.roots").roots,
    ),
    "service": _Listed(
        "Keep the index fresh in the background.",
        lambda: import_module("agtrace.commands.service").service,
    ),
    "push": _Listed(
        "Send the sessions that you share to a team.",
        lambda: import_module("agtrace.commands.push").push,
    ),
    "team": _Listed(
        "Share sessions with a team, and look after it.",
        lambda: import_module("agtrace.commands.team").team,
    ),
    "forget": _Listed(
        "Remove sessions from the index for good.",
        lambda: import_module("agtrace.commands.forget").forget,
    ),
    "setup": _Listed(
        "Add the MCP server to an agent or editor.",
        lambda: import_module("agtrace.commands.setup").setup,
    ),
    "completion": _Listed(
        "Print the script for completion in a shell.",
        lambda: import_module("agtrace.commands.completion").completion,
    ),
    "help": _Listed(
        "Show how a command is used.",
        lambda: import_module("agtrace.commands.help").help_of,
    ),
}
"""The commands in the order in which a user comes to need them."""


_MEANT = {
    "ls": "sessions",
    "list": "sessions",
    "last": "show last",
    "log": "show",
    "tail": "watch",
    "top": "watch",
    "status": "watch` or `agtrace health",
    "ui": "open",
    "web": "open",
    "tui": "watch",
    "serve": "open` or `agtrace mcp --http 127.0.0.1:8765",
    "server": "mcp",
    "stats": "cost` or `agtrace report",
    "usage": "cost",
    "find": "search",
    "grep": "search",
    "install": "setup` or `agtrace service",
    "rm": "forget",
    "delete": "forget",
    "version": "--version",
}
"""What people type who look for something that has another name here."""


class _Modules(Mapping[str, click.Command]):
    """The commands by name, each loaded when it is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        return _COMMANDS[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Group(click.Group):
    """A group that lists its commands in the order given, and explains their errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.says) for name, listed in _COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed, or say how it is called here."""
        name = args[0]
        if name in _MEANT and name not in self.commands and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command {name!r}. Did you mean `agtrace {_MEANT[name]}`?", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and explain its errors."""
        with explained():
            return super().invoke(ctx)


@click.group(
    cls=_Group,
    commands=_Modules(),
    context_settings={"help_option_names": ["-h", "--help"]},
    help=f"""Find what your coding agents did: one local index over the logs of {TITLES}.

    Start with `agtrace index`, then `agtrace search TEXT`, or let an agent search: `agtrace setup claude`.
    """,
    epilog="The index is in AGTRACE_DATA_DIR, by default in your platform's folder for user data. "
    "Nothing leaves the machine, unless you name the URL of a pruner or push to a team.",
)
@click.version_option(__version__, "--version", "-V", prog_name="agtrace")
@index_options
@settings_options
def agtrace() -> None:
    """Find what your coding agents did."""
