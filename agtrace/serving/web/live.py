"""What is sent to an open page while it is open: that its session, or the list, has changed (server-sent events)."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import anyio.to_thread
from agtrace_indexer.index.questions import events
from starlette.responses import StreamingResponse

from agtrace.answers.desk import Answers
from agtrace.problems import Problem
from agtrace.sessions.query import find_session
from agtrace.sessions.sorting import snapshot_now
from agtrace.tools.tool import Context

MOST = 64
"""The most pages that are told of changes at a time."""

_PAUSE = 0.7
"""Seconds between two looks. A look at logs that didn't change takes next to nothing."""

_SIGN_OF_LIFE = 15.0
"""Seconds after which an empty comment is sent, so that a closed page is noticed."""

State = dict[str, Any]


def of_session(desk: Answers, session_id: str) -> Callable[[], State | None]:
    """Return what looks at a session: its last event, and how many it has; None while the index can't be read."""

    def look(context: Context) -> State:
        session = find_session(context.connection, session_id)
        last = events.last(context.connection, session.id)
        return {"last": -1 if last is None else last, "events": session.event_count, "turns": session.turn_count}

    return lambda: _looked(desk, look)


def of_list(desk: Answers) -> Callable[[], State | None]:
    """Return what looks at all sessions: the newest session and event, as `Listed.state` has them; None while the
    index can't be read."""
    return lambda: _looked(desk, lambda context: snapshot_now(context.connection)._asdict())


def _looked(desk: Answers, look: Callable[[Context], State]) -> State | None:
    try:
        return desk.read(look)
    except Problem:
        return None


class Channel:
    """Tells open pages what changes. Used by the thread of the event loop only."""

    def __init__(self) -> None:
        self._open = 0

    def answer(self, look: Callable[[], State | None]) -> StreamingResponse | None:
        """Return an answer that goes on until its page is closed; None if too many are open."""
        if self._open >= MOST:
            return None
        return StreamingResponse(self._changes(look), media_type="text/event-stream")

    async def _changes(self, look: Callable[[], State | None]) -> AsyncIterator[str]:
        self._open += 1
        try:
            seen = await anyio.to_thread.run_sync(look)
            yield _event("state", seen)
            sent = time.monotonic()
            while True:
                await anyio.sleep(_PAUSE)
                found = await anyio.to_thread.run_sync(look)
                if found is not None and found != seen:
                    seen, sent = found, time.monotonic()
                    yield _event("changed", found)
                elif time.monotonic() - sent > _SIGN_OF_LIFE:
                    sent = time.monotonic()
                    yield ": still here\n\n"
        finally:
            self._open -= 1


def _event(name: str, value: State | None) -> str:
    return f"event: {name}\ndata: {json.dumps(value)}\n\n"
