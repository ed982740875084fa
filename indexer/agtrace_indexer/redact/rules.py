"""The rules: what they are made of, where they stand, and what a user may add to them.

The built-in ones are data, `rules.json`. A pattern is Python's. Before it is used, cheaper things are looked for:
signs, which are literals, and a gate, which is a pattern of Rust's engine. `<<name>>` stands for one of the `pieces`. A
made-up secret stands there in parts, so that nothing takes the file for a leak.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from agtrace_indexer.redact.gates import GateError, any_of, gate_of, search

LONGEST_PATTERN = 2000
"""Characters of a pattern of the user's."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LONG_SIGN = 5
"""Characters from which on a sign in base64 is seldom found by chance."""
_PIECE = re.compile(r"<<([a-z0-9_]+)>>")


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret."""

    name: str
    """What the mask says: `[redacted: <name>]`."""
    pattern: str
    """Where the secret is, as Python's `re` reads it; only the group `secret` is masked where there is one."""
    signs: tuple[str, ...] = ()
    """How a token begins, or what stands right before it: literals, of which one stands wherever the pattern is."""
    gate: str = ""
    """What is found, too, wherever the pattern is, as Rust's regex engine reads it."""
    cheap: str = ""
    """The same, but simpler, for the gate of its group; empty: the gate is simple enough."""
    group: str = ""
    unless: str | None = None
    """The check (`checks.CHECKS`) that tells what is none after all."""
    lines: bool = False
    """Whether it may reach over line ends."""
    source: str = ""
    """Who says that secrets look so."""
    positive: str = ""
    """A made-up secret that must be masked."""
    near_miss: str = ""
    """A similar text that must stay."""
    own: bool = False
    """Whether the user added it: nobody has looked at how long it may take."""


class RuleError(ValueError):
    """Rules that can't be used; the text says which and why."""


@cache
def built_in() -> tuple[Rule, ...]:
    """The rules that come with agtrace, in the order in which they name what they find."""
    data = _data()
    return tuple(_rule(entry, data["pieces"]) for entry in data["rules"])


def literals() -> list[str]:
    """How secrets begin, or what stands before them, that is looked for in base64."""
    named: list[str] = _data()["base64"]
    return sorted({*named, *(sign for rule in built_in() for sign in rule.signs if len(sign) >= _LONG_SIGN)})


@cache
def _data() -> Any:
    return orjson.loads(source())


@cache
def source() -> bytes:
    """The file of the built-in rules."""
    return files("agtrace_indexer").joinpath("redact", "rules.json").read_bytes()


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are asked for together."""

    rules: tuple[Rule, ...]
    gate: str
    """What is found wherever one of them finds something, as Rust's regex engine reads it."""
    beyond_ascii: str
    """The same for what no text of ASCII has; empty: there is no such thing."""
    needs: tuple[str, ...]
    """Literals that are all there, too: to look for them costs next to nothing."""


@cache
def groups() -> tuple[Group, ...]:
    """The built-in rules by how they are looked for; those that know tokens by their form come first."""
    made = []
    for name, entry in _data()["groups"].items():
        rules = tuple(rule for rule in built_in() if rule.group == name)
        gate, beyond = (_filled(entry.get(key, ""), _data()["pieces"]) for key in ("gate", "beyond_ascii"))
        made.append(Group(rules, gate or _group_gate(rules), beyond, tuple(entry.get("needs", ()))))
    return tuple(made)


_TAIL = "[A-Za-z0-9_.%/+=~-]{10}"
"""What follows the sign of any token."""


def _group_gate(rules: Iterable[Rule]) -> str:
    """One gate for all of them. Signs stand there as one choice of literals: the automaton must stay small."""
    signs = sorted({sign for rule in rules for sign in rule.signs})
    begun = [f"(?:{'|'.join(map(re.escape, signs))}){_TAIL}"] if signs else []
    return any_of([*begun, *(rule.cheap or rule.gate for rule in rules if not rule.signs)])


@cache
def order() -> dict[str, int]:
    """The places of the built-in rules by their names: what several find is called by the first."""
    return {rule.name: place for place, rule in enumerate(built_in())}


def _rule(entry: Mapping[str, Any], pieces: Mapping[str, str]) -> Rule:
    pattern = _filled(entry["pattern"], pieces)
    return Rule(
        name=entry["name"],
        pattern=pattern,
        signs=tuple(entry.get("signs", ())),
        gate=gate_of(pattern),
        cheap=entry.get("gate", ""),
        group=entry["group"],
        unless=entry.get("unless"),
        lines=entry.get("lines", False),
        source=entry["source"],
        positive="".join(entry["positive"]),
        near_miss=entry["near_miss"],
    )


def _filled(pattern: str, pieces: Mapping[str, str]) -> str:
    return _PIECE.sub(lambda found: _filled(pieces[found[1]], pieces), pattern)


# --- the user's


@dataclass(frozen=True, slots=True)
class Own:
    """What a user adds and allows."""

    rules: tuple[Rule, ...] = ()
    allowed: frozenset[str] = frozenset()
    """Texts that are no secrets, whole."""
    allowed_patterns: tuple[str, ...] = ()
    """Patterns of such texts, in Rust's syntax."""


def read_own(data: bytes) -> Own:
    """Read the user's file. Raises `RuleError`.

    `{"add": [{"name": "badge", "pattern": "BDG-[0-9]{8}"}], "allow": ["BDG-00000000", {"pattern": "BDG-9+"}]}`.
    """
    if not data:
        return Own()
    try:
        given = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise RuleError(f"it is no JSON: {error}") from None
    _check_keys(given, {"add", "allow"}, "it")
    adds, allows = given.get("add", []), given.get("allow", [])
    if not isinstance(adds, list) or not isinstance(allows, list):
        raise RuleError("`add` and `allow` must be lists")
    rules = tuple(_own_rule(number, entry) for number, entry in enumerate(adds, 1))
    texts = [entry for entry in allows if isinstance(entry, str)]
    patterns = [entry for entry in allows if not isinstance(entry, str)]
    if "" in texts:
        raise RuleError("allow: a text must not be empty")
    for number, entry in enumerate(patterns, 1):
        _check_keys(entry, {"pattern"}, f"allow, pattern {number}")
        _check_pattern(entry.get("pattern"), f"allow, pattern {number}")
    return Own(rules, frozenset(texts), tuple(rf"\A(?:{entry['pattern']})\z" for entry in patterns))


def _own_rule(number: int, entry: Any) -> Rule:
    where = f"add, rule {number}"
    _check_keys(entry, {"name", "pattern"}, where)
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RuleError(f"{where}: `name` must be 1 to 40 lower-case letters, digits and dashes")
    if name in {rule.name for rule in built_in()}:
        raise RuleError(f"{where}: {name} is the name of a built-in rule")
    pattern = _check_pattern(entry.get("pattern"), where)
    return Rule(name, pattern, gate=gate_of(pattern), lines=True, own=True)


def _check_keys(given: Any, known: set[str], where: str) -> None:
    if not isinstance(given, dict):
        raise RuleError(f"{where} must be an object with {' and '.join(sorted(known))}")
    unknown = sorted(map(str, given.keys() - known))
    if unknown:
        raise RuleError(f"{where} has {', '.join(unknown)[:100]}: only {' and '.join(sorted(known))} is known")


def _check_pattern(pattern: Any, where: str) -> str:
    """A pattern that both engines read alike, and that doesn't find the empty text."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
        raise RuleError(f"{where}: `pattern` must be a text of 1 to {LONGEST_PATTERN} characters")
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise RuleError(f"{where}: the pattern can't be used: {error}") from None
    try:
        search(pattern.replace("(?P<secret>", "(?:"))
    except GateError as error:
        raise RuleError(f"{where}: the pattern must work in linear time, without looking around: {error}") from None
    if compiled.search(""):
        raise RuleError(f"{where}: the pattern finds the empty text")
    return pattern
