"""Texts in the user's role: who speaks in them."""

from __future__ import annotations

from agtrace_schema.events import UserKind

from agtrace_indexer.events.drafts import SessionFacts

INJECTED = (
    "<session_context>",
    "<hook_context>",
    "System: Please continue.",
    "This is the Gemini CLI. We are setting up the context for our chat.",
)
"""The beginnings of texts that the CLI writes itself."""


def user_kind(said: str, facts: SessionFacts) -> UserKind:
    """Distinguish requests from the rest by the CLI's own `isIgnoredUserContent` and two texts that it sends itself.

    `System: Please continue.` retries an empty response (seen in logs); the set-up text begins old checkpoints.
    """
    if said.startswith(("/", "?")):
        return UserKind.COMMAND
    if said.startswith("<state_snapshot>"):
        return UserKind.COMPACTION_SUMMARY
    if said.startswith(INJECTED):
        return UserKind.INJECTED
    return UserKind.TASK if facts.kind == "subagent" else UserKind.HUMAN
