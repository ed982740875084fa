"""The arguments of the tools: one model each, which is also the tool's input schema.

Unknown arguments are refused. Trouble becomes `InvalidParameter`, which names the field, what is
allowed and the nearest valid value.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from agtrace_schema.events import EventType, Provider
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from agtrace.problems import InvalidParameter

DEFAULT_LIMIT = 10
LARGEST_LIMIT = 50

Limit = Annotated[int, Field(ge=1, le=LARGEST_LIMIT, description="Most items a page may have.")]
Cursor = Annotated[str | None, Field(description="pagination.next_cursor or chunk.next_cursor of the answer before.")]
SessionId = Annotated[
    str, StringConstraints(min_length=1, max_length=200), Field(description="Id of a session, or its beginning.")
]
ProjectHash = Annotated[
    str | None,
    StringConstraints(min_length=1, max_length=200, to_lower=True),
    Field(description="Hash of a project, or its beginning."),
]
Time = Annotated[str | None, Field(max_length=60, description="ISO 8601, or 30m, 12h, 7d, 2w, today, yesterday.")]
Until = Annotated[str | None, Field(max_length=60)]


class Arguments(BaseModel):
    """The arguments of one tool."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Model = TypeVar("Model", bound=Arguments)


def parse(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Read the arguments of a call. Raises `InvalidParameter` for the first one that doesn't fit."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise _problem(model, error) from None


def input_schema(model: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without what a model doesn't need to read."""
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    properties = {name: _lean(part, definitions) for name, part in schema["properties"].items()}
    lean: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return lean | ({"required": schema["required"]} if schema.get("required") else {})


def _lean(part: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """One parameter: references resolved; titles, nulls and defaults of null left out."""
    if "anyOf" in part:
        known = [option for option in part["anyOf"] if option.get("type") != "null"]
        part = {**part, **known[0]}
    if "$ref" in part:
        part = {**definitions[part["$ref"].rpartition("/")[2]], **part}
        part.pop("description", None) if "description" not in part else None
    unread = {"title", "anyOf", "$ref"} | ({"default"} if part.get("default", 0) is None else set())
    lean = {name: value for name, value in part.items() if name not in unread}
    return {name: value for name, value in lean.items() if name != "description" or not _is_docstring(value)}


def _is_docstring(description: str) -> bool:
    return description in {(kind.__doc__ or "").strip() for kind in (EventType, Provider)}


def _problem(model: type[Arguments], error: ValidationError) -> InvalidParameter:
    errors = error.errors(include_url=False, include_context=True)
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    field = str(first["loc"][0]) if first["loc"] else "arguments"
    known = list(model.model_fields)
    if first["type"] == "extra_forbidden":
        nearest = difflib.get_close_matches(field, known, 1)
        return InvalidParameter(
            field, f"unknown argument {field[:60]!r}; this tool takes {', '.join(known)}", known, *nearest
        )
    if first["type"] == "missing":
        return InvalidParameter(field, f"{field} is missing", known)
    schema = input_schema(model)["properties"].get(field, {})
    given = first.get("input")
    if "enum" in schema:
        return _wrong_choice(field, given, schema["enum"])
    if first["type"] == "less_than_equal" and field == "limit":
        return InvalidParameter(
            field, f"limit exceeds maximum of {LARGEST_LIMIT}", f"1 to {LARGEST_LIMIT}", LARGEST_LIMIT
        )
    bound = {"greater_than_equal": "minimum", "less_than_equal": "maximum"}.get(first["type"], "")
    allowed = {name: schema[name] for name in ("type", "minimum", "maximum", "maxLength", "pattern") if name in schema}
    text = ", ".join(f"{name} {value}" for name, value in allowed.items())
    return InvalidParameter(field, f"{field}: {first['msg']}", text, schema.get(bound))


def _wrong_choice(field: str, given: Any, allowed: list[str]) -> InvalidParameter:
    given = given if isinstance(given, str) else type(given).__name__  # an integer may be too long to be written
    folded = {choice.lower(): choice for choice in allowed}
    close = difflib.get_close_matches(given.lower(), list(folded), 1, cutoff=0.4)
    nearest = folded[close[0]] if close else None
    also = f"; did you mean {nearest}?" if nearest else ""
    message = f"{field}: {given[:60]!r} is not one of {', '.join(allowed)}{also}"
    return InvalidParameter(field, message, allowed, nearest)
