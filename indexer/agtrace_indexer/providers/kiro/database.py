"""Conversations in `data.sqlite3`: a row for each, which is rewritten after every exchange.

Amazon Q kept one row for each folder, with `key` as its path (`conversations`); Kiro CLI 1 keeps several
(`conversations_v2`). When the context is compacted, the history of a conversation begins again: what was read before
stays, and what follows is read as its continuation. The source of the format is Amazon Q's code; no real database was
seen.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import compact_json, digest
from agtrace_indexer.logs.containers import Container
from agtrace_indexer.logs.decoding import decode
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.logs.foreign_database import Question, ask
from agtrace_indexer.providers.kiro.parser import is_conversation, records_of, summary_of
from agtrace_indexer.providers.provider import LogInside, Row

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('conversations', 'conversations_v2')"
_OF_FOLDERS = "SELECT key, value, NULL, length(value) FROM conversations WHERE length(value) <= ?"
_SEVERAL = "SELECT key, conversation_id, updated_at, length(value) FROM conversations_v2 WHERE length(value) <= ?"
_ONE_OF_SEVERAL = "SELECT value FROM conversations_v2 WHERE key IS ? AND conversation_id IS ?"

_LARGEST = 256 * 1024 * 1024
_ID = later(r"[A-Za-z0-9_-]{1,64}")


class _Kept(NamedTuple):
    """A row with a conversation."""

    folder: str
    stamp: str
    size: int
    conversation_id: str | None = None
    """None if only the conversation itself says it."""
    value: Any = None
    """The conversation, if its row had to be read for its id."""


def logs(container: Container) -> Iterable[LogInside]:
    """Yield a log for each conversation. Raises `OSError` if the database has none of the tables."""
    return [LogInside(name, kept.stamp, kept.size) for name, kept in _kept(container.path).items()]


def rows(found: Found, position: Any) -> Iterator[Row]:
    """Yield what a conversation says about itself, if that is new, and its exchanges after the last one that was read.

    A row that isn't a conversation is returned as it is, and read as an unreadable line.
    """
    kept = _kept(found.container).get(found.path[len(found.container) + 1 :])
    if kept is None:
        return
    value = kept.value
    if kept.conversation_id is not None:
        (one,) = ask(found.container, (_ONE_OF_SEVERAL, (kept.folder, kept.conversation_id)))
        value = one[0][0] if one else None
    data = _bytes(value)
    conversation = _conversation(data)
    if conversation is None:
        if position != [kept.stamp]:
            yield Row(1, data, [kept.stamp])
        return
    yield from _new(conversation, str(kept.folder), position if isinstance(position, dict) else None)


def _kept(path: str) -> dict[str, _Kept]:
    """Return the rows with conversations by the names of their logs."""
    questions: list[Question] = [(_TABLES, ())]
    ((*tables,),) = ask(path, *questions)
    found: dict[str, _Kept] = {}
    if not tables:
        raise OSError(0, "it has no table of conversations")
    if ("conversations",) in tables:
        (of_folders,) = ask(path, (_OF_FOLDERS, (_LARGEST,)))
        for folder, value, _, size in of_folders:
            data = _bytes(value)
            conversation = _conversation(data) or {}
            kept = _Kept(str(folder), f"{zlib.crc32(data)}/{size}", size, None, value)
            found[_name(conversation.get("conversation_id"), str(folder))] = kept
    if ("conversations_v2",) in tables:
        (several,) = ask(path, (_SEVERAL, (_LARGEST,)))
        for folder, id, changed, size in several:
            found[_name(id, f"{folder}/{id}")] = _Kept(folder, f"{changed}/{size}", size, id)
    return found


def _new(conversation: Record, folder: str, position: dict[str, Any] | None) -> Iterator[Row]:
    about, *exchanges = records_of(conversation, folder)
    digests = [digest(compact_json(exchange)) for exchange in exchanges]
    summary = digest(summary_of(conversation) or "")
    begin = 0 if position is None else _continuation(digests, position)
    place = {"read": begin, "last": digests[begin - 1] if begin else "", "summary": summary}
    if position is None or position["summary"] != summary:
        yield Row(1, compact_json(about).encode("utf-8", "surrogatepass"), place)
    for number, exchange in enumerate(exchanges[begin:], begin + 1):
        place = {"read": number, "last": digests[number - 1], "summary": summary}
        yield Row(number, compact_json(exchange).encode("utf-8", "surrogatepass"), place)


def _continuation(digests: list[str], position: dict[str, Any]) -> int:
    """Return the number of exchanges that were read: fewer than before if the oldest are gone."""
    read, last = position["read"], position["last"]
    if not read or digests[read - 1 : read] == [last]:
        return int(read)
    return next((n for n in range(len(digests), 0, -1) if digests[n - 1] == last), 0)


def _conversation(data: bytes) -> Record | None:
    values = decode(data)
    found = values[0] if values and len(values) == 1 else None
    return found if isinstance(found, dict) and is_conversation(found) else None


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def _name(conversation_id: Any, otherwise: str) -> str:
    """Return the name of a log: the conversation's id, or a digest if that can't be one."""
    if isinstance(conversation_id, str) and _ID.fullmatch(conversation_id):
        return conversation_id
    return digest(otherwise)
