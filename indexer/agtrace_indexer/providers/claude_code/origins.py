"""The origin of a log: its first chain line shows whether it continues another log or copies one.

Nothing precedes that line, so the parent that it names is in another log, or nowhere. Only the first line
decides: a later line with an unknown parent has lost it, which says nothing about the log (tests/known_bugs.md, 25).
"""

from __future__ import annotations

from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.events.json_values import fields
from agtrace_indexer.events.strings import first_identifier, identifier


def note_origin(record: Record, state: LogState) -> None:
    """Note the origin of a log by the first chain line of its own session."""
    if "began" in state.memory:
        return
    state.memory["began"] = True
    facts = state.sessions[""]
    parent = first_identifier(record.get("parentUuid"), record.get("logicalParentUuid"))
    facts.continues = None if parent == identifier(record.get("uuid")) else parent
    if facts.kind != "main":
        return
    origin = identifier(fields(record.get("forkedFrom")).get("sessionId"))
    if origin is not None or record.get("sessionKind") == "bg":
        facts.kind = "fork"
    if origin != facts.id:
        facts.parent_id = origin
