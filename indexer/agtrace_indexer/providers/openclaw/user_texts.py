"""Texts in the user's role: OpenClaw writes schedules, heartbeats, events and metadata into them."""

from __future__ import annotations

import re

from agtrace_schema.events import User, UserKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.providers.pi.user_texts import request_kind

_INJECTED = ("[cron:", "Read HEARTBEAT.md", "A new session was started via /new or /reset")
"""The beginnings of texts that nobody typed."""

_ENVELOPE = later(
    r"\s*(?:System: \[[^\n]{0,2000}(?:\n|\Z)"
    r"|[A-Z][A-Za-z ]{0,60} \(untrusted[^)\n]{0,60}\):\s{0,9}```(?:json)?\n.{0,20000}?\n```\s{0,9})",
    re.DOTALL,
)
"""An event, or metadata in a fence, before what somebody wrote."""

_MOST_ENVELOPES = 16


def speakers(said: str, state: LogState) -> list[User]:
    """Divide a text into what OpenClaw put before it, and what somebody wrote."""
    before, rest = _peeled(said)
    told = [User(before, UserKind.INJECTED)] if before.strip() else []
    if not rest.strip():
        return told
    kind = UserKind.INJECTED if rest.lstrip().startswith(_INJECTED) else request_kind(state)
    return [User(said, UserKind.INJECTED)] if told and kind is UserKind.INJECTED else [*told, User(rest, kind)]


def _peeled(said: str) -> tuple[str, str]:
    end = 0
    for _ in range(_MOST_ENVELOPES):
        found = _ENVELOPE.match(said, end)
        if found is None:
            break
        end = found.end()
    return said[:end].rstrip(), said[end:].lstrip() if end else said
