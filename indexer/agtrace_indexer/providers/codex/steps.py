"""Steps: one response of the model each. Codex logs no ids of responses, so steps are numbered here."""

from __future__ import annotations

from agtrace_indexer.events.drafts import LogState


def open_step(state: LogState) -> str:
    """Return the step of the current response: a run of items up to a tool output, a token count or a user's text."""
    memory = state.memory
    if not memory.get("open"):
        memory["step"] = memory.get("step", 0) + 1
        memory["open"] = True
    return f"s{memory['step']}"


def last_step(state: LogState) -> str | None:
    """Return the step of the newest response of this session, open or closed; None before the first."""
    step = state.memory.get("step")
    return f"s{step}" if step and step != state.memory.get("foreign") else None


def close_step(state: LogState) -> None:
    """End the current response: the model's next item begins another."""
    state.memory["open"] = False


def leave_steps(state: LogState) -> None:
    """Leave the steps so far to another session: nothing that follows belongs to them."""
    close_step(state)
    state.memory["foreign"] = state.memory.get("step")
