"""What requests name: sessions by id or prefix, events by index, and both by `ax://` references; resuming a session."""

from __future__ import annotations

import shlex
import sqlite3
from typing import Literal, NamedTuple

from agtrace_indexer.index.queries import events, sessions
from agtrace_indexer.index.queries.events import StoredEvent, with_texts
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.problems import AmbiguousSessionPrefix, InvalidArtifactRef, InvalidEventIndex, SessionNotFound
from agtrace.text.kept_texts import REFERENCE

_FORMS = {
    "session": later(r"ax://session/(?P<session>.+)"),
    "event": later(r"ax://event/(?P<session>.+)/(?P<event>[0-9]{1,15})"),
    "analysis": later(r"ax://analysis/(?P<session>.+)"),
    "report": later(r"ax://report(?:/(?P<since>[\w:.+-]{1,40}))?"),
    "lessons": later(r"ax://lessons(?:/(?P<project>[^?]{1,200}))?(?:\?since=(?P<since>[\w:.+-]{1,40}))?"),
    "why": later(r"ax://why/(?P<file>.+?)(?::(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?)?"),
    "metrics": later(r"ax://metrics(?:/(?P<since>[\w:.+-]{1,40}))?"),
    "health": later(r"ax://health"),
    "sql": later(r"ax://sql"),
    "exec": later(rf"{REFERENCE}(?P<output>[0-9a-f]{{16}})"),
}


class Reference(NamedTuple):
    """The target of a reference."""

    kind: Literal["session", "event", "analysis", "report", "lessons", "why", "metrics", "health", "sql", "exec"]
    session: str = ""
    event_index: int = 0
    since: str | None = None
    """The start of a report, of lessons or of metrics, as in the arguments of list_sessions; None for all time."""
    project: str | None = None
    """The project that lessons are about, as in the arguments of list_sessions; None for all."""
    output: str = ""
    """The id of an output that `agtrace prune` keeps for a day."""
    file: str = ""
    lines: tuple[int, int] | None = None
    """The lines of the file that are meant; None for the whole file."""


def parse(text: str) -> Reference:
    """Parse a reference. Raises `InvalidArtifactRef` if it has none of the known forms."""
    for kind, form in _FORMS.items():
        if match := form.fullmatch(text.strip()):
            parts = match.groupdict()
            place = parts.get("session", ""), int(parts.get("event", 0)), parts.get("since"), parts.get("project")
            first, last = parts.get("first"), parts.get("last")
            lines = None if first is None else (int(first), int(last or first))
            output, file = parts.get("output", ""), parts.get("file", "")
            return Reference(kind, *place, output, file, lines)  # type: ignore[arg-type]
    raise InvalidArtifactRef(text)


def session_in(text: str) -> str:
    """Return the session that a reference names; any other text unchanged."""
    if not text.startswith("ax://"):
        return text
    try:
        return parse(text).session or text
    except InvalidArtifactRef:
        return text


SHORTEST_ID = 8
"""The fewest characters of an id that answers show."""

MATCHES_SHOWN = 10
_NEAREST = 3


LAST = "last"
"""What stands for the id of the session in which something happened last."""


def find_session(connection: sqlite3.Connection, given: str) -> Session:
    """Return the session with this id, unambiguous id prefix or `ax://` reference; `last` is the one active last.

    A prefix of an id that several logs share (`X`, `X~2`) means `X`, as it did before the second log appeared.

    Raises `SessionNotFound` or `AmbiguousSessionPrefix`.
    """
    prefix = session_in(given.strip())
    exact = sessions.with_id(connection, prefix)
    if exact is not None:
        return exact
    if prefix == LAST and (latest := sessions.latest(connection)) is not None:
        return latest
    found = sessions.with_prefix(connection, prefix, MATCHES_SHOWN)
    if not prefix or not found:
        raise SessionNotFound(given, _nearest_ids(connection, prefix))
    total = sessions.count_with_prefix(connection, prefix)
    if total > 1 + sessions.count_with_prefix(connection, f"{found[0].uid}~"):
        raise AmbiguousSessionPrefix(given, [short_id(connection, session.uid) for session in found], total)
    return found[0]


def short_id(connection: sqlite3.Connection, uid: str) -> str:
    """Return as many characters of an id as distinguish it from every other, at least 8."""
    shared = max(_shared_beginning(uid, other or "") for other in sessions.neighbours(connection, uid))
    return uid[: max(SHORTEST_ID, shared + 1)]


def find_event(connection: sqlite3.Connection, session: Session, event_index: int) -> StoredEvent:
    """Return one event of a session. Raises `InvalidEventIndex` before the first and after the last one."""
    event = events.at(connection, session.id, event_index)
    if event is None:
        last = events.last(connection, session.id)
        raise InvalidEventIndex(short_id(connection, session.uid), event_index, last or 0)
    return with_texts(connection, [event])[0]


def last_event_of(connection: sqlite3.Connection, session: Session) -> int:
    """Return the index of a session's newest event, which marks the snapshot for all pages; -1 if it has none."""
    last = events.last(connection, session.id)
    return -1 if last is None else last


def _shared_beginning(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _nearest_ids(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """Return the ids with the longest common prefix; none if it is shorter than 3 characters."""
    for length in range(len(prefix) - 1, 2, -1):
        found = sessions.ids_with_prefix(connection, prefix[:length], _NEAREST)
        if found:
            return [short_id(connection, uid) for uid in found]
    return []


class Resuming(Struct, frozen=True):
    """How a session is continued."""

    command: list[str]
    """Empty if it can't be continued."""
    folder: str | None
    log_gone: bool
    """Whether the agent has deleted the log, so that it doesn't know the session any more."""
    parent_of: str | None
    """The sub-agent that was asked for: only the session that started it can be continued."""
    why_not: str | None
    """Why it can't be continued."""

    @property
    def obstacle(self) -> str | None:
        """Why the agent will not continue it, as far as that is known; None if nothing is in its way."""
        return "its log is gone: the agent doesn't know it any more" if self.log_gone else self.why_not

    @property
    def line(self) -> str:
        """The command as it is pasted into a shell, after a change to the folder; empty if there is none."""
        typed = shlex.join(self.command)
        return (
            typed
            if self.folder is None or not typed
            else f"cd {'-- ' * self.folder.startswith('-')}{shlex.quote(self.folder)} && {typed}"
        )


def resuming(connection: sqlite3.Connection, session: Session) -> Resuming:
    """Return how a session is continued; a sub-agent, in the session that started it."""
    found = session
    while found.kind == "subagent" and found.parent_session is not None:
        (found,) = sessions.in_rows(connection, [found.parent_session])
    agent = AGENTS[found.provider]
    why_not = None
    if not agent.resumes:
        why_not = f"{agent.title} has no command for it"
    elif found.kind == "subagent":
        why_not = "its parent is unknown"
    command = [] if why_not else [agent.command, *agent.resumes, found.own_id]
    parent_of = None if session is found else short_id(connection, session.uid)
    return Resuming(command, found.cwd, bool(found.gone), parent_of, why_not)
