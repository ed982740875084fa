"""The short strings of a log: names, ids, places. Each is masked before anything cuts, keeps or compares it.

Most of them recur on every line, so what became of the last few thousand is remembered; whoever begins to read logs
calls `start`, as the rules for secrets may have changed since.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from agtrace_indexer.events.json_values import digest, first_text
from agtrace_indexer.redact import redact

_REMEMBERED = 16_384
_LONGEST_REMEMBERED = 256
_LONGEST_ID = 256
_SESSION_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_is_usual = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:toolu|srvtoolu|msg|req|call|fc|ctc|rs|resp)_[0-9A-Za-z]{1,64}"
).fullmatch
"""What agents call lines, responses and calls: nothing in it is looked for."""


def start() -> None:
    """Forget what became of strings by the rules that were in use before."""
    _masked.cache_clear()
    _identifier.cache_clear()


def masked(text: str) -> str:
    """A text without its secrets; for texts that recur."""
    return _masked(text) if len(text) <= _LONGEST_REMEMBERED else redact(text)


def masked_json(value: Any) -> Any:
    """A JSON value whose keys and texts are masked, each for itself."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [masked_json(item) for item in value]
    if isinstance(value, dict):
        return {masked(key): masked_json(item) for key, item in value.items()}
    return value


def identifier(value: Any) -> str | None:
    """Read an id; None where it is no text, or empty.

    One that holds a secret, or is too long to be one, becomes a digest: two of them stay two, and each stays itself.
    """
    if not isinstance(value, str) or not value:
        return None
    if _is_usual(value):
        return value
    return _identifier(value) if len(value) <= _LONGEST_ID else _digested(value)


def first_identifier(*values: Any) -> str | None:
    """Read the first of these that is an id."""
    return identifier(first_text(*values))


def plain_id(text: str) -> str:
    """What a session is called whose log calls it so: `[A-Za-z0-9._-]{1,64}`, else a digest.

    It stands in sentences, commands and references of ours: it must be typed, and read as nothing but an id.
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
