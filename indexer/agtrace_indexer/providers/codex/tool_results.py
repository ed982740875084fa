"""Tool results in response items, each in the step of its call; some report how another ended (`background`)."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Outcome, OutcomeSource, ToolResult

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import compact_json, fields, image_placeholder, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.codex.agents import started_by
from agtrace_indexer.providers.codex.background import settled_by_result, stopped
from agtrace_indexer.providers.codex.content import texts
from agtrace_indexer.providers.codex.steps import close_step
from agtrace_indexer.providers.codex.tokens import odd_usage
from agtrace_indexer.providers.codex.tool_calls import call_id_of, call_item
from agtrace_indexer.providers.codex.tool_outputs import Reading, by_status, exited, read_output, whole
from agtrace_indexer.providers.notes import skip


def draft_result(call_id: str | None, reading: Reading, state: LogState, at: int | None) -> list[Said]:
    """Return a result in the step of its call; it ends the current response."""
    step = state.memory.get("calls", {}).pop(call_id, None) if call_id else None
    close_step(state)
    reading = stopped(call_id, reading, state)
    shown, outcome, source, exit_code, duration_ms, _ = reading
    agent = started_by(call_id, shown, state)
    result = ToolResult(call_id, shown, outcome, source, exit_code, duration_ms, agent)
    settled = settled_by_result(call_id, reading, state, at)
    return [Draft(result, at, step, reports=bool(settled)), *settled]


def output_item(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read the output of a call, with what an earlier event reported about its end."""
    call_id = call_id_of(payload)
    if call_id and state.memory.get("told", {}).get(call_id) == "ended":
        return [*skip("output/double", state)]
    reading = by_status(read_output(payload.get("output")), payload.get("status"))
    end = state.memory.get("ends", {}).pop(call_id, None) if call_id else None
    found = draft_result(call_id, _with_end(reading, end) if end else reading, state, at)
    return [*found, *odd_usage(payload, state, at)]


def _with_end(reading: Reading, end: list[Any]) -> Reading:
    """Complete an output by its `*_end` event; an output that says its process is still running takes precedence."""
    outcome, exit_code, duration_ms = end
    if reading.outcome is Outcome.RUNNING:
        return reading
    if outcome:
        reading = reading._replace(outcome=Outcome(outcome), source=OutcomeSource.STRUCTURE)
    return reading._replace(
        exit_code=exit_code if reading.exit_code is None else reading.exit_code,
        duration_ms=reading.duration_ms if duration_ms is None else duration_ms,
    )


def tool_search_output(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read the tools that a search found."""
    reading = by_status(Reading(compact_json(payload.get("tools"))), payload.get("status"))
    return draft_result(call_id_of(payload), reading, state, at)


def legacy_result(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read `{type: tool_result, name, result: {stdout, stderr, exitCode}}`, as in some published fixtures."""
    given = payload.get("result")
    exit_code = whole(fields(given).get("exitCode"))
    if exit_code is None:
        return draft_result(call_id_of(payload), read_output(given), state, at)
    shown = "\n".join(texts([fields(given).get("stdout"), fields(given).get("stderr")]))
    return draft_result(call_id_of(payload), exited(shown, exit_code), state, at)


def image_call(payload: Record, state: LogState, at: int | None) -> list[Said]:
    """Read a generated picture: call and result in one item."""
    call_id = call_id_of(payload) or identifier(payload.get("id"))
    found = call_item(call_id, "image_generation", payload.get("revised_prompt"), state, at)
    return [*found, *draft_result(call_id, image_reading(payload), state, at)] if found else []


def image_reading(payload: Record) -> Reading:
    """Read a generated picture as a placeholder."""
    shown = image_placeholder("image/png", payload["result"]) if text(payload.get("result")) else ""
    return by_status(Reading(shown), payload.get("status"))
