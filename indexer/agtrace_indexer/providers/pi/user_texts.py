"""Texts in the user's role: who speaks in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from agtrace_schema.events import User, UserKind

from agtrace_indexer.events.drafts import LogState

Speakers: TypeAlias = Callable[[str, LogState], list[User]]
"""Divides a text of the user's role by who speaks in it."""


def plain(said: str, state: LogState) -> list[User]:
    """Return a text as the user's own, or in a sub-agent, as that of the agent that started it."""
    return [User(said, request_kind(state))] if said.strip() else []


def request_kind(state: LogState) -> UserKind:
    """Return the kind of a plain text in the user's role."""
    return UserKind.TASK if state.sessions[""].kind == "subagent" else UserKind.HUMAN
