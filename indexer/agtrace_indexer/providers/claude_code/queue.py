"""Prompts that are typed while the agent works: they wait in a queue, of which the log keeps the operations.

`enqueue` has the text. `dequeue` sends the first one: it comes again as a user line. `popAll` gives all
back to the editor. `remove` is written where the run at hand takes one up: since 2.1.91 it then stands
in an attachment `queued_command`, before that nowhere else.
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
"""How a queued command and a queued notice of a task begin."""


def taken_up(operation: str | None, said: str, state: LogState) -> list[User]:
    """Follow the queue; give the prompt that a run took up where no other line has it."""
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
