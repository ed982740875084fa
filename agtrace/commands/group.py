"""The group of commands; the module of a command loads when the command runs, and all of them for `agtrace --help`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import click
from agtrace_indexer.providers.registry import TITLES

from agtrace import __version__
from agtrace.commands.errors import explained

_COMMANDS: dict[str, Callable[[], click.Command]] = {
    "index": lambda: import_module("agtrace.commands.index").index,
    "search": lambda: import_module("agtrace.commands.search").search,
    "sessions": lambda: import_module("agtrace.commands.sessions").sessions,
    "show": lambda: import_module("agtrace.commands.show").show,
    "read": lambda: import_module("agtrace.commands.read").read,
    "analyze": lambda: import_module("agtrace.commands.analyze").analyze,
    "report": lambda: import_module("agtrace.commands.report").report,
    "compare": lambda: import_module("agtrace.commands.compare").compare,
    "reasoning": lambda: import_module("agtrace.commands.reasoning").reasoning,
    "mcp": lambda: import_module("agtrace.commands.mcp").mcp,
    "health": lambda: import_module("agtrace.commands.health").health,
    "doctor": lambda: import_module("agtrace.commands.doctor").doctor,
    "roots": lambda: import_module("agtrace.commands.roots").roots,
    "forget": lambda: import_module("agtrace.commands.forget").forget,
    "setup": lambda: import_module("agtrace.commands.setup").setup,
}
"""The commands in the order in which one comes to need them."""


class _Modules(Mapping[str, click.Command]):
    """The commands by name, each loaded when it is taken out."""

    def __getitem__(self, name: str) -> click.Command:
        return _COMMANDS[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Group(click.Group):
    """Lists its commands in their order, and explains their errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with explained():
            return super().invoke(ctx)


@click.group(
    cls=_Group,
    commands=_Modules(),
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
