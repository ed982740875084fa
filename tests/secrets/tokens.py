"""Texts that match a pattern, for patterns as simple as those of tokens: always the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_MORE = 8
"""How many more than the fewest repetitions a text has at most."""


def tokens_of(pattern: str, number: int) -> tuple[str, ...]:
    """Return texts that match a pattern from end to end, the simplest first."""
    parsed = _parser.parse(pattern)
    chance = Random(pattern)
    return tuple("".join(_text(parsed, chance if count else None)) for count in range(number))


def _text(parsed: Any, chance: Random | None) -> Iterator[str]:
    """Yield the pieces of a text: drawn, or the simplest ones."""
    for kind, value in parsed:
        if kind is op.LITERAL:
            yield chr(value)
        elif kind is op.IN:
            signs = [chr(code) for member in value for code in _codes(*member)]
            yield chance.choice(signs) if chance else min(signs, key=lambda sign: (not sign.isalnum(), sign))
        elif kind is op.MAX_REPEAT:
            fewest, most, inner = value
            for _ in range(chance.randint(fewest, min(most, fewest + _MORE)) if chance else fewest):
                yield from _text(inner, chance)
        elif kind is op.BRANCH:
            yield from _text(chance.choice(value[1]) if chance else value[1][0], chance)
        elif kind is op.SUBPATTERN:
            yield from _text(value[-1], chance)
        else:
            raise NotImplementedError(f"{kind} in a pattern")


def _codes(kind: Any, value: Any) -> range:
    if kind is op.LITERAL:
        return range(value, value + 1)
    assert kind is op.RANGE, kind
    return range(value[0], value[1] + 1)
