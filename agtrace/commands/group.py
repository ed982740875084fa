"""The group of all commands, which lists them; a command's module is loaded when the command runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click
from agtrace_indexer.providers.registry import TITLES

from agtrace import __version__
from agtrace.commands.errors import explained
from agtrace.commands.options import index_options, settings_options

_GROUPS = {
    "Find and read": {
        "search": ("Find past sessions by words, or events that contain a text.", "sessions.search"),
        "sessions": ("List sessions, newest first.", "sessions.sessions"),
        "projects": ("List projects, with their sessions and cost.", "sessions.projects"),
        "show": ("Read a session as a conversation, or one event.", "show.show"),
        "why": ("Show which session wrote a line of a file.", "report.why"),
        "open": ("Read and search sessions in the browser.", "watch.open_"),
        "watch": ("Show what running sessions do, as they go.", "watch.watch"),
        "resume": ("Print or run what continues a session.", "export.resume"),
        "export": ("Export a conversation, without secrets.", "export.export"),
    },
    "Figures and health": {
        "today": ("Show what was asked, done and spent today.", "report.today"),
        "yesterday": ("Show the same of yesterday.", "report.yesterday"),
        "week": ("Show the same of this week.", "report.week"),
        "cost": ("Show what was spent by day, project, model ...", "report.cost"),
        "sql": ("Count and compare anything by a SELECT.", "sessions.sql"),
        "report": ("Report the health of many sessions.", "report.report"),
        "lessons": ("Show what keeps failing, and what worked.", "report.lessons"),
        "secrets": ("Show what was masked, and decide about it.", "report.secrets"),
        "analyze": ("Show what went wrong in a session.", "show.analyze"),
        "compare": ("Compare two sessions.", "show.compare"),
    },
    "Set up and look after": {
        "index": ("Index the agents' logs; only what changed is read.", "index.index"),
        "setup": ("Add the MCP server to an agent or editor.", "setup.setup"),
        "service": ("Keep the index fresh in the background.", "setup.service"),
        "statusline": ("Print a line for Claude Code's status line.", "shell.statusline"),
        "doctor": ("Show what was found and what is wrong.", "doctor.doctor"),
        "config": ("Show the settings, check a configuration file.", "config.config"),
        "roots": ("List what is kept fresh, or remove some.", "index.roots"),
        "forget": ("Remove sessions from the index for good.", "forget.forget"),
        "metrics": ("Show what servers were asked, and how they answered.", "doctor.metrics"),
        "completion": ("Print the script for completion in a shell.", "shell.completion"),
    },
    "Serve agents": {
        "mcp": ("Serve the index to an agent (stdio, or HTTP).", "mcp.mcp"),
    },
    "Give agents less to read": {
        "run": ("Run an agent with a server that prunes.", "prune.run"),
        "prune": ("Serve read, bash and grep that answer a question.", "prune.prune"),
        "pruner": ("Serve the built-in pruner over HTTP.", "prune.pruner"),
    },
    "Share with a team": {
        "team": ("Share sessions with a team, and look after it.", "team.team"),
        "push": ("Send the sessions that you share to a team.", "team.push"),
    },
}
"""The groups of `agtrace --help`: each command's line there, and where it is."""

_COMMANDS = {name: command for group in _GROUPS.values() for name, command in group.items()}


_MEANT = {
    "ls": "sessions",
    "list": "sessions",
    "last": "show last",
    "log": "show",
    "read": "show",
    "reasoning": "show --thinking",
    "tail": "watch",
    "top": "watch",
    "health": "doctor",
    "status": "watch` or `agtrace doctor",
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
    "help": "--help",
}
"""What people type who look for something that has another name here."""


class _Modules(Mapping[str, click.Command]):
    def __getitem__(self, name: str) -> click.Command:
        module, function = _COMMANDS[name][1].split(".")
        result: click.Command = getattr(import_module(f"agtrace.commands.{module}"), function)
        return result

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
        for title, group in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, says) for name, (says, _) in group.items()])

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
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=f"""Find what your coding agents did: one local index over the logs of {TITLES}.

    Start with `agtrace index`, then `agtrace` alone picks a session as you type, `agtrace search TEXT` prints what is
    found, and `agtrace setup claude` lets an agent search.
    """,
    epilog="The index is in AGTRACE_DATA_DIR, by default in your platform's folder for user data. "
    "Nothing leaves the machine, unless you name the URL of a pruner or push to a team.",
)
@click.version_option(__version__, "--version", "-V", prog_name="agtrace")
@index_options
@settings_options
@click.pass_context
def agtrace(context: click.Context) -> None:
    """Find what your coding agents did."""
    if context.invoked_subcommand is None:
        from agtrace.commands.pick import pick

        pick(context)
