"""Finds leaked secrets: any twelve consecutive characters of a piece, or the whole of a shorter one.

Texts are compared bare: in lower case, as words are stored, and without JSON escapes, terminal escape sequences,
spaces, line breaks, invisible characters and the borders of tables, as a secret over two lines of a table has leaked
as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from urllib.parse import unquote

from tests.secrets.corpus import Case

SHOWN = 12
"""The number of consecutive characters that count as a leak."""

_STRIDE = 4
_PROBE = SHOWN - _STRIDE + 1
"""A run of twelve characters has a probe of nine that begins at a multiple of four."""

_NAMED = re.compile(r"\\+u([0-9a-fA-F]{4})")
_NOTHING = re.compile(
    '\x1b\\[[0-9;]*[A-Za-z]|\\\\+[nrtbf]|[\\s\\\\"│┃|\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060\ufeff]+'
)


def bare(text: str) -> str:
    """Return a text in lower case without anything that may come between the characters of a secret."""
    return _NOTHING.sub("", _NAMED.sub(lambda match: chr(int(match[1], 16)), text)).lower()


class Sieve:
    """Knows all pieces of some cases."""

    def __init__(self, cases: Iterable[Case], harmless: Iterable[str] = ()) -> None:
        """`harmless` are texts that may be shown, whatever they share with a secret, mostly its first characters."""
        cases = list(cases)
        known = Counter(run for case in cases for run in {run for text in _forms(case) for run in _runs(text)})
        beside = [part for case in cases for part in _beside(case)]
        allowed = {run for text in [*beside, *harmless] for form in (text.lower(), bare(text)) for run in _runs(form)}
        self._owner: dict[str, str] = {}
        self._short: dict[str, str] = {}
        for case in cases:
            for text in _forms(case):
                for run in _runs(text):
                    if known[run] == 1 and run not in allowed:
                        (self._owner if len(run) == SHOWN else self._short)[run] = case.id
        self._probes = {run[start : start + _PROBE] for run in self._owner for start in range(_STRIDE)}
        self.cases = {case.id for case in cases}
        blind = self.cases - set(self._owner.values()) - set(self._short.values())
        assert not blind, f"no piece of its own: {blind}"

    def found(self, text: str) -> dict[str, str]:
        """Return the ids of cases of which too much is in a text, each with what is there."""
        plain = self._found(unquote(bare(text))) if "%" in text else {}
        return plain | self._found(bare(text))

    def found_in_bytes(self, content: str) -> dict[str, str]:
        """Return the same for bytes as Latin-1, in which nothing is escaped."""
        return self._found(content.lower())

    def _found(self, text: str) -> dict[str, str]:
        probes, found = self._probes, {}
        for at in range(0, len(text) - _PROBE + 1, _STRIDE):
            if text[at : at + _PROBE] in probes:
                for start in range(max(0, at - _STRIDE), at + 1):
                    run = text[start : start + SHOWN]
                    if run in self._owner:
                        found[self._owner[run]] = run
        found |= {id: run for run, id in self._short.items() if run in text}
        return found


def _forms(case: Case) -> set[str]:
    """Return the forms that a secret can have: as in the text, bare, without the escapes of an address."""
    pieces = [*case.pieces, *([case.inner] if case.inner else [])]
    return {form for piece in pieces for form in (piece.lower(), bare(piece), unquote(piece).lower())}


def _runs(text: str) -> Iterable[str]:
    if len(text) < SHOWN:
        return [text]
    return (text[start : start + SHOWN] for start in range(len(text) - SHOWN + 1))


def _beside(case: Case) -> list[str]:
    """Return what surrounds the pieces of a text."""
    return re.split("|".join(re.escape(piece) for piece in case.pieces), case.text)
