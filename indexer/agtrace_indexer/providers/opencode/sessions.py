"""The session: facts from its row, its file, or the head of an export."""

from __future__ import annotations

import re

from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record, SessionFacts
from agtrace_indexer.events.json_values import text
from agtrace_indexer.events.strings import identifier

_UNTITLED = later(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")
"""The beginning of the title that a session has until the model found one."""

_SUB_AGENT = later(r"(.*?)\s*\(@([^()\s]{1,80}) subagent\)\s*\Z", re.S)
_FORK = later(r"\(fork #\d+\)\s*\Z")
_LONGEST_TITLE = 2_000
_RANK = 3
"""Of a title that the log itself gives its session."""


def note_session(session: Record, facts: SessionFacts) -> None:
    """Take the facts about a session; one with a parent is a sub-agent's."""
    facts.id = facts.id or identifier(session.get("id"))
    facts.cwd = facts.cwd or text(session.get("directory"))
    facts.version = text(session.get("version")) or facts.version
    title = (text(session.get("title")) or "")[:_LONGEST_TITLE]
    if session.get("parentID"):
        _note_parent(session, title, facts)
    elif _FORK.search(title):
        facts.kind = "fork"
    if title and not _UNTITLED.match(title):
        facts.title, facts.title_rank = title, _RANK


def _note_parent(session: Record, title: str, facts: SessionFacts) -> None:
    facts.kind = "subagent"
    parent = identifier(session["parentID"])
    if parent != "REDACTED":  # by which Entire replaces some ids in exports
        facts.parent_id = parent
    named = _SUB_AGENT.match(title)
    if named:
        facts.description, facts.agent_type = named[1] or None, named[2]
    facts.agent_type = facts.agent_type or text(session.get("agent"))
