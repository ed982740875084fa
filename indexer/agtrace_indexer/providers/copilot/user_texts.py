"""Texts in the user's role: who speaks in them."""

from __future__ import annotations

from agtrace_schema.events import UserKind

from agtrace_indexer.events.json_values import text
from agtrace_indexer.providers.copilot.envelope import Entry

_INJECTED = ("<skill-context", "<reminder>", "<system_reminder>")
_NOTIFICATION = "<system_notification>"
_OF_A_HUMAN = (None, "user")
_OF_AN_AGENT = "agent-"


def user_kind(said: str, entry: Entry) -> UserKind:
    """Tell requests from what was injected: by its source, by a flag, or by the beginning of its text.

    A source is `user`, `agent-<session id>`, `skill-<name>`, `system`, `command-<...>` or a schedule; most texts of
    humans have none. In a sub-agent, its parent speaks.
    """
    start, source = said.lstrip(), text(entry.data.get("source"))
    if start.startswith(_NOTIFICATION):
        return UserKind.NOTIFICATION
    if entry.data.get("isAutopilotContinuation") is True or start.startswith(_INJECTED):
        return UserKind.INJECTED
    if entry.thread:
        return UserKind.TASK if source in _OF_A_HUMAN or source.startswith(_OF_AN_AGENT) else UserKind.INJECTED
    return UserKind.HUMAN if source in _OF_A_HUMAN else UserKind.INJECTED
