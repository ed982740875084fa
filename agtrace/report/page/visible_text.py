"""What a page may hold of a text: nothing that hides, turns or controls it, and no secret."""

from __future__ import annotations

import re

from agtrace_indexer.redact import redact_json
from agtrace_schema.events import Json

from agtrace.text.lines import UNSEEN

_UNSEEN = re.compile(f"[\x00-\x08\x0b-\x1f{UNSEEN}\u2028\u2029\ud800-\udfff]")
"""Control characters but newline and tab; what turns the writing direction; what has no width and joins nothing."""


def visible(text: str) -> str:
    """Show what can't be seen: ESC as `␛`, a turn of the writing direction as `⟨U+202E⟩`; line ends become newlines."""
    return _UNSEEN.sub(_symbol, text.replace("\r\n", "\n"))


def fit_for_the_page(value: Json) -> Json:
    """Make all texts of a JSON value visible, then mask their secrets: what is masked is what people would see.

    Everything that a page shows of a report passes here.
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
