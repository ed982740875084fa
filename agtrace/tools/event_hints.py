"""What to open after an event: after a failure what fixed it, after a call its result, otherwise its surroundings."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from agtrace_indexer.index.questions import files, turns
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent

from agtrace.text.next_call import NextCall, call
from agtrace.tools.tool import event_kilobytes, kilobytes, overview_kilobytes, turn_kilobytes

_AROUND = 6
"""Events before and after one that a hint offers."""

_OF_LINES = kilobytes(0, 4_000)


def after_event(connection: sqlite3.Connection, session: Session, shown_id: str, event: Mapping[str, Any]) -> NextCall:
    """Return the next call, with its size, for an event as get_event_details describes it."""

    def opens(event_index: int, what: str) -> NextCall:
        opened = call("get_event_details", session_id=shown_id, event_index=event_index)
        return opened.saying(f"opens {what}", event_kilobytes(connection, session.id, event_index))

    later, result = event.get("later"), event.get("result_event")
    if later:
        again = "the same call" if later["same_call"] else "a similar call"
        change, command = later.get("changes", [-1])[-1], later.get("command", -1)
        if max(change, command) >= 0:
            what = "change" if change > command else "command"
            last = f"the last {what} before {again} succeeded (event {later['succeeded']})"
            return opens(max(change, command), last)
        return opens(later.get("result_event", later["succeeded"]), f"the result of {again} that succeeded")
    if result is not None and not files.writes(connection, session.id, event["event_index"]):  # a write's says little
        return opens(result, "the result of this call")
    turn = event.get("turn_index")
    if turn is not None:
        opened = call("get_event_details", session_id=shown_id, event_index=event["event_index"], around=_AROUND)
        what = "was tried after it" if event.get("outcome") == "failed" else "happened around it"
        return opened.saying(f"shows what {what}", _OF_LINES)
    opened = call("get_session_details", session_id=shown_id)
    return opened.saying("shows its session", overview_kilobytes(session.turn_count))


def after_lines(connection: sqlite3.Connection, session: Session, shown_id: str, event: StoredEvent) -> NextCall:
    """Return the next call after the events around one: its whole turn, or else the event itself."""
    turn = event.row.turn_index
    if turn is None or not turns.exists(connection, session.id, turn):
        opened = call("get_event_details", session_id=shown_id, event_index=event.event_index)
        return opened.saying("opens it", event_kilobytes(connection, session.id, event.event_index))
    opened = call("get_session_details", session_id=shown_id, detail_level="turns", turn_index=turn)
    return opened.saying("shows the whole turn", turn_kilobytes(connection, session.id, turn, "turns"))
