"""Configuration files in TOML, YAML and JSON, by their suffix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agtrace_schema.patterns import later

LARGEST = 65_536
"""Bytes."""

_LONGEST_NAME = 60
_DEEPEST_YAML = 20
"""Far more than a setting needs; the parser's time grows with the square of the depth."""

_QUOTED = later(r"'[^'<]{4,}'")
"""A piece of a file in a parser's message; not a single letter, nor the name of a form such as '<scalar>'."""


class Unreadable(Exception):
    """A file that can't be read or isn't what its suffix says; the message is the rest of a sentence about it."""


def parsed(path: Path) -> Mapping[Any, Any]:
    """Return the content of a file; an empty one has none. Raises `Unreadable`."""
    kind = path.suffix.lower()
    if kind not in _PARSERS:
        raise Unreadable("expected a name that ends in .toml, .yaml, .yml or .json")
    name, parser = _PARSERS[kind]
    text = _text(path)
    try:
        found = parser(text) if text.strip() else {}
    except RecursionError:
        raise Unreadable(f"expected valid {name}: it is nested too deeply") from None
    except Exception as error:  # noqa: BLE001  # each library has errors of its own, some of them undocumented
        raise Unreadable(f"expected valid {name}: {_mistake(error)}") from None
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise Unreadable("expected keys and values")
    return found


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise Unreadable("can't be read: it isn't a file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        why = error.strerror or str(error)
        raise Unreadable(f"can't be read: {why[:1].lower()}{why[1:]}") from None
    if len(data) > LARGEST:
        raise Unreadable(f"expected at most {LARGEST:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"expected UTF-8; byte {error.start} isn't valid UTF-8") from None


def _mistake(error: Exception) -> str:
    """Return what is wrong and where, with nothing of the file's text, which may be a token."""
    if "set_int_max_str_digits" in str(error):
        return "a number is far too large"
    mark = getattr(error, "problem_mark", None)
    said = str(error) if mark is None else f"{getattr(error, 'problem', '')} (at line {mark.line + 1})"
    return " ".join(_QUOTED.sub("...", said).split())


def _yaml(text: str) -> Any:
    from ruamel.yaml import YAML, AliasEvent, CollectionEndEvent, CollectionStartEvent
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError

    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)  # in which `off` is false
    depth = 0
    for event in reader.parse(text):
        if isinstance(event, AliasEvent):  # a few can stand for billions of values
            raise MarkedYAMLError(problem="an alias, which isn't supported", problem_mark=event.start_mark)
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > _DEEPEST_YAML:
            raise RecursionError
    try:
        return reader.load(text)
    except DuplicateKeyError as error:  # its message has both values
        raise MarkedYAMLError(problem="a key is given twice; keep one", problem_mark=error.problem_mark) from None


def _json(text: str) -> Any:
    def strict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise ValueError(f"{twice[:_LONGEST_NAME]} is given twice; keep one")
        return found

    return json.loads(text, object_pairs_hook=strict)


def _toml(text: str) -> Any:
    import tomllib  # only if there is such a file

    return tomllib.loads(text)


_PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    ".toml": ("TOML", _toml),
    ".yaml": ("YAML", _yaml),
    ".yml": ("YAML", _yaml),
    ".json": ("JSON", _json),
}
