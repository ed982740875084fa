"""The rules: tokens by their forms, carriers of secrets without one, and what a user adds and allows.

Forms are data, in `forms.tsv`: a kind, a regular expression that both engines read alike, the source of the form, and
what to look for first. Carriers are data, in `carriers.tsv`, in order of precedence: the kind in the mask, how it is
found, where it begins (for a command: the tool), a first look for Hyperscan, a pattern that is matched where it begins,
and the least sort of value that is masked (by default one word). The group `secret` is masked, unless `names.strength`
says that the name in the group `name` is not a secret's. Values with a name are read in `grammar.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import orjson
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.redact import printing
from agtrace_indexer.redact.names import pieces, rows
from agtrace_indexer.redact.scanner import Look, Scanner, ScannerError
from agtrace_indexer.redact.values import Sort

LONGEST_PATTERN = 2000
"""The limit in characters for a user's pattern."""

NAMED_KINDS = ("password", "secret", "key", printing.KIND)
"""The words in masks for values recognized by name or by the command that prints them."""

_NAME = later(r"[a-z0-9][a-z0-9-]{0,39}")
_BEGINS = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=%[0-9A-F]{2}))"
"""A token is not preceded by a letter or digit, except one that belongs to an escape sequence."""
_ENDS = r"(?![A-Za-z0-9])"


class RuleError(ValueError):
    """The rules can't be used; the message says which and why."""


class Carrier(Struct, frozen=True):
    """One way of carrying a secret."""

    kind: str
    """The kind in the mask."""
    look: Look
    pattern: str
    least: Sort = Sort.NOTHING
    """The least sort of value that is a secret; NOTHING: anything."""
    begins: str = ""
    """The pattern of its beginning, if that isn't its first look."""
    login: bool = False
    """Whether the value must be the base64 of a user and a password."""


def _carrier(kind: str, how: str, begins: str, look: str, pattern: str, least: str = "word") -> Carrier:
    """Return the carrier of a line.

    How it is found: by its look as `text` or as `exact` text, or as an option of a `tool`, whose look is the tool
    itself if it has none, and stands anywhere unless the option has an everyday name and is only looked for `within`.
    """
    if how in ("tool", "within"):
        of = pieces("carriers.tsv")
        pattern = f"(?i:{begins}){of['⟨end⟩']}{of['⟨on⟩']}{pattern}{of['⟨argument⟩']}"
        begins += r"[ \t\\]"
        look = f"{begins}{of['⟨words⟩']}{look}" if how == "within" else look or begins
    login, floor = least == "login", Sort.NOTHING if least in ("anything", "login") else Sort[least.upper()]
    return Carrier(kind, Look(look, any_case=how != "exact"), pattern, floor, begins, login)


CARRIERS = tuple(_carrier(*row) for row in rows("carriers.tsv"))
"""All carriers, in order of precedence for naming what several find."""


class Form(Struct, frozen=True):
    """A token with a known form."""

    kind: str
    pattern: str
    """The pattern, for both Python and Hyperscan; only its group `secret`, if it has one, is masked."""
    source: str
    """Who says that tokens have this form."""
    first: str = ""
    """A distinctive part within its first hundred characters, to look for: short ones are found and compiled sooner."""

    @property
    def look(self) -> Look:
        """The first look: that part, or the form."""
        return Look(self.first or self.pattern)

    @property
    def bounded(self) -> str:
        """The pattern including what must surround it."""
        return f"{_BEGINS}{self.pattern}{_ENDS}"

    @property
    def rule(self) -> Carrier:
        """The form as a rule, which needs no judgement."""
        return Carrier(self.kind, self.look, self.bounded)


@cache
def forms() -> tuple[Form, ...]:
    """Return the tokens with a known form."""
    return tuple(Form(*row) for row in rows("forms.tsv"))


@cache
def kinds() -> dict[str, int]:
    """Return the kinds of secrets, in order of precedence for naming what several rules find."""
    found = [*(form.kind for form in forms()), *(carrier.kind for carrier in CARRIERS), *NAMED_KINDS]
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
