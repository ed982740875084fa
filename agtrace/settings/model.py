"""Every setting that a user can make: its key, type, range, default and one sentence.

The table in docs/configuration.md, `agtrace config schema`, the checks of a file and of variables, and what
`agtrace config` lists are made from it. Only the numbers that are needed without loading it are in `__init__.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from agtrace_schema.fields import Field, Unfit, bare, fields
from agtrace_schema.model import Record
from agtrace_schema.patterns import later
from agtrace_schema.requests import Mode
from msgspec import Meta, Struct, field

from agtrace.problems import SettingError
from agtrace.settings import (
    ABSOLUTE_MAX_BYTES,
    LARGEST_CURSOR_TTL,
    LONGEST_KEPT,
    LONGEST_SEARCH,
    SEARCH_TIMEOUT_SECONDS,
    SHORTEST_TOKEN,
    SMALLEST_MAX_BYTES,
    is_token,
)
from agtrace.settings.environment import at_home, platform_data_dir

USUAL_PAGE = 10
"""The items of a page unless the settings or a request say otherwise."""

LARGEST_PAGE = 200
"""The largest page that can be configured."""

USUAL_TOKENS = 4_000
"""The token budget at which each tool has the budget that it was designed with."""


Made = TypeVar("Made", bound="Group")


class Group(Record):
    """Settings that belong together. A key may be written in camelCase, too."""

    def __repr__(self) -> str:
        """Return what it holds but secrets, which then are in no traceback."""
        told = (name for name, one in fields(type(self)).items() if not one.extra.get("secret"))
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in told)})"


def _place(given: Any) -> Any:
    """Read a path as a file or a variable has it."""
    return at_home(given) if isinstance(given, str) and given else given


def _token(given: str) -> str:
    if not is_token(given):
        raise Unfit(f"{SHORTEST_TOKEN} or more visible ASCII characters")
    return given


Place = Annotated[Path, Meta(extra={"read": _place, "schema": {"type": "string", "format": "path", "minLength": 1}})]
Bytes = Annotated[int, Meta(ge=SMALLEST_MAX_BYTES, le=ABSOLUTE_MAX_BYTES)]
Page = Annotated[int, Meta(ge=1, le=LARGEST_PAGE)]
Percent = Annotated[int, Meta(ge=0, le=100)]
_HOST = r"([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
Host = Annotated[
    str, Meta(pattern=f"^{_HOST}$", description="a host name, such as agtrace.example or agtrace.example:8765")
]
Origin = Annotated[
    str, Meta(pattern=f"^[a-z][a-z0-9+.-]*://{_HOST}$", description="an origin, such as https://agtrace.example")
]
Token = Annotated[str, Meta(extra={"check": _token, "schema": {"minLength": SHORTEST_TOKEN, "pattern": "^[!-~]*$"}})]

_TEAM = r"postgres(ql)?://\S*"
TeamUrl = Annotated[str, Meta(pattern=f"^{_TEAM}$", max_length=2_000, extra={"schema": {"format": "team"}})]
IndexUrl = Annotated[str, Meta(pattern=f"^(team|{_TEAM})$", max_length=2_000, extra={"schema": {"format": "index"}})]

_RESTART = {"restart": True}
"""Marks what a running server can't change."""


class Protection(Group):
    """One of the ways in which answers of a tool are kept small."""

    enabled: Annotated[
        bool, Meta(description="whether answers are protected in this way at all; if false, `rollout` has no effect")
    ] = True
    rollout: Annotated[
        Percent,
        Meta(
            description="the percentage of connections whose answers are protected in this way; the others get answers "
            "without it"
        ),
    ] = 100


class Features(Group):
    """How the answers of a tool are kept small; each may be `true`, `false`, or have a rollout."""

    pagination: Annotated[Protection, Meta(description="lists end after a page, which a cursor continues")] = (
        Protection()
    )
    summarization: Annotated[
        Protection, Meta(description="data without pages that doesn't fit is condensed, and says what is missing")
    ] = Protection()
    chunking: Annotated[Protection, Meta(description="long texts are given in chunks, which a cursor continues")] = (
        Protection()
    )
    pruning: Annotated[
        Protection, Meta(description="with a `context_focus_question`, long texts are reduced to what it is about")
    ] = Protection()


class ToolSettings(Group):
    """Settings of one tool."""

    page_size: Annotated[Page | None, Meta(description="items of a page if a request names no `limit`")] = None
    max_bytes: Annotated[Bytes | None, Meta(description="bytes of an answer whose size the request doesn't choose")] = (
        None
    )
    features: Features = Features()


class Tools(Group):
    """The tools, each with settings of its own."""

    list_sessions: ToolSettings = ToolSettings()
    get_project_info: ToolSettings = ToolSettings()
    count_events: ToolSettings = ToolSettings()
    get_session_details: ToolSettings = ToolSettings()
    analyze_session: ToolSettings = ToolSettings()
    compare_sessions: ToolSettings = ToolSettings()
    search_event_previews: ToolSettings = ToolSettings()
    get_event_details: ToolSettings = ToolSettings()
    read_artifact: ToolSettings = ToolSettings()
    get_reasoning_chain: ToolSettings = ToolSettings()
    search_events: ToolSettings = ToolSettings()

    def of(self, tool: str) -> ToolSettings:
        """Return the settings of a tool."""
        found: ToolSettings = getattr(self, tool, _UNSET)
        return found


_UNSET = ToolSettings()


class DigestLimits(Group):
    """How much of a long text a digest keeps."""

    chars: Annotated[int, Meta(ge=500, le=1_000_000, description="characters of the digest")]
    lines: Annotated[int, Meta(ge=10, le=100_000, description="its lines")]
    width: Annotated[int, Meta(ge=40, le=10_000, description="characters of a line")]
    max_bytes: Annotated[Bytes, Meta(description="bytes of the whole answer")]


class Modes(Group):
    """The digests of long texts, by the `mode` of a request."""

    minimal: DigestLimits = DigestLimits(chars=5_000, lines=100, width=200, max_bytes=10_240)
    standard: DigestLimits = DigestLimits(chars=40_000, lines=800, width=200, max_bytes=40_960)
    verbose: DigestLimits = DigestLimits(chars=200_000, lines=4_000, width=500, max_bytes=102_400)

    def of(self, mode: Mode) -> DigestLimits:
        """Return the limits of a mode."""
        found: DigestLimits = getattr(self, mode)
        return found


class ValueLimits(Group):
    """How much of one value is shown in an answer that has to be small."""

    max_bytes: Annotated[Bytes, Meta(description="bytes of an answer whose size the request doesn't choose")] = 10_240
    max_array_items: Annotated[
        int, Meta(ge=1, le=1_000, description="items of a list within data that doesn't fit")
    ] = 10
    max_string_length: Annotated[
        int, Meta(ge=50, le=5_000, description="characters of a quoted text, or of arguments")
    ] = 500
    max_json_depth: Annotated[int, Meta(ge=1, le=6, description="levels of nested objects in quoted arguments")] = 3


class Http(Group):
    """The server over HTTP (`agtrace mcp --http`)."""

    token: Annotated[
        Token | None,
        Meta(
            description=f"the token that clients must send as `Authorization: Bearer`, {SHORTEST_TOKEN} characters or "
            "more; by default a generated one, kept in http.token in the data folder",
            extra={"variable": "AGTRACE_HTTP_TOKEN", "secret": True},
        ),
    ] = None
    hosts: Annotated[
        tuple[Host, ...],
        Meta(
            description="host names by which clients reach the server, in addition to loopback",
            extra={"variable": "AGTRACE_HTTP_HOSTS"},
        ),
    ] = ()
    origins: Annotated[
        tuple[Origin, ...],
        Meta(
            description="web origins whose pages may use the server, in addition to loopback",
            extra={"variable": "AGTRACE_HTTP_ORIGINS"},
        ),
    ] = ()


class Telemetry(Group):
    """Figures of the requests that servers answered (`agtrace metrics`)."""

    enabled: Annotated[
        bool,
        Meta(
            description="whether a server records figures of the requests that it answers",
            extra={"variable": "AGTRACE_TELEMETRY"},
        ),
    ] = True
    keep_days: Annotated[int, Meta(ge=1, le=366, description="the days after which figures are deleted")] = 30
    arguments: Annotated[
        bool, Meta(description="whether the arguments of requests are recorded too, without secrets")
    ] = False


AbMode = Literal["off", "split"]


class Ab(Group):
    """The comparison of answers with and without protection (`agtrace metrics --ab`)."""

    mode: Annotated[
        AbMode,
        Meta(
            description="`split` gives a share of the connections the answer without protection, with secrets masked "
            "and at most 1 MiB"
        ),
    ] = "off"
    share: Annotated[
        Percent,
        Meta(description="the percentage of connections that get the unprotected answer"),
    ] = 50


Endpoint = Annotated[
    str,
    Meta(
        max_length=2_000,
        pattern=r"^(builtin|none|https?://\S+)$",
        extra={"schema": {"format": "endpoint", "examples": ["builtin", "none", "http://127.0.0.1:8000/prune"]}},
    ),
]


class Pruner(Group):
    """What answers a `context_focus_question` put to `agtrace prune`: the lines of an output that it is about."""

    enabled: Annotated[bool, Meta(description="whether outputs are pruned for a question")] = True
    endpoint: Annotated[
        Endpoint, Meta(description="the pruner: `builtin`, the URL of one that is sent `{code, query}`, or `none`")
    ] = "builtin"
    timeout_ms: Annotated[
        int, Meta(ge=100, le=300_000, description="the milliseconds after which the whole output is given instead")
    ] = 30_000
    max_prune_input_bytes: Annotated[
        int, Meta(ge=1_024, le=2_097_152, description="the largest output in bytes that is pruned")
    ] = 1_048_576
    threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="the threshold that is sent along to a pruner with a URL"),
    ] = None
    startup_timeout_ms: Annotated[
        int, Meta(ge=100, le=120_000, description="the milliseconds that `agtrace run` waits for its server")
    ] = 12_000
    shutdown_timeout_ms: Annotated[
        int, Meta(ge=100, le=60_000, description="the milliseconds after which a server that doesn't end is killed")
    ] = 5_000
    connect_failures: Annotated[
        int, Meta(ge=1, le=100, description="the failed attempts to connect after which a server is given up")
    ] = 3


class Values(Group):
    """All settings."""

    data_dir: Annotated[
        Place,
        Meta(
            description="the folder of the index, in a file relative to that file; by default the platform's folder "
            "for user data",
            extra=_RESTART,
        ),
    ] = field(default_factory=platform_data_dir)
    team: Annotated[
        TeamUrl | None,
        Meta(
            description="the database of a team, as postgresql://LOGIN@HOST/DATABASE: `agtrace push` sends to it "
            "what you share; a password is better kept in ~/.pgpass",
            extra={"restart": True, "secret": True},
        ),
    ] = None
    index: Annotated[
        IndexUrl | None,
        Meta(
            description="the index that is asked: `team` for that of the team, or a URL as `team` has it; by default "
            "your own",
            extra={"restart": True, "secret": True},
        ),
    ] = None
    user: Annotated[
        Annotated[str, Meta(min_length=1, max_length=63)] | None,
        Meta(description="of a team's index, only the sessions that this person pushed, by login", extra=_RESTART),
    ] = None
    max_response_bytes: Annotated[
        Bytes, Meta(description="the largest size of any answer in bytes; each tool also has a budget of its own")
    ] = ABSOLUTE_MAX_BYTES
    default_page_size: Annotated[
        Page, Meta(description="items of a page if a request names no `limit`; by default no more than `max_page_size`")
    ] = USUAL_PAGE
    max_page_size: Annotated[Page, Meta(description="the largest `limit` that a request may name")] = 50
    token_budget_threshold: Annotated[
        int,
        Meta(
            ge=1_000,
            le=30_000,
            description="estimated tokens that an answer may come to before it is paged, chunked or condensed; the "
            "budgets of all answers whose size the request doesn't choose grow and shrink with it",
        ),
    ] = USUAL_TOKENS
    chunk_size: Annotated[
        Annotated[int, Meta(ge=500, le=30_000)] | None,
        Meta(description="estimated tokens of a chunk of a long text; by default what the answer has room for"),
    ] = None
    chunk_lines: Annotated[int, Meta(ge=10, le=100_000, description="the most lines of a chunk")] = 200
    cursor_ttl_seconds: Annotated[
        int, Meta(ge=1, le=LARGEST_CURSOR_TTL, description="how long a cursor stays valid at least")
    ] = 3600
    search_timeout_seconds: Annotated[
        int, Meta(ge=1, le=LONGEST_SEARCH, description="the seconds after which a search is stopped")
    ] = SEARCH_TIMEOUT_SECONDS
    keep_days: Annotated[
        Annotated[int, Meta(ge=1, le=LONGEST_KEPT)] | None,
        Meta(
            description="the days without an event after which a session is forgotten, counted back from the newest "
            "event; a session that continues comes back; by default never"
        ),
    ] = None
    prices: Annotated[
        Place | None,
        Meta(
            description="a price table in JSON that overrides the built-in one, in a file relative to that file; if it "
            "can't be used, the server says so on stderr and continues without it"
        ),
    ] = None
    search_events: Annotated[
        bool, Meta(description="whether the deprecated tool search_events is offered", extra=_RESTART)
    ] = False
    limits: ValueLimits = ValueLimits()
    modes: Modes = Modes()
    tools: Tools = Tools()
    clients: Annotated[
        Mapping[str, Bytes],
        Meta(
            description="the largest answer in bytes that a client takes, by the name that it reports; known clients "
            "have one already"
        ),
    ] = {}
    http: Annotated[Http, Meta(extra=_RESTART)] = Http()
    telemetry: Telemetry = Telemetry()
    ab: Ab = Ab()
    pruner: Pruner = Pruner()


class Settings(Values):
    """The settings that a process works with."""

    environment: Annotated[Mapping[str, str], Meta(extra={"secret": True})] = {}
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
        told = [(name, value_of(self, name)) for name in keys() if name != "http.token"]
        return sha256(repr(told).encode()).hexdigest()[:12]


class Key(Struct, frozen=True):
    """A setting, as one writes it."""

    name: str
    """With dots, such as `telemetry.keep_days`."""
    meaning: str
    field: Field
    group: type[Group]
    """The group that has the field."""
    restart: bool
    """Whether a running server can't change it."""

    @property
    def type(self) -> Mapping[str, Any]:
        """Its JSON Schema, without null."""
        return self.field.schema

    @property
    def holds(self) -> Any:
        """The type of its value, such as int or tuple, without None and without its range."""
        return bare(self.field.annotation)

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return str(self.field.extra.get("variable") or f"AGTRACE_{self.name.replace('.', '__').upper()}")

    @property
    def default(self) -> Any:
        """Its default, as JSON has it; None if there is none, or another for each mode."""
        value = None if self.field.is_required else self.field.default
        return None if value in ((), {}) else plain(value)

    @property
    def secret(self) -> bool:
        """Whether its value is never shown."""
        return bool(self.field.extra.get("secret"))


@cache
def keys() -> Mapping[str, Key]:
    """Return every setting by its name, in the order of the model."""
    return {key.name: key for key in _keys(Values, "", restart=False)}


def listed() -> Mapping[str, Key]:
    """Return the settings as a list names them: those of tools and digests once, for any TOOL and MODE."""
    found: dict[str, Key] = {}
    for key in keys().values():
        found.setdefault(_ANY.sub(lambda group: f"{group[1]}.{group[1][:-1].upper()}.", key.name), key)
    return found


_ANY = later(r"^(tools|modes)\.\w+\.")


def _keys(group: type[Group], prefix: str, *, restart: bool) -> Iterator[Key]:
    for name, one in fields(group).items():
        stays = restart or bool(one.extra.get("restart"))
        below = group_of(one)
        if below is None:
            yield Key(f"{prefix}{name}", one.description or "", one, group, stays)
        else:
            yield from _keys(below, f"{prefix}{name}.", restart=stays)


def group_of(one: Field) -> type[Group] | None:
    """Return the group that a field holds; None for a value."""
    kind = bare(one.annotation)
    return kind if isinstance(kind, type) and issubclass(kind, Group) else None


def value_of(values: Group, name: str) -> Any:
    """Return the value of a setting by its name with dots."""
    found: Any = values
    for part in name.split("."):
        found = getattr(found, part)
    return found


def plain(value: Any) -> Any:
    """Return the value of a setting as JSON has it."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def made(group: type[Made], values: Mapping[str, Any]) -> Made:
    """Return a group with these values of its keys, by name, nested as it is; the others have their defaults."""
    held = dict(values)
    for name, one in fields(group).items():
        below = group_of(one)
        if below is not None and name in held:
            held[name] = made(below, held[name])
    return group(**held)


def in_camel_case(name: str) -> str:
    """Return the other spelling of a key: `maxPageSize` for `max_page_size`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


# -- the JSON Schema of a file ---------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file."""
    found = _schema_of(Values)
    found["properties"]["$schema"] = {"type": "string"}
    groups = {group.__name__: _schema_of(group) for group in _groups(Values)}
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Settings of agtrace"}
    return {**about, **found, "$defs": groups}


def _groups(group: type[Group]) -> Iterator[type[Group]]:
    """Yield the groups in a group, at any depth."""
    for one in fields(group).values():
        if (below := group_of(one)) is not None:
            yield below
            yield from _groups(below)


def _schema_of(group: type[Group]) -> dict[str, Any]:
    """Return the schema of a group. A key in camelCase is a pattern, so that an editor proposes one spelling."""
    properties = {name: _property(one) for name, one in fields(group).items()}
    camel = {f"^{in_camel_case(name)}$": properties[name] for name in properties}
    about = {"type": "object", "description": (group.__doc__ or "").strip(), "additionalProperties": False}
    return {**about, "properties": properties, "patternProperties": camel}


def _property(one: Field) -> dict[str, Any]:
    below = group_of(one)
    told = {"description": one.description} if one.description else {}
    if below is not None:
        named = {"$ref": f"#/$defs/{below.__name__}"}
        return {"anyOf": [{"type": "boolean"}, named], **told} if below is Protection else {**named, **told}
    if one.takes_null:
        value = {name: said for name, said in one.schema.items() if name != "description"}
        return {"anyOf": [value, {"type": "null"}], **told}
    return {**one.schema, **({} if one.default is None else {"default": plain(one.default)})}
