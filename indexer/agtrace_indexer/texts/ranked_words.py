"""The words by which events are ranked: of what was said all of them, of outputs and code the beginning and the end.

More of an output makes ranking worse, not better: what a file or a listing contains says little about a session.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import filterfalse
from typing import NamedTuple

from agtrace_schema.patterns import later


class Voice(IntEnum):
    """Who an event lets speak."""

    HUMAN = 1
    MODEL = 2
    """An answer or a thought."""
    CALL = 3
    ERROR = 4
    OUTPUT = 5
    NOTICE = 6
    """What the agent itself wrote about the session: a recap, a goal, a pull request."""


class Part(NamedTuple):
    """How many words of a text count, at its beginning and at its end."""

    first: int
    last: int


PARTS = {
    Voice.CALL: Part(60, 15),
    Voice.ERROR: Part(25, 25),
    Voice.OUTPUT: Part(20, 20),
    Voice.NOTICE: Part(60, 20),
}
"""Of the voices that aren't here all words count, up to `_MOST`."""

_MOST = Part(1_200, 300)
_LONGEST = 40
"""Characters of a word; what is longer is a digest or a token."""

_CHARACTERS_OF_A_WORD = 12
"""So many of a text are looked at for each word that is wanted: long words, and what stands between them."""

_WORD = later(r"[^\W_]+")
_RUN = later(r"[^\x00-/:-@\[-`{-\x7f]+")
"""A word, or several with what is no ASCII between them, which FTS5 splits: takes two thirds of the time."""

_PARTS_OF_A_NAME = later(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def ranked_words(voice: Voice, text: str) -> tuple[set[str], int]:
    """The words of a text that count, and their number with repetitions.

    A name such as `readFile` is there as a whole and in its parts.
    """
    first, last = PARTS.get(voice, _MOST)
    if len(text) > (first + last) * _CHARACTERS_OF_A_WORD:
        found = _RUN.findall(text, 0, first * _CHARACTERS_OF_A_WORD)[:-1]
        found += _RUN.findall(text, len(text) - last * _CHARACTERS_OF_A_WORD)[1:]
    else:
        found = _RUN.findall(text)
    words = set(found)
    if words and max(map(len, words)) > _LONGEST:
        words = {word for word in words if len(word) <= _LONGEST}
    others = filterfalse(str.islower, words)
    names = [word for word in others if not (word.isdigit() or word.istitle() or word.isupper())]
    if names:
        words.update(_PARTS_OF_A_NAME.findall(" ".join(names)))
    return words, len(found)


def query_words(query: str) -> list[str]:
    """The words of a query, each once, in lower case; of a name in parts the whole name."""
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(query) if len(word) <= _LONGEST))
