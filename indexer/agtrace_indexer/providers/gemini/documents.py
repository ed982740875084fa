"""Whole-file documents as the lines of a session: JSON sessions, and the histories of `/chat save` checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import fields, items, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.gemini.messages import MODEL_TYPES

REWRITTEN = "$rewritten"
"""Marks the patch of a rewritten document: its earlier contents can't be read any more, so they mustn't count."""

_MADE_UP = later(r"(?:message|history)-[0-9]+")


def message_id(told: str) -> str:
    """Return the id of a message, even if it has no letters."""
    return identifier(told) or ""


def is_made_up(message_id: str) -> bool:
    """Whether a message's id is only its position in a document, which means nothing outside it."""
    return _MADE_UP.fullmatch(message_id) is not None


def without(record: Record, key: str) -> Record:
    """Return a record without one of its keys."""
    return {k: v for k, v in record.items() if k != key}


def identified(messages: list[Any]) -> list[Record]:
    """Give every message an id (its position if the log has none), and wrap anything that isn't an object."""
    records = (m if isinstance(m, dict) else {"type": "unreadable", "value": m} for m in messages)
    return [
        {**record, "id": message_id(record["id"]) if isinstance(record.get("id"), str) else f"message-{n}"}
        for n, record in enumerate(records)
    ]


def as_patch(records: list[Record]) -> list[Record]:
    """Return the records of a rewritten document as a single patch of its previous session."""
    head, *messages = records
    return [{"$set": {**fields(head.get("$set", head)), "messages": messages}, REWRITTEN: True}]


def is_history(history: Any) -> bool:
    """Whether this is a history of API turns: roles and lists of parts."""
    return bool(items(history)) and all(
        fields(turn).get("role") in ("user", *MODEL_TYPES) and isinstance(turn.get("parts"), list) for turn in history
    )


def history_messages(history: list[Record]) -> Iterator[Record]:
    """Turn API turns into messages. Calls without an id get one, and answers get the same in the order of the calls."""
    open_calls: list[str] = []
    for n, turn in enumerate(history):
        parts = [_with_call_id(part, f"history-{n}.{k}", open_calls) for k, part in enumerate(turn["parts"])]
        kind = "user" if turn["role"] == "user" else "gemini"
        yield {"id": f"history-{n}", "type": kind, "timestamp": turn.get("ts"), "content": parts}


def _with_call_id(part: Any, new_id: str, open_calls: list[str]) -> Any:
    for key in ("functionCall", "functionResponse"):
        body = fields(part).get(key)
        if isinstance(body, dict) and not text(body.get("id")):
            if key == "functionCall":
                open_calls.append(new_id)
            elif open_calls:
                new_id = open_calls.pop(0)
            return {**part, key: {**body, "id": new_id}}
    return part
