"""Pi: `sessions/<folder>/<time>_<id>.jsonl`, a format that oh-my-pi and OpenClaw share (indexer/README.md).

The rules: a log begins with the session (`sessions`) and goes on with entries, which form a tree by their parents'
ids; all of them count, in file order (`entries`). A response is a step with the results of its calls (`messages`). The
flag of a result is its outcome, unless its text says that it was stopped or blocked (`tool_results`). A fork copies
entries word for word, with ids and times, by which they are recognised (`sessions.identify`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import text
from agtrace_indexer.providers.pi.entries import read_entry
from agtrace_indexer.providers.pi.messages import OTHER_ROLES
from agtrace_indexer.providers.pi.user_texts import plain
from agtrace_indexer.providers.provider import Rewrite

as_patch: Rewrite = None

_OWN = {"api": str, "stopReason": str, "timestamp": int}
"""Keys of messages of the model and the user, which other agents write without them."""


def recognizes(record: Record) -> bool:
    """Whether only Pi, or a fork of it, writes such a record: the session or an entry with a message."""
    kind = record.get("type")
    if kind == "session":
        return all(isinstance(record.get(key), str) for key in ("id", "timestamp", "cwd"))
    message = record.get("message")
    if kind != "message" or not isinstance(message, dict) or "parentId" not in record:
        return False
    return text(message.get("role")) in OTHER_ROLES or any(isinstance(message.get(key), of) for key, of in _OWN.items())


def unroll(_document: Any) -> None:
    """Return nothing: no log of Pi is one JSON document."""


def begin(_path: PurePath) -> LogState:
    """Return the state before the first record, which says everything about the session."""
    return LogState()


def drafts(record: Record, state: LogState) -> Sequence[Draft]:
    """Return the events of the next record; see `Parser.drafts`."""
    return read_entry(record, state, plain)
