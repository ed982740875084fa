"""The arguments of the tools: what they share, and how they are read.

The record of a tool, next to it, describes each argument once. The pydantic model made from it is the tool's input
schema and reads what a client sends: in camelCase as well, and in another type where that can be meant only one way.
What it refuses becomes one `InvalidParameter`. A command reads its options without pydantic, which takes longer to load
than most answers take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from agtrace_indexer.providers.registry import AGENTS, agent_by_name
from agtrace_schema.events import Provider
from agtrace_schema.model import Record
from agtrace_schema.patterns import later
from msgspec import Meta
from msgspec.structs import replace

from agtrace.problems import InvalidParameter, UnknownArgument
from agtrace.settings.limits import Limits, limits
from agtrace.settings.model import USUAL_PAGE
from agtrace.text.lines import repeated

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

LARGEST = 2**53
"""The largest whole number that every client can write."""

DEFAULT_LIMIT = USUAL_PAGE
"""Stands for the page size of the settings in force, which `parse` puts in its place."""

Limit = Annotated[int, Meta(ge=1)]
"""The settings say what the largest one is (`max_page_size`)."""
Cursor = str | None
"""The `next_cursor` of an answer, which goes on where that one ended."""
AnotherId = Annotated[str, Meta(min_length=1, max_length=200)]
"""The id of a session, or its beginning, where other tools have described that."""
SessionId = Annotated[AnotherId, Meta(description="ID or prefix.")]

AnyProject = Annotated[str, Meta(min_length=1, max_length=500)] | None
"""The name, folder or hash of a project, where other tools have described that."""
ProjectName = Annotated[AnyProject, Meta(description="Name, folder or hash.")]

Hash = Annotated[str, Meta(min_length=3, max_length=200)]
"""The hash of a commit, or its beginning."""
PullRequest = Annotated[str, Meta(max_length=500)]
"""The number or the address of a pull request."""

Until = Annotated[str, Meta(max_length=60)] | None
Time = Annotated[Until, Meta(description="ISO 8601, 30m, 12h, 7d, today, yesterday.")]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
"""Part of a text to look for."""

Agent = Annotated[Provider, Meta(max_length=60)]
"""The name of an agent whose logs agtrace reads. The schema doesn't list them: there are many, and every byte of it is
paid for by each connection. A wrong name is answered with all of them."""

FocusQuestion = Annotated[str, Meta(min_length=1, max_length=2_000)] | None
"""What the lines of a long text that are wanted are about; `shaping/focusing.py` finds them."""

Fields = Annotated[list[str], Meta(min_length=1)] | None
"""The fields to keep in an answer; read by `projection`."""

TurnIndex = Annotated[int, Meta(ge=0, le=LARGEST)] | None


class Arguments(Record, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of one tool."""


Wanted = TypeVar("Wanted", bound=Arguments)


# -- other ways to write an argument ---------------------------------------------------------------

ANY = "any"
"""As a commit or pull request: whichever a session made."""

_HEXADECIMAL = later("[0-9A-Fa-f]+")
_PULL_REQUEST = later(r"#?(?P<number>\d{1,9})|(?P<address>https?://\S+?/(?:pull|merge_requests)/\d{1,9})(?:[/?#]\S*)?")


def _hash(given: str) -> str:
    """Lower-case a hash. Anything else stays as typed: a secret in it couldn't be recognized once changed."""
    return given.lower() if _HEXADECIMAL.fullmatch(given) or given.lower() == ANY else given


def _pull_request(given: str) -> str:
    """Read `any`, `104`, `#104`, or the address of a pull request or of a page below it."""
    if given.strip().lower() == ANY:
        return ANY
    match = _PULL_REQUEST.fullmatch(given.strip())
    if match is None:
        raise InvalidParameter("pr", "pr: give the number or the URL of a pull request, or any")
    return match["number"] or match["address"]


def known_agent(given: str) -> Provider:
    """Return the agent that is meant by a name; refuse one whose logs agtrace doesn't read."""
    agent = agent_by_name(given)
    if agent is None:
        raise _wrong_choice("provider", given, list(AGENTS))
    return agent


def _names(given: str) -> list[str]:
    """Read a comma-separated text as a list."""
    return [name for name in map(str.strip, given.split(",")) if name]


_WRITTEN: dict[str, Callable[[str], Any]] = {
    "commit": _hash,
    "fields": _names,
    "pr": _pull_request,
    "provider": known_agent,
    "sections": _names,
    "turn_index": lambda given: given.removeprefix("turn-"),
}
"""How the text given for an argument is read; `turn-3` is what level summary calls a turn."""

_LONGEST_WRITTEN = 2_000


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _WRITTEN[name](value)
        if name in _WRITTEN and isinstance(value, str) and len(value) <= _LONGEST_WRITTEN
        else value
        for name, value in given.items()
    }


# -- reading ---------------------------------------------------------------------------------------


def parse(tool: type[Wanted], given: Mapping[str, Any]) -> Wanted:
    """Read the arguments of a call. Raises `InvalidParameter` for an invalid one."""
    from pydantic import ValidationError

    try:
        found = _model(tool).model_validate(_read(given))
    except ValidationError as error:
        raise _refusal(tool, error.errors(include_url=False)) from None
    return _paged(tool(**{name: getattr(found, name) for name in found.model_fields_set}), given)


def parse_options(tool: type[Wanted], given: Mapping[str, Any]) -> Wanted:
    """Read the options of a command, as `parse` does, which says what is wrong with them."""
    try:
        return _paged(msgspec.json.decode(msgspec.json.encode(_read(given)), type=tool), given)
    except ValueError:
        return parse(tool, given)


def _paged(arguments: Wanted, given: Mapping[str, Any]) -> Wanted:
    """Return the arguments with the page size of the settings. Raises `InvalidParameter` for a larger one."""
    limit, most = getattr(arguments, "limit", None), limits().settings.max_page_size
    if limit is None:
        return arguments
    if "limit" not in given:
        return replace(arguments, limit=limits().page_size)
    if limit > most:
        raise InvalidParameter("limit", f"limit exceeds maximum of {most}", f"1 to {most}", most)
    return arguments


def arguments_of(request: Arguments, only: Collection[str] | None = None) -> dict[str, Any]:
    """Return the arguments that differ from their defaults, as JSON has them."""
    found: dict[str, Any] = msgspec.to_builtins(request)
    return {name: value for name, value in found.items() if only is None or name in only}


# -- the model of a tool ---------------------------------------------------------------------------

_FORMER = {"project": ("project_hash",)}
"""Former names of arguments, which are still understood."""


@cache
def _model(tool: type[Arguments]) -> type[BaseModel]:
    """Return what reads the arguments of a tool."""
    from pydantic import AliasChoices, AliasGenerator, ConfigDict, create_model
    from pydantic.alias_generators import to_camel

    def names(name: str) -> AliasChoices:
        snake = (name, *_FORMER.get(name, ()))
        return AliasChoices(*snake, *map(to_camel, snake))

    kinds = get_type_hints(tool, include_extras=True)
    config = ConfigDict(
        extra="forbid", frozen=True, loc_by_alias=False, alias_generator=AliasGenerator(validation_alias=names)
    )
    fields: dict[str, Any] = {
        one.name: (_annotation(kinds[one.name]), ... if one.required else one.default)
        for one in msgspec.structs.fields(tool)
    }
    return create_model(tool.__name__, __config__=config, **fields)


def _annotation(kind: Any) -> Any:
    """Return a type with its bounds and its description as pydantic has them."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        from pydantic import BeforeValidator

        first = (BeforeValidator(_besides_flags),) if inner[0] is int else ()
        return Annotated[(_annotation(inner[0]), *map(_field, inner[1:]), *first)]
    return _annotation(inner[0]) | None if origin in (Union, UnionType) else kind


def _besides_flags(value: Any) -> Any:
    from pydantic_core import PydanticKnownError

    if isinstance(value, bool):
        raise PydanticKnownError("int_type")
    return value


def _field(meta: Meta) -> Any:
    from pydantic import Field

    said = {name: getattr(meta, name) for name in ("ge", "le", "min_length", "max_length", "description")}
    return Field(**{name: value for name, value in said.items() if value is not None})


def input_schema(tool: type[Arguments], held: Limits | None = None) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without what a model doesn't need to read.

    Bounds that no sensible value reaches are left out, though values beyond them are still refused. `held` has the page
    sizes, by default those of the settings without any change.
    """
    held = held or limits()
    required = [name for name, field in _model(tool).model_fields.items() if field.is_required()]
    parts = _properties(tool)
    properties = {name: _lean(parts[name]) for name in sorted(parts, key=lambda name: name not in required)}
    if "limit" in properties:
        properties["limit"] |= {"default": held.page_size_offered}
        properties["limit"] |= {"maximum": held.settings.max_page_size}
    lean: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return lean | ({"required": required} if required else {})


def _properties(tool: type[Arguments]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each argument, besides null."""
    schema = _model(tool).model_json_schema(by_alias=False)
    return {name: _besides_null(part, schema.get("$defs", {})) for name, part in schema["properties"].items()}


def _besides_null(schema: dict[str, Any], enums: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    given = {**schema, **schema.get("anyOf", [{}])[0]}
    if enum := enums.get(given.pop("$ref", "").rpartition("/")[2]):
        given |= {"enum": enum["enum"], "type": enum["type"]}
    return {**given, "enum": [given["const"]]} if "const" in given else given  # not every client knows `const`


_UNREAD = frozenset({"anyOf", "const", "minItems", "minLength", "maxLength", "title"})
_SENSELESS = (("minimum", 0), ("minimum", 1), ("maximum", LARGEST), ("default", None), ("default", False))


def _lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument without what is not worth its bytes."""
    kept = {name: value for name, value in sorted(schema.items()) if name not in _UNREAD}
    return {name: value for name, value in kept.items() if (name, value) not in _SENSELESS}


# -- what is wrong with an argument ----------------------------------------------------------------

_SAID = frozenset({"type", "minimum", "maximum", "minLength", "maxLength"})


def _refusal(tool: type[Arguments], errors: list[ErrorDetails]) -> InvalidParameter:
    """Return what is wrong with a call: an unknown argument, or else the first that can't be taken."""
    first = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    field, context, schema = str(first["loc"][0]), first.get("ctx", {}), _properties(tool)
    match first["type"]:
        case "extra_forbidden":
            return UnknownArgument(field, list(schema), _ELSEWHERE)
        case "missing":
            return InvalidParameter(field, f"{field} is missing", list(schema))
        case "literal_error" | "enum":
            return _wrong_choice(field, first["input"], re.findall(r"'(\w+)'", context["expected"]))
    bounds = ", ".join(f"{name} {value}" for name, value in schema[field].items() if name in _SAID)
    message = f"{field}: {first['msg'][0].lower()}{first['msg'][1:]}"
    return InvalidParameter(field, message, bounds, context.get("ge", context.get("le")))


_ELSEWHERE = {
    "access": "access_type",
    "since": "after from",
    "provider": "agent",
    "until": "before to",
    "group_by": "by",
    "around": "context",
    "limit": "count max_results",
    "detail_level": "detail level mode",
    "event_index": "event event_id index",
    "kind": "event_type role type",
    "project": "cwd folder project_hash project_name repo repository",
    "path": "file file_path",
    "session_id": "id session",
    "ref": "id uri",
    "turn_index": "index turn",
    "sort": "order_by order sort_by",
    "order": "order_by sort sort_by",
    "failed": "outcome",
    "has_failures": "outcome",
    "query": "pattern query_text search text",
    "id1": "session",
    "tool": "tool_name",
}
"""Names of arguments here -> what they are called elsewhere."""

_JSON_TYPES = {dict: "object", list: "array", bool: "boolean", int: "number", float: "number", type(None): "null"}


def _wrong_choice(field: str, given: Any, allowed: list[str]) -> InvalidParameter:
    """Return that an argument isn't one of several names, and which of them it is most like."""
    import difflib  # only if needed

    text = given if isinstance(given, str) else _JSON_TYPES[type(given)]  # an integer may be too long to print
    folded = {choice.lower(): choice for choice in allowed}
    close = difflib.get_close_matches(text.lower(), list(folded), 1, cutoff=0.4)
    nearest = folded[close[0]] if close else None
    also = f"; did you mean {nearest}?" if nearest else ""
    return InvalidParameter(
        field, f"{field}: {repeated(text, 60)!r} is not one of {', '.join(allowed)}{also}", allowed, nearest
    )
