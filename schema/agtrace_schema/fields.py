"""The fields of records whose values come from outside: what each may be, as JSON Schema, and how a value is read.

Bounds and descriptions stand in the annotations, as msgspec's `Meta`. Its `extra` may have, for a field:

- `read`: makes the value of what was given, before its type is looked at
- `check`: looks at the value, or replaces it, afterwards
- `schema`: what the JSON Schema says of it, besides or instead of what follows from its type

Both may raise `Unfit`. Everything else in `extra` is for those who ask (`Field.extra`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from agtrace_schema.model import Record

_NAMES = {int: "integer", str: "string", bool: "boolean", float: "number"}
_BOUNDS = {
    "ge": "minimum", "le": "maximum", "min_length": "minLength", "max_length": "maxLength", "pattern": "pattern",
    "description": "description",
}  # fmt: skip


class Unfit(ValueError):
    """A value that a field can't have."""

    def __init__(self, why: str = "", choices: Collection[str] = ()) -> None:
        super().__init__(why)
        self.why = why
        """What is wrong; empty if its type or a bound is, which the field's schema tells."""
        self.choices = list(choices)
        """The names of which it has to be one, if there are any."""


class Field(Struct, frozen=True):
    """A field of a record."""

    name: str
    annotation: Any
    default: Any
    """None if it has none, or one that is only known where the program runs."""
    is_required: bool
    description: str | None
    extra: Mapping[str, Any]

    @property
    def takes_null(self) -> bool:
        """Whether it may be null."""
        return _takes_null(self.annotation)

    @property
    def schema(self) -> dict[str, Any]:
        """Return what it may be besides null, as JSON Schema, with its keys sorted."""
        return schema_of(self.annotation)

    def read(self, given: Any, *, strict: bool) -> Any:
        """Return the value that was given. Raises `Unfit`.

        Unless `strict`, a text may stand for a number, for true or false, or for null.
        """
        value = self.extra["read"](given) if "read" in self.extra else given
        try:
            found = msgspec.convert(value, self.annotation, strict=strict)
        except msgspec.ValidationError:
            raise Unfit from None
        if not all(map(_is_well_formed, found if isinstance(found, (list, tuple)) else [found])):
            raise Unfit("the text is no valid Unicode")
        return self.extra["check"](found) if "check" in self.extra and found is not None else found


def _is_well_formed(value: Any) -> bool:
    """Whether a value is no text with half a pair of surrogates, which JSON can have, but neither SQLite nor UTF-8."""
    try:
        return not isinstance(value, str) or value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


@cache
def fields(record: type[Record]) -> Mapping[str, Field]:
    """Return the fields of a record by name, in order."""
    kinds = get_type_hints(record, include_extras=True)
    return {one.name: _field(one, kinds[one.name]) for one in msgspec.structs.fields(record)}


def _field(one: msgspec.structs.FieldInfo, annotation: Any) -> Field:
    default = one.default_factory() if one.default_factory in (dict, list) else one.default
    description: str | None = None
    extra: dict[str, Any] = {}
    for meta in _metas(annotation):
        description = meta.description or description
        extra |= meta.extra or {}
    return Field(one.name, annotation, None if default is NODEFAULT else default, one.required, description, extra)


def _metas(annotation: Any) -> list[Meta]:
    """Return what an annotation says, the innermost first; what is said of items isn't about the field."""
    if get_origin(annotation) is Annotated:
        inner, *said = get_args(annotation)
        return [*_metas(inner), *(one for one in said if isinstance(one, Meta))]
    return [meta for option in _options(annotation) for meta in _metas(option)] if _is_union(annotation) else []


def bare(annotation: Any) -> Any:
    """Return the type of a value, such as int or tuple, without None and without its bounds."""
    if get_origin(annotation) is Annotated:
        return bare(get_args(annotation)[0])
    if _is_union(annotation):
        return bare(_options(annotation)[0])
    return get_origin(annotation) or annotation


def _takes_null(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _takes_null(get_args(annotation)[0])
    return _is_union(annotation) and type(None) in get_args(annotation)


def schema_of(annotation: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type, without null."""
    return dict(sorted(_schema_of(annotation).items()))


def _schema_of(annotation: Any) -> dict[str, Any]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _with_metas(schema_of(inner[0]), inner[1:])
    if _is_union(annotation):
        return schema_of(_options(annotation)[0])
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"type": "string", "enum": [one.value for one in annotation]}
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    return {"type": _NAMES[annotation]} if annotation in _NAMES else {}


def _with_metas(schema: dict[str, Any], metas: tuple[Any, ...]) -> dict[str, Any]:
    for meta in metas:
        said = {name: getattr(meta, ours) for ours, name in _BOUNDS.items()}
        schema |= {name: value for name, value in said.items() if value is not None}
        schema |= (meta.extra or {}).get("schema", {})
    return schema


def _is_union(annotation: Any) -> bool:
    return isinstance(annotation, UnionType) or get_origin(annotation) is Union


def _options(annotation: Any) -> list[Any]:
    return [option for option in get_args(annotation) if option is not type(None)]
