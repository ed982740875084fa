"""What is wrong with settings, and how that is said: the key, its value, and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date, time
from typing import Any, NamedTuple

from agtrace.problems import SettingError
from agtrace.settings import SHORTEST_TOKEN
from agtrace.settings.model import Key

UNBOUNDED = 2**53
"""A maximum that only keeps a whole number exact in JSON."""

_LONGEST_SHOWN = 60
_MOST_NAMED = 12
MOST_TOLD = 20
"""The most faults of which each is told."""


class Fault(NamedTuple):
    """A value that can't be used, or a source."""

    origin: str
    """The file's path, the variable, or `--set`."""
    key: str
    """Empty if the source as a whole can't be used."""
    problem: str
    """What is wrong, such as `expected a path, got 1`."""
    value: str = ""
    """As given, shortened; nothing of a secret. Empty if nothing is wrong with the value by itself."""
    expected: str = ""
    """What it may be."""

    def __str__(self) -> str:
        named = self.key and not self.origin.startswith("AGTRACE_")
        return f"{self.origin}: {self.key}: {self.problem}" if named else f"{self.origin}: {self.problem}"


def unfit(origin: str, key: str, value: str, expected: str) -> Fault:
    """Return the fault of a value that isn't what is expected."""
    return Fault(origin, key, f"expected {expected}, got {value}", value, expected)


class InvalidSettings(SettingError):
    """Settings that can't be used, with every fault."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(told(faults)))
        self.faults = faults


def told(faults: tuple[Fault, ...]) -> list[str]:
    """Return a sentence for each fault; of very many, for the first ones, and how many more there are."""
    more = len(faults) - MOST_TOLD
    left_out = [f"... and {more:,} more: `agtrace config check --json` names them"] if more > 0 else []
    return [*map(str, faults[:MOST_TOLD]), *left_out]


def expected(key: Key, *, as_text: bool = False) -> str:
    """Return what a setting may be, for a sentence; `as_text` if it is written in a variable."""
    if as_text and key.type.get("type") == "boolean":
        return "0 or 1 (or false, true, off, on)"
    return allowed(key.type)


def expected_within(key: Key) -> str:
    """Return what an item of a list, or a value of a table, may be."""
    return _item(key.type.get("items") or key.type.get("additionalProperties") or key.type)


def allowed(schema: Mapping[str, Any]) -> str:
    """Return what a JSON Schema, as `Field.schema` has it, allows, for a sentence."""
    kind = schema.get("type")
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if kind in ("integer", "number"):
        return _number(schema)
    if kind == "boolean":
        return "true or false"
    if kind == "array":
        return f"a list, each {_item(schema['items'])}"
    return f"names, each with {_item(schema['additionalProperties'])}" if kind == "object" else _text(schema)


def _item(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description") or allowed(schema))


def _number(schema: Mapping[str, Any]) -> str:
    what = "a whole number" if schema["type"] == "integer" else "a number"
    least, most = schema.get("minimum", 0), schema["maximum"]
    return f"{what}, {least} or more" if most >= UNBOUNDED else f"{what} from {least} to {most}"


_FORMATS = {
    "path": "a path",
    "endpoint": "builtin, none or a URL that begins with http:// or https://",
    "team": "postgresql://LOGIN@HOST/DATABASE",
    "index": "`team`, or postgresql://LOGIN@HOST/DATABASE",
}


def _text(schema: Mapping[str, Any]) -> str:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    fewest, most = schema.get("minLength"), schema.get("maxLength")
    if most is None:
        return f"{fewest} or more visible ASCII characters" if fewest else "a text"
    return "a text" if "pattern" in schema else f"a text of {f'{fewest} to' if fewest else 'at most'} {most} characters"


def shown(value: Any) -> str:
    """Return a value as a fault shows it: as in a file."""
    if isinstance(value, Mapping | list):  # may be nested deeply
        return "a table" if isinstance(value, Mapping) else "a list"
    if isinstance(value, int) and value.bit_length() > _LONGEST_SHOWN:
        return "a number that is far too large"
    if isinstance(value, date | time):
        return value.isoformat()
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def veiled(value: Any) -> str:
    """Return a value that has no place in the settings as a fault shows it: a longer text may be a misplaced token."""
    return "a text" if isinstance(value, str) and len(value) >= SHORTEST_TOKEN else shown(value)


def meant(given: str, known: Iterable[str]) -> str:
    """Return which of the known keys an unknown one may be."""
    names = list(known)
    near = nearest(given, names)
    if near is not None:
        return f"a known key, perhaps {near}"
    few = len(names) <= _MOST_NAMED
    return f"a known key: {', '.join(names)}" if few else "a known key (`agtrace config --all` lists them)"


def nearest(given: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Return the known name that is most similar to a given one; None if none is similar enough (0 to 1)."""
    import difflib  # only if needed

    return next(iter(difflib.get_close_matches(given, known, 1, least)), None)
