"""The rules: tokens by their forms, carriers of what has none, and what a user adds and allows.

Forms are data, `forms.tsv`: a kind, a regular expression that both engines read alike, who says that tokens look so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import orjson

from agtrace_indexer.redact.carriers import ALL
from agtrace_indexer.redact.scanner import Look, Scanner, ScannerError

LONGEST_PATTERN = 2000
"""Characters of a pattern of the user's."""

NAMED_KINDS = ("password", "secret", "key")
"""What masks say of a value that its name tells, beside the kinds of forms and carriers."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_BEGINS = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=%[0-9A-F]{2}))"
"""Before a token stands no letter and no digit, but for that of an escape."""
_ENDS = r"(?![A-Za-z0-9])"
_OPEN_END = re.compile(r"\{([0-9]+),[0-9]*\}((?:=\{0,2\}|=\?|\)|\\Z)*)$")


class RuleError(ValueError):
    """Rules that can't be used; the text says which and why."""


class Form(NamedTuple):
    """A token that is known by how it looks."""

    kind: str
    pattern: str
    """As Python and Hyperscan read it; only its group `secret` is masked where it has one."""
    source: str
    """Who says that tokens look so."""

    @property
    def look(self) -> Look:
        """A first look: a part of the pattern that is telling, within its first hundred characters."""
        return Look(_telling(_OPEN_END.sub(r"{\1}\2", self.pattern).replace("?P<secret>", "?:")))

    @property
    def leads(self) -> bool:
        """Whether it begins with characters of a kind, of which the first look sees the last ones."""
        return _LEAD.match(self.pattern) is not None

    @property
    def bounded(self) -> str:
        """The pattern with what must stand around it."""
        return f"{_BEGINS}{self.pattern}{_ENDS}"


_PART = re.compile(
    r"(?P<open>\()|(?P<close>\))|(?P<many>\[[^\]]*\])(?:\{(?P<least>[0-9]+)[,0-9]*\})?|\\?.(?:\{[0-9,]+\})?|\|"
)
_TELLING, _ENOUGH = 3, 12
"""Signs of its own, and then characters of any kind, by which a token is known well enough for a first look."""
_SIGN = re.compile(r"(?:[A-Za-z0-9_:/@-]|\\[.|/$+-]){5,}")
"""Literals of which one is enough by itself."""
_LEAD = re.compile(r"(?P<many>\[[^\]]*\])\{(?P<least>[0-9]+)[,0-9]*\}")
_LED = 4


def _telling(pattern: str) -> str:
    """The part of a pattern that tells it from others: short ones are found sooner, and compiled in no time."""
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
    """The tokens that are known by their forms."""
    lines = files("agtrace_indexer").joinpath("redact", "forms.tsv").read_text("utf-8").splitlines()
    return tuple(Form(*line.split("\t")) for line in lines if line and not line.startswith("# "))


@cache
def kinds() -> dict[str, int]:
    """The kinds of secrets, in the order in which they name what several rules find."""
    found = [*(form.kind for form in forms()), *(carrier.kind for carrier in ALL), *NAMED_KINDS]
    return {kind: place for place, kind in reversed(list(enumerate(found)))}


# --- the user's


@dataclass(frozen=True, slots=True)
class Own:
    """What a user adds and allows."""

    rules: tuple[Form, ...] = ()
    allowed: frozenset[str] = frozenset()
    """Texts that are no secrets, whole."""
    allowed_patterns: tuple[str, ...] = ()
    """Patterns of such texts, whole."""


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
    return Own(rules, frozenset(texts), tuple(entry["pattern"] for entry in patterns))


def _own_rule(number: int, entry: Any) -> Form:
    where = f"add, rule {number}"
    _check_keys(entry, {"name", "pattern"}, where)
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RuleError(f"{where}: `name` must be 1 to 40 lower-case letters, digits and dashes")
    if name in kinds():
        raise RuleError(f"{where}: {name} is the name of a built-in rule")
    pattern = _check_pattern(entry.get("pattern"), where)
    return Form(name, pattern, "the user")


def _check_keys(given: Any, known: set[str], where: str) -> None:
    if not isinstance(given, dict):
        raise RuleError(f"{where} must be an object with {' and '.join(sorted(known))}")
    unknown = sorted(map(str, given.keys() - known))
    if unknown:
        raise RuleError(f"{where} has {', '.join(unknown)[:100]}: only {' and '.join(sorted(known))} is known")


def _check_pattern(pattern: Any, where: str) -> str:
    """A pattern that both engines read, and that doesn't find the empty text."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
        raise RuleError(f"{where}: `pattern` must be a text of 1 to {LONGEST_PATTERN} characters")
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise RuleError(f"{where}: the pattern can't be used: {error}") from None
    if compiled.search(""):
        raise RuleError(f"{where}: the pattern finds the empty text")
    try:
        Scanner([own_look(pattern)])
    except ScannerError as error:
        raise RuleError(f"{where}: the pattern must work in linear time, without looking around: {error}") from None
    return pattern


def own_look(pattern: str) -> Look:
    """Whether a pattern of the user's is anywhere in a text: where, the pattern itself tells."""
    return Look(pattern.replace("(?P<secret>", "(?:"), once=True)
