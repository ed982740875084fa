"""The words of a question, and where a text has them: identifiers are split, and endings don't matter.

`readTimeout`, `read_timeouts` and "reading timeouts" have the same words. A word of a question that is written like an
identifier counts as a whole as well.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

LONGEST = 100
"""The characters of the longest identifier that is split into words."""

MOST_WORDS = 40
"""The words of a question that are looked for."""

WEAK = 0.3
"""The weight of a word that stands for any kind of thing."""

WHOLE = 1.5
"""The weight of an identifier as a whole."""

_words = str.split

_STOP_WORDS = frozenset(
    _words("""
    a about above actually after all along also am an and any anything are around as at be because been before being
    below between both but by can cannot could did do does doing done during each either else every everything exactly
    few first for from had has have how however i if in including instead into is it its just last like lines line may
    me might more most much must my need needed needs neither no nor not of off on once one only onto or other others
    our out over own part parts per please rather s same say says shall should so some such t tell tells than that the
    their them then there these they thing things this those through to together too towards under until up us used
    useful using uses use via want was way we were what whatever when where whether which while who whole whom whose
    why will with within without would you your yes
    keep kept show shows shown find finds see give gives look looking know describe describes explain explains concern
    concerns concerning decide decides decided deciding determine determines responsible relevant related relate code
    happen happens happened section sections passage passages place places snippet snippets implement implements
    implemented implementation exact matter matters mention mentions mentioned belong belongs hit hits
    """)
)
_WEAK_WORDS = frozenset(
    _words("""
    function functions method methods class classes file files value values name names get gets set sets call calls
    called return returns returned make makes made handle handles handled handling define defines defined definition
    work works text output report reports reported new data type types run runs take takes add adds added result
    results entry entries item items logic rule rules given two three many
    """)
)
_SAME = (
    "config configuration configure conf cfg", "auth authentication authenticate authorization authorize",
    "init initialize initialization initialise", "param parameter", "arg argument", "dir directory folder",
    "msg message", "resp response", "req request", "db database", "env environment", "max maximum most",
    "min minimum least", "err error exception", "exec execute execution", "temp temporary tmp", "num number count",
    "len length size", "id identifier", "info information", "pkg package", "dep dependency", "repo repository",
    "doc documentation", "spec specification", "delete remove rm", "conn connection connect", "fail failure failed",
    "warn warning", "retry retries attempt", "async asynchronous", "addr address", "calc calculate compute",
    "prev previous", "attr attribute", "admin administrator", "app application", "expire expiry expiration ttl",
    "wait sleep delay", "stop terminate kill shutdown", "start begin launch", "dest destination", "src source",
    "str string", "int integer", "bool boolean", "char character", "dict dictionary", "stat statistics",
    "regex pattern", "encode encoding", "password passwd", "timeout timed", "sync synchronize", "sep separator",
    "limit cap", "choose pick select", "order sort", "check validate verify",
)  # fmt: skip

_IDENTIFIER = re.compile(r"\w+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENDING = re.compile(
    r"(?:ications?|i[sz](?:e[sdr]?|ing|ations?)|at(?:e[sd]?|ing|ions?|ors?)|ments?|ings?|ions?|ers?|ors?|ly|ies|ied|y|e[sd]?|"
    r"(?<![su])s)$"
)
_LONG_ENDING = re.compile(r"(?:[ae]n(?:ces?|cy|t(?:ly|s)?)|[ai](?:ble|bly|bility)|ive(?:ly|s)?|al(?:ly)?|ness|ity)$")
_SHORTEST_STEM, _SHORTEST_BEFORE_LONG = 3, 5


@lru_cache(4096)
def stem(word: str) -> str:
    """Return a word in lower case without the ending that a form or a relative of it may have."""
    word = word.lower()
    if len(word) <= _SHORTEST_STEM or len(word) > 40:
        return word
    if long := _LONG_ENDING.search(word, _SHORTEST_BEFORE_LONG):
        return word[: long.start()]
    if not (ending := _ENDING.search(word, _SHORTEST_STEM)):
        return word
    short = word[: ending.start()]
    doubled = short[-1] == short[-2] and short[-1] not in "ls" and ending[0][0] in "ei"
    return short[:-1] if doubled and len(short) > _SHORTEST_STEM else short


def parts(identifier: str) -> list[str]:
    """Split an identifier at underscores, digits and changes of case."""
    if identifier.isascii():
        return _PARTS.findall(identifier)
    return [part for part in identifier.split("_") if part]


def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for words in _SAME:
        stems = {stem(word) for word in words.split()}
        for one in stems:
            found.setdefault(one, set()).update(stems)
    return {one: frozenset(stems) for one, stems in found.items()}


_RELATIVES = _groups()


class Term(NamedTuple):
    """A word that a text is searched for."""

    forms: frozenset[str]
    """Stems any of which is this word, or one identifier in lower case without underscores."""
    weight: float = 1.0


class Question(NamedTuple):
    """The words of a question."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, question: str) -> Question:
        """Take the words out of a question that can tell anything."""
        terms: dict[frozenset[str], Term] = {}
        for identifier in _IDENTIFIER.findall(question):
            split = parts(identifier)
            if len(split) > 1 and (whole := _plain(identifier)) and len(whole) > _SHORTEST_STEM:
                terms.setdefault(frozenset({whole}), Term(frozenset({whole}), WHOLE))
            for part in split:
                if term := _term(part.lower()):
                    terms.setdefault(term.forms, term)
        return cls(tuple(terms.values())[:MOST_WORDS])


def _term(word: str) -> Term | None:
    if word in _STOP_WORDS or len(word) < 2:
        return None
    one = stem(word)
    return Term(_RELATIVES.get(one, frozenset()) | {one}, WEAK if word in _WEAK_WORDS else 1.0)


def _plain(identifier: str) -> str:
    return identifier.replace("_", "").lower()


def identifiers(line: str) -> list[str]:
    """Return the identifiers, words and numbers of a line."""
    return _IDENTIFIER.findall(line)


class Finder:
    """Tells which identifiers have words of a question."""

    def __init__(self, question: Question) -> None:
        self._terms: dict[str, list[int]] = {}
        for number, term in enumerate(question.terms):
            for form in term.forms:
                self._terms.setdefault(form, []).append(number)

    def telling(self, vocabulary: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return those of these identifiers that have words of the question, with the numbers of the words."""
        found = {identifier: self._of(identifier) for identifier in self._candidates(vocabulary)}
        return {identifier: numbers for identifier, numbers in found.items() if numbers}

    def _candidates(self, vocabulary: Iterable[str]) -> Iterator[str]:
        """Yield the identifiers in which the letters of a word stand: all are searched at once, which is faster."""
        known = [identifier for identifier in vocabulary if len(identifier) <= LONGEST]
        joined = "\n".join(map(str.lower, known))
        begins = list(accumulate((len(identifier.lower()) + 1 for identifier in known), initial=0))
        candidates = set()
        for form in self._terms:
            at = joined.find(form)
            while at >= 0:
                number = bisect_right(begins, at) - 1
                candidates.add(number)
                at = joined.find(form, begins[number + 1])
        return (known[number] for number in sorted(candidates))

    def _of(self, identifier: str) -> tuple[int, ...]:
        split = parts(identifier)
        forms = dict.fromkeys(map(stem, split))
        if len(split) > 1:
            forms[_plain(identifier)] = None
        return tuple(number for form in forms for number in self._terms.get(form, ()))
