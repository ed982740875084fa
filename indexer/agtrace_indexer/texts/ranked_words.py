"""The text by which an event is ranked, and the words of a query."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase, ascii_uppercase, digits

from agtrace_schema.patterns import later

_FIRST, _LAST = 400, 200
"""Characters at the beginning and at the end of calls, outputs and notifications. More of an output makes ranking
worse: what a file or a listing contains says little about a session."""

_MOST_SAID = 20_000
"""Characters of what a human or a model said."""

_LONGEST = 40
"""Characters of a word of a query; what is longer is a digest or a token."""

_KINDS = dict.fromkeys(ascii_lowercase, "a") | dict.fromkeys(ascii_uppercase, "A") | dict.fromkeys(f"{digits}_", "0")
_CASES = "".join(_KINDS.get(chr(byte), " ") for byte in range(256)).encode()
"""ASCII letters -> `a` or `A`, digits and `_` -> `0`, any other byte -> a space."""

_WORD = later(r"[^\W_]+")
_NAME_IN_PARTS = later(r"\b\w*[a-z][A-Z]\w*")
_PART = later(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def ranked_text(text: str, *, said: bool) -> str:
    """Return as much of a text as is ranked, with the parts of names such as `readFile`.

    FTS5 splits it into words. `said` is whether a human or a model wrote it to be read.
    """
    if said:
        text = text[:_MOST_SAID]
    elif len(text) > _FIRST + _LAST:
        text = f"{text[:_FIRST]} {text[-_LAST:]}"
    return " ".join((text, *_parts(text)))


def _parts(text: str) -> Iterator[str]:
    """Yield the parts of names in a text."""
    cases = text.encode("utf-8", "replace").translate(_CASES) + b" "
    at = cases.find(b"aA")
    if at >= 0 and not text.isascii():
        for name in _NAME_IN_PARTS.findall(text):
            yield from _PART.findall(name)
        return
    while at >= 0:  # a third of the time that the pattern takes
        end = cases.find(b" ", at)
        yield from _PART.findall(text, cases.rfind(b" ", 0, at) + 1, end)
        at = cases.find(b"aA", end)


def query_words(query: str) -> list[str]:
    """Return the words of a query, each once, in lower case; of a name in parts the whole name."""
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(query) if len(word) <= _LONGEST))
