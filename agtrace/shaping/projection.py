"""The fields requested of an answer: names of its model's fields, dotted for nested ones.

Identifying fields always stay, so that every answer can be followed up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, get_args, get_type_hints

from agtrace_indexer.redact import redact
from agtrace_schema.model import Model
from msgspec.structs import replace

from agtrace.problems import InvalidParameter
from agtrace.text.lines import repeated, without_controls

Whole = TypeVar("Whole", bound=Model)


def printed(model: Whole) -> Whole:
    """Return a copy with every text redacted, without control characters and changes of the writing direction."""
    return _clean(model, {})  # type: ignore[no-any-return]


def _clean(value: Any, known: dict[str, str]) -> Any:
    """Return a cleaned value; the same object if there is nothing to remove. `known` are texts that were cleaned."""
    if isinstance(value, str):
        if value not in known:
            text = redact(without_controls(value))
            known[value] = value if text == value else text
        return known[value]
    if isinstance(value, Model):
        values = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {name: clean for name, one in values.items() if (clean := _clean(one, known)) is not one}
        return replace(value, **changed) if changed else value
    if isinstance(value, (list, tuple)):
        items = [_clean(item, known) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        return {_clean(key, known): _clean(item, known) for key, item in value.items()}
    return value


IDENTIFYING = frozenset({"id", "name", "session_id", "event_index"})
"""Fields that stay in every answer and in every item of a list."""

IDENTIFYING_WITHIN = frozenset(
    {
        "id", "turn_index", "step_index", "event_index", "first_event", "call_event", "result_event", "usage_event",
        "name", "path", "model",
    }
)  # fmt: skip
"""Fields that stay in a nested object of which another field is requested."""

_Tree = dict[str, Any]
"""Field -> the tree of its requested fields, or None for all of it."""


def projection(asked: Sequence[str], model: type[Model]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that keeps these fields of a dumped model: `title`, `stats.total_tokens`, `turns.outcome`.

    Raises `InvalidParameter` as `meant` does.
    """
    tree: _Tree = {}
    for name in meant(asked, model):
        _add(tree, name.split("."))
    return lambda data: {key: _kept(data[key], tree.get(key)) for key in data if key in tree or key in IDENTIFYING}


def of_rows(asked: Sequence[str] | None, model: type[Model], key: str) -> Callable[[dict[str, Any]], Any] | None:
    """Return a function that keeps these fields of a list's rows, and what says whose list it is; None to keep all.

    Raises `InvalidParameter` as `meant` does.
    """
    if asked is None:
        return None
    kept = projection(asked, model)
    return lambda data: {name: data[name] for name in data if name in IDENTIFYING} | {key: [*map(kept, data[key])]}


def meant(asked: Sequence[str], model: type[Model]) -> list[str]:
    """Return the whole names of these fields: the last part of one will do if only one ends so.

    Raises `InvalidParameter` for a name that the model doesn't have; it lists the known ones and the nearest.
    """
    known = list(_names(model))
    found = []
    for name in asked:
        whole = [name] if name in known else [other for other in known if other.endswith(f".{name}")]
        if len(whole) != 1:
            raise _unknown(name, model, known)
        found += whole
    return found


def _names(model: type[Model]) -> Iterator[str]:
    """Yield the fields of a model and, dotted, those of the models in it."""
    for name, kind in get_type_hints(model).items():
        yield name
        for inner in _models(kind):
            yield from (f"{name}.{deeper}" for deeper in _names(inner))


def _models(annotation: Any) -> Iterator[type[Model]]:
    """Yield the models in an annotation: `list[Item] | None` has `Item`."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _unknown(name: str, model: type[Model], known: list[str]) -> InvalidParameter:
    inside = name.rpartition(".")[0]
    siblings = [other for other in known if other.rpartition(".")[0] == inside] or list(model.__struct_fields__)
    same = [other for other in known if other.rpartition(".")[2] == name.rpartition(".")[2]]
    import difflib  # only if needed

    nearest = next(iter(same or difflib.get_close_matches(name, known, 1)), None)
    also = f"; did you mean {nearest}?" if nearest else "."
    return InvalidParameter(
        "fields", f"fields: {repeated(name, 60)!r} is unknown{also} Known: {', '.join(siblings)}", siblings, nearest
    )


def _add(tree: _Tree, path: list[str]) -> None:
    first, *rest = path
    if not rest:
        tree[first] = None
    elif tree.setdefault(first, {}) is not None:
        _add(tree[first], rest)


def _kept(value: Any, tree: _Tree | None) -> Any:
    """Return the requested part of a value, or of each item of a list."""
    if tree is None:
        return value
    if isinstance(value, list):
        return [_kept(item, tree) for item in value]
    return {key: _kept(value[key], tree.get(key)) for key in value if key in tree or key in IDENTIFYING_WITHIN}
