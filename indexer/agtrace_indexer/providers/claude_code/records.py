"""Every type of line, with its reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agtrace_indexer.events.drafts import LogState, Record, Said
from agtrace_indexer.providers.claude_code import messages, notices

READERS: dict[str, Callable[[Record, LogState], Sequence[Said]]] = {
    "assistant": messages.assistant_line,
    "attachment": notices.attachment,
    "message": messages.wrapped_message,
    "progress": notices.progress,
    "queue-operation": notices.queue_operation,
    "summary": notices.summary,
    "system": notices.system,
    "tool_result": messages.bare_result_line,
    "user": messages.user_line,
    **dict.fromkeys(notices.BOOKKEEPING, notices.bookkeeping),
    **dict.fromkeys(notices.POINTERS, notices.pointer),
}
