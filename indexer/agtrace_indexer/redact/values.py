"""What a value is by itself, whatever carries it: a reference, words, or a text as people and machines make secrets.

All carriers share this judgement: each says which sort of value it takes for a secret, given what its name says.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from enum import IntEnum
from functools import cache, lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from agtrace_schema.patterns import later

from agtrace_indexer.redact.names import Strength, either, strength, words


class Sort(IntEnum):
    """What a value is: the higher, the more surely a secret."""

    NOTHING = 0
    """A placeholder, a reference, an expression, a mask."""
    PLAIN = 1
    """Prose, an identifier, a number, a path, a version, a colour, the name of a test or an encoding."""
    WORD = 2
    """One word, or two, as people choose them."""
    PHRASE = 3
    """Words that have no meaning together."""
    CHOSEN = 4
    """A word with digits or signs, or letters that no language joins."""
    RANDOM = 5
    """A long mixture, as machines make it."""


def _is(group: str, text: str) -> bool:
    """Whether a text begins like a group of what is no secret."""
    form = r"(?i:{})\W?\Z" if group == "known" else "{}"
    return either("no_secrets.tsv", group, form).match(text) is not None


_BRACED = later(r"\$?\{+[^{}]*\}+|[$%]\([A-Za-z][\w ./-]*\)s?")
_HEX = later(r"(?:[0-9a-f]{7,64}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})\W?\Z")
_ALGORITHM = later(r"(?<![A-Za-z])(?i:sha|ed|aes|rsa|md|base|utf|x|[hrep]s)[-_]?[0-9]{1,5}")
_LETTERS = later(r"[^\W_]+")
_WORD = later(r"[A-Z]+(?![a-zß-ɏ])|[A-Z]?[a-zß-ɏ]+|[^\W\d_A-Za-zß-ɏ]+|[0-9]+")
_PART = later(r"[A-Z]*[a-z0-9]*[a-z]{2}[a-z0-9]*|[A-Z]{2,}[0-9]*")
"""A word of an identifier, with its digits."""
_PHRASE = later(
    r"[a-z]{4,10}(?:[-_.][a-z]{3,10}){3,8}\Z|(?:[A-Z][a-z]{3,9}){3,6}\Z"
    r"|(?:[A-Z][a-z]{2,9}[0-9]{0,2}-){2,5}[A-Z][a-z]{2,9}[0-9]{0,2}\Z"
)
"""Four words or more joined by signs, or three or more with capitals, which may have a number."""
_DOTTED = later(r"_{0,2}[A-Za-z]\w*(?:\??(?:\.|::|->)[A-Za-z_]\w*)+\W?\Z")
_JOINTS = later(r"[\\/.:]+")
_DRIVE = later(r"(?:[A-Za-z]:)?[\\/]|~/|\.{1,2}/|[^\\]*\\[^\\]+\\[^\\]")
_PHRASED = 4
"""The words from which one of the vocabulary is there by chance."""
_LONG_WORD = 4
"""The letters from which a word of the vocabulary in a mixture isn't there by chance."""
_TWO_WORDS = 10
"""The letters from which two words say more than the name of something."""
_RARE = 7
"""In a word, at most one of so many pairs of letters is unusual; of twelve random letters 4 % read like a word."""


@cache
def _follow() -> Mapping[str, str]:
    """Return the usual letters after each letter."""
    return MappingProxyType({pair[0]: pair[2:] for pair in words("follow")})


def _reads_like_words(text: str) -> bool:
    """Whether a language may join the letters of a text like this, whatever stands between its words."""
    follow = _follow()
    letters = ["".join(filter(str.isalpha, word.lower())) for word in _LETTERS.findall(text)]
    rare = sum(
        after not in follow.get(before, after) and after.isascii()
        for word in letters
        for before, after in pairwise(word)
    )
    return rare * _RARE <= sum(map(len, letters))


def is_jumbled(text: str) -> bool:
    """Whether a text changes between letters of either case and digits more often than any name or path."""
    return len(parts := _WORD.findall(text)) >= 4 and len(parts) * 3 >= len(text)


def is_title(text: str) -> bool:
    """Whether a text is nothing but words and numbers joined by dashes, as the name of a file, or an example."""
    parts = re.split("[-_]", text)
    plain = all(
        (part.isdecimal() and len(part) < 10) or (part.isalpha() and (part.islower() or part.isupper()))
        for part in parts
    )
    return len(parts) >= 5 and plain and _reads_like_words(text)


def _is_path(text: str, *, digits: int = 20) -> bool:
    """Whether a text is a path: parts that read like names, joined by slashes, backslashes or dots."""
    parts = [part for part in _JOINTS.split(text) if part]
    if ((len(parts) < 2 or "\\" in text) and not _DRIVE.match(text)) or sum(map(str.isdecimal, text)) > digits:
        return False
    return _reads_like_words(text) and not any(map(is_jumbled, parts))


JUDGED = 120
"""The first characters of a value that it is judged by: whatever is longer has said by then what it is."""


def is_scrambled(text: str) -> bool:
    """Whether a text is such a mixture that no code reads like it."""
    text = text[:JUDGED]
    return len(text) >= 12 and len(set(text) - _USUAL) >= 3 and len(_WORD.findall(text)) >= 5 and is_jumbled(text)


_USUAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:, ();")


def _signs(text: str, usual: str = "_-./:,;[]'\"") -> int:
    return sum(not (sign.isalnum() or sign in usual) for sign in text)


def _long_words(named: list[str]) -> list[str]:
    return [word for word in named if len(word) >= _LONG_WORD and word in words("vocabulary")]


@lru_cache(2048)
def sort(text: str, *, literal: bool = True) -> Sort:
    """Return what a value is; `literal` is whether it is quoted, so that it can't be an expression of code."""
    if not text or _is("placeholder", text):
        return Sort.NOTHING
    chosen = text[0] == "$" and text[1:].isalnum() and len(text) >= 10 and is_jumbled(text)
    if _is("template", text) and not chosen and not is_scrambled(_BRACED.sub("", text)):
        return Sort.NOTHING
    if not literal and (_is("expression", text) or _is("identifier", text)):
        return Sort.NOTHING
    dotted = _DOTTED.match(text) and not is_jumbled(text) and _is_path(text, digits=2 * text.count("."))
    if dotted and not (literal and text.count(".") > 1 and text.islower() and not any(map(str.isdecimal, text))):
        return Sort.NOTHING
    parts = _WORD.findall(text)
    named = [part.lower() for part in parts if not part.isdecimal()]
    digits, known = sum(map(str.isdecimal, text)), words("vocabulary")
    fake = digits < 4 and known.issuperset(named) and not words("placeholders").isdisjoint(named)
    if fake or (digits < 3 and len(text) < 40 and not _signs(text, "_-./:,;[]'\"@$%{}<> ") and strength(text)):
        return Sort.NOTHING
    slashed = ("/" in text or "\\" in text) and not _signs(text[:-1], "_-./:@~*\\ []")
    if (slashed and _is_path(text)) or not named or any(_is(group, text) for group in ("known", "pattern", "type")):
        return Sort.PLAIN
    if " " in text.strip() or "\t" in text:
        return _with_blanks(text, named, digits)
    return _with_digits(text, named, digits) if digits else _letters(text, named)


def _with_blanks(text: str, named: list[str], digits: int) -> Sort:
    """Return the sort of a text with blanks: prose, words as a passphrase, or a mixture that has blanks, too."""
    mixed = digits + _signs(text, " .,:;!?'\"()-/_") >= 4 and not _long_words(named)
    if mixed and any(len(part) >= 10 and sort(part) >= Sort.CHOSEN for part in text.split()):
        return Sort.RANDOM
    phrase = len(named) >= 4 and text.islower() and text.replace(" ", "").isalnum()
    everyday = len(words("vocabulary").intersection(named))
    prose = everyday * _PHRASED > len(named) or not words("function").isdisjoint(named)
    return Sort.PHRASE if phrase and not prose else Sort.PLAIN


def _with_digits(text: str, named: list[str], digits: int) -> Sort:
    """Return the sort of a text with letters and digits, without blanks."""
    if _HEX.match(text):
        return Sort.RANDOM if len(text) >= 32 else Sort.CHOSEN
    letters, signs = "".join(named), _signs(text[:-1])
    if is_jumbled(text) or (len(letters) >= 5 and not _reads_like_words(text)):
        return Sort.RANDOM if len(text) >= 12 else Sort.CHOSEN
    digits -= sum(map(str.isdecimal, "".join(_ALGORITHM.findall(text))))
    if not signs and digits < 3 and any(len(word) > 2 for word in words("vocabulary").intersection(named)):
        return Sort.PLAIN
    if not signs and digits < 2 and len(_PART.findall(text)) > 1:
        return Sort.PHRASE if _PHRASE.match(text) else Sort.WORD
    return Sort.CHOSEN


def _letters(text: str, named: list[str]) -> Sort:
    """Return the sort of a text without digits and blanks."""
    letters, bare = "".join(named), text.strip(".,:;!?")
    known = words("vocabulary").intersection(named)
    jumbled = len(named) * 10 >= len(letters) * 3 and 2 * len(known) < len(named)
    acronym = bare.isupper() and len(letters) < 16
    if not letters.isascii():  # a word of another language, as where a program is translated
        return Sort.PLAIN
    if len(letters) >= 8 and not acronym and (jumbled or not _reads_like_words(text)):
        return Sort.RANDOM if len(letters) >= 16 else Sort.CHOSEN
    if signs := _signs(bare):
        plain = 2 * sum(map(len, _long_words(named))) >= len(letters)
        return Sort.PLAIN if plain else Sort.CHOSEN if signs > 1 else Sort.WORD
    if (known and (len(named) < _PHRASED or 2 * len(known) >= len(named))) or (len(named) == 1 and _built(letters)):
        return Sort.PLAIN
    if _PHRASE.match(bare):
        said = any(word in words("function") or strength(word) for word in named)
        return Sort.PLAIN if said else Sort.PHRASE
    return Sort.PLAIN if len(named) > 1 and (len(letters) < _TWO_WORDS or "/" in bare) else Sort.WORD


_LONGEST_BUILT, _NEAR = 18, 80
"""The most letters of words that are written as one, and of what is between a user's name and a password."""


def _built(letters: str) -> bool:
    """Whether a word begins or ends with one of the vocabulary, as those of programs do: `serviceaccount`."""
    most = range(_LONG_WORD + 1, min(len(letters), _LONGEST_BUILT))
    return any(letters[:at] in words("vocabulary") or letters[-at:] in words("vocabulary") for at in most)


def is_shown(text: str, start: int, end: int) -> bool:
    """Whether a value is only the beginning of a secret, or a default that is the user's name before it."""
    said = text[start:end]
    if not said.isalnum() or len(said) >= _LONGEST_BUILT:
        return text.startswith(("...", "…"), end)
    user = rf"(?i:user|login|name|//|-u)[A-Za-z_]*[\"']?[ \t:=,(]*[\"']?{said}(?![A-Za-z0-9])"
    return text.startswith(("...", "…"), end) or re.search(user, text[max(0, start - _NEAR) : start]) is not None


def is_example(found: str) -> bool:
    """Whether a text is a placeholder of documentation for secrets of any kind, such as AWS's examples."""
    return _is("example", found)


_LONG = 30
"""The number of characters from which a text is a registry's token rather than chance."""


def is_login(text: str) -> bool:
    """Whether a text is the base64 of a user and a password (RFC 7617), or a registry's long token."""
    packed = text.rstrip(" \t\"'\\,;)")
    try:
        said = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError):
        return len(packed) >= _LONG and not packed.isalpha()
    return b":" in said[:-1] and said.isascii() and all(byte >= 0x20 for byte in said)


class Tier(IntEnum):
    """How sure it is that something is a secret."""

    POSSIBLE = 1
    """Not masked: the carrier or the value says too little."""
    LIKELY = 2
    """The name of a secret, an assignment, and a value that is nothing else."""
    DEFINITE = 3
    """A form of its own, such as a prefix with a length and an alphabet."""


class Span(NamedTuple):
    """A stretch of a text that is a secret."""

    start: int
    end: int
    kind: str
    """The word in its mask."""
    tier: Tier = Tier.LIKELY


class Context(IntEnum):
    """How surely a carrier says that what it carries is the value of its name."""

    TOLD = 0
    """Prose, a row, the next line."""
    SETTING = 1
    """An assignment that only code, configuration or a shell makes, without quotes."""
    TIGHT = 2
    """The same with an upper-case name, as of an environment's variables."""
    LITERAL = 3
    """A quoted value."""


_COUNT = later(r"0?123(?:4(?:5(?:6(?:7(?:8(?:90?)?)?)?)?)?)?|456(?:7(?:89?)?)?|789")
"""Digits in their order: machines don't make them, and in what is to be a token they are no more than one."""
_LONG_LETTERS, _LONGER_LETTERS = 12, 15
"""Letters in a row that hardly a word has: people join words to a password, and to another secret."""
_LABEL = later(
    r"(?:[A-Za-z]{2,}[-_./])+[0-9]{1,4}(?:[-_./][0-9]{1,4})*\Z|(?:[A-Z]{3,}|(?i:token|secret|key))[0-9]{1,4}\Z"
    r"|[a-z]+(?:[-_./:][a-z]+)+\Z"
)
"""Words that signs join, or with a number behind them: nobody makes a token of that."""
_LEAST = {
    Strength.PASSWORD: ((Sort.PHRASE, 8), (Sort.PHRASE, 5), (Sort.WORD, 4), (Sort.WORD, 4)),
    Strength.SECRET: ((Sort.PHRASE, 8), (Sort.PHRASE, 8), (Sort.WORD, 6), (Sort.PHRASE, 8)),
    Strength.TOKEN: ((Sort.PHRASE, 8), (Sort.PHRASE, 8), (Sort.WORD, 6), (Sort.PHRASE, 8)),
    Strength.KEY: ((Sort.RANDOM, 24), (Sort.RANDOM, 16), (Sort.RANDOM, 16), (Sort.RANDOM, 16)),
}
"""The least sort that is masked, and its least length, by the strength of the name and the context."""


def tier_of(level: Strength, text: str, context: Context, *, literal: bool | None = None) -> Tier | None:
    """Return how surely a value is a secret, judging by the strength of its name, by its context and by itself."""
    least, shortest = _LEAST[level][context]
    bare = text.rstrip("\"'`*\\,; \t\r\n" + "." * ("..." not in text))
    if len(bare) < shortest or is_example(text) or is_example(bare):
        return None
    text = bare
    quoted = context is Context.LITERAL if literal is None else literal
    long = len(text) >= (_LONG_LETTERS if level is Strength.PASSWORD else _LONGER_LETTERS)
    chosen = long and text.isalpha() and text.islower() and level > Strength.KEY and context > Context.TOLD
    judged = text[:JUDGED] if level is Strength.PASSWORD else _COUNT.sub("1", text[:JUDGED])
    found = sort(judged, literal=quoted)
    if level is not Strength.PASSWORD and " " in text and found < Sort.RANDOM:
        return None
    if (
        level in (Strength.KEY, Strength.TOKEN)
        and context is not Context.TIGHT
        and found >= Sort.CHOSEN
        and _LABEL.match(text)
    ):
        return Tier.POSSIBLE
    if found >= (Sort.WORD if chosen else least):
        return Tier.LIKELY
    told = level is Strength.KEY or context is Context.TOLD
    return Tier.POSSIBLE if found >= (Sort.CHOSEN if told else Sort.WORD) else None
