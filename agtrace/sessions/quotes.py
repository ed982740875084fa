"""The beginnings of texts and arguments, for previews.

They are redacted before they are cut, and come with their full length.
"""

from __future__ import annotations

from typing import Any

import orjson
from agtrace_indexer.redact import redact, redact_json

from agtrace.settings.limits import limits
from agtrace.shaping.json_values import flattened, shortened
from agtrace.text.lines import cut, without_controls

_LOOKED_AT = 8_000  # characters of a text, far beyond the cut: half a secret isn't recognized
_SHORTEST = 20  # characters of an argument


def seen(text: str) -> str:
    """Return the beginning of a text, longer than any preview, without control characters and secrets."""
    return redact(_readable(text))


def beginning(text: str, key: str = "text") -> dict[str, Any]:
    """Return the first characters of a text as `key`, and its full length as `chars` if it was cut."""
    start = seen(text)
    shown = cut(start, limits().settings.limits.max_string_length)
    return {key: shown, "chars": len(text) if shown != start or len(text) > _LOOKED_AT else None}


class Quotes:
    """Quotes of the texts of events: their beginnings."""

    def quote(self, event_index: int, text: str, key: str = "text") -> dict[str, Any]:
        """Return what is shown of the text of an event, as `beginning` does."""
        return beginning(text, key)


def arguments_quote(arguments: Any) -> tuple[Any, int | None]:
    """Return a call's arguments with long values cut, and their full length as JSON if anything was."""
    longest = limits().settings.limits.max_string_length
    masked = flattened(redact_json(_readable(arguments)), limits().settings.limits.max_json_depth)
    if _size(masked) <= longest:
        return masked, None
    for most in range(longest, _SHORTEST, -_SHORTEST):
        short, _ = shortened(masked, most)
        if _size(short) <= longest:
            return short, _size(arguments)
    return cut(_json(short), longest), _size(arguments)


def _readable(value: Any) -> Any:
    """Return a JSON value without control characters, its texts cut far beyond what is shown."""
    if isinstance(value, str):
        return without_controls(value[:_LOOKED_AT])
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    return [_readable(item) for item in value] if isinstance(value, list) else value


def _size(value: Any) -> int:
    return len(_json(value))


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
