"""Executions that outlive their result: commands that go on in their shell, and sub-agents in the background.

A command is named by its shell, an agent by the name that its call gave it. Their end is told by the result of a call
that asks about them (`read_bash`, `read_agent`) or stops them (`stop_bash`), or by a notification of the system. Ids of
shells start again when the session is resumed: the newest command has the id.
"""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Outcome, OutcomeSource, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import LogState, Record, Settlement
from agtrace_indexer.events.json_values import fields, text
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.copilot import AGENT_TOOL, POLLING, SHELLS
from agtrace_indexer.providers.copilot.envelope import Entry
from agtrace_indexer.providers.notes import remember

_REMEMBERED = 64

_RUNNING = later(
    r"<command (?:with shellId: (\S{1,64}) is still running|"
    r"started in (?:detached )?background with shellId: (\S{1,64}))"
)
_LOOKED_AT = 400
"""Characters at the beginning and at the end of a result in which the CLI says that the command goes on."""

_STOPPED = later(r"<command with (?:id|shellId): \S{1,64} stopped>")
_ENDS: dict[str | None, Outcome] = {
    "completed": Outcome.OK,
    "failed": Outcome.FAILED,
    **dict.fromkeys(("cancelled", "killed", "stopped"), Outcome.INTERRUPTED),
}
"""The outcome for each final state of an agent."""


def still_running(data: Record, said: str, tool: str) -> OutcomeSource | None:
    """Return what says that an execution goes on after its result; None if it ended."""
    properties = _properties(data)
    if tool == AGENT_TOOL:
        return OutcomeSource.STRUCTURE if properties.get("execution_mode") == "background" else None
    if properties.get("shell_error_category") == "command_timeout":
        return OutcomeSource.STRUCTURE
    if (tool in SHELLS or tool in POLLING) and _running_shell(said):
        return OutcomeSource.TEXT
    return None


def note_running(result: ToolResult, entry: Entry, state: LogState) -> None:
    """Remember an execution that goes on, until it ends."""
    named = _agent(entry.data) or _running_shell(result.text)
    if named and result.call_id:
        remember(state.memory.setdefault("running", {}), named, [result.call_id, entry.thread], _REMEMBERED)


def settled_by_result(
    result: ToolResult, tool: str, shell: str | None, entry: Entry, state: LogState
) -> list[Settlement]:
    """Return the end of an execution that a call asked about or stopped."""
    if tool == "read_agent":
        outcome = _ENDS.get(text(_properties(entry.data).get("status")))
        return _settled(_agent(entry.data), outcome, None, state)
    if tool not in POLLING or shell is None:
        return []
    if _STOPPED.search(result.text[:_LOOKED_AT]) or _properties(entry.data).get("shell_status") == "stopped":
        return _settled(shell, Outcome.INTERRUPTED, entry.at, state)
    if result.exit_code is None:
        return []
    return _settled(shell, result.outcome, None, state)


def settled_by_notice(entry: Entry, state: LogState) -> list[Settlement]:
    """Return the end of an execution that the system tells the model."""
    kind = fields(entry.data.get("kind"))
    match kind.get("type"):
        case "shell_completed" | "shell_detached_completed":
            code = kind.get("exitCode")
            outcome = Outcome.FAILED if isinstance(code, int) and code else Outcome.OK
            return _settled(identifier(_named(kind.get("shellId"))), outcome, entry.at, state)
        case "agent_completed":
            outcome_of_agent = _ENDS.get(text(kind.get("status")))
            return _settled(_agent_name(identifier(kind.get("agentId"))), outcome_of_agent, entry.at, state)
        case _:
            return []


def _settled(named: str | None, outcome: Outcome | None, at: int | None, state: LogState) -> list[Settlement]:
    running: dict[str, list[str]] = state.memory.get("running", {})
    if outcome is None or named not in running:
        return []
    call_id, thread = running.pop(named)
    return [Settlement(call_id, outcome, at, thread)]


def _running_shell(said: str) -> str | None:
    found = _RUNNING.search(said[:_LOOKED_AT]) or _RUNNING.search(said[-_LOOKED_AT:])
    return identifier(found and (found[1] or found[2]))


def _agent(data: Record) -> str | None:
    """Return the agent that a result is about, by the name that its call gave it."""
    restricted = fields(fields(data.get("toolTelemetry")).get("restrictedProperties"))
    return _agent_name(first_identifier(restricted.get("agent_id"), _properties(data).get("agent_id")))


def _agent_name(id: str | None) -> str | None:
    return id and f"agent {id}"


def _properties(data: Record) -> Record:
    return fields(fields(data.get("toolTelemetry")).get("properties"))


def _named(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int)) else None
