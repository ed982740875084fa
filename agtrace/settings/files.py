"""Configuration files in TOML, YAML and JSON, by their suffix."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LARGEST = 1_048_576
"""Bytes."""


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
        raise Unreadable(f"valid {name}", " ".join(str(error).split())) from None
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise Unreadable("keys and values", f"a {type(found).__name__}")
    return found


def _text(path: Path) -> str:
    try:
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


def _yaml(text: str) -> Any:
    import yaml  # only for those who write YAML: it takes 20 ms

    return yaml.safe_load(text)


_PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    ".toml": ("TOML", tomllib.loads),
    ".yaml": ("YAML", _yaml),
    ".yml": ("YAML", _yaml),
    ".json": ("JSON", json.loads),
}
