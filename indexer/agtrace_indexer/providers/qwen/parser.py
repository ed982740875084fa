"""Qwen Code: `projects/<folder>/chats/<session>.jsonl` and the logs of its sub-agents (indexer/README.md).

The rules: Claude Code's envelope around Gemini's contents. A line of the user, the model or a tool is a message
(`messages`), a line of the system is one of many things, most of which say nothing to a reader (`system`). Tokens are
those of the telemetry, which has every call to the API, or else those of the responses (`tokens`). A rewind drops the
turns after the line that it goes back to (`turns`). A branch copies lines under their ids (`sessions.identify`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import fields, milliseconds, text
from agtrace_indexer.providers.notes import readable_json, unknown
from agtrace_indexer.providers.provider import Rewrite
from agtrace_indexer.providers.qwen.messages import read_results, read_user, response
from agtrace_indexer.providers.qwen.sessions import identify, named_by, note_line
from agtrace_indexer.providers.qwen.system import read_system
from agtrace_indexer.providers.qwen.turns import note_turns

as_patch: Rewrite = None

_IDS = ("uuid", "sessionId", "timestamp")


def recognizes(record: Record) -> bool:
    """Whether only Qwen Code writes such a record: Claude Code's keys around `parts`, or a payload of the system."""
    kind = record.get("type")
    if not isinstance(kind, str) or kind not in _READERS or "parentUuid" not in record:
        return False
    if not all(isinstance(record.get(key), str) for key in _IDS):
        return False
    if isinstance(fields(record.get("message")).get("parts"), list):
        return True
    return kind == "system" and isinstance(record.get("subtype"), str) and "systemPayload" in record


def unroll(_document: Any) -> None:
    """Return nothing: what Qwen Code wrote as one JSON document is in Gemini CLI's format."""


def begin(path: PurePath) -> LogState:
    """Return the state before the first line; a sub-agent's log is in a folder of its parent's id."""
    return named_by(path)


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next line; see `Parser.drafts`."""
    kind = record.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        told = unknown(text(kind) or "untyped", record, state, readable_json)
        said: list[Said] = [Draft(told, milliseconds(record.get("timestamp")))]
    else:
        note_line(record, state)
        said = read(record, state)
    identify(said, record)
    note_turns(said, record, state)
    return said


_READERS: dict[str, Callable[[Record, LogState], list[Said]]] = {
    "user": read_user,
    "assistant": response,
    "tool_result": read_results,
    "system": read_system,
}
