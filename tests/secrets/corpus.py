"""The cases: texts as they are in logs, with the pieces that must not leak, or that must be kept.

Each line of a file is a case: its id (the kind and a number), its text, and whether it is held out: rules are tuned
on the others, and those held out show whether the rules know kinds or only cases. In a text, ⟦ and ⟧ enclose each
piece; ¦ means nothing but divides tokens, so that no scanner of pushed code takes them for real ones.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
_MARKS = re.compile("[⟦⟧]")
_WITHOUT_FORM = ("json-web-key", "private-key")
_PIECE = re.compile("⟦([^⟧]+)⟧")


@dataclass(frozen=True)
class Case:
    """A text to plant."""

    id: str
    text: str
    """The text in a log, before encoding as the log's JSON."""
    pieces: tuple[str, ...]
    """Verbatim parts of the text."""
    held_out: bool
    inner: str = ""
    """The secret in a base64 text."""
    secret: bool = True

    @property
    def kind(self) -> str:
        """The kind of which it is an example."""
        return self.id.rpartition("-")[0]

    @property
    def is_token(self) -> bool:
        """Whether its only piece is recognised by its own form, and can be part of a path or of a branch's name."""
        known = self.kind.endswith(("-key", "-token")) and self.kind not in _WITHOUT_FORM and len(self.pieces) == 1
        return self.secret and known and re.fullmatch(r"[a-z]{2,9}[-_][\w.-]{16,120}", self.pieces[0]) is not None


def secrets() -> list[Case]:
    """Return the cases that a security reviewer wants masked."""
    return _cases("secrets.jsonl", secret=True)


def near_misses() -> list[Case]:
    """Return the cases that a user doesn't want masked."""
    return _cases("near_misses.jsonl", secret=False)


def _cases(name: str, *, secret: bool) -> list[Case]:
    lines = (_FOLDER / name).read_text("utf-8").splitlines()
    return [_case(json.loads(line.replace("¦", "")), secret=secret) for line in lines]


def _case(given: dict[str, Any], *, secret: bool) -> Case:
    marked = given["text"]
    pieces = tuple(_PIECE.findall(marked))
    held_out = given.get("held_out", False)
    return Case(given["id"], _MARKS.sub("", marked), pieces, held_out, given.get("inner", ""), secret)
