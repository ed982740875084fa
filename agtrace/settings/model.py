"""Every setting that a user can make: its key, type, range, default and one sentence.

These are plain records: a command for which nothing is set makes them without pydantic. What comes from outside is read
by pydantic, which evaluates the annotations and takes the sentences below them (`schema.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from msgspec import Struct, field

from agtrace.problems import SettingError
from agtrace.settings import ABSOLUTE_MAX_BYTES, SEARCH_TIMEOUT_SECONDS
from agtrace.settings.environment import platform_data_dir

if TYPE_CHECKING:
    from pydantic import Field

    from agtrace.settings.schema import (
        Bytes,
        Endpoint,
        Host,
        IndexUrl,
        List,
        Origin,
        Page,
        Percent,
        Place,
        TeamUrl,
        Token,
        ToolName,
        VariableName,
    )

USUAL_PAGE = 10
"""The items of a page unless the settings or a request say otherwise."""

LARGEST_PAGE = 200
"""The largest page that can be configured."""

USUAL_TOKENS = 4_000
"""The token budget at which each tool has the budget that it was designed with."""

RESTART = ("data_dir", "team", "index", "user", "http")
"""The keys and groups that a running server can't change."""

SECRET = ("team", "index", "http.token")
"""The keys whose values are never shown."""


class Group(Struct, frozen=True):
    """Settings that belong together."""

    def __repr__(self) -> str:
        """Return what it holds but secrets and the environment, which then are in no traceback."""
        shown = (name for name in self.__struct_fields__ if name not in ("environment", "token", "team", "index"))
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Tell pydantic how to read such a group."""
        from agtrace.settings.schema import schema_of

        return schema_of(cls, handler)


class ToolSettings(Group, frozen=True):
    """How the answers of one tool are kept small: by pages, chunks and digests."""

    enabled: bool = True
    """Whether its answers are kept small at all; if false, `rollout` has no effect."""
    rollout: Percent = 100
    """The percentage of connections whose answers are kept small; the others get whole ones."""


class ValueLimits(Group, frozen=True):
    """How much of one value is shown in an answer that has to be small."""

    max_bytes: Bytes = 10_240
    """Bytes of an answer whose size the request doesn't choose."""
    max_array_items: Annotated[int, Field(ge=1, le=1_000)] = 10
    """Items of a list within data that doesn't fit."""
    max_string_length: Annotated[int, Field(ge=50, le=5_000)] = 500
    """Characters of a quoted text, or of arguments."""
    max_json_depth: Annotated[int, Field(ge=1, le=6)] = 3
    """Levels of nested objects in quoted arguments."""


class Http(Group, frozen=True):
    """The server over HTTP (`agtrace mcp --http`)."""

    token: Token | None = None
    """The token that clients must send as `Authorization: Bearer`, 16 characters or more; by default a generated one,
    kept in http.token in the data folder."""
    hosts: List[Host] = ()
    """Host names by which clients reach the server, in addition to loopback."""
    origins: List[Origin] = ()
    """Web origins whose pages may use the server, in addition to loopback."""


class Telemetry(Group, frozen=True):
    """Figures of the requests that servers answered (`agtrace metrics`)."""

    enabled: bool = True
    """Whether a server records figures of the requests that it answers."""
    keep_days: Annotated[int, Field(ge=1, le=366)] = 30
    """The days after which figures are deleted."""
    arguments: bool = False
    """Whether the arguments of requests are recorded too, without secrets."""


class Ab(Group, frozen=True):
    """The comparison of answers with and without protection (`agtrace metrics --ab`)."""

    mode: Literal["off", "split"] = "off"
    """`split` gives a share of the connections the answer without protection, with secrets masked and at most 1
    MiB."""
    share: Percent = 50
    """The percentage of connections that get the unprotected answer."""


class Pruner(Group, frozen=True):
    """What answers a `context_focus_question` put to `agtrace prune`: the lines of an output that it is about."""

    enabled: bool = True
    """Whether outputs are pruned for a question."""
    endpoint: Endpoint = "builtin"
    """The pruner: `builtin`, the URL of one that is sent `{code, query}`, or `none`."""
    timeout_ms: Annotated[int, Field(ge=100, le=300_000)] = 30_000
    """The milliseconds after which the whole output is given instead."""
    max_prune_input_bytes: Annotated[int, Field(ge=1_024, le=2_097_152)] = 1_048_576
    """The largest output in bytes that is pruned."""
    threshold: Annotated[float | None, Field(ge=0, le=1)] = None
    """The threshold that is sent along to a pruner with a URL."""
    startup_timeout_ms: Annotated[int, Field(ge=100, le=120_000)] = 12_000
    """The milliseconds that `agtrace run` waits for its server."""
    shutdown_timeout_ms: Annotated[int, Field(ge=100, le=60_000)] = 5_000
    """The milliseconds after which a server that doesn't end is killed."""
    environment: List[VariableName] = ()
    """The variables that commands of `bash` get besides the usual ones, such as PATH, HOME and LANG."""


class Values(Group, frozen=True):
    """Settings of agtrace."""

    data_dir: Place = field(default_factory=platform_data_dir)
    """The folder of the index, in a file relative to that file; by default the platform's folder for user data."""
    team: TeamUrl | None = None
    """The database of a team, as postgresql://LOGIN@HOST/DATABASE: `agtrace push` sends to it what you share; a
    password is better kept in ~/.pgpass."""
    index: IndexUrl | None = None
    """The index that is asked: `team` for that of the team, or a URL as `team` has it; by default your own."""
    user: Annotated[str | None, Field(min_length=1, max_length=63)] = None
    """Of a team's index, only the sessions that this person pushed, by login."""
    max_response_bytes: Bytes = ABSOLUTE_MAX_BYTES
    """The largest size of any answer in bytes; each tool also has a budget of its own."""
    default_page_size: Page = USUAL_PAGE
    """Items of a page if a request names no `limit`, but no more than `max_page_size`."""
    max_page_size: Page = 50
    """The largest `limit` that a request may name."""
    token_budget_threshold: Annotated[int, Field(ge=1_000, le=30_000)] = USUAL_TOKENS
    """Estimated tokens that an answer may come to before it is paged, chunked or condensed; the budgets of all answers
    whose size the request doesn't choose grow and shrink with it."""
    chunk_size: Annotated[int | None, Field(ge=500, le=30_000)] = None
    """Estimated tokens of a chunk of a long text; by default what the answer has room for."""
    chunk_lines: Annotated[int, Field(ge=10, le=100_000)] = 200
    """The most lines of a chunk."""
    cursor_ttl_seconds: Annotated[int, Field(ge=1, le=366 * 24 * 3600)] = 3600
    """How long a cursor stays valid at least."""
    search_timeout_seconds: Annotated[int, Field(ge=1, le=3600)] = SEARCH_TIMEOUT_SECONDS
    """The seconds after which a search is stopped."""
    keep_days: Annotated[int | None, Field(ge=1, le=36_500)] = None
    """The days without an event after which a session is forgotten, counted back from the newest event; a session that
    continues comes back; by default never."""
    archive: bool = True
    """Whether logs are kept as they were, in `archive` in the data folder; if not, what agents delete leaves the
    index, too."""
    prices: Place | None = None
    """A price table in JSON that overrides the built-in one, in a file relative to that file; if it can't be used, the
    server says so on stderr and continues without it."""
    limits: ValueLimits = ValueLimits()
    tools: Mapping[ToolName, ToolSettings] = {}
    """How the answers of a tool are kept small, by the name of the tool."""
    clients: Mapping[str, Bytes] = {}
    """The largest answer in bytes that a client takes, by the name that it reports; known clients have one already."""
    http: Http = Http()
    telemetry: Telemetry = Telemetry()
    ab: Ab = Ab()
    pruner: Pruner = Pruner()


class Settings(Values, frozen=True):
    """The settings that a process works with."""

    environment: Mapping[str, str] = {}
    """The variables that say where the agents' logs are."""

    @property
    def database(self) -> Path:
        """The path of the index."""
        return self.data_dir / "index.sqlite3"

    @property
    def asked(self) -> str | None:
        """The URL of the team's index that is asked; None for one's own. Raises `SettingError` if there is no URL."""
        if self.index == "team" and self.team is None:
            raise SettingError("the setting index is team, but the setting team (AGTRACE_TEAM) names no database")
        return self.team if self.index == "team" else self.index

    @property
    def key_file(self) -> Path:
        """The file with the key that signs cursors."""
        return self.data_dir / "cursor.key"

    @property
    def token_file(self) -> Path:
        """The file with the token for the HTTP transport if the user set none."""
        return self.data_dir / "http.token"

    @property
    def telemetry_file(self) -> Path:
        """The file with the figures of answered requests."""
        return self.data_dir / "telemetry.sqlite3"

    @property
    def kept_outputs(self) -> Path:
        """The folder with the outputs that `agtrace prune` keeps for a day."""
        return self.data_dir / "outputs"

    @property
    def version(self) -> str:
        """12 characters that identify a configuration, not counting the token and the places of the logs."""
        told = [(name, value) for name, value in flat(self).items() if name != "http.token"]
        return sha256(repr(told).encode()).hexdigest()[:12]


def flat(group: Group | Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the value of each key as JSON has it; in a table, each name is a key."""
    result: dict[str, Any] = {}
    names = group if isinstance(group, Mapping) else [name for name in group.__struct_fields__ if name != "environment"]
    for name in names:
        value = group[name] if isinstance(group, Mapping) else getattr(group, name)
        if isinstance(value, Group | Mapping):
            result |= flat(value, f"{prefix}{name}.")
        else:
            result[prefix + name] = plain(value)
    return result


def plain(value: Any) -> Any:
    """Return the value of a setting as JSON has it."""
    return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value


def veiled(key: str, value: Any) -> Any:
    """Return the value of a key as it may be shown."""
    return "(secret)" if key in SECRET and value is not None else value


class Change(NamedTuple):
    """A key whose value changes, with both values as they may be shown; None if there is none."""

    key: str
    old: Any
    new: Any
    needs_restart: bool


def changes(old: Values, new: Values) -> Iterator[Change]:
    """Yield what differs between two configurations."""
    before, after = flat(old), flat(new)
    for key in {**before, **after}:
        usual = getattr(ToolSettings(), key.rpartition(".")[2]) if key.startswith("tools.") else None
        one, other = before.get(key, usual), after.get(key, usual)
        if one != other:
            yield Change(key, veiled(key, one), veiled(key, other), key.startswith(RESTART))
