"""The arguments that tools share, and how arguments are read. The model of a tool, next to it, is its input schema.

Unknown arguments are refused. Errors become `InvalidParameter`, which names the field, the allowed
values and the nearest valid one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

from agtrace_indexer.providers.registry import AGENTS, named
from agtrace_schema.events import EventType, Provider
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agtrace.problems import InvalidParameter, UnknownArgument
from agtrace.settings.limits import Limits, limits
from agtrace.settings.model import LARGEST_PAGE, Values
from agtrace.text.lines import repeated

_LARGEST = 2**53
_LENGTHS = ("minLength", "maxLength")
_BOUNDS = (("minimum", 0), ("minimum", 1), ("maximum", _LARGEST))

DEFAULT_LIMIT: int = Values.model_fields["default_page_size"].default
"""Stands for the page size of the settings in force, which `parse` puts in its place."""

Limit = Annotated[int, Field(ge=1, le=LARGEST_PAGE)]
"""The settings say what the largest one is (`max_page_size`)."""
Cursor = str | None
"""The `next_cursor` of an answer, which goes on where that one ended."""
AnotherId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""The id of a session, or its beginning, where other tools have described that."""
SessionId = Annotated[AnotherId, Field(description="ID or prefix.")]
_HEXADECIMAL = re.compile("[0-9A-Fa-f]+")


ANY = "any"
"""As a commit or pull request: whichever a session made."""


def _as_hash(given: str | None) -> str | None:
    """Lower-case a hash. Anything else stays as typed: a secret in it couldn't be recognized once changed."""
    return given.lower() if given and (_HEXADECIMAL.fullmatch(given) or given.lower() == ANY) else given


AnyProject = Annotated[str | None, StringConstraints(min_length=1, max_length=500)]
"""The name, folder or hash of a project, where other tools have described that."""
ProjectName = Annotated[AnyProject, Field(description="Name, folder or hash.")]


def _as_pull_request(given: str) -> str:
    """Read `any`, `104`, `#104`, or the address of a pull request or of a page below it."""
    if given.strip().lower() == ANY:
        return ANY
    found = _PULL_REQUEST.fullmatch(given.strip())
    if found is None:
        raise PydanticCustomError("pull_request", "give the number or the URL of a pull request, or any")
    return found["number"] or found["address"]


_PULL_REQUEST = re.compile(
    r"#?(?P<number>\d{1,9})|(?P<address>https?://\S+?/(?:pull|merge_requests)/\d{1,9})(?:[/?#]\S*)?"
)

Hash = Annotated[str, StringConstraints(min_length=3, max_length=200), AfterValidator(_as_hash)]
"""The hash of a commit, or its beginning."""

PullRequest = Annotated[str, StringConstraints(max_length=500), AfterValidator(_as_pull_request)]
"""The number or the address of a pull request."""

Time = Annotated[str | None, Field(max_length=60, description="ISO 8601, 30m, 12h, 7d, today, yesterday.")]
Until = Annotated[str | None, Field(max_length=60)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""Part of a text to look for."""


def listed(given: Any) -> Any:
    """Read a comma-separated string as a list."""
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else given
    if isinstance(names, list) and not any(names):
        raise PydanticCustomError("empty", "name at least one")
    return [name for name in names if name != ""] if isinstance(names, list) else names


def known_agent(given: str) -> Provider:
    """Return the agent that is meant by a name; refuse one whose logs agtrace doesn't read."""
    agent = named(given)
    if agent is None:
        raise PydanticCustomError("choice", "no agent has this name", {"choices": list(AGENTS)})
    return agent


Agent = Annotated[Provider, Field(max_length=60), AfterValidator(known_agent), WithJsonSchema({"type": "string"})]
"""The name of an agent whose logs agtrace reads. The schema doesn't list them: there are many, and every byte of it is
paid for by each connection. A wrong name is answered with all of them."""

FocusQuestion = Annotated[str | None, Field(min_length=1, max_length=2_000)]
"""What the lines of a long text that are wanted are about; `shaping/focusing.py` finds them."""

Fields = Annotated[list[str] | None, BeforeValidator(listed)]
"""The fields to keep in an answer; read by `projection`."""


def turn_number(given: Any) -> Any:
    """Read `turn-3`, as level summary names it, as 3."""
    return given.removeprefix("turn-") if isinstance(given, str) else given


TurnIndex = Annotated[int | None, Field(ge=0, le=_LARGEST), BeforeValidator(turn_number)]


class Arguments(BaseModel):
    """The arguments of one tool."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def former_names(cls, given: Any) -> Any:
        """Read `project_hash`, as `project` was called before it took names."""
        if isinstance(given, dict) and "project_hash" in given and "project" in cls.model_fields:
            rest = {name: value for name, value in given.items() if name != "project_hash"}
            return {"project": given["project_hash"], **rest}
        return given


Model = TypeVar("Model", bound=Arguments)


def parse(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Read the arguments of a call. Raises `InvalidParameter` for the first invalid one."""
    try:
        found = model.model_validate(dict(given))
    except ValidationError as error:
        raise _problem(model, error) from None
    if "limit" not in model.model_fields:
        return found
    if "limit" not in given:
        return found.model_copy(update={"limit": limits().page_size})
    if found.model_dump()["limit"] > limits().settings.max_page_size:
        raise _too_large_a_limit()
    return found


def _too_large_a_limit() -> InvalidParameter:
    most = limits().settings.max_page_size
    return InvalidParameter("limit", f"limit exceeds maximum of {most}", f"1 to {most}", most)


def input_schema(model: type[Arguments], held: Limits | None = None) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without what a model doesn't need to read.

    Bounds that no sensible value reaches are left out, though values beyond them are still refused. `held` has the page
    sizes, by default those of the settings without any change.
    """
    held = held or limits()
    schema = _schema(model)
    properties = {
        name: {key: value for key, value in part.items() if (key, value) not in _BOUNDS and key not in _LENGTHS}
        for name, part in _properties(schema).items()
    }
    if "limit" in properties:
        properties["limit"] |= {"default": held.tool.page_size or held.settings.default_page_size}
        properties["limit"] |= {"maximum": held.settings.max_page_size}
    lean: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return lean | ({"required": schema["required"]} if schema.get("required") else {})


@cache
def _schema(model: type[Arguments]) -> Mapping[str, Any]:
    return model.model_json_schema()


def _properties(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    definitions = schema.get("$defs", {})
    return {name: _lean(part, definitions) for name, part in schema["properties"].items()}


def _lean(part: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return one parameter with its references resolved, without titles, nulls, and defaults of null or false."""
    if "anyOf" in part:
        known = [option for option in part["anyOf"] if option.get("type") != "null"]
        part = {**part, **known[0]}
    if "$ref" in part:
        part = {**definitions[part["$ref"].rpartition("/")[2]], **part}
    if "const" in part:
        part = {**part, "enum": [part["const"]]}
    unread = {"title", "anyOf", "$ref", "const"} | (set() if part.get("default", False) else {"default"})
    if part.get("description") == (EventType.__doc__ or "").strip():
        unread.add("description")
    return {name: value for name, value in part.items() if name not in unread}


def _problem(model: type[Arguments], error: ValidationError) -> InvalidParameter:
    errors = error.errors(include_url=False, include_context=True)
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    field = str(first["loc"][0]) if first["loc"] else "arguments"
    known = list(_properties(_schema(model)))
    if first["type"] == "extra_forbidden":
        return UnknownArgument(field, known, _MEANT)
    if first["type"] == "missing":
        return InvalidParameter(field, f"{field} is missing", known)
    schema = _properties(_schema(model)).get(field, {})
    given = first.get("input")
    choices = first.get("ctx", {}).get("choices") or schema.get("enum") or schema.get("items", {}).get("enum")
    if choices:
        return _wrong_choice(field, given, choices)
    if first["type"] == "less_than_equal" and field == "limit":
        return _too_large_a_limit()
    bound = {"greater_than_equal": "minimum", "less_than_equal": "maximum"}.get(first["type"], "")
    allowed = {name: schema[name] for name in ("type", "minimum", "maximum", "maxLength", "pattern") if name in schema}
    text = ", ".join(f"{name} {value}" for name, value in allowed.items())
    return InvalidParameter(field, f"{field}: {first['msg']}", text or None, schema.get(bound))


_MEANT: dict[str, tuple[str, ...]] = {
    "access_type": ("access",),
    "after": ("since",),
    "agent": ("provider",),
    "before": ("until",),
    "by": ("group_by",),
    "context": ("around",),
    "count": ("limit",),
    "detail": ("detail_level",),
    "event": ("event_index",),
    "event_id": ("event_index",),
    "event_type": ("kind",),
    "cwd": ("project",),
    "file": ("path",),
    "file_path": ("path",),
    "folder": ("project",),
    "from": ("since",),
    "id": ("session_id", "ref"),
    "index": ("event_index", "turn_index"),
    "level": ("detail_level",),
    "max_results": ("limit",),
    "mode": ("detail_level",),
    "order_by": ("sort", "order"),
    "order": ("sort",),
    "outcome": ("failed", "has_failures"),
    "pattern": ("query",),
    "project_hash": ("project",),
    "project_name": ("project",),
    "repo": ("project",),
    "repository": ("project",),
    "query_text": ("query",),
    "role": ("kind",),
    "search": ("query",),
    "session": ("session_id", "id1"),
    "sort": ("order",),
    "sort_by": ("sort", "order"),
    "text": ("query",),
    "to": ("until",),
    "tool_name": ("tool",),
    "turn": ("turn_index",),
    "type": ("kind",),
    "uri": ("ref",),
}
"""Names that arguments have elsewhere -> their names here; the first one that the tool has is meant."""

_JSON_TYPES = {dict: "object", list: "array", bool: "boolean", int: "number", float: "number", type(None): "null"}


def _wrong_choice(field: str, given: Any, allowed: list[str]) -> InvalidParameter:
    given = given if isinstance(given, str) else _JSON_TYPES[type(given)]  # an integer may be too long to print
    folded = {choice.lower(): choice for choice in allowed}
    close = difflib.get_close_matches(given.lower(), list(folded), 1, cutoff=0.4)
    nearest = folded[close[0]] if close else None
    also = f"; did you mean {nearest}?" if nearest else ""
    message = f"{field}: {repeated(given, 60)!r} is not one of {', '.join(allowed)}{also}"
    return InvalidParameter(field, message, allowed, nearest)
