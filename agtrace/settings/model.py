"""Every setting that a user can make: its key, type, range, default and one sentence.

These are plain records: a command for which nothing is set makes them without pydantic. What comes from outside is read by
pydantic, which finds the ranges and sentences in the annotations (`schema.py`); nothing else evaluates them.
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

    from agtrace.settings.schema import Bytes, Endpoint, Host, IndexUrl, List, Page, Percent, Place, TeamUrl, ToolName
    from agtrace.settings.schema import Origin, Token

USUAL_PAGE = 10
"""The items of a page unless the settings or a request say otherwise."""

LARGEST_PAGE = 200
"""The largest page that can be configured."""

USUAL_TOKENS = 4_000
"""The token budget at which each tool has the budget that it was designed with."""

RESTART = ("data_dir", "team", "index", "user", "search_events", "http")
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


class ToolSettings(Group):
    """How the answers of one tool are kept small: by pages, chunks and digests."""

    enabled: Annotated[
        bool, Field(description="whether its answers are kept small at all; if false, `rollout` has no effect")
    ] = True
    rollout: Annotated[
        Percent,
        Field(description="the percentage of connections whose answers are kept small; the others get whole ones"),
    ] = 100


class ValueLimits(Group):
    """How much of one value is shown in an answer that has to be small."""

    max_bytes: Annotated[Bytes, Field(description="bytes of an answer whose size the request doesn't choose")] = 10_240
    max_array_items: Annotated[
        int, Field(ge=1, le=1_000, description="items of a list within data that doesn't fit")
    ] = 10
    max_string_length: Annotated[
        int, Field(ge=50, le=5_000, description="characters of a quoted text, or of arguments")
    ] = 500
    max_json_depth: Annotated[int, Field(ge=1, le=6, description="levels of nested objects in quoted arguments")] = 3


class Http(Group):
    """The server over HTTP (`agtrace mcp --http`)."""

    token: Annotated[
        Token | None,
        Field(
            description="the token that clients must send as `Authorization: Bearer`, 16 characters or more; by default "
            "a generated one, kept in http.token in the data folder"
        ),
    ] = None
    hosts: Annotated[
        List[Host], Field(description="host names by which clients reach the server, in addition to loopback")
    ] = ()
    origins: Annotated[
        List[Origin], Field(description="web origins whose pages may use the server, in addition to loopback")
    ] = ()


class Telemetry(Group):
    """Figures of the requests that servers answered (`agtrace metrics`)."""

    enabled: Annotated[bool, Field(description="whether a server records figures of the requests that it answers")] = (
        True
    )
    keep_days: Annotated[int, Field(ge=1, le=366, description="the days after which figures are deleted")] = 30
    arguments: Annotated[
        bool, Field(description="whether the arguments of requests are recorded too, without secrets")
    ] = False


class Ab(Group):
    """The comparison of answers with and without protection (`agtrace metrics --ab`)."""

    mode: Annotated[
        Literal["off", "split"],
        Field(
            description="`split` gives a share of the connections the answer without protection, with secrets masked "
            "and at most 1 MiB"
        ),
    ] = "off"
    share: Annotated[
        Percent, Field(description="the percentage of connections that get the unprotected answer")
    ] = 50  # fmt: skip


class Pruner(Group):
    """What answers a `context_focus_question` put to `agtrace prune`: the lines of an output that it is about."""

    enabled: Annotated[bool, Field(description="whether outputs are pruned for a question")] = True
    endpoint: Annotated[
        Endpoint, Field(description="the pruner: `builtin`, the URL of one that is sent `{code, query}`, or `none`")
    ] = "builtin"
    timeout_ms: Annotated[
        int, Field(ge=100, le=300_000, description="the milliseconds after which the whole output is given instead")
    ] = 30_000
    max_prune_input_bytes: Annotated[
        int, Field(ge=1_024, le=2_097_152, description="the largest output in bytes that is pruned")
    ] = 1_048_576
    threshold: Annotated[
        float | None, Field(ge=0, le=1, description="the threshold that is sent along to a pruner with a URL")
    ] = None
    startup_timeout_ms: Annotated[
        int, Field(ge=100, le=120_000, description="the milliseconds that `agtrace run` waits for its server")
    ] = 12_000
    shutdown_timeout_ms: Annotated[
        int, Field(ge=100, le=60_000, description="the milliseconds after which a server that doesn't end is killed")
    ] = 5_000
    connect_failures: Annotated[
        int, Field(ge=1, le=100, description="the failed attempts to connect after which a server is given up")
    ] = 3


class Values(Group):
    """Settings of agtrace."""

    data_dir: Annotated[
        Place,
        Field(
            description="the folder of the index, in a file relative to that file; by default the platform's folder "
            "for user data"
        ),
    ] = field(default_factory=platform_data_dir)
    team: Annotated[
        TeamUrl | None,
        Field(
            description="the database of a team, as postgresql://LOGIN@HOST/DATABASE: `agtrace push` sends to it "
            "what you share; a password is better kept in ~/.pgpass"
        ),
    ] = None
    index: Annotated[
        IndexUrl | None,
        Field(
            description="the index that is asked: `team` for that of the team, or a URL as `team` has it; by default "
            "your own"
        ),
    ] = None
    user: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=63,
            description="of a team's index, only the sessions that this person pushed, by login",
        ),
    ] = None
    max_response_bytes: Annotated[
        Bytes, Field(description="the largest size of any answer in bytes; each tool also has a budget of its own")
    ] = ABSOLUTE_MAX_BYTES
    default_page_size: Annotated[
        Page, Field(description="items of a page if a request names no `limit`, but no more than `max_page_size`")
    ] = USUAL_PAGE
    max_page_size: Annotated[Page, Field(description="the largest `limit` that a request may name")] = 50
    token_budget_threshold: Annotated[
        int,
        Field(
            ge=1_000,
            le=30_000,
            description="estimated tokens that an answer may come to before it is paged, chunked or condensed; the "
            "budgets of all answers whose size the request doesn't choose grow and shrink with it",
        ),
    ] = USUAL_TOKENS
    chunk_size: Annotated[
        int | None,
        Field(
            ge=500,
            le=30_000,
            description="estimated tokens of a chunk of a long text; by default what the answer has room for",
        ),
    ] = None
    chunk_lines: Annotated[int, Field(ge=10, le=100_000, description="the most lines of a chunk")] = 200
    cursor_ttl_seconds: Annotated[
        int, Field(ge=1, le=366 * 24 * 3600, description="how long a cursor stays valid at least")
    ] = 3600
    search_timeout_seconds: Annotated[
        int, Field(ge=1, le=3600, description="the seconds after which a search is stopped")
    ] = SEARCH_TIMEOUT_SECONDS
    keep_days: Annotated[
        int | None,
        Field(
            ge=1,
            le=36_500,
            description="the days without an event after which a session is forgotten, counted back from the newest "
            "event; a session that continues comes back; by default never",
        ),
    ] = None
    prices: Annotated[
        Place | None,
        Field(
            description="a price table in JSON that overrides the built-in one, in a file relative to that file; if it "
            "can't be used, the server says so on stderr and continues without it"
        ),
    ] = None
    search_events: Annotated[
        bool, Field(description="whether the deprecated tool search_events is offered")
    ] = False  # fmt: skip
    limits: ValueLimits = ValueLimits()
    tools: Annotated[
        Mapping[ToolName, ToolSettings],
        Field(description="how the answers of a tool are kept small, by the name of the tool"),
    ] = {}
    clients: Annotated[
        Mapping[str, Bytes],
        Field(
            description="the largest answer in bytes that a client takes, by the name that it reports; known clients "
            "have one already"
        ),
    ] = {}
    http: Http = Http()
    telemetry: Telemetry = Telemetry()
    ab: Ab = Ab()
    pruner: Pruner = Pruner()


class Settings(Values):
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
    """Return the value of each key as JSON has it; of a table that isn't empty, each name is a key."""
    found: dict[str, Any] = {}
    names = group if isinstance(group, Mapping) else [name for name in group.__struct_fields__ if name != "environment"]
    for name in names:
        value = group[name] if isinstance(group, Mapping) else getattr(group, name)
        if isinstance(value, Group) or (isinstance(value, Mapping) and value):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = plain(value)
    return found


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
        if before.get(key) != after.get(key):
            stays = key.startswith(RESTART)
            yield Change(key, veiled(key, before.get(key)), veiled(key, after.get(key)), stays)
