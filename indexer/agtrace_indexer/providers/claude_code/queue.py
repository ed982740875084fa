"""Prompts typed while the agent works: they wait in a queue, whose operations are in the log.

`enqueue` has the text. `dequeue` sends the first one, which is then repeated as a user line. `popAll` returns all
to the editor. `remove` is written when the current run takes one up: since 2.1.91 it is then repeated in an
attachment `queued_command`, before that nowhere.
"""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import User

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.strings import masked
from agtrace_indexer.providers.claude_code.sessions import request_kind
from agtrace_indexer.providers.claude_code.user_texts import user_texts
from agtrace_indexer.providers.claude_code.versions import is_older

_FIRST_WITH_ATTACHMENTS = (2, 1, 91)
_WAITING = 16
_LONGEST = 16_384
_NO_PROMPTS = ("/", '{"task_id"')
"""The beginnings of a queued command and of a queued notice of a task."""


def taken_up(operation: str | None, said: str, state: LogState) -> list[User]:
    """Follow the queue; return the prompt that a run took up if no other line has it."""
    waiting: list[Any] = state.memory.setdefault("queue", [])
    if operation == "enqueue":
        waiting.append(masked(said)[:_LONGEST])
        del waiting[:-_WAITING]
    elif operation == "popAll":
        waiting.clear()
    elif operation in ("dequeue", "remove") and waiting:
        first = waiting.pop(0)
        if operation == "remove" and is_older(state.sessions[""].version, _FIRST_WITH_ATTACHMENTS):
            return _prompts(first, state)
    return []


def _prompts(said: str, state: LogState) -> list[User]:
    plain = request_kind("", state)
    if said.startswith(_NO_PROMPTS):
        return []
    return [user for user in user_texts([said], {}, plain) if user.kind is plain]
