"""Tern's logs: lines `{"tern": <what>, "at": <milliseconds>}`, and documents `{"tern": "flight", "lines": [...]}`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction, Said
from agtrace_indexer.providers.notes import unknown
from agtrace_schema.events import (
    Message,
    Notification,
    Outcome,
    OutcomeSource,
    Payload,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)


def recognizes(record: Record) -> bool:
    """Whether a record is a line of Tern's."""
    return isinstance(record.get("tern"), str) and "at" in record


def unroll(document: Any) -> Iterable[Record] | None:
    """Return the lines of a finished flight."""
    if not isinstance(document, dict) or document.get("tern") != "flight":
        return None
    return [line for line in document["lines"] if isinstance(line, dict)]


def begin(path: PurePath) -> LogState:
    """Return an empty state, as the first line says whose log it is."""
    return LogState()


def drafts(record: Record, state: LogState) -> Iterable[Said]:
    """Return the event of the next line; all lines after a human's text belong to one step of the model."""
    if isinstance(record.get("line"), dict):
        record = {**record["line"], "key": record.get("key")}
    if record.get("tern") == "vanished":
        return [Retraction(record["keys"])]
    if record.get("tern") == "start":
        facts = state.sessions[""]
        facts.id, facts.cwd, facts.model = record.get("id"), record.get("cwd"), record.get("model")
        return []
    payload = _payload(record, state)
    step = None
    if isinstance(payload, User):
        state.memory["asked"] = state.memory.get("asked", 0) + 1
    elif isinstance(payload, (Message, ToolCall, TokenUsage)):
        step = str(record.get("step") or state.memory.get("asked", 0))
    return [Draft(payload, record.get("at"), step=step, key=record.get("key"))]


def _payload(record: Record, state: LogState) -> Payload:
    said = str(record.get("text") or "")
    match record.get("tern"):
        case "ask":
            return User(said, UserKind.HUMAN)
        case "say":
            return Message(said)
        case "call":
            return ToolCall(record.get("id"), str(record.get("tool")), record.get("with"))
        case "back":
            outcome = Outcome.OK if record.get("fine") else Outcome.FAILED
            return ToolResult(record.get("id"), said, outcome, OutcomeSource.STRUCTURE)
        case "eaten":
            model = state.sessions[""].model
            return TokenUsage(None, model, record.get("in"), None, None, None, record.get("out"), None)
        case "storm" | "gust" | "landed" | "moult":
            return Notification(str(record["tern"]), said)
        case kind:
            return unknown(str(kind), record, state)
