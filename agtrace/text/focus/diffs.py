"""Recognizes diffs, of which no line is left out."""

from __future__ import annotations

import re

_BEGUN = r"^(?: *\d+[\t→])?(?:\x1b\[[\d;]*m)*"
_MARKS = ("@@", "diff --", "+++ ", "***************", "\n< ", "\n> ")
_DIFF = re.compile(
    rf"{_BEGUN}(?:@@+ (?:-\d+(?:,\d+)? )+\+\d+(?:,\d+)? @@"  # a hunk; of a merge with several parents
    r"|diff --(?:git|cc|combined) \S"
    r"|--- \S[^\n]*\n(?: *\d+[\t→])?(?:\x1b\[[\d;]*m)*\+\+\+ \S"
    r"|\*{15}$"
    r"|\d+(?:,\d+)?[acd]\d+(?:,\d+)?\n[<>] )",
    re.MULTILINE,
)


def is_diff(text: str) -> bool:
    """Tell whether a text is a diff or contains one: unified, of a merge, with context, or plain."""
    return any(mark in text for mark in _MARKS) and _DIFF.search(text) is not None
