"""The lines outside the conversation: system lines, attachments, progress, side lines, and unknown ones.

They become notifications, or are left out by name if they repeat other lines or are only bookkeeping.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agtrace_schema.events import Notification, Payload

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import fields, first_text, listed, milliseconds, text
from agtrace_indexer.providers.claude_code.background import settlements, told_by_notice
from agtrace_indexer.providers.claude_code.content import joined_text, readable_json
from agtrace_indexer.providers.claude_code.deeds import link
from agtrace_indexer.providers.claude_code.origins import note_origin
from agtrace_indexer.providers.claude_code.queue import taken_up
from agtrace_indexer.providers.claude_code.sessions import is_inline, note_session, place, request_kind
from agtrace_indexer.providers.claude_code.titles import TITLES, note_summary, note_title
from agtrace_indexer.providers.claude_code.user_texts import user_texts
from agtrace_indexer.providers.claude_code.windows import note_window
from agtrace_indexer.providers.notes import skip, unknown

BOOKKEEPING = (
    "agent-name",
    "ai-title",
    "atis-latch",
    "bridge-session",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "worktree-state",
)
"""Lines that are left out, except for facts about the session."""

POINTERS: dict[str, tuple[str, ...]] = {
    "pr-link": ("prUrl", "prNumber"),
    "frame-link": ("frameUrl", "title"),
    "relocated": ("relocatedCwd",),
}
"""Lines that become notifications, with the keys shown in them."""

_ENVELOPE = frozenset(
    {
        *("type", "subtype", "level", "timestamp", "uuid", "parentUuid", "logicalParentUuid", "toolUseID"),
        *("sessionId", "session_id", "sessionKind", "slug", "agentId", "isSidechain", "isMeta"),
        *("cwd", "gitBranch", "version", "entrypoint", "userType"),
    }
)
"""The keys of a system line that aren't its content."""

_NOTHING: tuple[Any, ...] = (None, "", [])


def unknown_line(record: Record, state: LogState, kind: str, thread: str = "") -> list[Draft]:
    """Keep a line of an unknown type, or whose content isn't where its type should have it."""
    return [Draft(unknown(kind, record, state, readable_json), milliseconds(record.get("timestamp")), None, thread)]


def system(record: Record, state: LogState) -> list[Draft]:
    """Read a system line: its content, or else whatever it has besides its envelope."""
    thread = place(record, state)
    note_window(record.get("compactMetadata"), state)
    subtype = text(record.get("subtype"))
    said = text(record.get("content"))
    if said is None:
        rest = {key: record[key] for key in record if key not in _ENVELOPE and record[key] not in _NOTHING}
        said = readable_json(rest)
    elif "compactMetadata" in record:
        said = f"{said}\n{readable_json(record['compactMetadata'])}"
    payload = Notification(f"system/{subtype}" if subtype else "system", said)
    return [Draft(payload, milliseconds(record.get("timestamp")), None, thread)]


def attachment(record: Record, state: LogState) -> Sequence[Said]:
    """Read an attachment to a prompt; a queued command is itself a prompt."""
    thread = place(record, state)
    attached = record.get("attachment")
    if not isinstance(attached, dict):
        return unknown_line(record, state, "attachment", thread)
    payloads: list[Payload] = []
    kind = text(attached.get("type")) or "untyped"
    if kind == "queued_command":
        payloads += user_texts(listed(attached.get("prompt")), attached, request_kind(thread, state))
    if not payloads:
        rest = {key: value for key, value in attached.items() if key != "type"}
        payloads.append(Notification(f"attachment/{kind}", readable_json(rest)))
    time = milliseconds(record.get("timestamp"))
    ends = settlements(payloads, None, time, thread, state)
    return [*(Draft(payload, time, None, thread) for payload in payloads), *ends]


def progress(record: Record, state: LogState) -> list[Draft]:
    """Leave out progress: what an agent said meanwhile is in its own log (indexer/README.md)."""
    if not is_inline(record, state):
        note_origin(record, state)
    return skip(f"progress/{text(fields(record.get('data')).get('type')) or 'untyped'}", state)


def bookkeeping(record: Record, state: LogState) -> list[Draft]:
    """Leave out a bookkeeping line, and take its title if it has one."""
    note_session(record, state.sessions[""])
    if record["type"] in TITLES:
        note_title(record, state)
    return skip(record["type"], state)


def summary(record: Record, state: LogState) -> list[Draft]:
    """Read the summary of a conversation: a title for the session that has its last line."""
    note_summary(record, state)
    message = fields(record.get("message"))  # instead of `summary` if a tool rewrote the log
    said = first_text(record.get("summary"), record.get("text"), message.get("content"))
    return _side_line(record, state, "summary", readable_json(record) if said is None else said)


def queue_operation(record: Record, state: LogState) -> Sequence[Said]:
    """Keep what was queued: it is repeated when sent, as a user line, an attachment or here (`queue`).

    A notice of an execution's end is queued when it ends.
    """
    operation = text(record.get("operation"))
    kind = f"queue-operation/{operation}" if operation else "queue-operation"
    said, time = joined_text(record.get("content")), milliseconds(record.get("timestamp"))
    prompts = [Draft(prompt, time) for prompt in taken_up(operation, said, state)]
    if said:
        return [*_side_line(record, state, kind, said), *prompts, *told_by_notice(said, time, "", state)]
    note_session(record, state.sessions[""])
    return prompts or skip(kind, state)


def pointer(record: Record, state: LogState) -> list[Draft]:
    """Read a line that refers to something outside: a pull request, a frame, another directory."""
    named = (record.get(key) for key in POINTERS[record["type"]])
    said = " ".join(value if isinstance(value, str) else readable_json(value) for value in named if value is not None)
    (draft,) = _side_line(record, state, record["type"], said)
    draft.landmarks = link(record, state) if record["type"] == "pr-link" else ()
    return [draft]


def _side_line(record: Record, state: LogState, kind: str, said: str) -> list[Draft]:
    note_session(record, state.sessions[""])
    return [Draft(Notification(kind, said), milliseconds(record.get("timestamp")))]
