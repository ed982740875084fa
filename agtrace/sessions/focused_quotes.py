"""What a question is about in texts, in place of their beginnings. Loaded only for an answer with a question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agtrace_indexer.redact import redact
from agtrace_schema.answers import Pruning
from agtrace_schema.model import dump

from agtrace.sessions.quotes import Quotes, beginning
from agtrace.settings.limits import limits
from agtrace.shaping.focusing import MOST_CHARS, applied, focused, gaps, refused
from agtrace.text.focus import Focused
from agtrace.text.lines import without_controls

_SEPARATORS = {0x2028: " ", 0x2029: " "}  # which would become newlines, and change the numbers of lines


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
