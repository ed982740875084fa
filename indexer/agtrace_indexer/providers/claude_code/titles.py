"""Titles of sessions: those that a log gives to its own session, and those that it gives to the holder of a line."""

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
"""Where titles stand and how good they are (indexer/README.md); 2 is what another log calls the session."""

_NAMINGS_REMEMBERED = 256
_LONGEST_TITLE = 500


def note_title(record: Record, state: LogState) -> None:
    """Take a session's title where it is no worse than what is known; among equals the last wins."""
    key, rank = TITLES[record["type"]]
    title, facts = text(record.get(key)), state.sessions[""]
    if title and rank >= facts.title_rank:
        facts.title, facts.title_rank = title, rank


def note_summary(record: Record, state: LogState) -> None:
    """Take a summary as the title of the session that holds its leaf, which is often another one.

    A summary without a leaf can only be meant for its own session.
    """
    leaf, title = identifier(record.get("leafUuid")), text(record.get("summary"))
    if leaf is None:
        note_title(record, state)
    elif title:
        remember(state.sessions[""].namings, leaf, masked(title)[:_LONGEST_TITLE], _NAMINGS_REMEMBERED)
