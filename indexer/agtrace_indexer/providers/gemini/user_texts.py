"""Texts in the user's role: who speaks in them."""

from __future__ import annotations

from agtrace_schema.events import UserKind

from agtrace_indexer.events.drafts import SessionFacts

_INJECTED = (
    "<session_context>",
    "<hook_context>",
    "System: Please continue.",
    "This is the Gemini CLI. We are setting up the context for our chat.",
)


def user_kind(said: str, facts: SessionFacts) -> UserKind:
    """Tell turns from the rest by the CLI's own `isIgnoredUserContent`, and by the two texts it sends itself.

    `System: Please continue.` retries an empty response [data]; the set-up text opens old checkpoints.
    """
    if said.startswith(("/", "?")):
        return UserKind.COMMAND
    if said.startswith("<state_snapshot>"):
        return UserKind.COMPACTION_SUMMARY
    if said.startswith(_INJECTED):
        return UserKind.INJECTED
    return UserKind.TASK if facts.kind == "subagent" else UserKind.HUMAN
