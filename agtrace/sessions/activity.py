"""What a session does at this moment, and whether it waits for the human, by the end of its log alone.

No log says everything: prompts for permission are written by hardly any agent, and a process that was killed leaves a
log like that of one at work. What the log doesn't tell is `unknown` here, never guessed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.provider import Phase
from agtrace_schema.events import EventType
from msgspec import Struct


class RunningSession(Struct, frozen=True):
    """A session that was active lately. Texts are on one line, without secrets and control characters."""

    id: str
    """The shortest prefix that is unique."""
    session_id: str
    provider: str
    agent: str
    """The agent's name for people."""
    project: str | None
    branch: str | None
    title: str | None
    request: str | None
    """What the human asked for last."""
    state: str
    """`activity.State`."""
    waits: str | None
    """`activity.Waits`; None if it isn't known to wait for the human."""
    waits_for_you: bool | None
    """None if the log doesn't tell."""
    now: str
    """What it does: the call with its argument, the question, or the beginning of the last answer; may be empty."""
    why: str
    """Why more isn't known; empty if all is."""
    tool: str | None
    """The tool of the call that has no result yet."""
    last_activity: str | None
    """ISO 8601, UTC; that of its sub-agents included."""
    idle_seconds: int
    model: str | None
    context_tokens: int | None
    """The input of the last request, which fills the model's context window; None if the log has no figures."""
    context_window: int | None
    context_percent: int | None
    cost_usd: float | None
    """That of its sub-agents included; None if no price is known."""
    cost_made: str | None
    tool_calls: int
    failed_calls: int
    log_gone: bool

    @property
    def is_closed(self) -> bool:
        """Whether the human has left it, or its log is gone."""
        return self.state == "closed" or self.log_gone

    @property
    def is_idle(self) -> bool:
        """Whether it was at work, and nothing was logged for a long time; it may run all the same."""
        return self.state == "idle" and not self.log_gone


class Recent(Struct, frozen=True):
    """A session that was active last."""

    id: str
    agent: str
    project: str | None
    title: str | None
    last_activity: str | None


class Running(Struct, frozen=True):
    """All running sessions at a moment, those that wait for the human first, then the latest."""

    sessions: tuple[RunningSession, ...]
    recent: tuple[Recent, ...]
    """The latest sessions, if none is running."""
    asked_before: int = 0
    """How many of the sessions do nothing, but have asked the human something."""
    problem: str | None = None
    """Why the index isn't up to date, as a sentence."""


State: TypeAlias = Literal["thinking", "calling", "answering", "waiting", "idle", "closed", "unknown"]
"""thinking: the model was given something and hasn't answered; calling: a tool call has no result yet; answering: the
model has just said something; waiting: the human has to do something; idle: it was at work, but nothing was logged for
a long time; closed: the human left the session."""

Waits: TypeAlias = Literal["answer", "question", "plan", "permission", "error", "interruption"]
"""What the human is to look at: an answer, a question, a plan to approve, a prompt for permission, an error after which
the agent gave up, or what they stopped."""

SILENT_MS = 10 * 60_000
"""After this long without a line the log no longer shows that the model or a tool is at work."""

SAYING_MS = 60_000
"""For this long after a text of the model, a log that doesn't mark the end of turns shows a session at work."""


class OpenCall(NamedTuple):
    """A call without a result."""

    event_index: int
    tool: str


class LogEnd(NamedTuple):
    """The end of a log."""

    last: EventType | None
    """The last thing that the human, the model or a tool did; a notification only if it is an error or an interruption.
    None if there is nothing."""
    open_calls: tuple[OpenCall, ...] = ()
    """The calls of the last turn without a result, in file order."""
    phase: Phase | None = None
    """What the last record that says something about the turn says."""
    silent_ms: int = 0
    """Time since the last event, sub-agents' included."""
    interrupted: bool = False
    """Whether the last thing is that the human stopped the model."""
    asks: bool = False
    """Whether the last thing is a text in which the model asks for something that it needs."""


class Activity(NamedTuple):
    """What a session does."""

    state: State
    waits: Waits | None = None
    """What it waits for the human with, if it is known that it does."""
    waits_known: bool = True
    """Whether the log tells if it waits for the human."""
    call: OpenCall | None = None
    """The call that has no result yet."""
    why: str = ""
    """Why more isn't known, as a phrase; empty if all is."""


def activity(seen: LogEnd, tools: Tools) -> Activity:
    """Return what a session does, by the end of its log and what its agent's tools are for."""
    if seen.phase is Phase.CLOSED:
        return Activity("closed")
    asking = next((call for call in reversed(seen.open_calls) if call.tool in tools.asking), None)
    if seen.phase is Phase.ASKS_PERMISSION:
        return Activity("waiting", "permission", call=asking or (seen.open_calls[-1] if seen.open_calls else None))
    if seen.interrupted:
        return Activity("waiting", "interruption")
    if seen.last is EventType.NOTIFICATION:
        return Activity("waiting", "error")
    if seen.phase is Phase.OVER:
        return Activity("waiting", "question" if seen.asks else "answer")
    if asking is not None:
        return Activity("waiting", "question" if asking.tool in tools.questioning else "plan", call=asking)
    return _at_work(seen, tools)


def _at_work(seen: LogEnd, tools: Tools) -> Activity:
    """Return what a session does whose turn isn't known to be over."""
    silent = seen.silent_ms >= SILENT_MS
    if seen.open_calls:
        call = seen.open_calls[-1]
        if silent:
            return Activity("idle", waits_known=False, call=call, why="its last call has no result")
        why = "it runs, or waits for your permission: the log doesn't say"
        return Activity("calling", waits_known=False, call=call, why=why)
    if seen.last is EventType.MESSAGE:
        if seen.silent_ms < SAYING_MS:
            return Activity("answering", waits_known=False, why="the log doesn't say whether the turn is over")
        if seen.asks:
            return Activity("waiting", "question")
        why = "it answered, or goes on: the log doesn't say"
        return Activity("idle" if silent else "unknown", waits_known=False, why=why)
    if seen.last is None:
        return Activity("unknown", waits_known=False, why="nothing was asked yet")
    if silent:
        return Activity("idle", waits_known=False, why="nothing was logged for a long time")
    return Activity("thinking")
