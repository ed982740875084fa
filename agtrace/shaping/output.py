"""The one way out for what is printed or written whole, as `shape` is for answers: without secrets or control codes."""

from __future__ import annotations

from typing import Any, TypeVar

from agtrace_indexer.redact import redact
from agtrace_schema.model import Model
from msgspec.structs import replace

from agtrace.text.lines import without_controls

Whole = TypeVar("Whole", bound=Model)


def printed(model: Whole) -> Whole:
    """Return a copy with every text redacted, without control characters and changes of the writing direction."""
    values = {name: getattr(model, name) for name in model.__struct_fields__}
    changed = {name: clean for name, value in values.items() if (clean := _clean(value)) is not value}
    return replace(model, **changed) if changed else model


def _clean(value: Any) -> Any:
    """Return a cleaned value; the same object if there is nothing to remove."""
    if isinstance(value, str):
        text = redact(without_controls(value))
        return value if text == value else text
    if isinstance(value, Model):
        return printed(value)
    if isinstance(value, (list, tuple)):
        items = [_clean(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return value
