"""Texts made fit for a page: without secrets, and without characters that hide, reverse or control text."""

from __future__ import annotations

import re

from agtrace_indexer.redact import redact_json
from agtrace_schema.events import Json
from agtrace_schema.patterns import later

from agtrace.text.lines import UNSEEN

_UNSEEN = later(f"[\x00-\x08\x0b-\x1f{UNSEEN}\u2028\u2029\ud800-\udfff]")
"""Control characters except newline and tab, changes of the writing direction, and invisible characters of no width."""


def visible(text: str) -> str:
    """Replace invisible characters, such as ESC by `␛` and a change of direction by `⟨U+202E⟩`, and CRLF by newline."""
    return _UNSEEN.sub(_symbol, text.replace("\r\n", "\n"))


def fit_for_the_page(value: Json) -> Json:
    """Make all texts of a JSON value visible, then mask secrets, in this order because people see the visible form.

    Everything that a page shows of a report goes through here.
    """
    return redact_json(_all_visible(value))


def _all_visible(value: Json) -> Json:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [_all_visible(item) for item in value]
    if isinstance(value, dict):
        return {visible(key): _all_visible(item) for key, item in value.items()}
    return value


def _symbol(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
