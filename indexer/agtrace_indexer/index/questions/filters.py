"""The filters of a search, as conditions on the rows of blocks and events."""

from __future__ import annotations

from typing import Any

from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import ILL_ENDED, EventType, Outcome, UserKind
from agtrace_schema.requests import EventKind
from msgspec import Struct

from agtrace_indexer.index.questions.queries import OF_PROJECTS, as_json, conditions

_CALL, _RESULT = TYPE_CODE[EventType.TOOL_CALL], TYPE_CODE[EventType.TOOL_RESULT]
_OF_PROJECTS = f"b.session_id IN (SELECT s.id FROM session s WHERE {OF_PROJECTS})"
_OF_PROVIDER = "b.session_id IN (SELECT id FROM session WHERE provider = :provider)"
_OF_SESSIONS = "b.session_id IN (SELECT value FROM json_each(:sessions))"
_NAMED = "IN (SELECT id FROM name WHERE lower(text) = lower(:tool))"
_HAS_TOOL = f"EXISTS (SELECT 1 FROM block_tool t WHERE t.block_id = b.id AND t.name_id {_NAMED})"
_IS_OF_TOOL = f"e.name_id {_NAMED} AND e.type IN ({_CALL}, {_RESULT})"
_FAILED = f"e.outcome = {OUTCOME_CODE[Outcome.FAILED]}"
_ILL_ENDED = f"e.outcome IN ({', '.join(str(OUTCOME_CODE[one]) for one in ILL_ENDED)})"
_NOT_FAILED = f"coalesce(e.outcome, -1) != {OUTCOME_CODE[Outcome.FAILED]}"
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

_WRITES = (
    "EXISTS (SELECT 1 FROM touched t "
    "WHERE t.session_id = e.session_id AND t.event_index = e.event_index AND t.access = 'write')"
)
_TYPED = f"('{UserKind.HUMAN}', '{UserKind.COMMAND}')"
"""A slash command is typed as well, often with a request behind it."""
_TELLS_OF_AN_ERROR = "e.name_id IN (SELECT id FROM name WHERE instr(lower(text), 'error'))"
"""A notification by its kind: of the model's API, or of the agent itself."""
_NOTIFICATION = TYPE_CODE[EventType.NOTIFICATION]
_KINDS: dict[EventKind, tuple[tuple[EventType, ...], str]] = {
    "human": ((EventType.USER,), f"e.name_id IN (SELECT id FROM name WHERE text IN {_TYPED})"),
    "message": ((EventType.MESSAGE,), "true"),
    "thought": ((EventType.REASONING,), "true"),
    "call": ((EventType.TOOL_CALL,), "true"),
    "command": ((EventType.TOOL_CALL,), "e.program_id IS NOT NULL"),
    "edit": ((EventType.TOOL_CALL,), _WRITES),
    "output": ((EventType.TOOL_RESULT,), "true"),
    "error": (
        (EventType.TOOL_RESULT, EventType.NOTIFICATION),
        f"CASE e.type WHEN {_NOTIFICATION} THEN {_TELLS_OF_AN_ERROR} ELSE {_ILL_ENDED} END",
    ),
    "notification": ((EventType.NOTIFICATION,), "true"),
}
"""The types of the events of a kind, and what else they fulfil."""


class EventFilters(Struct, frozen=True):
    """The filters of a search; None means no restriction. Times are milliseconds since 1970 UTC."""

    session_row: int | None = None
    provider: str | None = None
    projects: tuple[int, ...] | None = None
    """The row ids of projects."""
    event_type: EventType | None = None
    kind: EventKind | None = None
    tool: str | None = None
    failed: bool | None = None
    since: int | None = None
    until: int | None = None
    path: str | None = None
    """A text in the path of a file named in a tool call, ignoring the case of A to Z; finds such calls and results."""
    sessions: tuple[int, ...] | None = None
    """The row ids of sessions."""
    without_own: bool = False
    """Whether to leave out the calls to agtrace itself, and their results."""

    @property
    def are_of_events(self) -> bool:
        """Whether they filter events, and not only blocks."""
        return any(one is not None for one in (self.event_type, self.kind, self.tool, self.failed, self.path))


def _of_sessions(filters: EventFilters) -> tuple[list[str], dict[str, Any]]:
    """Return what the sessions of such events fulfil, as SQL over `block` b, with its arguments."""
    return conditions(
        ("b.session_id = :session_row", "session_row", filters.session_row),
        (_OF_SESSIONS, "sessions", None if filters.sessions is None else as_json(filters.sessions)),
        (_OF_PROVIDER, "provider", filters.provider),
        (_OF_PROJECTS, "projects", None if filters.projects is None else as_json(filters.projects)),
    )


def of_blocks(filters: EventFilters) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions for blocks with such events, as SQL over `block` b, and the arguments."""
    of_sessions, arguments = _of_sessions(filters)
    type = filters.event_type and 1 << TYPE_CODE[filters.event_type]
    types_of_kind = filters.kind and sum(1 << code for code in _codes(filters))
    more, others = conditions(
        ("b.types & :type != 0", "type", type),
        ("b.types & :types_of_kind != 0", "types_of_kind", types_of_kind),
        (_HAS_TOOL, "tool", filters.tool),
        (_HAS_FAILED, "failed", filters.failed or None),
        (_TOUCHES, "path", filters.path),
    )
    return of_sessions + more, arguments | others


def of_events(filters: EventFilters) -> tuple[list[str], dict[str, Any]]:
    """Return the further conditions for such events, as SQL over `event` e, and the arguments."""
    return conditions(
        ("e.own IS NULL", "own", filters.without_own or None),
        ("e.type = :type", "type", filters.event_type and TYPE_CODE[filters.event_type]),
        (_is_of_kind(filters), "kind", filters.kind),
        (_IS_OF_TOOL, "tool", filters.tool),
        (_FAILED if filters.failed else _NOT_FAILED, "has_failed", filters.failed),
        (_IS_TOUCHING, "path", filters.path),
    )


def of_ranked_events(filters: EventFilters) -> tuple[str, dict[str, Any]]:
    """Return all that events must fulfil, as SQL over `event` e that follows another condition, with its arguments."""
    of_such, arguments = of_events(filters)
    of_sessions, sessions = _of_sessions(filters)
    times, of_times = conditions(("e.ts >= :since", "since", filters.since), ("e.ts <= :until", "until", filters.until))
    in_sessions = [one.replace("b.session_id", "e.session_id") for one in of_sessions]
    return all_of([*of_such, *in_sessions, *times]), arguments | sessions | of_times


def _codes(filters: EventFilters) -> list[int]:
    """Return the types of the events of a kind, as stored."""
    return [] if filters.kind is None else [TYPE_CODE[type] for type in _KINDS[filters.kind][0]]


def _is_of_kind(filters: EventFilters) -> str:
    """Return what the events of a kind fulfil, as SQL."""
    condition = "true" if filters.kind is None else _KINDS[filters.kind][1]
    return f"e.type IN ({', '.join(map(str, _codes(filters)))}) AND {condition}"


def all_of(wanted: list[str]) -> str:
    """Return conditions as SQL that follows another one."""
    return "".join(f" AND {condition}" for condition in wanted)
