"""One version of a message, divided into its drafts: what the user, the model and the CLI say."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, TypeAlias

from agtrace_schema.events import Message, Notification, Reasoning, User

from agtrace_indexer.events.drafts import Draft, LogState, Record, SessionFacts
from agtrace_indexer.events.json_values import fields, items, listed, milliseconds, text
from agtrace_indexer.providers.gemini.content import bodies, is_thought, joined_text
from agtrace_indexer.providers.gemini.tokens import usage_of
from agtrace_indexer.providers.gemini.tool_calls import calls_and_results, history_calls
from agtrace_indexer.providers.gemini.tool_results import history_result
from agtrace_indexer.providers.gemini.user_texts import user_kind
from agtrace_indexer.providers.notes import unknown

Parts: TypeAlias = dict[str, Draft]
"""The drafts of one message by the name of their part, in reading order."""

Hashes: TypeAlias = dict[str, dict[str, str]]
"""The current state: message id -> part -> hash of the payload, in the order of the messages."""

FIGURES = "usage"
"""The part of a message with its token usage."""

NOTICES = ("info", "error", "warning")
MODEL_TYPES = ("gemini", "model")  # "model" occurs in published fixtures of the first era
_MESSAGE_TYPES = ("user", *MODEL_TYPES, *NOTICES)


def unknown_record(record: Record, state: LogState) -> Notification:
    """Keep a message or a record of an unknown type; without a type, its first key stands for it."""
    return unknown(text(record.get("type")) or next(iter(record), "empty"), record, state)


def parts_of(record: Record, live: Hashes, state: LogState) -> Parts:
    """Divide one version of a message into its parts."""
    kind, when = record.get("type"), milliseconds(record.get("timestamp"))
    if kind not in _MESSAGE_TYPES:
        return {"info": Draft(unknown_record(record, state), when)}
    content = listed(record.get("content", record.get("parts")))  # `parts` in the fixtures with type `model`
    if kind in NOTICES:
        return {"info": Draft(Notification(kind, joined_text(content)), when)}
    if kind == "user":
        return _user_parts(content, when, state.sessions[""]) | _answers(record["id"], content, when, live)
    state.sessions[""].model = text(record.get("model")) or state.sessions[""].model
    return _model_parts(record, content, when)


def _user_parts(content: list[Any], when: int | None, facts: SessionFacts) -> Parts:
    said = joined_text(content)
    return {"text": Draft(User(said, user_kind(said.strip(), facts)), when)} if said.strip() else {}


def _answers(message_id: str, content: list[Any], when: int | None, live: Hashes) -> Parts:
    """Return the results in a user message, as in the history of the API."""
    found: Parts = {}
    for n, response in enumerate(bodies(content, "functionResponse")):
        result = history_result(response)
        part = f"result.{result.call_id or n}"
        if result.call_id is None or not _is_answered(part, message_id, live):
            found[part] = Draft(result, when)
    return found


def _is_answered(part: str, message_id: str, live: Hashes) -> bool:
    """Whether an earlier message has the result of a call already.

    After a compression the CLI writes the API history as messages: the answer is then both in `toolCalls` and in a
    user message of its own (`updateMessagesFromHistory`).
    """
    earlier = takewhile(lambda entry: entry[0] != message_id, live.items())
    return any(part in parts for _, parts in earlier)


def _model_parts(record: Record, content: list[Any], when: int | None) -> Parts:
    """Divide a response into thoughts, text, calls, tokens and the results of the calls."""
    found = _reasoning(record, content, when)
    said = joined_text(content)
    if said.strip():
        found["text"] = Draft(Message(said), when, record["id"])
    calls, results = calls_and_results(record, when)
    found |= calls if items(record.get("toolCalls")) else history_calls(record["id"], content, when)
    usage = usage_of(record, says_something=bool(found))
    if usage:
        found[FIGURES] = Draft(usage, when, record["id"])
    return found | results


def _reasoning(record: Record, content: list[Any], when: int | None) -> Parts:
    """Return the thoughts with their own times, then those that a checkpoint keeps in the content."""
    told = [(_thought(t), milliseconds(fields(t).get("timestamp"))) for t in items(record.get("thoughts"))]
    told += [(text(part.get("text")) or "", None) for part in content if is_thought(part)]
    return {
        f"thought.{n}": Draft(Reasoning(said), own_time or when, record["id"])
        for n, (said, own_time) in enumerate(told)
        if said
    }


def _thought(thought: Any) -> str:
    if isinstance(thought, str):
        return thought
    said = (text(fields(thought).get(key)) for key in ("subject", "description"))
    return "\n".join(filter(None, said))
