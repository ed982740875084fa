"""Executions that outlive their result: their end is reported later, by another call or by an event.

`exec_command` answers `Process running with session ID 41`, code mode `Script running with cell ID 3`. The result of
a later `write_stdin` or `wait` for that session or cell may say how it ended: this settles the first call. So does an
`*_end` event after the output. A poll that finds it still running changes nothing.
"""

from __future__ import annotations

from agtrace_schema.events import Json, Outcome, OutcomeSource

from agtrace_indexer.events.drafts import LogState, Settlement
from agtrace_indexer.events.json_values import fields
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.codex.tool_outputs import CELL, SESSION, Reading
from agtrace_indexer.providers.notes import remember

_POLLS = {"write_stdin": (SESSION, "session_id"), "wait": (CELL, "cell_id")}
"""Tool -> what it asks about, and the argument that names it."""

_CTRL_C = "\x03"
_RUNNING = 64
_POLLING = 64
_ENDS = (Outcome.OK, Outcome.FAILED, Outcome.REJECTED, Outcome.INTERRUPTED)


def note_poll(call_id: str, name: str, arguments: Json, state: LogState) -> None:
    """Note which running execution a call asks about."""
    what, key = _POLLS.get(name, ("", ""))
    asked = fields(arguments).get(key)
    if isinstance(asked, (str, int)) and len(str(asked)) <= 64:
        remember(state.memory.setdefault("polls", {}), call_id, f"{what} {identifier(str(asked))}", _POLLING)
        if _CTRL_C in str(fields(arguments).get("chars")):
            remember(state.memory.setdefault("stopping", {}), call_id, True, _POLLING)


def settled_by_result(call_id: str | None, reading: Reading, state: LogState, at: int | None) -> list[Settlement]:
    """Return the end of an earlier execution if a result reports it; remember the result's own if it continues."""
    if call_id is None:
        return []
    polled = state.memory.get("polls", {}).pop(call_id, None)
    if polled is None:
        if reading.outcome is Outcome.RUNNING:
            remember(state.memory.setdefault("running", {}), call_id, reading.running, _RUNNING)
        return []
    if not _has_ended(polled, reading):
        return []
    running: dict[str, str | None] = state.memory.get("running", {})
    ended = [started for started, handle in running.items() if handle == polled]
    return [_settle(started, reading, state, at) for started in ended]


def stopped(call_id: str | None, reading: Reading, state: LogState) -> Reading:
    """Return the reading of a result: a process that ended after the model had sent it Ctrl-C didn't fail."""
    stopping = state.memory.get("stopping", {}).pop(call_id, None)
    if stopping and reading.exit_code and reading.outcome is Outcome.FAILED:
        return reading._replace(outcome=Outcome.INTERRUPTED)
    return reading


def settled_by_event(call_id: str, reading: Reading, state: LogState, at: int | None) -> list[Settlement]:
    """Return the end that an `*_end` event reports of an execution whose output said that it was running."""
    if call_id not in state.memory.get("running", {}) or reading.outcome not in _ENDS:
        return []
    return [_settle(call_id, reading, state, at)]


def _has_ended(polled: str, reading: Reading) -> bool:
    """Whether the harness says that the process exited or the script ended; a poll itself can fail, too."""
    if polled.startswith(SESSION):
        return reading.exit_code is not None
    ended = reading.outcome in _ENDS and reading.source is OutcomeSource.STRUCTURE
    return ended and reading.text.startswith("Script ")


def _settle(call_id: str, reading: Reading, state: LogState, at: int | None) -> Settlement:
    del state.memory["running"][call_id]
    return Settlement(call_id, reading.outcome, at)
