"""Gates: patterns of Rust's regex engine that are found in every text in which a pattern of Python's is.

They are made from the pattern: what it asks of the text around goes, a reference back becomes what it refers to, a
condition both of its cases, and long bounds fall. The engine needs linear time and 2 ns a character, so a gate that is
nearly as exact as its pattern keeps Python's engine from all but the places where there is something to find.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pydantic_core import SchemaError, SchemaValidator, core_schema

_PART = re.compile(
    r"(?P<back>\(\?P=(?P<of>\w+)\))|(?P<look>\(\?<?[=!])|(?P<named>\(\?P<(?P<name>\w+)>)|(?P<choice>\(\?\(\w+\))"
    r"|(?P<flags>\(\?[a-z]+:)|(?P<plain>\((?:\?[:>])?)|(?P<end>\))"
    r"|\{(?P<least>[0-9]+)(?:(?P<comma>,)(?P<most>[0-9]*))?\}[+?]?|(?P<many>[*+?])[+?]?"
    r"|(?P<other>\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|.)",
    re.DOTALL,
)
_LONG = 12
"""A bound from which on any number will do: counting makes an automaton large."""


class GateError(ValueError):
    """A pattern that Rust's engine can't read; the text says why."""


def gate_of(pattern: str) -> str:
    """What is found, too, wherever a pattern of Python's is: in Rust's syntax and without a look around."""
    parts: list[str] = []
    groups: list[tuple[int, str | None]] = []  # those that are open: where they begin, and their names
    named: dict[str, str] = {}
    hidden = 0  # levels of groups that only look
    for part in _PART.finditer(pattern):
        opens = part["look"] or part["named"] or part["choice"] or part["flags"] or part["plain"]
        if hidden or part["look"]:
            hidden += 1 if opens else -1 if part["end"] else 0
            if part["look"] and hidden == 1:
                parts.append("(?:)")
        elif part["back"]:
            parts.append(named[part["of"]])
        elif opens:
            groups.append((len(parts), part["name"]))
            parts.append(part["flags"] or "(?:")
        elif part["end"]:
            start, name = groups.pop()
            parts.append(")")
            if name:
                named[name] = "".join(parts[start:])
        else:
            parts.append(part["many"] or _bounds(part) or _character(part["other"]))
    return "".join(parts)


def _bounds(part: re.Match[str]) -> str:
    least, most = part["least"], part["most"]
    if least is None:
        return ""
    if not part["comma"]:
        return f"{{{least}}}"
    return f"{{{least},{most if most and int(most) <= _LONG else ''}}}"


def _character(part: str) -> str:
    return "(?:)" if part in (r"\A", r"\Z") else part


def search(pattern: str) -> Callable[[str], bool]:
    """Compile a test for Rust's regex engine: linear time, so no text can make it slow. Raises `GateError`."""
    try:
        schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
        return SchemaValidator(schema).isinstance_python
    except SchemaError as error:
        raise GateError(str(error).rpartition("error: ")[2][:200]) from None


def any_sign(signs: Iterable[str]) -> Callable[[str], bool]:
    """A test for literals alone, which is done by vector instructions."""
    return search("|".join(re.escape(sign) for sign in sorted(set(signs))))


def any_of(patterns: Iterable[str]) -> str:
    """One pattern for all of them."""
    return "|".join(f"(?:{pattern})" for pattern in patterns)
