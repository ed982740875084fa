"""Titles of sessions: a log's own session has some, and a session that has a certain line can have others."""

from __future__ import annotations

from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.events.json_values import text
from agtrace_indexer.events.strings import identifier, masked
from agtrace_indexer.providers.notes import remember

TITLES: dict[str, tuple[str, int]] = {
    "custom-title": ("customTitle", 4),
    "ai-title": ("aiTitle", 3),
    "summary": ("summary", 1),
    "agent-name": ("agentName", 1),
}
"""The keys of titles and how good they are (indexer/README.md); 2 is a title from another log."""

_NAMINGS_REMEMBERED = 256
_LONGEST_TITLE = 500


def note_title(record: Record, state: LogState) -> None:
    """Take a session's title unless the known one is better; among equals the last one wins."""
    key, rank = TITLES[record["type"]]
    title, facts = text(record.get(key)), state.sessions[""]
    if title and rank >= facts.title_rank:
        facts.title, facts.title_rank = title, rank


def note_summary(record: Record, state: LogState) -> None:
    """Take a summary as the title of the session that has its leaf, which is often another one.

    A summary without a leaf can only be meant for its own session.
    """
    leaf, title = identifier(record.get("leafUuid")), text(record.get("summary"))
    if leaf is None:
        note_title(record, state)
    elif title:
        remember(state.sessions[""].namings, leaf, masked(title)[:_LONGEST_TITLE], _NAMINGS_REMEMBERED)
