"""What a provider is: everything that agtrace knows about one coding agent.

Each agent is a package beside this module. Its `__init__` holds an `Agent`, facts and words that load quickly; its
parser is loaded when a log is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from agtrace_indexer.events.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path, PurePath

    from agtrace_indexer.events.drafts import LogState, Record, Said
    from agtrace_indexer.logs.containers import Container
    from agtrace_indexer.logs.discovery import Found
    from agtrace_indexer.providers.setup import Setup


Rewrite: TypeAlias = "Callable[[list[Record]], list[Record]] | None"
"""Turns the records of a whole document into a patch of what was read of it; None where it is read anew."""


_LOOKED_AT = 1_000
"""Characters of a notification's text in which a sign is looked for."""


class Home(NamedTuple):
    """Where an agent keeps its logs."""

    variable: str
    """The environment variable that moves the folder."""
    meaning: str
    """What the variable says, and what holds without it, for the table of settings."""
    folder: str
    """Where it is without the variable, below the user's home: `.codex`."""
    logs: tuple[str, ...]
    """The folders in it that hold logs: `sessions`."""
    several: bool = False
    """Whether the variable may name several folders, separated by commas."""

    def roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """The folders of logs on a machine with these variables, whether they exist or not."""
        from pathlib import Path  # a command that only prints its help does without

        named = environment.get(self.variable)
        if named and self.several:
            folders = [Path(part.strip()) for part in named.split(",") if part.strip()]
        else:
            folders = [Path(named) if named else home / self.folder]
        return [folder / logs for folder in folders for logs in self.logs]


class Forms(NamedTuple):
    """How an agent keeps one log in several files for a while: the first of them is read, the others repeat it."""

    beginning: str
    """How the names of these files begin."""
    log_of: Callable[[str, str], tuple[str, str] | None]
    """Tells from folder and name of a file what all files of its log have in common; None where it has no other."""
    rank: Callable[[str], tuple[bool, ...]]
    """Tells from the path of a file how far it stands behind the others of its log."""


class Row(NamedTuple):
    """A record of a log that isn't a file of its own."""

    number: int
    """Its place: the id of a row, or a count. Events name it as their line."""
    data: bytes
    """The record as JSON. What can't be parsed is kept and counted, like a line that can't."""
    position: Any
    """Where the next run goes on if it ends here, as JSON."""


class LogInside(NamedTuple):
    """A log that a container holds among others."""

    name: str
    """Its session's id, as a rule; without a slash. Its path is that of the container and this name."""
    stamp: str
    """Equal stamps mean an unchanged log: the time of its last change with the count of its rows, for example."""
    size: int = 0
    """Bytes, as far as they are known without reading it."""


class Source(Protocol):
    """Reads logs that aren't files of their own: rows of a database, or many small files each.

    `logs.foreign_database` asks a database of another program without disturbing it, `logs.files` opens files.
    """

    def logs(self, container: Container) -> Iterable[LogInside]:
        """The logs that a container holds. Raises `OSError` where it can't be read now."""

    def rows(self, found: Found, position: Any) -> Iterable[Row]:
        """The records of a log from a position on (that of the last row that was read), all of them from None on.

        What was changed in place since then comes again, and replaces what was read by the keys of its drafts. What
        vanished has to be said by a record. Raises `OSError`.
        """


class Containers(NamedTuple):
    """Where an agent keeps logs that aren't files of their own."""

    files: re.Pattern[str]
    """Fits all of the path of each file that belongs to one; the first group is the path of the container, which it
    fits as well: `(.*/nest\\.db)(?:-wal|-shm|-journal)?`."""
    source: Callable[[], Source]
    """Loads what reads it."""

    def of(self, path: str) -> str | None:
        """The path of the container that a file belongs to; None for any other file."""
        found = self.files.fullmatch(path)
        return None if found is None else found[1]


class Sign(NamedTuple):
    """How a notification is told that says a certain thing."""

    kind: str
    text: str = ""
    """A regular expression that stands in its text; empty where the kind is enough."""

    def fits(self, kind: str, text: str) -> bool:
        """Whether a notification of this kind and text says so."""
        return kind == self.kind and (not self.text or re.search(self.text, text[:_LOOKED_AT]) is not None)


class Notices(NamedTuple):
    """By which notifications an agent's log tells of the model's API, of the human and of the context window."""

    api_errors: frozenset[str] = frozenset()
    """Kinds: the API failed, and the agent didn't ask again. The turn ends there unless the human goes on with it."""
    also_of_commands: bool = False
    """Whether errors of these kinds may be those of the human's commands as well: one that stands behind the model's
    last word then says nothing of the turn."""
    retried_errors: frozenset[str] = frozenset()
    """Kinds: the API failed, and the agent asked again by itself."""
    telling: frozenset[str] = frozenset()
    """Kinds that say in the agent's words what a session was about: recaps, goals, pull requests. They are ranked."""
    interruptions: tuple[Sign, ...] = ()
    """The human stopped the model."""
    compactions: tuple[Sign, ...] = ()
    """The context was replaced by a summary of it."""


class Client(NamedTuple):
    """An agent as a client of our MCP server."""

    name: str
    """The name that it gives itself, or the beginning of it up to a hyphen."""
    characters: int
    """Beyond this it cuts an answer a second time, or moves it to a file."""


class Agent(NamedTuple):
    """A coding agent."""

    name: str
    """What the index, answers and filters call it: `claude_code`."""
    title: str
    """What people call it: `Claude Code`."""
    parser: Callable[[], Parser]
    """Loads the module that reads its logs."""
    home: Home
    forms: Forms | None = None
    containers: tuple[Containers, ...] = ()
    tools: Tools = Tools()
    notices: Notices = Notices()
    no_messages: frozenset[str] = frozenset()
    """What it writes in the model's place where the model said nothing."""
    hidden_reasoning: str = "without text"
    """How its logs hold reasoning that can't be read."""
    output_header: re.Pattern[str] | None = None
    """Matches what it writes before the output of a tool, which says nothing of it."""
    longest_command_ms: int | None = None
    """After how many milliseconds it ends a command, unless it is configured otherwise; None where it never does."""
    client: Client | None = None
    command: str = ""
    """The name of its program, by which `agtrace setup` is asked for it: `claude`."""
    setup: Callable[[], Setup] | None = None
    """Loads how our MCP server is added to it; None where it can't be."""
    keys_remembered: int | None = 0
    """How many keys of drafts are remembered for each session (`Draft.key`); None is all."""
    repeats_lines: bool = False
    """Whether a log may hold the same line twice: the second one is left out. Elsewhere equal texts are said twice."""
    replays_items: bool = False
    """Whether identities only mean something between a log and the one that it says to replay: they are no ids of
    lines."""


class Parser(Protocol):
    """What reads an agent's logs. All functions are pure but for the state they are given."""

    @property
    def as_patch(self) -> Rewrite:
        """How a document that was written again becomes a change of what is known of it."""

    def recognizes(self, record: Record) -> bool:
        """Whether this record can only come from this agent's log (content, never the file's name)."""

    def unroll(self, document: Any) -> Iterable[Record] | None:
        """The records of a whole-file JSON document in the order of their lines, or None if it isn't ours."""

    def begin(self, path: PurePath) -> LogState:
        """The state before the first record; the path may tell a sub-agent's id and its parent's.

        A small description that the agent keeps beside the log (`.meta.json`) may be read here, nothing else.
        """

    def drafts(self, record: Record, state: LogState) -> Iterable[Said]:
        """The events of the next record. Never raises on any JSON object, however strange.

        A record of an unknown type becomes `Notification("unknown/<type>", <its compact JSON>)` and
        its type is noted in `state.unknown`. A known record that repeats what other records say, or
        holds nothing a reader would ask for, is noted in `state.skipped` with its type.
        """
