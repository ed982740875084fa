"""The options that several commands have, and what is read from them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import EventType
from agtrace_schema.requests import Level, Mode, Section, WordsIn

from agtrace.commands.errors import USAGE, fail

Command = TypeVar("Command", bound=Callable[..., Any])

PROVIDERS = list(AGENTS)
"""The agents whose logs are read."""

EVENT_TYPES = [str(kind) for kind in EventType]
LEVELS = list(get_args(Level))
SECTIONS = list(get_args(Section))
MODES = list(get_args(Mode))
WORDS = list(get_args(WordsIn))

_PORT = re.compile("[0-9]{1,5}")
_LINES = re.compile(r"(?P<one>[0-9]{1,15})|(?P<first>[0-9]{0,15}):(?P<last>[0-9]{0,15})")


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, an IPv6 host in brackets."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """The host without brackets, and the port."""
        host, colon, port = value.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not (colon and bare and _PORT.fullmatch(port) and int(port) < 65_536):
            self.fail(f"{value!r} is no HOST:PORT, such as 127.0.0.1:8765", param, ctx)
        return bare, int(port)


class Lines(click.ParamType[tuple[int | None, int | None]]):
    """Numbers of lines, from 1: `A:B`, `A:` to the end, `:B` from the beginning, `A` alone."""

    name = "A:B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | None, int | None]:
        """The first line and the last; None where it is not named."""
        found = _LINES.fullmatch(value)
        if found is None or value == ":":
            self.fail(f"{value!r} names no lines: write 10:20, 10:, :20 or 10", param, ctx)
        named = (found["one"] or found["first"], found["one"] or found["last"])
        first, last = (int(number) if number else None for number in named)
        if first == 0 or last == 0 or (first is not None and last is not None and last < first):
            self.fail(f"{value!r} names no lines: they are counted from 1, and the first comes first", param, ctx)
        return first, last


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON: the answer that an agent gets over MCP.")
plain_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
cursor = click.option("--cursor", help="Continue behind a page: the cursor that it ended with.")
path = click.option("--path", metavar="TEXT", help="Where a tool named a file whose path has this in it.")
fields = click.option("--fields", metavar="NAME,NAME", help="With --json: only these fields, such as id,title.")


def list_options(command: Command) -> Command:
    """The options of every list."""
    for option in (
        as_json,
        cursor,
        click.option("--limit", type=int, default=10, show_default=True, help="Most items, up to 50."),
        click.option("--until", metavar="TIME", help="Up to a time, written as for --since."),
        click.option("--since", metavar="TIME", help="From a time on: 2026-11-03, 12h, 7d, yesterday."),
        click.option(
            "--project", "project_hash", metavar="HASH", help="Of one project: its hash or the beginning of it."
        ),
        click.option("--provider", type=click.Choice(PROVIDERS), help="Of one agent."),
    ):
        command = option(command)
    return command


def text_options(command: Command) -> Command:
    """The options of a long text."""
    for option in (
        click.option("--mode", type=click.Choice(MODES), help="A digest: failing lines first."),
        click.option("--lines", type=Lines(), help="Only these lines of a text: 10:20, 10:, :20 or 10."),
    ):
        command = option(command)
    return command


def check_fields(fields: str | None, *, as_json: bool) -> None:
    """End the process where fields are asked for, which only JSON has."""
    if fields is not None and not as_json:
        fail("--fields goes with --json", USAGE)
