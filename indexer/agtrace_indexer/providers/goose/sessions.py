"""The session: facts from its row in the database, or from the first line of its file."""

from __future__ import annotations

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import fields, first_text, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.goose.tokens import totals

_TITLE_RANK = 3
_UNNAMED = ("New Chat", "CLI Session", "New session")
"""What a session is called until it has a name."""


def is_head(record: Record) -> bool:
    """Whether a record is the first line of a file."""
    return isinstance(record.get("working_dir"), str) and "role" not in record and "message_count" in record


def note_session(told: Record, state: LogState) -> None:
    """Take the facts of a session. They may change at any time, and the newest count."""
    facts = state.sessions[""]
    facts.id = facts.id or identifier(told.get("id"))
    facts.cwd = facts.cwd or text(told.get("working_dir"))
    parent = identifier(told.get("parent_session_id"))
    kind = text(told.get("session_type"))
    if kind == "sub_agent" or parent is not None:
        facts.parent_id, facts.kind = parent, "subagent" if kind == "sub_agent" else "fork"
    state.memory["session_type"] = kind
    model = fields(told.get("model_config"))
    facts.model = text(model.get("model_name")) or facts.model
    title = first_text(told.get("name"), told.get("description"))
    if title and title not in _UNNAMED:
        facts.title, facts.title_rank = title, _TITLE_RANK


def read_head(record: Record, state: LogState) -> list[Said]:
    """Read the first line of a file, with the tokens of the whole session, which its messages don't have."""
    note_session(record, state)
    state.skipped.append("session")
    told = {name: record.get(f"accumulated_{name}", record.get(name)) for name in ("input_tokens", "output_tokens")}
    return [said for said in totals(told, state) if isinstance(said, Draft)]
