"""Reviews of what the model had changed, by another model, and the problems that they found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later

from agtrace.health.facts.changes import has_changes
from agtrace.health.history import Call, History, Notice

_TITLE = later(r'"title": ?"((?:[^"\\]|\\.)+)"')


class Review(NamedTuple):
    """A review that found something."""

    event_index: int
    turn: int | None
    problems: tuple[str, ...]
    """The titles of what it found, as the log has them; not those in the middle of a very long review."""


def reviews(history: History) -> list[Review]:
    """Return the reviews that found something in what this session had changed, in file order."""
    found: list[Review] | None = history.derived.get("reviews")
    if found is None:
        found = history.derived["reviews"] = list(_reviews(history))
    return found


def _reviews(history: History) -> Iterator[Review]:
    kinds, changed = AGENTS[history.provider].notices.reviews, False
    for entry in history.entries if kinds else ():
        if isinstance(entry, Call):
            changed |= entry.outcome is Outcome.OK and has_changes(entry)
        elif changed and isinstance(entry, Notice) and entry.kind in kinds:
            problems = tuple(_TITLE.findall(entry.text))
            if problems:
                yield Review(entry.event_index, entry.turn, problems)
