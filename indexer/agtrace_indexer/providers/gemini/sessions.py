"""The session: facts from a log's metadata, wherever they are."""

from __future__ import annotations

from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.events.json_values import first_text, items, text
from agtrace_indexer.events.strings import identifier

METADATA_KEYS = {
    "activeExtensionName",
    "directories",
    "kind",
    "lastUpdated",
    "memoryScratchpad",
    "messages",
    "projectHash",
    "sessionId",
    "startTime",
    "summary",
}
"""The keys that a `$set` can change."""

_SUMMARY_RANK = 3
"""Above 2, the rank of a title from another log."""


def is_metadata(record: Record) -> bool:
    """Whether a record or a document has the keys with which a session begins."""
    return isinstance(record.get("sessionId"), str) and isinstance(record.get("projectHash"), str)


def note_metadata(metadata: Record, state: LogState) -> None:
    """Take the facts about the session from metadata, or from a `$set` of some of them."""
    facts = state.sessions[""]
    facts.id = facts.id or identifier(metadata.get("sessionId"))
    facts.project_hash = identifier(metadata.get("projectHash")) or facts.project_hash
    facts.cwd = facts.cwd or first_text(*items(metadata.get("directories")))
    if metadata.get("kind") == "subagent":
        facts.kind = "subagent"
    title = text(metadata.get("summary"))
    if title and facts.title_rank <= _SUMMARY_RANK:
        facts.title, facts.title_rank = title, _SUMMARY_RANK
