"""Results of tool executions: a status says how they ended, the telemetry before them whether the user refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agtrace_schema.events import Outcome, OutcomeSource, ToolResult
from msgspec.structs import replace

from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.events.json_values import count, fields
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.gemini.content import bodies, part_text
from agtrace_indexer.providers.gemini.tool_results import exit_code_of, history_result, outcome_of, response_text
from agtrace_indexer.providers.notes import remember

_CALLS_REMEMBERED = 64
_CANCELLED = "[Operation Cancelled]"


def note_execution(event: dict[str, Any], state: LogState) -> None:
    """Remember what the telemetry says about an execution, until its result."""
    call = identifier(event.get("call_id"))
    if call is not None:
        told = [event.get("decision") == "reject", count(event.get("duration_ms"))]
        remember(state.memory.setdefault("executions", {}), call, told, _CALLS_REMEMBERED)


def results_of(parts: list[Any], record: Record, state: LogState) -> Iterator[ToolResult]:
    """Read the answers in a line, whose status is that of one of them; other parts belong to the last answer."""
    told = fields(record.get("toolCallResult"))
    answers = bodies(parts, "functionResponse")
    beside = [said for part in parts if (said := part_text(part)).strip()]
    for number, answer in enumerate(answers):
        result = _result(answer, told, only=len(answers) == 1)
        if number == len(answers) - 1 and beside:
            result = replace(result, text="\n".join(filter(None, [result.text, *beside])))
        yield _as_executed(result, state)


def _result(answer: dict[str, Any], told: dict[str, Any], *, only: bool) -> ToolResult:
    call = identifier(answer.get("id")) or (identifier(told.get("callId")) if only else None)
    if not (only or call == identifier(told.get("callId"))) or told.get("status") is None:
        return replace(history_result(answer), call_id=call)
    said, shell = response_text({"functionResponse": answer}), answer.get("name") == "run_shell_command"
    exit_code = exit_code_of(said, told.get("resultDisplay")) if shell else None
    outcome, source = outcome_of(told["status"], said, exit_code, shell)
    return ToolResult(call, said, outcome, source, exit_code)


def _as_executed(result: ToolResult, state: LogState) -> ToolResult:
    """Add what the telemetry said about the execution."""
    rejected, duration = state.memory.get("executions", {}).pop(result.call_id, (False, None))
    if rejected:
        return replace(result, outcome=Outcome.REJECTED, outcome_source=OutcomeSource.STRUCTURE)
    if result.outcome is Outcome.INTERRUPTED:
        return result
    return replace(result, duration_ms=duration)
