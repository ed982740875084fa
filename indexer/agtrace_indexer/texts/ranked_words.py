"""The words by which events are ranked: of what was said all of them, of outputs and code the beginning and the end.

More of an output makes ranking worse, not better: what a file or a listing contains says little about a session.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple


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

_WORD = re.compile(r"[^\W_]+")
_PARTS_OF_A_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def ranked_words(voice: Voice, text: str) -> list[str]:
    """The words of a text that count, in no order; a name such as `readFile` is there as a whole and in its parts."""
    first, last = PARTS.get(voice, _MOST)
    if len(text) > (first + last) * _CHARACTERS_OF_A_WORD:
        found = _WORD.findall(text, 0, first * _CHARACTERS_OF_A_WORD)[:-1]
        found += _WORD.findall(text, len(text) - last * _CHARACTERS_OF_A_WORD)[1:]
    else:
        found = _WORD.findall(text)
    if found and max(map(len, found)) > _LONGEST:
        found = [word for word in found if len(word) <= _LONGEST]
    mixed = [word for word in found if not (word.islower() or word.istitle() or word.isupper() or word.isdigit())]
    return found + [part for word in mixed for part in _PARTS_OF_A_NAME.findall(word)] if mixed else found


def query_words(query: str) -> list[str]:
    """The words of a query, each once, in lower case; of a name in parts the whole name."""
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(query) if len(word) <= _LONGEST))
