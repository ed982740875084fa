"""How pydantic reads settings: the types of their values, the JSON Schema of a file, and what each key may be."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

from agtrace_schema.own_tools import TOOLS
from msgspec import Struct
from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler, TypeAdapter, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, core_schema

from agtrace.settings import ABSOLUTE_MAX_BYTES, SHORTEST_TOKEN, SMALLEST_MAX_BYTES, model
from agtrace.settings.environment import ALIASES, at_home, variable

One = TypeVar("One")


def _place(given: Any) -> Any:
    if given == "":
        raise ValueError("a path has at least one character")
    return at_home(given) if isinstance(given, str) else given


def _list(given: Any) -> Any:
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    return tuple(given) if isinstance(given, list) else given


def _tool(name: str) -> str:
    if name not in TOOLS:
        raise ValueError("there is no tool of this name")
    return name


def _text(pattern: str, expected: str, longest: int = 2_000) -> Any:
    return Field(pattern=f"^{pattern}$", max_length=longest, json_schema_extra={"$comment": expected})


Place = Annotated[Path, BeforeValidator(_place), Field(json_schema_extra={"minLength": 1, "$comment": "a path"})]
List = Annotated[tuple[One, ...], BeforeValidator(_list)]
"""In a variable, the items are separated by commas."""

ToolName = Annotated[str, AfterValidator(_tool), WithJsonSchema({"enum": list(TOOLS)})]
Bytes = Annotated[int, Field(ge=SMALLEST_MAX_BYTES, le=ABSOLUTE_MAX_BYTES)]
Page = Annotated[int, Field(ge=1, le=model.LARGEST_PAGE)]
Percent = Annotated[int, Field(ge=0, le=100)]

_HOST = r"([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
VariableName = Annotated[str, _text("[A-Za-z_][A-Za-z0-9_]*", "the name of a variable, such as NODE_OPTIONS")]
Host = Annotated[str, _text(_HOST, "a host name, such as agtrace.example or agtrace.example:8765")]
Origin = Annotated[str, _text(rf"[a-z][a-z0-9+.-]*://{_HOST}", "an origin, such as https://agtrace.example")]
Token = Annotated[
    str, _text(f"[!-~]{{{SHORTEST_TOKEN},}}", f"{SHORTEST_TOKEN} or more visible ASCII characters", 100_000)
]
Endpoint = Annotated[
    str, _text(r"(builtin|none|https?://\S+)", "builtin, none or a URL that begins with http:// or https://")
]
_TEAM, _URL = r"postgres(ql)?://\S*", "postgresql://LOGIN@HOST/DATABASE"
TeamUrl = Annotated[str, _text(_TEAM, _URL)]
IndexUrl = Annotated[str, _text(f"(team|{_TEAM})", f"`team`, or {_URL}")]


def schema_of(group: type[model.Group], handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return how a group is read: any of its keys may be left out, and no other may be there."""
    hints = get_type_hints(group, localns={**vars(model), **globals()}, include_extras=True)
    usual, sentences = group(), _sentences(group)
    keys = {}
    for name, hint in hints.items():
        default = getattr(usual, name)
        if not isinstance(default, model.Group):
            extra = {} if default in (None, (), {}) or isinstance(default, Path) else {"default": default}
            hint = Annotated[hint, Field(description=sentences[name], json_schema_extra=extra)]
        keys[name] = core_schema.typed_dict_field(handler.generate_schema(hint), required=False)
    table = core_schema.typed_dict_schema(keys, extra_behavior="forbid")
    return core_schema.no_info_after_validator_function(lambda found: group(**found), table)


def _sentences(group: type[model.Group]) -> dict[str, str]:
    (tree,) = ast.parse(inspect.getsource(group)).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return {
        key.target.id: " ".join(said.value.value.split())
        for key, said in pairwise(body)
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
        if isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant) and isinstance(said.value.value, str)
    }


ADAPTER: TypeAdapter[model.Values] = TypeAdapter(model.Values)


class _WithoutTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def schema() -> Mapping[str, Any]:
    """Return the JSON Schema of a configuration file."""
    found = ADAPTER.json_schema(schema_generator=_WithoutTitles)
    found["properties"]["$schema"] = {"type": "string"}
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Settings of agtrace"}
    return {**about, **found}


class Key(Struct, frozen=True):
    """A setting, as one writes it."""

    name: str
    """With dots, such as `telemetry.keep_days`; below `tools`, TOOL stands for any of them."""
    schema: Mapping[str, Any]
    """Its JSON Schema, without null."""

    @property
    def meaning(self) -> str:
        """One sentence."""
        return str(self.schema["description"])

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        long = variable(self.name)
        return next((short for short, name in ALIASES.items() if name == long), long)

    @property
    def default(self) -> Any:
        """Its default; None if there is none."""
        return self.schema.get("default")


@cache
def keys() -> Mapping[str, Key]:
    """Return every setting by its name, in the order of the model."""
    return {key.name: key for key in _keys(schema(), "")}


def _keys(table: Mapping[str, Any], prefix: str) -> Iterator[Key]:
    for name, one in table["properties"].items():
        if name == "$schema":
            continue
        key = Key(f"{prefix}{name}", _without_null(one))
        below = key.schema.get("additionalProperties")
        if "properties" in key.schema:
            yield from _keys(key.schema, f"{key.name}.")
            continue
        yield key
        if isinstance(below, Mapping) and "properties" in below:
            yield from _keys(below, f"{key.name}.{name[:-1].upper()}.")


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**schema["anyOf"][0], **{k: v for k, v in schema.items() if k != "anyOf"}} if "anyOf" in schema else schema


def schema_at(place: tuple[str | int, ...]) -> Mapping[str, Any]:
    """Return the schema of a key, of an item of a list, or of a name in a table; an empty one if there is none."""
    result = schema()
    for part in place:
        below = result.get("items") if isinstance(part, int) else result.get("properties", {}).get(part)
        result = _without_null(below or result.get("additionalProperties") or {})
    return result


def names_at(place: tuple[str | int, ...]) -> list[str]:
    """Return the keys that a table may have."""
    table = schema_at(place)
    return list(table.get("properties") or table.get("propertyNames", {}).get("enum", []))


def allowed(schema: Mapping[str, Any]) -> str:
    """Return what a JSON Schema allows, for a sentence."""
    kind = schema.get("type")
    if "$comment" in schema:
        return str(schema["$comment"])
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if kind in ("integer", "number"):
        return _number(schema)
    if kind == "boolean":
        return "true or false"
    if kind == "array":
        return f"a list, each {allowed(schema['items'])}"
    if "properties" in schema:
        return f"a table with {', '.join(schema['properties'])}"
    if kind == "object":
        return f"names, each with {allowed(schema['additionalProperties'])}"
    most = schema.get("maxLength")
    return f"a text of {schema.get('minLength', 0)} to {most} characters" if most else "a text"


def _number(schema: Mapping[str, Any]) -> str:
    what = "a whole number" if schema["type"] == "integer" else "a number"
    least, most = schema.get("minimum", 0), schema.get("maximum", 2**53)
    return f"{what}, {least} or more" if most >= 2**53 else f"{what} from {least} to {most}"
