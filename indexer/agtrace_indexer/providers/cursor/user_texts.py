"""Texts in the user's role: what the user typed, in `<user_query>`, and what Cursor put around it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agtrace_schema.events import User, UserKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.json_values import fields, milliseconds, text

_QUERY = later(r"<user_query>\n?(.*?)\n?(?:</user_query>|\Z)", re.DOTALL)
_TAGGED = "<user_query>"
_TIME = later(r"<timestamp>([^<]{1,64})</timestamp>")
_FOLDER = later(r"(?m)^Workspace Path: (\S[^\n]{0,4000})$")


def user_texts(said: str, state: LogState) -> list[User]:
    """Separate what was typed from what was injected, in the order of the text.

    A text without the tag is injected, unless nothing in the log had it so far: in a sub-agent's log, and in the
    transcripts of some versions, requests have none. What begins with another tag is injected anyway.
    """
    facts = state.sessions[""]
    if facts.cwd is None and (folder := _FOLDER.search(said)):
        facts.cwd = folder[1].strip()
    if _TAGGED not in said:
        typed = not state.memory.get("tagged") and not said.lstrip().startswith("<")
        return [User(said, _speaker(state) if typed else UserKind.INJECTED)] if said.strip() else []
    state.memory["tagged"] = True
    found: list[User] = []
    end = 0
    for query in _QUERY.finditer(said):
        found += _injected(said[end : query.start()])
        found += [User(query[1], _speaker(state))] if query[1].strip() else []
        end = query.end()
    return [*found, *_injected(said[end:])]


def time_in(blocks: Iterable[Any]) -> int | None:
    """Return the time that some versions put into a request, in milliseconds since 1970 UTC; None if there is none."""
    texts = (text(fields(block).get("text")) or "" for block in blocks)
    return next((milliseconds(found[1].strip()) for said in texts if (found := _TIME.search(said))), None)


def _injected(said: str) -> list[User]:
    return [User(said.strip(), UserKind.INJECTED)] if said.strip() else []


def _speaker(state: LogState) -> UserKind:
    return UserKind.TASK if state.sessions[""].kind == "subagent" else UserKind.HUMAN
