"""Configuration files in TOML, YAML and JSON, by their suffix."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LARGEST = 65_536
"""Bytes."""

_QUOTED = re.compile(r"'[^'<]{4,}'")
"""A piece of a file in a parser's message; not a single letter, nor the name of a form such as '<scalar>'."""


class Unreadable(Exception):
    """A file that can't be read or isn't what its suffix says."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}, got {found}")
        self.expected, self.found = expected, found


def parsed(path: Path) -> Mapping[Any, Any]:
    """Return the content of a file; an empty one has none. Raises `Unreadable`."""
    kind = path.suffix.lower()
    if kind not in _PARSERS:
        raise Unreadable("a file that ends in .toml, .yaml, .yml or .json", repr(path.name))
    name, parser = _PARSERS[kind]
    text = _text(path)
    try:
        found = parser(text) if text.strip() else {}
    except RecursionError:
        raise Unreadable(f"valid {name}", "a file that is nested too deeply") from None
    except Exception as error:  # noqa: BLE001  # each library has errors of its own, some of them undocumented
        raise Unreadable(f"valid {name}", _mistake(error)) from None
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise Unreadable("keys and values", f"a {type(found).__name__}")
    return found


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise Unreadable("a file that can be read", "something else")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise Unreadable("a file that can be read", f"{error.strerror or error}") from None
    if len(data) > LARGEST:
        raise Unreadable(f"a file of at most {LARGEST:,} bytes", "a larger one")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("UTF-8", f"another encoding at byte {error.start}") from None


def _mistake(error: Exception) -> str:
    """Return what is wrong and where, with nothing of the file's text, which may be a token."""
    mark = getattr(error, "problem_mark", None)
    said = str(error) if mark is None else f"{getattr(error, 'problem', '')} (at line {mark.line + 1})"
    return " ".join(_QUOTED.sub("...", said).split())


def _yaml(text: str) -> Any:
    import yaml  # only for those who write YAML: it takes 20 ms

    class WithoutAliases(yaml.SafeLoader):
        """Refuses aliases: a few of them can stand for billions of values."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.MarkedYAMLError(problem="an alias, which isn't supported", problem_mark=mark)
            return super().compose_node(parent, index)

    return yaml.load(text, WithoutAliases)


_PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    ".toml": ("TOML", tomllib.loads),
    ".yaml": ("YAML", _yaml),
    ".yml": ("YAML", _yaml),
    ".json": ("JSON", json.loads),
}
