"""What a name says about its value: `DB_PASSWORD` names a password, `token_count` doesn't, nor does `cacheKey`.

A name is read word by word, as people write it, whatever joins the words. The last meaningful word decides. Words
after it may not matter (`password_2`, `secret_key_base`) or may show that the value is something else
(`password_file`), and words before it may show that it is not a secret (`public_key`, `max_tokens`).
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache, lru_cache
from pathlib import Path

from agtrace_schema.patterns import later


class Strength(IntEnum):
    """How strongly a name indicates a secret: the weaker, the more its value must look like one."""

    NONE = 0
    KEY = 1
    """It may be one (`STORAGE_KEY`, `signature`): the value must look random."""
    TOKEN = 2
    """It is one that machines make (`api_key`, `token`), unless the value reads like words, code or a reference."""
    SECRET = 3
    """It is one (`client_secret`, `salt`), which people choose, too."""
    PASSWORD = 4
    """It is one, and people choose the value, so that it may be nearly anything."""

    @property
    def kind(self) -> str:
        """The word in a mask."""
        return self.name.lower() if self in (Strength.KEY, Strength.PASSWORD) else "secret"


@cache
def _table(name: str) -> tuple[tuple[list[str], ...], dict[str, str]]:
    pieces: dict[str, str] = {}
    found = []
    for line in Path(__file__).with_name(name).read_text("utf-8").splitlines():
        columns = _PIECE.sub(lambda piece: pieces.get(piece[0]) or "|".join(words(piece[1])), line.removeprefix("⟨"))
        if line.startswith("⟨"):
            pieces[line.partition("\t")[0]] = columns.partition("\t")[2]
        elif line and not line.startswith("# "):
            found.append(columns.split("\t"))
    return tuple(found), pieces


def rows(table: str) -> tuple[list[str], ...]:
    """Return the rows of a table of rules, without comments: each a list of columns.

    A row that begins with `⟨x⟩` is a piece for the rows below it. What no row names is any word of a group.
    """
    return _table(table)[0]


def pieces(table: str) -> dict[str, str]:
    """Return the pieces that a table names."""
    return _table(table)[1]


@cache
def words(group: str) -> frozenset[str]:
    """Return the words of a group in `words.tsv`."""
    return frozenset(word for name, said in rows("words.tsv") if name == group for word in said.split())


@cache
def either(table: str, group: str, form: str = "{}") -> re.Pattern[str]:
    """Return a pattern for any of the alternatives that a table has for a group; `form` is what is around them."""
    return re.compile(form.format("|".join(pattern for name, pattern in rows(table) if name == group)))


_PIECE = later("⟨([^⟩]+)⟩")
_WORDS = later(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[0-9]+")
LONGEST = 100
"""The number of final characters of a name that are read; any before them are ignored."""


@lru_cache(maxsize=4096)
def strength(name: str) -> Strength:
    """Return how strongly a name, of any length and spelling, indicates that its value is a secret."""
    said = [word.lower() for word in _WORDS.findall(name[-LONGEST:])]
    while len(said) > 1 and (said[-1].isdecimal() or said[-1] in words("of no account")):
        said.pop()
    if not said or not words("no secrets").isdisjoint(said[:-1]):
        return Strength.NONE
    *before, last = said
    if last in ("pass", "token") and not words(f"not before {last}").isdisjoint(before):
        return Strength.NONE
    joined = "".join(said)
    if joined.endswith(tuple(words("beside"))):
        return Strength.NONE
    if last in words("whole passwords") or joined.endswith(tuple(words("passwords"))):
        return Strength.PASSWORD if words("of pages").isdisjoint(before) else Strength.NONE
    if (
        joined.endswith(tuple(words("secrets")))
        or last in words("whole secrets")
        or (last in ("key", "pat") and before and before[-1] in words(f"before {last}"))
    ):
        return Strength.TOKEN if joined.endswith(tuple(words("tokens"))) else Strength.SECRET
    may_be = last in words("keys") and (before or last not in words("plain keys"))
    return Strength.KEY if may_be and words("no keys").isdisjoint(before) else Strength.NONE
