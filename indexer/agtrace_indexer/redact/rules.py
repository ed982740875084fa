"""The rules: tokens by their forms, carriers of secrets without one, and what a user adds and allows.

Forms are data, in `forms.tsv`: a kind, a regular expression that both engines read alike, the source of the form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.redact import printing
from agtrace_indexer.redact.carriers import ALL, Carrier
from agtrace_indexer.redact.names import rows
from agtrace_indexer.redact.scanner import Look, Scanner, ScannerError

FORMS, LOOKS = (Path(__file__).with_name(name) for name in ("forms.tsv", "looks.txt"))
"""The forms, and their first looks, which `make docs` writes."""

LONGEST_PATTERN = 2000
"""The limit in characters for a user's pattern."""

NAMED_KINDS = ("password", "secret", "key", printing.KIND)
"""The words in masks for values recognized by name or by the command that prints them."""

_NAME = later(r"[a-z0-9][a-z0-9-]{0,39}")
_BEGINS = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=%[0-9A-F]{2}))"
"""A token is not preceded by a letter or digit, except one that belongs to an escape sequence."""
_ENDS = r"(?![A-Za-z0-9])"
_OPEN_END = later(r"\{([0-9]+),[0-9]*\}((?:=\{0,2\}|=\?|\)|\\Z)*)$")


class RuleError(ValueError):
    """The rules can't be used; the message says which and why."""


class Form(Struct, frozen=True):
    """A token with a known form."""

    kind: str
    pattern: str
    """The pattern, for both Python and Hyperscan; only its group `secret`, if it has one, is masked."""
    source: str
    """Who says that tokens have this form."""

    @property
    def look(self) -> Look:
        """The first look: a distinctive part of the pattern, within its first hundred characters."""
        return Look(_telling(_OPEN_END.sub(r"{\1}\2", self.pattern).replace("?P<secret>", "?:")))

    @property
    def leads(self) -> bool:
        """Whether it begins with a repeated character class, of which the first look sees the last characters."""
        return _LEAD.match(self.pattern) is not None

    @property
    def bounded(self) -> str:
        """The pattern including what must surround it."""
        return f"{_BEGINS}{self.pattern}{_ENDS}"

    def rule(self, look: Look) -> Carrier:
        """Return the form, found by a first look, as a rule, which needs no judgement."""
        return Carrier(self.kind, look, self.bounded)


_PART = later(
    r"(?P<open>\()|(?P<close>\))|(?P<many>\[[^\]]*\])(?:\{(?P<least>[0-9]+)[,0-9]*\})?|\\?.(?:\{[0-9,]+\})?|\|"
)
_TELLING, _ENOUGH = 3, 12
"""The numbers of literal characters, and then of any characters, that identify a token well enough for a first look."""
_SIGN = later(r"(?:[A-Za-z0-9_:/@-]|\\[.|/$+-]){5,}")
"""Literals that are distinctive enough on their own."""
_LEAD = later(r"(?P<many>\[[^\]]*\])\{(?P<least>[0-9]+)[,0-9]*\}")
_LED = 4


def _telling(pattern: str) -> str:
    """Return a distinctive part of a pattern: short ones are found sooner, and compiled in no time."""
    sign = _SIGN.match(pattern)
    if sign is not None and pattern[sign.end() : sign.end() + 1] not in "?{":
        return sign[0]
    depth = signs = 0
    led = _LEAD.match(pattern)
    if led is not None:
        pattern = f"{led['many']}{{{min(int(led['least']), _LED)}}}{pattern[led.end() :]}"
    for part in _PART.finditer(pattern):
        depth += bool(part["open"]) - bool(part["close"])
        if not depth and part["least"] and int(part["least"]) >= _ENOUGH and signs >= _TELLING:
            return f"{pattern[: part.start()]}{part['many']}{{{_ENOUGH}}}"
        signs += part[0].isalnum() or part[0] == "_"
    return pattern


@cache
def forms() -> tuple[Form, ...]:
    """Return the tokens with a known form."""
    return tuple(Form(*row) for row in rows("forms.tsv"))


@cache
def first_looks() -> tuple[Look, ...]:
    """Return the first looks of the forms, in their order: those that are kept, if they are of these forms."""
    try:
        made_of, *kept = LOOKS.read_text("utf-8").splitlines()
    except OSError:
        made_of, kept = "", []
    if made_of != _sum_of_forms():
        return tuple(form.look for form in forms())
    return tuple(map(Look, kept))


def kept_looks() -> str:
    """Return what the file with the first looks should have: they take as long to make as a module to import."""
    return "\n".join((_sum_of_forms(), *(form.look.pattern for form in forms()))) + "\n"


def _sum_of_forms() -> str:
    return f"{crc32(FORMS.read_bytes()):08x}"


@cache
def kinds() -> dict[str, int]:
    """Return the kinds of secrets, in order of precedence for naming what several rules find."""
    found = [*(form.kind for form in forms()), *(carrier.kind for carrier in ALL), *NAMED_KINDS]
    return {kind: place for place, kind in reversed(list(enumerate(found)))}


# --- the user's


@dataclass(frozen=True, slots=True)
class Own:
    """A user's additional rules and allowed texts."""

    rules: tuple[Form, ...] = ()
    allowed: frozenset[str] = frozenset()
    """Texts that, as a whole, are not secrets."""
    allowed_patterns: tuple[str, ...] = ()
    """Patterns for such texts; they must match the whole text."""
    decisions: Mapping[str, str] = field(default_factory=dict)
    """What was decided about secrets, by their fingerprints: `allow` or `mask`."""


def read_own(data: bytes) -> Own:
    """Read the user's file. Raise `RuleError`.

    `{"add": [{"name": "badge", "pattern": "BDG-[0-9]{8}"}], "allow": ["BDG-00000000", {"pattern": "BDG-9+"}],
    "decisions": {"00d1f7b3a2c4e586": "mask"}}`; `agtrace secrets` writes the decisions.
    """
    if not data:
        return Own()
    try:
        given = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise RuleError(f"it is not valid JSON: {error}") from None
    _check_keys(given, {"add", "allow", "decisions"}, "the file")
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
    decisions = given.get("decisions", {})
    if not isinstance(decisions, dict) or not set(map(str, decisions.values())) <= {"allow", "mask"}:
        raise RuleError("`decisions` must say allow or mask for each fingerprint")
    return Own(rules, frozenset(texts), tuple(entry["pattern"] for entry in patterns), decisions)


def _own_rule(number: int, entry: Any) -> Form:
    where = f"add, rule {number}"
    _check_keys(entry, {"name", "pattern"}, where)
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RuleError(f"{where}: `name` must be 1 to 40 lower-case letters, digits and dashes")
    if name in kinds():
        raise RuleError(f"{where}: a built-in rule already has the name {name}")
    pattern = _check_pattern(entry.get("pattern"), where)
    return Form(name, pattern, "the user")


def _check_keys(given: Any, known: set[str], where: str) -> None:
    if not isinstance(given, dict):
        raise RuleError(f"{where} must be an object with {' and '.join(sorted(known))}")
    unknown = sorted(map(str, given.keys() - known))
    if unknown:
        raise RuleError(f"{where} has unknown keys ({', '.join(unknown)[:100]}): use {' and '.join(sorted(known))}")


def _check_pattern(pattern: Any, where: str) -> str:
    """Return a pattern that both engines accept and that doesn't match the empty text. Raise `RuleError`."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
        raise RuleError(f"{where}: `pattern` must be a text of 1 to {LONGEST_PATTERN} characters")
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise RuleError(f"{where}: the pattern is not a valid regular expression: {error}") from None
    if compiled.search(""):
        raise RuleError(f"{where}: the pattern matches the empty text")
    try:
        Scanner([own_look(pattern)])
    except ScannerError as error:
        raise RuleError(f"{where}: the pattern must run in linear time, without lookaround: {error}") from None
    return pattern


def own_look(pattern: str) -> Look:
    """Return the first look for a user's pattern, which only finds out whether it matches anywhere in a text."""
    return Look(pattern.replace("(?P<secret>", "(?:"), once=True)
