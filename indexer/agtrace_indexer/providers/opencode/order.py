"""The order of a session's messages: whether the model went on after one of them."""

from __future__ import annotations

from collections.abc import Iterable


def followed(assistants: Iterable[bool]) -> list[bool]:
    """Return for each message in order whether a later one is the model's: what still ran before it was interrupted."""
    later, found = False, []
    for assistant in reversed([*assistants]):
        found.append(later)
        later = later or assistant
    return found[::-1]
