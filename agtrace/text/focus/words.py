"""The words of a question, and where a text has them: identifiers are split, and endings don't matter.

`readTimeout`, `read_timeouts` and "reading timeouts" have the same words. A word of a question that is written like an
identifier counts as a whole as well.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate

from agtrace_schema.patterns import later
from msgspec import Struct

LONGEST = 100
"""The characters of the longest identifier that is split into words."""

LONGEST_LINE = 20_000
"""The characters of a line in which words are looked for."""

MOST_WORDS = 40
"""The words of a question that are looked for."""

WEAK = 0.3
"""The weight of a word that stands for any kind of thing."""

WHOLE = 1.5
"""The weight of an identifier as a whole."""

LOOSE = 0.4
"""The share of a word's weight that one like it has."""

_words = str.split

STOP_WORDS = frozenset(
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
"""Words that say nothing of what a question is about."""

_WEAK_WORDS = frozenset(
    _words("""
    function functions method methods class classes file files value values name names get gets set sets call calls
    called return returns returned make makes made handle handles handled handling define defines defined definition
    work works text output report reports reported new data type types run runs take takes add adds added result
    results entry entries item items logic rule rules given two three many
    """)
)

_LIKE = (
    "condition if when check predicate case",
    "count number amount total sum quantity size how",
    "time date timestamp duration clock now second when",
    "fail error exception raise throw panic err reject wrong crash broken problem fault failure abort invalid issue",
    "repeat loop iterate cycle again every each while for recur recursive",
    "cause reason because why due source",
    "missing absent lack undefined none null nil notfound empty required without unknown unset not",
    "place location position path where spot",
    "check validate verify ensure assert test inspect confirm examine guard valid",
    "get fetch load read retrieve obtain lookup query receive pull access",
    "set assign store save write put persist record update keep dump",
    "test spec case suite check",
    "allow may permission whitelist allowlist can able",
    "path file folder directory dir location filename document source",
    "wrong invalid incorrect bad mismatch unexpected illegal malformed corrupt error",
    "machine host node server computer runner platform address hostname domain",
    "receive accept get recv consume read incoming",
    "parse read interpret analyze decode scan tokenize lex",
    "complain warn error report lint",
    "size length count number len bytes large big width capacity long amount",
    "long duration length elapsed took time seconds slow",
    "problem issue bug error trouble vulnerability defect complain",
    "range bounds between interval from",
    "create make new build construct generate produce spawn instantiate allocate add",
    "stop end finish close shutdown terminate kill exit quit halt abort cancel cease complete done",
    "log print report warn record emit trace output write",
    "finish complete done end ready success conclude",
    "slow performance duration elapsed latency took long time",
    "increase increment grow raise add up",
    "timeout deadline expire expiry ttl timed duration late",
    "row record line entry",
    "download fetch get pull retrieve install",
    "subscribe listen register on handler",
    "name title label identifier key called alias",
    "reply answer response respond return",
    "upgrade update bump migrate newer version",
    "option flag switch argument parameter setting",
)
"""Words that may stand for each other in texts about programs; they count less than the word itself."""

_IDENTIFIER = later(r"\w+")
_PARTS = later(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENDING = later(
    r"(?:ications?|i[sz](?:e[sdr]?|ing|ations?)|at(?:e[sd]?|ing|ions?|ors?)|ments?|ings?|ions?|ers?|ors?|ly|ies|ied|y|e[sd]?|"
    r"(?<![su])s)$"
)
_SHORTEST_STEM = 3


@lru_cache(4096)
def stem(word: str) -> str:
    """Return a word in lower case without the ending that a form or a relative of it may have."""
    word = word.lower()
    if len(word) <= _SHORTEST_STEM or len(word) > 40:
        return word
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


@cache
def _like() -> Mapping[str, frozenset[str]]:
    """Return the stems that may stand for a stem, itself among them, by each that has any."""
    found: dict[str, set[str]] = {}
    for words in _LIKE:
        stems = {stem(word) for word in words.split()}
        for one in stems:
            found.setdefault(one, set()).update(stems)
    return {one: frozenset(stems) for one, stems in found.items()}


class Term(Struct, frozen=True):
    """A word that a text is searched for."""

    form: str
    """Its stem, or an identifier in lower case without underscores."""
    weight: float = 1.0
    like: frozenset[str] = frozenset()
    """Stems of words that may stand for it."""


class Question(Struct, frozen=True):
    """The words of a question."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, question: str) -> Question:
        """Take the words out of a question that can tell anything."""
        terms: dict[str, Term] = {}
        for identifier in _IDENTIFIER.findall(question):
            split = parts(identifier)
            if len(split) > 1 and (whole := _plain(identifier)) and len(whole) > _SHORTEST_STEM:
                terms.setdefault(whole, Term(whole, WHOLE))
            for part in split:
                if term := _term(part.lower()):
                    terms.setdefault(term.form, term)
        return cls(tuple(terms.values())[:MOST_WORDS])

    def weight(self, number: int) -> float:
        """Return the weight of a word, or of those like it, by a number that `Finder.telling` gives."""
        loose, at = divmod(number, len(self.terms))
        return self.terms[at].weight * (LOOSE if loose else 1)


def _term(word: str) -> Term | None:
    if word in STOP_WORDS or len(word) < 2:
        return None
    form = stem(word)
    return Term(form, WEAK if word in _WEAK_WORDS else 1.0, _like().get(form, frozenset()) - {form})


def _plain(identifier: str) -> str:
    return identifier.replace("_", "").lower()


def identifiers(line: str) -> list[str]:
    """Return the identifiers, words and numbers of a line, of a very long one those at its beginning."""
    return _IDENTIFIER.findall(line[:LONGEST_LINE])


class Finder:
    """Tells which identifiers have words of a question."""

    def __init__(self, question: Question) -> None:
        self._terms: dict[str, list[int]] = {}
        self._count = len(question.terms)
        for number, term in enumerate(question.terms):
            self._terms.setdefault(term.form, []).append(number)
            for form in term.like:
                self._terms.setdefault(form, []).append(number + self._count)

    def telling(self, vocabulary: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return those of these identifiers that have words of the question, with the numbers of the words.

        A word that is only like the question's has that one's number and the count of the question's words.
        """
        known = [identifier for identifier in vocabulary if len(identifier) <= LONGEST]
        found = {identifier: self._of(identifier) for identifier in self._candidates(known)}
        return {identifier: numbers for identifier, numbers in found.items() if numbers}

    def _candidates(self, known: Sequence[str]) -> list[str]:
        """Return the identifiers in which the letters of a word stand: all are searched at once, which is faster."""
        joined = "\n".join(map(str.lower, known))
        begins = list(accumulate((len(identifier.lower()) + 1 for identifier in known), initial=0))
        candidates: set[int] = set()
        for form in self._terms:
            at = joined.find(form)
            while at >= 0:
                number = bisect_right(begins, at) - 1
                candidates.add(number)
                at = joined.find(form, begins[number + 1])
        return [known[number] for number in sorted(candidates)]

    def _of(self, identifier: str) -> tuple[int, ...]:
        split = parts(identifier)
        forms = dict.fromkeys(map(stem, split))
        if len(split) > 1:
            forms[_plain(identifier)] = None
        return tuple(number for form in forms for number in self._terms.get(form, ()))
