"""What was sent in a connection, so that a search doesn't send again what its reader has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from agtrace.text.lines import LABEL, one_line
from agtrace.text.next_call import call

_CONNECTIONS, _EVENTS = 64, 2_000
"""The most connections that are remembered, and events of each: the last ones."""

Known: TypeAlias = Mapping[tuple[str, int], str]
"""(session as it was shown, event) -> the call whose answer has the text of it."""


class Sent:
    """What was sent in each connection. Safe to use from several threads: a single assignment adds an answer."""

    def __init__(self) -> None:
        self._of: dict[str, Known] = {}

    def before(self, connection: str | None, tool: str, arguments: Mapping[str, Any]) -> Known:
        """Return what other calls than this one have sent: the same call has the same answer."""
        this = _written(tool, arguments)
        return {event: by for event, by in self._of.get(connection or "", {}).items() if by != this}

    def note(self, connection: str | None, tool: str, arguments: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Note the events in an answer."""
        if connection is not None:
            known = {**dict.fromkeys(_events(data), _written(tool, arguments)), **self._of.get(connection, {})}
            others = [(name, of) for name, of in [*self._of.items()] if name != connection][1 - _CONNECTIONS :]
            self._of = dict([*others, (connection, dict([*known.items()][:_EVENTS]))])


def _written(tool: str, arguments: Mapping[str, Any]) -> str:
    return one_line(call(tool, **arguments).written, 2 * LABEL)


def _events(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield session and event of what has its text in an answer: matches, and what is told of sessions."""
    yield from ((one["session_id"], one["event_index"]) for one in data.get("matches", ()) if "preview" in one)
    for about in (data, *data.get("sessions", ())):
        told = [about.get(name, ()) for name in ("landmarks", "course", "around")] + [[about.get("last_message")]]
        yield from ((about["session_id"], row[0]) for rows in told for row in rows if isinstance(row, list))
