"""Recognizes diffs, of which no line is left out."""

from __future__ import annotations

from agtrace_schema.patterns import later

from agtrace.text.scan import readable, tester

_BEGUN = r"^(?: *\d+[\t→])?(?:\x1b\[[\d;]*m)*"
_PATTERN = (
    rf"(?m){_BEGUN}(?:@@+ (?:-\d+(?:,\d+)? )+\+\d+(?:,\d+)? @@"  # a hunk; of a merge with several parents
    r"|diff --(?:git|cc|combined) \S"
    r"|--- \S[^\n]*\n(?: *\d+[\t→])?(?:\x1b\[[\d;]*m)*\+\+\+ \S"
    r"|\*{15}$"
    r"|\d+(?:,\d+)?[acd]\d+(?:,\d+)?\n[<>] )"
)
_DIFF, _may_be = later(_PATTERN), tester(_PATTERN)


def is_diff(text: str) -> bool:
    """Tell whether a text is a diff or contains one: unified, of a merge, with context, or plain."""
    return _may_be(text) and (readable(text) or _DIFF.search(text) is not None)
