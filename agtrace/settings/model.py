"""Every setting that a user can make: its key, type, range, default and one sentence.

The table in docs/configuration.md, `agtrace config schema`, the checks of a file and of variables, and what
`agtrace config` lists are made from it. Only the numbers that are needed without loading it are in `__init__.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from agtrace_schema.requests import Mode
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

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

LARGEST_PAGE = 200
"""The largest page that can be configured."""

USUAL_TOKENS = 4_000
"""The token budget at which each tool has the budget that it was designed with."""


class Group(BaseModel):
    """Settings that belong together. A key may be written in camelCase, too."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        loc_by_alias=False,
        defer_build=True,
    )


def _place(given: Any) -> Any:
    """Read a path as a file or a variable has it."""
    return at_home(given) if isinstance(given, str) and given else given


def _token(given: str) -> str:
    if not is_token(given):
        raise PydanticCustomError("token", f"{SHORTEST_TOKEN} or more visible ASCII characters")
    return given


Place = Annotated[Path, BeforeValidator(_place), WithJsonSchema({"type": "string", "format": "path", "minLength": 1})]
Bytes = Annotated[int, Field(ge=SMALLEST_MAX_BYTES, le=ABSOLUTE_MAX_BYTES)]
Page = Annotated[int, Field(ge=1, le=LARGEST_PAGE)]
Percent = Annotated[int, Field(ge=0, le=100)]
_HOST = r"([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
Host = Annotated[
    str, Field(pattern=f"^{_HOST}$", description="a host name, such as agtrace.example or agtrace.example:8765")
]
Origin = Annotated[
    str, Field(pattern=f"^[a-z][a-z0-9+.-]*://{_HOST}$", description="an origin, such as https://agtrace.example")
]
Token = Annotated[
    str, AfterValidator(_token), Field(json_schema_extra={"minLength": SHORTEST_TOKEN, "pattern": "^[!-~]*$"})
]

_TEAM = r"postgres(ql)?://\S*"
TeamUrl = Annotated[str, Field(pattern=f"^{_TEAM}$", max_length=2_000)]
IndexUrl = Annotated[str, Field(pattern=f"^(team|{_TEAM})$", max_length=2_000)]

_RESTART: dict[str, JsonValue] = {"restart": True}
"""Marks what a running server can't change."""


class Protection(Group):
    """One of the ways in which answers of a tool are kept small."""

    enabled: bool = Field(
        default=True, description="whether answers are protected in this way at all; if false, `rollout` has no effect"
    )
    rollout: Percent = Field(
        default=100,
        description="the percentage of connections whose answers are protected in this way; the others get answers "
        "without it",
    )


def _switched(given: Any) -> Any:
    """Read `true` and `false` as a protection that is on or off."""
    return {"enabled": given} if isinstance(given, bool) else given


Switch = Annotated[Protection, BeforeValidator(_switched, json_schema_input_type=bool | Protection)]


_ON = Protection.model_construct()
"""Defaults are made without validation, which would build validators that a process may not need."""


class Features(Group):
    """How the answers of a tool are kept small; each may be `true`, `false`, or have a rollout."""

    pagination: Switch = Field(default=_ON, description="lists end after a page, which a cursor continues")
    summarization: Switch = Field(
        default=_ON,
        description="data without pages that doesn't fit is condensed, and says what is missing",
    )
    chunking: Switch = Field(default=_ON, description="long texts are given in chunks, which a cursor continues")
    pruning: Switch = Field(
        default=_ON, description="with a `context_focus_question`, long texts are reduced to what it is about"
    )


class ToolSettings(Group):
    """Settings of one tool."""

    page_size: Page | None = Field(default=None, description="items of a page if a request names no `limit`")
    max_bytes: Bytes | None = Field(
        default=None, description="bytes of an answer whose size the request doesn't choose"
    )
    features: Features = Features.model_construct()


class Tools(Group):
    """The tools, each with settings of its own."""

    list_sessions: ToolSettings = ToolSettings.model_construct()
    get_project_info: ToolSettings = ToolSettings.model_construct()
    count_events: ToolSettings = ToolSettings.model_construct()
    get_session_details: ToolSettings = ToolSettings.model_construct()
    analyze_session: ToolSettings = ToolSettings.model_construct()
    compare_sessions: ToolSettings = ToolSettings.model_construct()
    search_event_previews: ToolSettings = ToolSettings.model_construct()
    get_event_details: ToolSettings = ToolSettings.model_construct()
    read_artifact: ToolSettings = ToolSettings.model_construct()
    get_reasoning_chain: ToolSettings = ToolSettings.model_construct()
    search_events: ToolSettings = ToolSettings.model_construct()

    def of(self, tool: str) -> ToolSettings:
        """Return the settings of a tool."""
        found: ToolSettings = getattr(self, tool, _UNSET)
        return found


_UNSET = ToolSettings.model_construct()


def _optional(schema: dict[str, Any]) -> None:
    """Let a file set only some keys of a group: the others have the defaults of its mode."""
    schema.pop("required", None)


class DigestLimits(Group):
    """How much of a long text a digest keeps."""

    model_config = ConfigDict(json_schema_extra=_optional)

    chars: int = Field(ge=500, le=1_000_000, description="characters of the digest")
    lines: int = Field(ge=10, le=100_000, description="its lines")
    width: int = Field(ge=40, le=10_000, description="characters of a line")
    max_bytes: Bytes = Field(description="bytes of the whole answer")


class Modes(Group):
    """The digests of long texts, by the `mode` of a request."""

    minimal: DigestLimits = DigestLimits.model_construct(chars=5_000, lines=100, width=200, max_bytes=10_240)
    standard: DigestLimits = DigestLimits.model_construct(chars=40_000, lines=800, width=200, max_bytes=40_960)
    verbose: DigestLimits = DigestLimits.model_construct(chars=200_000, lines=4_000, width=500, max_bytes=102_400)

    def of(self, mode: Mode) -> DigestLimits:
        """Return the limits of a mode."""
        found: DigestLimits = getattr(self, mode)
        return found


class ValueLimits(Group):
    """How much of one value is shown in an answer that has to be small."""

    max_bytes: Bytes = Field(default=10_240, description="bytes of an answer whose size the request doesn't choose")
    max_array_items: int = Field(default=10, ge=1, le=1_000, description="items of a list within data that doesn't fit")
    max_string_length: int = Field(
        default=500, ge=50, le=5_000, description="characters of a quoted text, or of arguments"
    )
    max_json_depth: int = Field(default=3, ge=1, le=6, description="levels of nested objects in quoted arguments")


class Http(Group):
    """The server over HTTP (`agtrace mcp --http`)."""

    token: Token | None = Field(
        default=None,
        repr=False,
        description=f"the token that clients must send as `Authorization: Bearer`, {SHORTEST_TOKEN} characters or "
        "more; by default a generated one, kept in http.token in the data folder",
        json_schema_extra={"variable": "AGTRACE_HTTP_TOKEN", "secret": True},
    )
    hosts: tuple[Host, ...] = Field(
        default=(),
        strict=False,
        description="host names by which clients reach the server, in addition to loopback",
        json_schema_extra={"variable": "AGTRACE_HTTP_HOSTS"},
    )
    origins: tuple[Origin, ...] = Field(
        default=(),
        strict=False,
        description="web origins whose pages may use the server, in addition to loopback",
        json_schema_extra={"variable": "AGTRACE_HTTP_ORIGINS"},
    )


class Telemetry(Group):
    """Figures of the requests that servers answered (`agtrace metrics`)."""

    enabled: bool = Field(
        default=True,
        description="whether a server records figures of the requests that it answers",
        json_schema_extra={"variable": "AGTRACE_TELEMETRY"},
    )
    keep_days: int = Field(default=30, ge=1, le=366, description="the days after which figures are deleted")
    arguments: bool = Field(
        default=False, description="whether the arguments of requests are recorded too, without secrets"
    )


AbMode = Literal["off", "shadow", "split"]


class Ab(Group):
    """The comparison of answers with and without protection (`agtrace metrics --ab`)."""

    mode: AbMode = Field(
        default="off",
        description="`shadow` measures what the answer without protection would have been; `split` gives that answer, "
        "with secrets masked and at most 1 MiB, to a share of the connections",
    )
    share: Percent = Field(
        default=50,
        description="`shadow`: the percentage of connections that are measured; `split`: the percentage that get the "
        "unprotected answer",
    )


Endpoint = Annotated[
    str,
    Field(
        max_length=2_000,
        pattern=r"^(builtin|none|https?://\S+)$",
        json_schema_extra={"format": "endpoint", "examples": ["builtin", "none", "http://127.0.0.1:8000/prune"]},
    ),
]


class Pruner(Group):
    """What answers a `context_focus_question` put to `agtrace prune`: the lines of an output that it is about."""

    enabled: bool = Field(default=True, description="whether outputs are pruned for a question")
    endpoint: Endpoint = Field(
        default="builtin",
        description="the pruner: `builtin`, the URL of one that is sent `{code, query}`, or `none`",
    )
    timeout_ms: int = Field(
        default=30_000, ge=100, le=300_000, description="the milliseconds after which the whole output is given instead"
    )
    max_prune_input_bytes: int = Field(
        default=1_048_576, ge=1_024, le=2_097_152, description="the largest output in bytes that is pruned"
    )
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="the threshold that is sent along to a pruner with a URL"
    )
    startup_timeout_ms: int = Field(
        default=12_000, ge=100, le=120_000, description="the milliseconds that `agtrace run` waits for its server"
    )
    shutdown_timeout_ms: int = Field(
        default=5_000, ge=100, le=60_000, description="the milliseconds after which a server that doesn't end is killed"
    )
    connect_failures: int = Field(
        default=3, ge=1, le=100, description="the failed attempts to connect after which a server is given up"
    )


class Values(Group):
    """All settings."""

    data_dir: Place = Field(
        default_factory=platform_data_dir,
        description="the folder of the index, in a file relative to that file; by default the platform's folder for "
        "user data",
        json_schema_extra=_RESTART,
    )
    team: TeamUrl | None = Field(
        default=None,
        description="the database of a team, as postgresql://LOGIN@HOST/DATABASE: `agtrace push` sends to it what you "
        "share; a password is better kept in ~/.pgpass",
        json_schema_extra={"restart": True, "secret": True},
    )
    index: IndexUrl | None = Field(
        default=None,
        description="the index that is asked: `team` for that of the team, or a URL as `team` has it; by default your "
        "own",
        json_schema_extra={"restart": True, "secret": True},
    )
    user: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        description="of a team's index, only the sessions that this person pushed, by login",
        json_schema_extra=_RESTART,
    )
    max_response_bytes: Bytes = Field(
        default=ABSOLUTE_MAX_BYTES,
        description="the largest size of any answer in bytes; each tool also has a budget of its own",
    )
    default_page_size: Page = Field(
        default=10, description="items of a page if a request names no `limit`; by default no more than `max_page_size`"
    )
    max_page_size: Page = Field(default=50, description="the largest `limit` that a request may name")
    token_budget_threshold: int = Field(
        default=USUAL_TOKENS,
        ge=1_000,
        le=30_000,
        description="estimated tokens that an answer may come to before it is paged, chunked or condensed; the budgets "
        "of all answers whose size the request doesn't choose grow and shrink with it",
    )
    chunk_size: int | None = Field(
        default=None,
        ge=500,
        le=30_000,
        description="estimated tokens of a chunk of a long text; by default what the answer has room for",
    )
    chunk_lines: int = Field(default=200, ge=10, le=100_000, description="the most lines of a chunk")
    cursor_ttl_seconds: int = Field(
        default=3600, ge=1, le=LARGEST_CURSOR_TTL, description="how long a cursor stays valid at least"
    )
    search_timeout_seconds: int = Field(
        default=SEARCH_TIMEOUT_SECONDS,
        ge=1,
        le=LONGEST_SEARCH,
        description="the seconds after which a search is stopped",
    )
    keep_days: int | None = Field(
        default=None,
        ge=1,
        le=LONGEST_KEPT,
        description="the days without an event after which a session is forgotten, counted back from the newest event; "
        "a session that continues comes back; by default never",
    )
    prices: Place | None = Field(
        default=None,
        description="a price table in JSON that overrides the built-in one, in a file relative to that file; if it "
        "can't be used, the server says so on stderr and continues without it",
    )
    search_events: bool = Field(
        default=False, description="whether the deprecated tool search_events is offered", json_schema_extra=_RESTART
    )
    limits: ValueLimits = ValueLimits.model_construct()
    modes: Modes = Modes.model_construct()
    tools: Tools = Tools.model_construct()
    clients: Mapping[str, Bytes] = Field(
        default={},
        description="the largest answer in bytes that a client takes, by the name that it reports; known clients have "
        "one already",
    )
    http: Http = Field(default=Http.model_construct(), json_schema_extra=_RESTART)
    telemetry: Telemetry = Telemetry.model_construct()
    ab: Ab = Ab.model_construct()
    pruner: Pruner = Pruner.model_construct()


class Settings(Values):
    """The settings that a process works with."""

    environment: Mapping[str, str] = Field(default={}, repr=False)
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
        return sha256(repr(self).encode()).hexdigest()[:12]


class Key(NamedTuple):
    """A setting, as one writes it."""

    name: str
    """With dots, such as `telemetry.keep_days`."""
    meaning: str
    field: FieldInfo
    group: type[BaseModel]
    """The group that has the field."""
    restart: bool
    """Whether a running server can't change it."""

    @property
    def type(self) -> Mapping[str, Any]:
        """Its JSON Schema, without null; made when it is first asked for, which takes a while."""
        return _without_null(_schema_of(self.group)["properties"][self.name.rpartition(".")[2]])

    @property
    def holds(self) -> Any:
        """The type of its value, such as int or tuple, without None and without its range."""
        annotation = self.field.annotation
        known = [one for one in get_args(annotation) if one is not type(None)]
        found = known[0] if isinstance(annotation, UnionType) or get_origin(annotation) is Union else annotation
        found = get_args(found)[0] if get_origin(found) is Annotated else found
        return get_origin(found) or found

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return str(_extra(self.field).get("variable") or f"AGTRACE_{self.name.replace('.', '__').upper()}")

    @property
    def default(self) -> Any:
        """Its default, as JSON has it; None if there is none, or another for each mode."""
        value = None if self.field.is_required() or self.field.default_factory else self.field.default
        return None if value in ((), {}) else plain(value)

    @property
    def secret(self) -> bool:
        """Whether its value is never shown."""
        return bool(_extra(self.field).get("secret"))


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


_ANY = re.compile(r"^(tools|modes)\.\w+\.")


def _keys(group: type[BaseModel], prefix: str, *, restart: bool) -> Iterator[Key]:
    for name, field in group.model_fields.items():
        stays = restart or bool(_extra(field).get("restart"))
        below = group_of(field)
        if below is None:
            yield Key(f"{prefix}{name}", field.description or "", field, group, stays)
        else:
            yield from _keys(below, f"{prefix}{name}.", restart=stays)


@cache
def _schema_of(group: type[BaseModel]) -> Mapping[str, Any]:
    return group.model_json_schema(by_alias=False)


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    known = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    return {**schema, **known[0]} if known else schema


def group_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the group that a field holds; None for a value."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def value_of(values: BaseModel, name: str) -> Any:
    """Return the value of a setting by its name with dots."""
    for part in name.split("."):
        values = getattr(values, part)
    return values


def plain(value: Any) -> Any:
    """Return the value of a setting as JSON has it."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _extra(field: FieldInfo) -> Mapping[str, Any]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file."""
    found = Values.model_json_schema(by_alias=False)
    for group in (found, *found["$defs"].values()):
        _accept_camel_case(group)
    found["properties"]["$schema"] = {"type": "string"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "title": "Settings of agtrace"}


def _accept_camel_case(group: dict[str, Any]) -> None:
    """Let the keys of a group be written in camelCase, too: as patterns, so that an editor proposes one spelling."""
    names = {to_camel(name): name for name in group["properties"]}
    group["patternProperties"] = {f"^{camel}$": group["properties"][name] for camel, name in names.items()}
