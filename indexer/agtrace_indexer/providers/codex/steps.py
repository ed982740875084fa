"""Steps: one response of the model each. Codex logs no id of a response, so steps are counted here."""

from __future__ import annotations

from agtrace_indexer.events.drafts import LogState


def open_step(state: LogState) -> str:
    """The step of the response at hand: a run of items up to a tool output, a token count or a user's text."""
    memory = state.memory
    if not memory.get("open"):
        memory["step"] = memory.get("step", 0) + 1
        memory["open"] = True
    return f"s{memory['step']}"


def last_step(state: LogState) -> str | None:
    """The step of the newest response of this session, open or closed; None before the first."""
    step = state.memory.get("step")
    return f"s{step}" if step and step != state.memory.get("foreign") else None


def close_step(state: LogState) -> None:
    """End the response at hand: what the model gives next is another."""
    state.memory["open"] = False


def leave_steps(state: LogState) -> None:
    """What was read so far are another session's responses: nothing that follows belongs to them."""
    close_step(state)
    state.memory["foreign"] = state.memory.get("step")
