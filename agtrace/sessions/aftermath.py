"""What followed a failed tool execution: the call that succeeded later, and what was changed until then."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import ceil

from agtrace_indexer.events.commands import shell_command
from agtrace_indexer.events.shell import parts
from agtrace_indexer.index.questions import events, files
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts
from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.providers.registry import TOOLS
from agtrace_schema.answers import Aftermath
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.landmarks import LandmarkKind

from agtrace.sessions.query import find_event
from agtrace.sessions.steps import telling_argument
from agtrace.text.shell_programs import lints, reads

_LOOKED_AT = 400
"""The most later calls of the same tool that are compared: in a long session the next ones matter most."""

_READ_AT_ONCE = 16
_CHANGES_SHOWN = 5
_ALIKE = 0.6
"""The part of the failed call's text that a similar call must begin with."""


def aftermath(connection: sqlite3.Connection, session: Session, event: StoredEvent) -> Aftermath | None:
    """Return what followed a failed call, given it or its result; None if no such call succeeded later.

    Among the next calls of the same tool, an identical one is preferred to one that begins alike. Changes are calls
    that wrote files and did not fail; a command may change something, too.
    """
    if event.outcome is not Outcome.FAILED:
        return None
    call = event if event.type == EventType.TOOL_CALL else _call_of(connection, session, event)
    if call is None or call.row.name is None:
        return None
    failed, alike = 0, None
    passed: list[StoredEvent] = []
    for later in _later(connection, session, call, call.row.name):
        same = later.rest.get("arguments") == call.rest.get("arguments")
        if same and later.outcome is Outcome.OK:
            return _told(connection, session, call, later, failed, passed, same=True)
        failed += same and later.outcome is Outcome.FAILED
        if alike is None and later.outcome is Outcome.OK and _begins_alike(call, later):
            alike = later
        passed.append(later)
    return None if alike is None else _told(connection, session, call, alike, failed, passed, same=False)


def _call_of(connection: sqlite3.Connection, session: Session, result: StoredEvent) -> StoredEvent | None:
    link = result.row.link
    return None if link is None else find_event(connection, session, link)


def _later(connection: sqlite3.Connection, session: Session, call: StoredEvent, tool: str) -> Iterator[StoredEvent]:
    found = events.later_calls(connection, session.id, tool, behind=call.event_index, most=_LOOKED_AT)
    while some := list(islice(found, _READ_AT_ONCE)):
        yield from with_texts(connection, some)


def _begins_alike(call: StoredEvent, later: StoredEvent) -> bool:
    said = telling_argument(call.rest.get("arguments"))
    again = telling_argument(later.rest.get("arguments"))
    return bool(said) and again.startswith(said[: ceil(len(said) * _ALIKE)])


def _told(
    connection: sqlite3.Connection,
    session: Session,
    call: StoredEvent,
    later: StoredEvent,
    failed: int,
    passed: Sequence[StoredEvent],
    *,
    same: bool,
) -> Aftermath:
    changes = files.changes(connection, session.id, after=call.event_index, before=later.event_index)
    return Aftermath(
        same_call=same,
        succeeded=later.event_index,
        result_event=later.row.link,
        failed_again=failed or None,
        command=_changing_command(call, (one for one in reversed(passed) if one.event_index < later.event_index)),
        changes=changes[-_CHANGES_SHOWN:] or None,
        total_changes=len(changes) if len(changes) > _CHANGES_SHOWN else None,
    )


def _changing_command(failed: StoredEvent, between: Iterable[StoredEvent]) -> int | None:
    """Return the last of these commands that succeeded and did something else than what failed, and than to look."""
    tried = _command(failed)
    for call in between:
        command = _command(call) if call.outcome is Outcome.OK else None
        if command is not None and not _does_the_same(tried, command) and not _only_looks(command):
            return call.event_index
    return None


def _command(call: StoredEvent) -> str | None:
    command = shell_command(call.row.name or "", call.rest.get("arguments"), TOOLS)
    return None if command is None else command.text


def _only_looks(command: str) -> bool:
    """Whether a command reads, lints or tests, and mends nothing."""
    if any(attempt.kind is LandmarkKind.TEST_RUN for attempt in attempts(command)):
        return True
    return all(reads(part) or lints(part) for part in parts(command))


def _does_the_same(tried: str | None, command: str) -> bool:
    """Whether a command runs the programs of another with the same words, whatever it prints of them."""
    return tried is not None and {part.words for part in parts(tried)} >= {
        part.words for part in parts(command) if not reads(part)
    }
