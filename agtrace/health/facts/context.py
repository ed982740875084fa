"""The context window and the cache: when the context was compacted, and what the log says was missed of the cache."""

from __future__ import annotations

from collections import Counter

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.analysis import SessionFigures
from agtrace_schema.events import UserKind

from agtrace.health.facts.actions import is_api_error, is_compaction
from agtrace.health.facts.ending import unanswered
from agtrace.health.history import Call, Entry, History, Message, Notice, Usage, UserText, derived

CHARS_PER_TOKEN = 4
"""For estimating the tokens of texts: about right for English and for code."""


@derived
def compactions(history: History) -> list[Entry]:
    """Return the entries at which the context was replaced by a summary of it, in file order.

    One may be recorded twice, as a boundary and by its summary: if the model does nothing in between, both are the same
    compaction, unless there is a second boundary.
    """
    entries: list[Entry] = []
    told: set[bool] = set()
    for entry in history.entries:
        boundary = is_compaction(entry, history.provider)
        if boundary or (isinstance(entry, UserText) and entry.kind is UserKind.COMPACTION_SUMMARY):
            if not told or boundary in told:
                entries.append(entry)
                told = set()
            told.add(boundary)
        elif isinstance(entry, (Call, Message)) or (isinstance(entry, UserText) and entry.opens_turn):
            told = set()
    return entries


def figures(history: History) -> SessionFigures:
    """Return the counts that are no findings; those that are 0 are left out."""
    kinds, last = AGENTS[history.provider].notices.cache_misses, None
    missed = Counter[str]()
    paid = 0.0
    for entry in history.entries:
        if isinstance(entry, Usage):
            last = entry
        elif isinstance(entry, Notice) and entry.kind in kinds and last:
            reason, _, tokens = entry.text.partition(" ")
            if tokens.isdecimal():
                missed[reason] += int(tokens)
                paid += int(tokens) * last.missed_usd
    return SessionFigures(
        api_errors=sum(is_api_error(notice, history.provider) for notice in history.notices) or None,
        unanswered_calls=sum(1 for _ in unanswered(history)) or None,
        compactions=len(compactions(history)) or None,
        cache_missed_tokens=dict(missed.most_common()) or None,
        cache_missed_usd=round(paid, 4) or None,
    )
