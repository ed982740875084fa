"""What restricts a search, as SQL over blocks and over events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from agtrace_indexer.index.questions.conditions import PROJECTS_BY_HASH
from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, Outcome

_CALL, _RESULT = TYPE_CODE[EventType.TOOL_CALL], TYPE_CODE[EventType.TOOL_RESULT]
_OF_PROJECT = f"b.session_id IN (SELECT id FROM session WHERE project_id IN ({PROJECTS_BY_HASH}))"
_OF_PROVIDER = "b.session_id IN (SELECT id FROM session WHERE provider = :provider)"
_OF_SESSIONS = "b.session_id IN (SELECT value FROM json_each(:sessions))"
_NAMED = "IN (SELECT id FROM name WHERE text = :tool COLLATE NOCASE)"
_HAS_TOOL = f"EXISTS (SELECT 1 FROM block_tool t WHERE t.block_id = b.id AND t.name_id {_NAMED})"
_IS_OF_TOOL = f"e.name_id {_NAMED} AND e.type IN ({_CALL}, {_RESULT})"
_FAILED = f"e.outcome = {OUTCOME_CODE[Outcome.FAILED]}"
_HAS_FAILED = (
    "EXISTS (SELECT 1 FROM event e WHERE e.session_id = b.session_id AND e.event_index >= b.first_index "
    f"AND e.event_index < b.first_index + b.event_count AND {_FAILED})"
)
_WITH_PATH = "touched t JOIN path p ON p.id = t.path_id AND instr(lower(p.text), lower(:path))"
_TOUCHES = f"b.session_id IN (SELECT t.session_id FROM {_WITH_PATH})"
_IS_TOUCHING = (
    f"e.type IN ({_CALL}, {_RESULT}) AND EXISTS (SELECT 1 FROM {_WITH_PATH} WHERE t.session_id = e.session_id "
    f"AND t.event_index = CASE e.type WHEN {_CALL} THEN e.event_index ELSE e.link END)"
)


@dataclass(frozen=True, slots=True)
class Filters:
    """What restricts a search; None restricts nothing. Times are milliseconds since 1970 UTC."""

    session_row: int | None = None
    provider: str | None = None
    project_hash: str | None = None
    """The beginning of the hash."""
    event_type: EventType | None = None
    tool: str | None = None
    failed: bool | None = None
    since: int | None = None
    until: int | None = None
    path: str | None = None
    """A piece of the path of a file that a tool call names, A to Z folded: only such calls and their results."""
    sessions: tuple[int, ...] | None = None
    """The rows of sessions."""
    without_own: bool = False
    """Leave out the calls to agtrace itself, and their results."""

    def of_blocks(self) -> tuple[list[str], dict[str, Any]]:
        """What blocks with such events fulfil, as SQL over `block` b, with its arguments."""
        return _given(
            (self.session_row, "b.session_id = :session_row", {"session_row": self.session_row}),
            (self.sessions, _OF_SESSIONS, {"sessions": json.dumps(self.sessions)}),
            (self.provider, _OF_PROVIDER, {"provider": self.provider}),
            (self.project_hash, _OF_PROJECT, {"hash": (self.project_hash or "").lower()}),
            (self.event_type, "b.types & :type", {"type": 1 << TYPE_CODE[self.event_type] if self.event_type else 0}),
            (self.tool, _HAS_TOOL, {"tool": self.tool}),
            (self.failed or None, _HAS_FAILED, {}),
            (self.path, _TOUCHES, {"path": self.path}),
        )

    def of_events(self) -> tuple[list[str], dict[str, Any]]:
        """What such events fulfil beyond that, as SQL over `event` e, with its arguments.

        The calls to agtrace are left out later, since they are counted.
        """
        return _given(
            (self.event_type, "e.type = :type", {"type": TYPE_CODE[self.event_type] if self.event_type else 0}),
            (self.tool, _IS_OF_TOOL, {"tool": self.tool}),
            (self.failed, _FAILED if self.failed else f"({_FAILED}) IS NOT 1", {}),
            (self.path, _IS_TOUCHING, {"path": self.path}),
        )


def _given(*wanted: tuple[Any, str, dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """The conditions with their arguments that belong to a value, where there is one."""
    conditions: list[str] = []
    arguments: dict[str, Any] = {}
    for value, condition, named in wanted:
        if value is not None:
            conditions.append(condition)
            arguments |= named
    return conditions, arguments
