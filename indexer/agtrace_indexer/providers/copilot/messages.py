"""What users and models say."""

from __future__ import annotations

from agtrace_schema.events import Message, Reasoning, User

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import count, digest, fields, items, text
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.copilot.envelope import Entry
from agtrace_indexer.providers.copilot.tokens import response_usage
from agtrace_indexer.providers.copilot.tool_calls import requested
from agtrace_indexer.providers.copilot.user_texts import user_kind
from agtrace_indexer.providers.notes import remember, skip

_THREADS_REMEMBERED = 64


def user_message(entry: Entry, state: LogState) -> list[Said]:
    """Read a text in the user's role: what was typed, without the reminders that the model was given with it."""
    state.memory.get("ahead", {}).pop(entry.thread, None)
    said = text(entry.data.get("content")) or _attached(entry.data)
    if not said:
        return [*skip("user.message without content", state)]
    return [Draft(User(said, user_kind(said, entry)), entry.at, thread=entry.thread)]


def _attached(data: Record) -> str:
    """Return the names of the attachments, which are all there is to say of a message without a text."""
    named = map(fields, items(data.get("attachments")))
    names = (text(one.get("displayName")) or text(one.get("path")) for one in named)
    return "\n".join(f"[attachment: {name}]" for name in names if name)


def assistant_message(entry: Entry, state: LogState) -> list[Said]:
    """Read a response, or one chunk of it: thoughts, a text, calls, and the tokens of its output."""
    data = entry.data
    model = text(data.get("model"))
    if model:
        state.sessions[entry.thread].model = model
    step, part = _step(entry, state), _part(data)
    said: list[Said] = []
    thought = text(data.get("reasoningText"))
    hidden = thought is None and bool(text(data.get("reasoningOpaque")) or text(data.get("encryptedContent")))
    if hidden or (thought and not _is_told(thought, entry.thread, state)):
        said.append(_spoken(Reasoning(thought or ""), entry, step, part and f"{part}/thought"))
    if content := text(data.get("content")):
        said.append(_spoken(Message(content), entry, step, part))
    said += requested(entry, step, state)
    said += response_usage(entry, step, state)
    return said or [*skip(entry.kind, state)]


def reasoning(entry: Entry, state: LogState) -> list[Said]:
    """Read thoughts on a line of their own; the message after them, which may repeat them, is the same response."""
    thought = text(entry.data.get("content"))
    if not thought:
        return [*skip(entry.kind, state)]
    step = f"thought/{first_identifier(entry.data.get('reasoningId'), entry.id) or _number(state)}"
    remember(state.memory.setdefault("ahead", {}), entry.thread, [step, digest(thought)], _THREADS_REMEMBERED)
    return [_spoken(Reasoning(thought), entry, step, None)]


def _spoken(payload: Message | Reasoning, entry: Entry, step: str, key: str | None) -> Draft:
    return Draft(payload, entry.at, step, entry.thread, key)


def _step(entry: Entry, state: LogState) -> str:
    """Return the response that a message belongs to: chunks of one have the same id of the call to the API."""
    response = first_identifier(entry.data.get("apiCallId"), entry.data.get("messageId"), entry.id)
    ahead = state.memory.get("ahead", {})
    step, *rest = ahead.get(entry.thread, (None,))
    if len(rest) == 1:  # thoughts that no message has taken up yet
        ahead[entry.thread] = [step, *rest, response]
    elif not rest or response is None or rest[1] != response:
        ahead.pop(entry.thread, None)
        step = response or _number(state)
    remember(state.memory.setdefault("steps", {}), entry.thread, step, _THREADS_REMEMBERED)
    return str(step)


def _is_told(thought: str, thread: str, state: LogState) -> bool:
    """Whether a line of their own had the same thoughts."""
    ahead = state.memory.get("ahead", {}).get(thread)
    return ahead is not None and bool(ahead[1] == digest(thought))


def _part(data: Record) -> str | None:
    """Return what identifies a message: older versions write it again while it grows, newer ones in chunks."""
    message = identifier(data.get("messageId"))
    return message and f"{message}/{count(data.get('chunkIndex')) or 0}"


def _number(state: LogState) -> str:
    """Return a step for a response without any id."""
    state.memory["nameless"] = state.memory.get("nameless", 0) + 1
    return f"nameless-{state.memory['nameless']}"
