"""What answers, arguments and settings are: structs of msgspec, whose classes every command makes anew, and quickly."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, dataclass_transform

from msgspec import Struct, StructMeta


class _KeywordOnly(StructMeta):
    """Makes structs that can't be changed, and whose fields are always given by name."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> type:
        return super().__new__(cls, name, bases, namespace, **{"kw_only": True, "frozen": True, **config})


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record(Struct, metaclass=_KeywordOnly, frozen=True):
    """What can't be changed, with fields that are given by name."""


class Model(Record):
    """A frozen part of an answer. Its types are checked by the type checker, not while it is made.

    One with `array_like=True` is written as a row: the values of its fields, up to the last that isn't None.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic read it, as a part of an answer on the wire."""
        from agtrace_schema.wire import wire_model

        return handler.generate_schema(wire_model(cls))


def dump(model: Model) -> dict[str, Any]:
    """Return a model as JSON values, without the fields that are None."""
    fields = ((name, getattr(model, name)) for name in model.__struct_fields__)
    return {name: _plain(value) for name, value in fields if value is not None}


def dump_all(models: Iterable[Model]) -> list[Any]:
    """Return models as JSON values: objects, or rows."""
    return [_plain(model) for model in models]


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return _row(value) if value.__struct_config__.array_like else dump(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value.value if isinstance(value, Enum) else value


def _row(model: Model) -> list[Any]:
    values = [_plain(getattr(model, name)) for name in model.__struct_fields__]
    return values[: max(place for place, value in enumerate(values) if value is not None) + 1]
