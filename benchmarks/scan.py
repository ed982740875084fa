"""The hits that a search must find, by examining every stored event without using the search's code.

An event is a hit if its text contains the query, ignoring the case of A to Z only, and its row passes the filters.
Newer hits come first, and of two at the same time the one with the larger id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from agtrace_indexer.texts.blocks import unpack

from benchmarks.queries import Query

_EVENTS = """
SELECT e.session_id, e.event_index, e.id, e.ts, e.type, e.outcome, n.text AS name, s.uid, s.provider, s.project_id
FROM event e JOIN session s ON s.id = e.session_id LEFT JOIN name n ON n.id = e.name_id
WHERE e.superseded_by IS NULL
"""
_FOLDERS = """
SELECT p.id, o.hash FROM project p JOIN project o ON o.id = p.id
UNION SELECT f.project_id, p.hash FROM repository_folder f JOIN repository_folder g USING (repository_id)
  JOIN project p ON p.id = g.project_id
"""
"""The hashes of all folders of a repository, for each of them: whoever names one means all."""

_TYPES = ("User", "Message", "Reasoning", "ToolCall", "ToolResult", "TokenUsage", "Notification")
_FAILED = 1
"""The code in `event.outcome`."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Event(NamedTuple):
    id: int
    ts: int
    type: str
    failed: bool
    name: str
    session: str
    provider: str
    folders: frozenset[str]


def scan(connection: sqlite3.Connection, queries: Sequence[Query]) -> list[list[int]]:
    """Return the ids of all hits of each query, newest first."""
    folders: dict[int, frozenset[str]] = {}
    for project, hash in connection.execute(_FOLDERS):
        folders[project] = folders.get(project, frozenset()) | {hash}
    nowhere: frozenset[str] = frozenset()
    events = {
        (session, at): _Event(
            event, ts, _TYPES[kind], outcome == _FAILED, name or "", uid, provider, folders.get(project, nowhere)
        )
        for session, at, event, ts, kind, outcome, name, uid, provider, project in connection.execute(_EVENTS)
    }
    wanted = [query.text.replace("\0", "\u2400").encode("utf-8", "replace").lower() for query in queries]
    found: list[list[tuple[int, int]]] = [[] for _ in queries]
    for session, first, packed in connection.execute(
        "SELECT b.session_id, b.first_index, d.text FROM block b JOIN block_data d ON d.block_id = b.id"
    ):
        block = unpack(packed).lower()
        texts = block.split(b"\0")[:-1]
        for query, piece, hits in zip(queries, wanted, found, strict=True):
            if piece not in block:
                continue
            for index, text in enumerate(texts, first):
                event = events.get((session, index)) if piece in text else None
                if event and _passes(event, query):
                    hits.append((event.ts, event.id))
    return [[event for _, event in sorted(hits, reverse=True)] for hits in found]


def _passes(event: _Event, query: Query) -> bool:
    return (
        query.session_id in (None, event.session)
        and query.provider in (None, event.provider)
        and (query.project_hash is None or query.project_hash in event.folders)
        and query.event_type in (None, event.type)
        and (query.tool is None or _is_of(event, query.tool))
        and query.failed in (None, event.failed)
        and (query.since is None or _moment(event) >= datetime.fromisoformat(query.since))
        and (query.until is None or _moment(event) < datetime.fromisoformat(query.until) + timedelta(seconds=1))
    )


def _moment(event: _Event) -> datetime:
    return _EPOCH + timedelta(milliseconds=event.ts)


def _is_of(event: _Event, tool: str) -> bool:
    return event.type in ("ToolCall", "ToolResult") and event.name.lower() == tool.lower()
