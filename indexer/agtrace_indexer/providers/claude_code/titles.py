"""Titles of sessions: a log's own session has some, and a session that has a certain line can have others."""

from __future__ import annotations

from collections.abc import Sequence

from agtrace_schema.events import Payload, User, UserKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.assembly import REQUESTS
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

_PROMPTING = later(
    r"(?s)\s*<command-message>[^<]*</command-message>\s*<command-name>([^<]{1,200})</command-name>\s*"
    r"<command-args>\s*([^<\s].*?)</command-args>"
)
"""A command that is a prompt, with what it was given; one that Claude Code carries out itself begins with its name."""

_NAMINGS_REMEMBERED = 256
_LONGEST_TITLE = 500
_LONGEST_COMMAND = 20_000


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


def note_request(said: Sequence[Payload], state: LogState) -> None:
    """Call a session by the command with arguments that it begins with, while nothing else names it.

    Such a command is what the human asks for, but only texts are requests (`User.kind`).
    """
    for user in said:
        if "asked" in state.memory or not isinstance(user, User):
            continue
        command = _PROMPTING.match(user.text[:_LONGEST_COMMAND]) if user.kind is UserKind.COMMAND else None
        facts = state.sessions[""]
        if command and not facts.title:
            facts.title = masked(" ".join(f"{command[1]} {command[2]}".split()))[:_LONGEST_TITLE]
        if command or user.kind in REQUESTS:
            state.memory["asked"] = True
