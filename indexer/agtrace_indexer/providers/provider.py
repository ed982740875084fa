"""A provider: everything that agtrace knows about one coding agent.

Each agent is a package next to this module. Its `__init__` has an `Agent`, with facts and words that load quickly;
its parser is loaded when a log is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import Forms

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path, PurePath

    from agtrace_indexer.events.drafts import LogState, Record, Said
    from agtrace_indexer.logs.discovery import Container, LogFile
    from agtrace_indexer.providers.setup import Setup


ReadPhase: TypeAlias = "Callable[[Record], Phase | None]"
ReadRetention: TypeAlias = "Callable[[Mapping[str, str], Path], list[Retention]]"
"""Given the variables of a machine and a home folder, returns one for each folder of settings."""

Refresh: TypeAlias = "Callable[[LogState, LogState], bool]"
"""Takes the facts of a state that has just begun into one that a log has reached, and returns whether that is enough;
otherwise the log has to be read again, as it would now yield other events."""


def loader(name: str) -> Callable[[], Any]:
    """Return a function that loads a module of the agents, or a value in one: `pi.parser`, `pi.parser:phase`."""
    module, _, value = name.partition(":")

    def load() -> Any:
        loaded = __import__(f"agtrace_indexer.providers.{module}", fromlist=[value])  # told by -X importtime
        return getattr(loaded, value) if value else loaded

    return load


_LOOKED_AT = 1_000
"""Characters of a notification's text in which a sign is searched for."""


class Database(Struct, frozen=True):
    """The database in which an agent keeps its logs, if a variable of its own can name another one."""

    variable: str
    """The environment variable: an absolute path, or one relative to the folder of the database."""
    meaning: str
    """The meaning of the variable and its default, for the table of settings."""
    folder: str
    """The folder of the database in its home."""
    name: str
    """Its name if the variable isn't set: `nest.db`."""

    def path(self, home: Path, environment: Mapping[str, str]) -> Path:
        """Return its path on a machine with these variables; a variable that names a folder is ignored."""
        own, named = home / self.folder, environment.get(self.variable)
        return own / (self.name if not named or (own / named).is_dir() else named)


class Home(NamedTuple):
    """The folder in which an agent keeps its logs."""

    variable: str
    """The environment variable that moves the folder."""
    meaning: str
    """The meaning of the variable and its default, for the table of settings."""
    folder: str | None
    """Its path below the user's home if the variable isn't set: `.codex`; None if there is no such folder then."""
    logs: tuple[str, ...]
    """The folders in it that contain logs: `sessions`; of names with `*`, those that exist."""
    several: bool = False
    """Whether the variable may name several folders, separated by commas."""
    database: Database | None = None
    """A database among the logs."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that move the logs, with their meanings."""
        named = {} if self.database is None else {self.database.variable: self.database.meaning}
        return ({self.variable: self.meaning} if self.variable else {}) | named

    def roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the folders of logs on a machine with these variables, whether they exist or not."""
        from pathlib import Path  # not needed by a command that only prints its help

        named = environment.get(self.variable)
        if named and self.several:
            folders = [Path(part.strip()) for part in named.split(",") if part.strip()]
        elif named:
            folders = [Path(named)]
        else:
            folders = [] if self.folder is None else [home / self.folder]
        result = [] if self.database is None else [self.database.path(folder, environment) for folder in folders]
        for folder in folders:
            for logs in self.logs:
                result += sorted(folder.glob(logs)) if "*" in logs else [folder / logs]
        return result


def of_user_data(*logs: str) -> Home:
    """Return the folder in which programs of a user keep their data, with logs in it (XDG Base Directory)."""
    return Home(
        "XDG_DATA_HOME", "the folder in which programs keep their data; default ~/.local/share", ".local/share", logs
    )


class Sidecar(NamedTuple):
    """A small file next to each log that says more about its session, and that the agent rewrites while the log grows.

    `Parser.begin` reads it. A change of it counts as a change of its log.
    """

    endings: tuple[tuple[str, str], ...]
    """How the path of a log ends, and how that of its sidecar ends in place of it: `.jsonl` and `.json`."""
    refresh: Callable[[], Refresh]
    """Loads the function that takes what a sidecar says now into the state of a log that was read before."""


class Fork(Struct, frozen=True):
    """What an agent's logs have in common with those of another one, and what tells them apart."""

    format: str
    """The name of the agent whose format it writes: `pi`."""
    paths: re.Pattern[str]
    """Is found in the paths of its logs."""


class Row(Struct, frozen=True):
    """A record of a log that isn't a file."""

    number: int
    """Its position: the id of a row, or a count. Events have it as their line."""
    data: bytes
    """The record as JSON. If it can't be parsed it is kept and counted, as a line would be."""
    position: Any
    """Where the next run continues if this one ends here, as JSON."""


class LogInside(Struct, frozen=True):
    """One of the logs in a container."""

    name: str
    """Usually its session's id; without a slash. Its path is the container's path followed by this name."""
    stamp: str
    """Equal stamps mean an unchanged log: for example, the time of its last change with the number of its rows."""
    size: int = 0
    """Bytes, if known without reading it."""


class Source(Protocol):
    """Reads logs that aren't files: rows of a database, or many small files for each log.

    `logs.foreign_database` queries another program's database without disturbing it, `logs.files` opens files.
    """

    def logs(self, container: Container) -> Iterable[LogInside]:
        """Yield the logs in a container. Raises `OSError` if it can't be read now."""

    def rows(self, file: LogFile, position: Any) -> Iterable[Row]:
        """Yield the records of a log after a position (that of the last row that was read); all of them for None.

        Records that were changed in place since then are repeated, and the keys of their drafts make them replace
        what was read. A deletion has to be reported by a record. Raises `OSError`.
        """


class Containers(Struct, frozen=True):
    """The containers in which an agent keeps logs that aren't files."""

    files: re.Pattern[str]
    """Matches the whole path of every file of a container, including the container's own, which is the first group:
    `(.*/nest\\.db)(?:-wal|-shm|-journal)?`."""
    source: Callable[[], Source]
    """Loads the reader."""
    hint: str
    """A part of every such path: other paths are told by it in a hundredth of the time that the pattern takes."""

    def of(self, path: str) -> str | None:
        """Return the path of the container that a file belongs to; None for any other file."""
        found = self.files.fullmatch(path) if self.hint in path else None
        return None if found is None else found[1]


class Sign(Struct, frozen=True):
    """The kind and the text by which a notification with a certain meaning is recognised."""

    kind: str
    text: str = ""
    """A regular expression to be found in its text; empty if the kind is enough."""

    def fits(self, kind: str, text: str) -> bool:
        """Whether a notification of this kind and text has that meaning."""
        return kind == self.kind and (not self.text or re.search(self.text, text[:_LOOKED_AT]) is not None)


class Notices(Struct, frozen=True):
    """The notifications in an agent's log that concern the model's API, the human and the context window."""

    api_errors: frozenset[str] = frozenset()
    """Kinds: the API failed, and the agent didn't retry. The turn ends there unless the human continues it."""
    also_of_commands: bool = False
    """Whether errors of these kinds may also come from the human's commands: after the model's last word, one then
    says nothing about the turn."""
    retried_errors: frozenset[str] = frozenset()
    """Kinds: the API failed, and the agent retried by itself."""
    telling: frozenset[str] = frozenset()
    """Kinds that say in the agent's words what a session was about: recaps, goals, pull requests. They are ranked."""
    interruptions: tuple[Sign, ...] = ()
    """The human stopped the model."""
    cache_misses: frozenset[str] = frozenset()
    """Kinds whose text says why tokens weren't read from the cache, and how many: `tools_changed 30200`."""
    compactions: tuple[Sign, ...] = ()
    """The context was replaced by a summary of it."""
    reviews: frozenset[str] = frozenset()
    """Kinds: another model has reviewed the changes; the text is JSON, each finding with a `title`."""


class Phase(Enum):
    """What a record says about the turn that is going on when it is written."""

    GOES_ON = "goes on"
    """The model or a tool is at work."""
    OVER = "over"
    """The turn has ended: the model answered, failed or was stopped."""
    ASKS_PERMISSION = "asks permission"
    """A tool waits for the human's permission."""
    CLOSED = "closed"
    """The human has left the session."""


class Retention(NamedTuple):
    """How long an agent keeps its own logs."""

    days: float | None
    """Days without a change after which it deletes a log; None if it keeps all, or if that isn't known."""
    certain: bool
    """Whether that is certain; otherwise the days are the default of some versions."""
    setting: str
    """The name of the setting that decides: `cleanupPeriodDays`."""
    file: str
    """The path of the settings file in which it is set, or would be."""
    is_set: bool
    to_keep: str
    """How a person makes it keep its logs: `set cleanupPeriodDays to 3650`."""
    refreshed: bool
    """Whether a hook in the same file runs agtrace."""


class Client(Struct, frozen=True):
    """An agent as a client of our MCP server."""

    name: str
    """The name that it gives itself, or its beginning up to a hyphen."""
    characters: int
    """The length beyond which it cuts an answer again, or moves it to a file."""


class Tested(NamedTuple):
    """The newest version of an agent whose logs were compared with what it did."""

    version: str
    month: str
    """When it was current: `2026-11`."""
    news: str
    """What its logs had that those of earlier versions lack."""


class Agent(Struct, frozen=True):
    """A coding agent."""

    name: str
    """Its name in the index, answers and filters: `claude_code`."""
    title: str
    """Its name for people: `Claude Code`."""
    parser: Callable[[], Parser]
    """Loads the module that reads its logs."""
    home: Home
    tested: Tested | None = None
    """None if its logs name no version."""
    elsewhere: tuple[Home, ...] = ()
    """Further folders in which it keeps logs, or used to."""
    fork: Fork | None = None
    """The agent whose format it writes, if it isn't its own."""
    rewrites: bool = False
    """Whether it may rewrite the beginning of a log in place, such as a title. A log that doesn't begin as it did, but
    has the same session and isn't shorter, is then read again in place of what was read; otherwise it is another log
    at the same path."""
    forms: Forms | None = None
    sidecar: Sidecar | None = None
    containers: tuple[Containers, ...] = ()
    tools: Tools = Tools()
    notices: Notices = Notices()
    no_messages: frozenset[str] = frozenset()
    """Texts that it writes in place of the model's if the model said nothing."""
    hidden_reasoning: str = "without text"
    """The form that unreadable reasoning has in its logs."""
    output_header: re.Pattern[str] | None = None
    """Matches what it writes before the output of a tool, or around it, which says nothing of it."""
    longest_command_ms: int | None = None
    """Milliseconds after which it ends a command, unless configured otherwise; None if it never does."""
    client: Client | None = None
    command: str = ""
    """The name of its program, which is also its name for `agtrace setup`: `claude`."""
    resumes: tuple[str, ...] = ()
    """What stands between its program and the id of a session that it is to continue: `--resume`."""
    setup: Callable[[], Setup] | None = None
    """Loads how our MCP server is added to it; None if that isn't possible."""
    phase: ReadPhase | None = None
    """What a record of its log of JSON lines says about the turn, None if nothing: the last record that says something
    decides. It takes any JSON object. Without it, nobody knows when a turn is over."""
    retention: Callable[[], ReadRetention] | None = None
    """Loads the function that reads how long it keeps its logs; None if it never deletes them by itself."""
    as_patch: Callable[[], Callable[[list[Record]], list[Record]]] | None = None
    """Loads the function that turns the records of a document that was written anew into a patch of what was read."""
    keys_remembered: int | None = 0
    """The number of keys of drafts remembered for each session (`Draft.key`); None for all."""
    repeats_lines: bool = False
    """Whether a log may repeat a line, which is then left out. Otherwise equal texts are two events."""
    records_to_recognize: int = 1
    """The number of records by which its logs are recognised: more than one if others may write such a record, too."""
    logs_results: bool = True
    """Whether its logs have the results of tools; if not, how a call ended is unknown."""
    reports_agents: bool = False
    """Whether a session's log may have the figures of its sub-agents, too, with ids of the responses."""
    replays_items: bool = False
    """Whether identities are meaningful only between a log and the one that it claims to replay, because they aren't
    ids of lines."""


class Parser(Protocol):
    """A reader of an agent's logs. All functions are pure except for the state they are given."""

    def recognizes(self, record: Record) -> bool:
        """Whether only this agent writes such a record (by content, never by the file's name)."""

    def unroll(self, document: Any) -> Iterable[Record] | None:
        """Return the records of a whole-file JSON document in the order of its lines; None if it is another agent's."""

    def begin(self, path: PurePath) -> LogState:
        """Return the state before the first record; the path may contain a sub-agent's id and its parent's.

        A small description that the agent keeps next to the log (`.meta.json`, `Sidecar`) may be read here, nothing
        else.
        """

    def drafts(self, record: Record, state: LogState) -> Iterable[Said]:
        """Return the events of the next record. Never raises on any JSON object, however strange.

        A record of an unknown type becomes `Notification("unknown/<type>", <its compact JSON>)`, and
        its type is noted in `state.unknown`. A known record that repeats other records, or has nothing
        that a reader would ask for, is noted in `state.skipped` with its type.
        """
