"""Options that several commands share, and their types."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import click
from agtrace_indexer.providers.registry import AGENTS, agent_by_name
from agtrace_schema.patterns import later
from agtrace_schema.requests import Mode
from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])

_TOKENS = later(r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,9})?)\s?(?P<unit>[kKmMgGbB]?)")
_SIZES = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "b": 1_000_000_000}

_MOST, _TITLE = 30, 60
"""The most sessions that a shell is offered, and the characters of each title."""

_PORT = later("[0-9]{1,5}")
_SECRET = later(r"(?i)^http\b.*token|://[^/@\s]*:[^/@\s]*@|password\s*=")
_LINES = later(r"(?P<one>[0-9]{1,15})|(?P<first>[0-9]{0,15}):(?P<last>[0-9]{0,15})")


def one_of(literal: Any) -> click.Choice[str]:
    """Return the type of an option that takes one of the words of a `Literal`."""
    return click.Choice(get_args(literal))


class AgentName(click.ParamType[str]):
    """The name of an agent whose logs are read, in any of its spellings."""

    name = "AGENT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name that the index has."""
        return agent_by_name(value) or click.Choice(list(AGENTS)).convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with what was typed."""
        return click.Choice(list(AGENTS)).shell_complete(ctx, param, incomplete)


class AgentOption(click.Option):
    """An option that names an agent, which is also accepted as `--agent`; the help shows one name only."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser know both names."""
        super().add_to_parser(parser, ctx)
        parser.add_option(self, ["--agent"], self.name)


class Groups(click.Choice[str]):
    """Groups to count by; `provider` is another word for `agent`, as for the options."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of the group."""
        return super().convert("agent" if value == "provider" else value, param, ctx)


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, with an IPv6 host in brackets."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return the host, without brackets, and the port."""
        host, colon, port = value.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not (colon and bare and _PORT.fullmatch(port) and int(port) < 65_536):
            self.fail(f"expected HOST:PORT, such as 127.0.0.1:8765, got {value!r}", param, ctx)
        return bare, int(port)


class Tokens(click.ParamType[int]):
    """A number of tokens, as lists print it: 50000, 50k, 1.5M, 2G."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        match = _TOKENS.fullmatch(str(value).strip().replace(",", ""))
        if match is None:
            self.fail(f"expected a number such as 50000, 50k or 1.5M, got {value!r}", param, ctx)
        return round(float(match["number"]) * _SIZES[match["unit"].lower()])


class Span(click.ParamType[tuple[int | None, int | None]]):
    """A span of what is numbered: `A:B`, `A:` to the end, `:B` from the beginning, `A` for one."""

    name = "A:B"

    def __init__(self, noun: str, lowest: int) -> None:
        self._noun, self._lowest = noun, lowest

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | None, int | None]:
        """Return the first and the last number; None for one that isn't given."""
        match = _LINES.fullmatch(value)
        if match is None or value == ":":
            self.fail(f"expected {self._noun} such as 10:20, 10:, :20 or 10, got {value!r}", param, ctx)
        named = (match["one"] or match["first"], match["one"] or match["last"])
        first, last = (int(number) if number else None for number in named)
        below = any(number is not None and number < self._lowest for number in (first, last))
        if below or (first is not None and last is not None and last < first):
            self.fail(
                f"expected {self._noun} counted from {self._lowest}, the lower number first, got {value!r}", param, ctx
            )
        return first, last


def session_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the sessions whose ids begin with what was typed, for a shell to complete; the latest ones for nothing.

    Whatever is wrong with the index, nothing is completed.
    """
    import sqlite3

    from agtrace_indexer.index.opening import open_read_only
    from agtrace_indexer.index.queries import sessions

    from agtrace.settings.environment import data_dir
    from agtrace.text.lines import unbroken

    with suppress(sqlite3.Error, OSError), closing(open_read_only(data_dir() / "index.sqlite3")) as index:
        found = sessions.with_prefix(index, incomplete, _MOST) if incomplete else sessions.newest(index, _MOST)
        return [CompletionItem(one.uid, help=unbroken((one.title or one.snippet or "")[:_TITLE])) for one in found]
    return []


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, the answer that an agent gets over MCP.")
plain_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
cursor = click.option("--cursor", help="Continue after a page, with the cursor at its end.")
limit = click.option(
    "-n", "--limit", type=click.IntRange(1), metavar="N", help="The most items to show; settings have the default."
)
every = click.option(
    "--all", "everything", is_flag=True, help="Show all of them; with --json, each on a line, with whole ids."
)
path = click.option("--path", metavar="TEXT", help="Only where a tool named a file whose path contains this.")
failed = click.option("--failed/--not-failed", default=None, help="Only failed tool executions, or all but those.")

project = click.option(
    "--project", metavar="P", callback=lambda _, __, given: _here(given),
    help="Only one project: its name, owner/name, folder (. is this one), or hash.",
)  # fmt: skip

provider = click.option(
    "--provider", cls=AgentOption, type=AgentName(), help=f"Only one agent: {', '.join([*AGENTS][:3])} ..."
)

_FILTERS = (
    limit,
    click.option("--until", metavar="TIME", help="Up to this time, written as for --since; a day is included."),
    click.option("--since", metavar="TIME", help="From this time on: 2026-11-03, 12h, 7d, yesterday."),
    project,
    provider,
)


def _use_settings(command: Command) -> Command:
    """Put the options on top of every other source of settings before the command runs."""

    @wraps(command)
    def run(
        *given: Any,
        config: str | None,
        settings: tuple[str, ...],
        asked_index: str | None = None,
        asked_user: str | None = None,
        **arguments: Any,
    ) -> Any:
        named = {"index": asked_index, "user": asked_user}
        put_on_top(config, (*settings, *(f"{key}={value}" for key, value in named.items() if value is not None)))
        return command(*given, **arguments)

    return cast(Command, run)


def without_secret(_ctx: click.Context | None, _param: click.Parameter | None, value: str | None) -> str | None:
    """Return an argument; one that holds a secret is refused, as every user of the machine can read it."""
    if value and _SECRET.search(value):
        raise click.UsageError("everybody can read an argument: keep passwords in ~/.pgpass, a token in a variable")
    return value


def put_on_top(config: str | None, settings: Iterable[str]) -> None:
    """Use a configuration file and `KEY=VALUE` settings from the command line for the rest of this process."""
    if config is None and not settings:
        return
    from agtrace.settings.environment import use_command_line

    parted = [str(without_secret(None, None, one)).partition("=") for one in settings]
    for key, equals, value in parted:
        if not equals or not value.strip():
            raise click.UsageError(f"--set needs KEY=VALUE, such as default_page_size=20, got {key + equals!r}")
    use_command_line(None if config is None else Path(config), {key.strip(): value.strip() for key, _, value in parted})


def settings_options(command: Command) -> Command:
    """Add the options that say where settings come from."""
    options = (
        click.option(
            "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set one setting, above all others."
        ),
        click.option("--config", metavar="FILE", help="Read this configuration file (TOML, YAML or JSON)."),
    )
    return _with(options, _use_settings(command))


def index_options(command: Command) -> Command:
    """Add the options that say which index is asked."""
    options = (
        click.option("--user", "asked_user", metavar="LOGIN", help="Of a team's index, only this person's sessions."),
        click.option(
            "--index", "asked_index", metavar="URL",
            help="Ask a team's index: `team` for that of the setting `team`, or postgresql://...",
        ),
    )  # fmt: skip
    return _with(options, command)


def _here(value: str | None) -> str | None:
    """Return the project that a user names; a folder that starts with a dot becomes the root of its project."""
    if value is None or not value.startswith("."):
        return value
    from agtrace_indexer.index.projects import project_root

    return project_root(os.path.abspath(value))


def list_options(command: Command) -> Command:
    """Add the options of lists."""
    return _with((as_json, *_FILTERS), command)


def _with(options: Iterable[Callable[[Command], Command]], command: Command) -> Command:
    for option in options:
        command = option(command)
    return command


def text_options(command: Command) -> Command:
    """Add the options that long texts have."""
    options = (
        click.option("--focus", metavar="QUESTION", help="Only the lines that a question is about, and failing ones."),
        click.option("--mode", type=one_of(Mode), help="Show a digest instead, failing lines first."),
        click.option("--lines", type=Span("lines", 1), help="Only these lines of the text: 10:20, 10:, :20 or 10."),
    )
    return _with(options, command)
