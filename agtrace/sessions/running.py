"""The sessions that are running, as they are found at one moment (`answers/running.py`)."""

from __future__ import annotations

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
