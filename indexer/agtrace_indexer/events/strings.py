"""The short strings of a log: names, ids, places. Each is masked before anything cuts, keeps or compares it.

Most of them recur on every line, so the results for the last few thousand are cached. Whoever starts reading logs
calls `start`, as the rules for secrets may have changed since.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.events.json_values import digest, first_text
from agtrace_indexer.redact import redact

_REMEMBERED = 16_384
_LONGEST_REMEMBERED = 256
_LONGEST_ID = 256
_SESSION_ID = later(r"[A-Za-z0-9._-]{1,64}")
_is_usual = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:toolu|srvtoolu|msg|prt|ses|req|call|fc|ctc|rs|resp)_[0-9A-Za-z]{1,64}"
).fullmatch
"""The usual ids of lines, responses, sessions and calls: they aren't searched for secrets."""


def start() -> None:
    """Clear the cache, whose results come from rules that may have changed."""
    _masked.cache_clear()
    _identifier.cache_clear()


def masked(text: str, longest: int | None = None) -> str:
    """Return a text without its secrets, cut after that; for texts that recur."""
    return (_masked(text) if len(text) <= _LONGEST_REMEMBERED else redact(text))[:longest]


def masked_json(value: Any) -> Any:
    """Return a JSON value whose keys and texts are masked one by one."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [masked_json(item) for item in value]
    if isinstance(value, dict):
        return {masked(key): masked_json(item) for key, item in value.items()}
    return value


def identifier(value: Any) -> str | None:
    """Read an id; None if it is not a text, or empty.

    An id that contains a secret, or is too long, becomes a digest, so that different ids stay different.
    """
    if not isinstance(value, str) or not value:
        return None
    if _is_usual(value):
        return value
    return _identifier(value) if len(value) <= _LONGEST_ID else _digested(value)


def first_identifier(*values: Any) -> str | None:
    """Read the first non-empty string among these as an id."""
    return identifier(first_text(*values))


def plain_id(text: str) -> str:
    """Return the id under which a session is known, given the log's own: `[A-Za-z0-9._-]{1,64}`, else a digest.

    It appears in our sentences, commands and references, so people must be able to type it, and it must read as
    nothing but an id.
    """
    known = identifier(text) or ""
    return known if _SESSION_ID.fullmatch(known) else _digested(text)


@lru_cache(_REMEMBERED)
def _masked(text: str) -> str:
    return redact(text)


@lru_cache(_REMEMBERED)
def _identifier(text: str) -> str:
    return text if redact(text) == text else _digested(text)


def _digested(text: str) -> str:
    return f"id-{digest(text)}"
