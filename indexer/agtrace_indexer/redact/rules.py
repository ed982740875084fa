"""The rules: what they are made of, where they stand, and what a user may add to them.

The built-in ones are data, `rules.json`. A pattern is Python's. Before it is used, cheaper things are looked for:
signs, which are literals, and a gate, which is a pattern of Rust's engine. `<<name>>` stands for one of the `pieces`. A
made-up secret stands there in parts, so that nothing takes the file for a leak.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from pydantic_core import SchemaError, SchemaValidator, core_schema

LONGEST_PATTERN = 2000
"""Characters of a pattern of the user's."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_AROUND = re.compile(r"\(\?<?[=!][^()]*\)")
"""Conditions on what stands around, which Rust's engine doesn't know: a gate does without them."""

_PIECE = re.compile(r"<<([a-z0-9_]+)>>")


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret."""

    name: str
    """What the mask says: `[redacted: <name>]`."""
    pattern: str
    """Where the secret is, as Python's `re` reads it; only the group `secret` is masked where there is one."""
    signs: tuple[str, ...] = ()
    """Literals, of which one stands wherever the pattern is found; those of its group where it has none."""
    gate: str = ""
    """What is found, too, wherever the pattern is, as Rust's regex engine reads it; empty: nothing is asked."""
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
    found: list[str] = _data()["base64"]
    return found


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
    signs: tuple[str, ...]
    """Literals, of which one stands wherever one of them finds something."""
    gate: str
    """What is found, too, as Rust's regex engine reads it; empty: the signs are rare enough."""


@cache
def groups() -> tuple[Group, ...]:
    """The built-in rules by how they are looked for."""
    made = []
    for name, entry in _data()["groups"].items():
        rules = tuple(rule for rule in built_in() if rule.group == name)
        signs = entry.get("signs") or dict.fromkeys(sign for rule in rules for sign in rule.signs)
        made.append(Group(rules, tuple(signs), _group_gate(entry, rules)))
    return tuple(made)


def _group_gate(entry: Mapping[str, Any], rules: Iterable[Rule]) -> str:
    """The gate that stands there, else any of its rules'; none where a rule has none."""
    if "gate" in entry:
        return _AROUND.sub("", _filled(entry["gate"], _data()["pieces"]))
    return any_of(rule.gate for rule in rules) if all(rule.gate for rule in rules) else ""


def _rule(entry: Mapping[str, Any], pieces: Mapping[str, str]) -> Rule:
    return Rule(
        name=entry["name"],
        pattern=_filled(entry["pattern"], pieces),
        signs=tuple(entry.get("signs", ())),
        gate=_AROUND.sub("", _filled(entry.get("gate", ""), pieces)),
        group=entry["group"],
        unless=entry.get("unless"),
        lines=entry.get("lines", False),
        source=entry["source"],
        positive="".join(entry["positive"]),
        near_miss=entry["near_miss"],
    )


def _filled(pattern: str, pieces: Mapping[str, str]) -> str:
    return _PIECE.sub(lambda found: _filled(pieces[found[1]], pieces), pattern)


def search(pattern: str) -> Callable[[str], bool]:
    """Compile a test for Rust's regex engine: linear time, so no text can make it slow. Raises `RuleError`."""
    try:
        schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
        return SchemaValidator(schema).isinstance_python
    except SchemaError as error:
        raise RuleError(str(error).rpartition("error: ")[2][:200]) from None


def any_sign(signs: Iterable[str]) -> Callable[[str], bool]:
    """A test for literals alone, which is done by vector instructions."""
    return search("|".join(re.escape(sign) for sign in sorted(set(signs))))


def any_of(patterns: Iterable[str]) -> str:
    """One pattern for all of them."""
    return "|".join(f"(?:{pattern})" for pattern in patterns)


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
    return Rule(name, pattern, gate=pattern.replace("(?P<secret>", "(?:"), lines=True, own=True)


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
    except RuleError as error:
        raise RuleError(f"{where}: the pattern must work in linear time, without looking around: {error}") from None
    if compiled.search(""):
        raise RuleError(f"{where}: the pattern finds the empty text")
    return pattern
