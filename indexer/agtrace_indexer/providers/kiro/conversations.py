"""A conversation as Amazon Q and Kiro CLI 1 kept it: one JSON object with a history of exchanges.

`transcript` repeats the history as text, and `additional_context` is what hooks added to a request: neither is read.
"""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Message, Notification, Payload, ToolCall, User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import compact_json, digest, fields, items, milliseconds, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.kiro.tool_results import parts_of, result_of
from agtrace_indexer.providers.notes import skip, unknown

ABOUT, EXCHANGE = "$conversation", "$exchange"
"""The keys of the records that are made of a conversation: facts, and a request with its response."""

FOLDER = "$folder"
"""Where the first of them has the folder, which is beside the conversation in a database."""

_REPEATED = ("history", "transcript")


def is_conversation(document: Any) -> bool:
    """Whether this is a conversation."""
    told = fields(document)
    entries = told.get("history")
    return (
        isinstance(told.get("conversation_id"), str)
        and isinstance(entries, list)
        and all(fields(entry).keys() >= {"user", "assistant"} for entry in entries)
    )


def records_of(conversation: Record, folder: str | None = None) -> list[Record]:
    """Return a conversation as records: what it says about itself, and one for each exchange."""
    about = {key: value for key, value in conversation.items() if key not in _REPEATED}
    return [{ABOUT: {**about, FOLDER: folder}}, *({EXCHANGE: entry} for entry in conversation["history"])]


def summary_of(conversation: Record) -> str | None:
    """Return the summary that took the place of earlier exchanges: the first of `latest_summary`, or all of it."""
    found = conversation.get("latest_summary")
    return text(found[0] if isinstance(found, list) and found else found)


def read_about(about: Record, state: LogState) -> list[Draft]:
    """Take the facts of a conversation; a new summary means that what it sums up is gone."""
    facts, model = state.sessions[""], fields(about.get("model_info"))
    facts.id = facts.id or identifier(about.get("conversation_id"))
    facts.cwd = facts.cwd or text(about.get(FOLDER))
    facts.model = (
        facts.model or text(model.get("model_id")) or text(model.get("model_name")) or text(about.get("model"))
    )
    summary = summary_of(about)
    if summary is None or state.memory.get("summary") == digest(summary):
        return skip("conversation", state)
    state.memory["summary"] = digest(summary)
    compaction = Draft(Notification("compaction", ""), None)
    return [compaction, Draft(User(summary, UserKind.COMPACTION_SUMMARY), None)]


def read_exchange(entry: Record, state: LogState) -> list[Draft]:
    """Read a request, or the results that were sent in place of one, and the response to it."""
    user, told = fields(entry.get("user")), fields(entry.get("request_metadata"))
    place = fields(fields(user.get("env_context")).get("env_state")).get("current_working_directory")
    facts = state.sessions[""]
    facts.cwd = facts.cwd or text(place)
    facts.model = text(told.get("model_id")) or facts.model
    asked = [Draft(payload, milliseconds(user.get("timestamp"))) for payload in _asked(user.get("content"), state)]
    kind, answer = _variant(entry.get("assistant"))
    named = identifier(answer.get("message_id")) or identifier(told.get("message_id"))
    at = milliseconds(told.get("stream_end_timestamp_ms"))
    step = named or f"exchange-{_number(state)}"
    answered = [Draft(payload, at, step) for payload in _answered(kind, answer, entry, state)]
    for n, draft in enumerate([*asked, *answered]):
        draft.identity = f"{named}/{n}" if named else None
    return asked + answered or skip("exchange/empty", state)


def _number(state: LogState) -> int:
    state.memory["exchanges"] = state.memory.get("exchanges", 0) + 1
    return int(state.memory["exchanges"])


def _variant(value: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the content of `{"Name": {...}}`."""
    told = fields(value)
    name = next(iter(told), "")
    return name, fields(told.get(name))


def _asked(content: Any, state: LogState) -> list[Payload]:
    if content is None:  # cut out of published copies
        return []
    kind, told = _variant(content)
    if kind not in ("Prompt", "ToolUseResults", "CancelledToolUses"):
        return [unknown(f"user.{kind or 'content'}", content, state)]
    results = map(fields, items(told.get("tool_use_results")))
    made: list[Payload] = [
        result_of(result.get("tool_use_id"), result.get("status"), parts_of(result.get("content")))
        for result in results
    ]
    prompt = told.get("prompt")
    if isinstance(prompt, str) and prompt.strip():
        made.append(User(prompt, UserKind.HUMAN))
    return made


def _answered(kind: str, answer: dict[str, Any], entry: Record, state: LogState) -> list[Payload]:
    if kind not in ("Response", "ToolUse"):
        return [] if entry.get("assistant") is None else [unknown(f"assistant.{kind}", entry["assistant"], state)]
    said = answer.get("content")
    made: list[Payload] = [Message(said if isinstance(said, str) else compact_json(said))] if said else []
    for call in map(fields, items(answer.get("tool_uses"))):
        name = text(call.get("name")) or text(call.get("orig_name")) or "unknown"
        made.append(ToolCall(identifier(call.get("id")), name, call.get("args", call.get("orig_args"))))
    return made
