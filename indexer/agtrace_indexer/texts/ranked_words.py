"""The text by which an event is ranked, and the words of a query."""

from __future__ import annotations

from agtrace_schema.patterns import later

_FIRST, _LAST = 400, 200
"""Characters at the beginning and at the end of calls, outputs and notifications. More of an output makes ranking
worse: what a file or a listing contains says little about a session."""

_MOST_SAID = 20_000
"""Characters of what a human or a model said."""

_LONGEST = 40
"""Characters of a word of a query; what is longer is a digest or a token."""

_CASES = bytes(97 if 97 <= byte <= 122 else 65 if 65 <= byte <= 90 else 32 for byte in range(256))
"""ASCII letters -> `a` or `A`, any other byte -> a space."""

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
    if b"aA" not in text.encode("utf-8", "replace").translate(_CASES):  # most texts: the pattern would take a while
        return text
    parts = [part for name in _NAME_IN_PARTS.findall(text) for part in _PART.findall(name)]
    return " ".join((text, *parts))


def query_words(query: str) -> list[str]:
    """Return the words of a query, each once, in lower case; of a name in parts the whole name."""
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(query) if len(word) <= _LONGEST))
