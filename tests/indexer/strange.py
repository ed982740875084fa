"""Strange values, none of which may make a provider raise: any JSON, and records with one wrong value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import strategies as st

JsonValues = st.SearchStrategy[Any]


def any_json(words: st.SearchStrategy[str] | None = None, leaves: int = 12) -> JsonValues:
    """Return a strategy for JSON values; `words` are texts and keys that are meaningful to the provider."""
    texts = st.text(max_size=8)
    keys = texts if words is None else words | st.text(max_size=4)
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | (texts if words is None else texts | words),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
        max_leaves=leaves,
    )


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every object or array within a value, with each of its keys or indices."""
    left = [value]  # not by calling itself: a value may be nested as deeply as JSON can be read
    while left:
        one = left.pop()
        keys: Iterable[Any] = one if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            yield one, key
        left += (one[key] for key in keys)


def damage(record: dict[str, Any], data: st.DataObject, values: JsonValues) -> None:
    """Drop or replace one value somewhere in a record."""
    holder, key = data.draw(st.sampled_from(list(places(record))))
    if data.draw(st.booleans()) and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = data.draw(values)
