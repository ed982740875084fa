"""Why a client's settings aren't changed, and where in the file the reason is."""

from __future__ import annotations


class Refused(ValueError):
    """The settings can't be read or changed safely; nothing was written.

    Its text is a sentence without a full stop; `more` has lines that say what to do instead.
    """

    def __init__(self, reason: str, more: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.more = more


def refused_at(text: str, position: int, reason: str) -> Refused:
    """Return a refusal that names the line and the column of a position in a text, both counted from 1."""
    before = text[:position].replace("\r\n", "\n").replace("\r", "\n")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Refused(f"line {line}, column {column}: {reason}")
