"""OpenClaw: Pi's format, with schedules, heartbeats and messages in the user's role (pi/README.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agtrace_schema.events import User, UserKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.providers.pi.parser import as_patch, begin, read_entry, request_kind, unroll

# -- user texts ------------------------------------------------------------------------------------
# Texts in the user's role: OpenClaw writes schedules, heartbeats, events and metadata into them.

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


# -- parser ----------------------------------------------------------------------------------------

__all__ = ["as_patch", "begin", "drafts", "recognizes", "unroll"]


def recognizes(_record: Record) -> bool:
    """Return False: a record is always Pi's, and the place of a log shows that OpenClaw wrote it."""
    return False


def drafts(record: Record, state: LogState) -> Sequence[Draft]:
    """Return the events of the next record; see `Parser.drafts`."""
    return read_entry(record, state, speakers)
