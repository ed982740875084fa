"""The beginnings of texts and arguments, for previews, or what a question is about.

They are redacted before they are cut, and come with their full length.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from agtrace_indexer.redact import redact, redact_json
from agtrace_schema.answers import Pruning
from agtrace_schema.model import dump

from agtrace.settings.limits import limits
from agtrace.shaping.focusing import MOST_CHARS, applied, focused, gaps, refused
from agtrace.shaping.json_values import flattened, shortened
from agtrace.text.focus import Focused
from agtrace.text.lines import cut, without_controls

_LOOKED_AT = 8_000  # characters of a text, far beyond the cut: half a secret isn't recognized
_SEPARATORS = {0x2028: " ", 0x2029: " "}  # which would become newlines, and change the numbers of lines
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


class FocusedQuotes(Quotes):
    """Quotes of what a question is about, for one page. A text that it tells nothing about has its beginning quoted."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._left = MOST_CHARS
        self._found: dict[int, Focused | Pruning] = {}

    def quote(self, event_index: int, text: str, key: str = "text") -> dict[str, Any]:
        """Return what is shown of the text of an event; lines left out have the numbers of get_event_details."""
        longest = limits().settings.limits.max_string_length
        if len(text) <= longest:
            return beginning(text, key)
        found = self._found[event_index] = self._focused(text, longest)
        if isinstance(found, Pruning):
            return beginning(text, key)
        return {key: without_controls(found.text.translate(_SEPARATORS)), "chars": len(text)}

    def told(self, event_indices: Iterable[int | None]) -> dict[str, Any]:
        """Return what became of the question for the texts of these events."""
        found = [self._found[index] for index in event_indices if index in self._found]
        kept = [one for one in found if isinstance(one, Focused)]
        if kept:
            return applied(sum(one.kept_lines for one in kept), sum(one.total_lines for one in kept))
        why = next((one for one in found if isinstance(one, Pruning)), refused(0))
        return dump(why or Pruning(reason="not_prunable", summary="no long text"))

    def first_gap(self, event_index: int | None) -> tuple[int, int, int] | None:
        """Return an event and the numbers of the first lines left out of its text, of this one if possible."""
        kept = {index: found for index, found in self._found.items() if isinstance(found, Focused)}
        if not kept:
            return None
        chosen = event_index if event_index in kept else next(iter(kept))
        return (chosen, *gaps(kept[chosen])[0])

    def _focused(self, text: str, most: int) -> Focused | Pruning:
        why = refused(len(text) + MOST_CHARS - self._left)
        if why is not None:
            return why
        self._left -= len(text)
        return focused(redact(text), self._question, most, size=len)


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
