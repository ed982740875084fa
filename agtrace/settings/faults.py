"""What is wrong with settings, and how that is said: the key, its value, and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

from agtrace.problems import SettingError
from agtrace.settings import SHORTEST_TOKEN
from agtrace.settings.model import Key

_LONGEST_SHOWN = 60


class Fault(NamedTuple):
    """A value that can't be used."""

    origin: str
    """The file's path, the variable, or `--set`."""
    key: str
    """Empty if the source as a whole can't be used."""
    value: str
    """As given, shortened; nothing of a secret."""
    expected: str

    def __str__(self) -> str:
        where = (
            f"{self.origin}: {self.key}: "
            if self.key and not self.origin.startswith("AGTRACE_")
            else f"{self.origin}: "
        )
        return f"{where}expected {self.expected}, got {self.value}"


class InvalidSettings(SettingError):
    """Settings that can't be used, with every fault."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults


def expected(key: Key, *, as_text: bool = False) -> str:
    """Return what a setting may be, for a sentence; `as_text` if it is written in a variable."""
    schema = key.type
    kind = schema.get("type")
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if kind == "integer":
        return f"a whole number from {schema['minimum']} to {schema['maximum']}"
    if kind == "number":
        return f"a number from {schema['minimum']} to {schema['maximum']}"
    if kind == "boolean":
        return "0 or 1" if as_text else "true or false"
    if kind == "array":
        return "a list of texts"
    if kind == "object":
        each = schema["additionalProperties"]
        return f"names with a whole number from {each['minimum']} to {each['maximum']}"
    if schema.get("format") == "path":
        return "a path"
    if schema.get("format") == "endpoint":
        return "builtin, none or a URL that begins with http:// or https://"
    return f"{schema['minLength']} or more visible ASCII characters" if "minLength" in schema else "a text"


def shown(value: Any) -> str:
    """Return a value as a fault shows it."""
    if isinstance(value, Mapping | list):  # may be nested deeply
        return "a table" if isinstance(value, Mapping) else "a list"
    if isinstance(value, int) and value.bit_length() > _LONGEST_SHOWN:
        return "a number that is far too large"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def veiled(value: Any) -> str:
    """Return a value that has no place in the settings as a fault shows it: a longer text may be a misplaced token."""
    return "a text" if isinstance(value, str) and len(value) >= SHORTEST_TOKEN else shown(value)


def meant(given: str, known: list[str]) -> str:
    """Return which of the known keys an unknown one may be."""
    near = difflib.get_close_matches(given, known, 1)
    return f"a known key, perhaps {near[0]}" if near else f"a known key: {', '.join(known[:20])}"
