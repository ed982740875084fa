"""Tool calls: the envelope of events, sub-agents, results, executions in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from agtrace_schema.events import Json, Notification, Outcome, OutcomeSource, ToolCall, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said, SessionFacts, Settlement
from agtrace_indexer.events.json_values import compact_json, fields, first_text, image_placeholder, items, text
from agtrace_indexer.events.strings import first_identifier, identifier, masked
from agtrace_indexer.logs.decoding import loads
from agtrace_indexer.providers.copilot import AGENT_TOOL, POLLING, SHELLS
from agtrace_indexer.providers.notes import remember, skip

# -- envelope --------------------------------------------------------------------------------------
# The envelope of an event, read once for all readers, and a reader that works for any event.


class Entry(NamedTuple):
    """One line of the log."""

    kind: str
    """Its type: `assistant.message`."""
    data: Record
    at: int | None
    """Milliseconds since 1970 UTC."""
    thread: str
    """"" for the session itself, else the id of the call that started the sub-agent."""
    id: str | None
    """The line's own id, if it is one that no other line has."""


Reader: TypeAlias = Callable[[Entry, LogState], Sequence[Said]]
"""Turns a line into drafts."""

_UNREADABLE = frozenset({"encryptedContent", "reasoningOpaque"})


def skipped(entry: Entry, state: LogState) -> list[Said]:
    """Leave a line out, which is counted."""
    return [*skip(entry.kind, state)]


def notifying(*keys: str, ends_turn: bool = False) -> Reader:
    """Make a reader that notifies of the first of these values that is a text, or else of all of the event."""

    def notify(entry: Entry, state: LogState) -> list[Said]:
        said = next((entry.data[key] for key in keys if text(entry.data.get(key))), None)
        return [notice(entry, said or readable(entry.data), ends_turn=ends_turn)]

    return notify


def notice(entry: Entry, said: str, *, ends_turn: bool = False) -> Draft:
    """Return a notification of an event's own type."""
    return Draft(Notification(entry.kind, said), entry.at, thread=entry.thread, ends_turn=ends_turn)


def readable(value: Any) -> str:
    """Write a value as JSON, without encrypted parts."""
    found = _legible(value)
    return compact_json(found) if found else ""


def _legible(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _legible(inner) for key, inner in value.items() if key not in _UNREADABLE}
    return [_legible(inner) for inner in value] if isinstance(value, list) else value


# -- background ------------------------------------------------------------------------------------
# Executions that outlive their result: commands that go on in their shell, and sub-agents in the background. A command
# is named by its shell, an agent by the name that its call gave it. Their end is told by the result of a call that
# asks about them (`read_bash`, `read_agent`) or stops them (`stop_bash`), or by a notification of the system. Ids of
# shells start again when the session is resumed: the newest command has the id.

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


# -- sub agents ------------------------------------------------------------------------------------
# Sub-agents: their lines are among those of the session, with the id of the call that started them. From about 1.0.6x
# it is in `agentId` of the envelope, before that in `parentToolCallId` of the data; lines of one sub-agent may have
# both.

_OF_THE_PARENT = frozenset({"subagent.started", "subagent.completed", "subagent.failed"})
"""They have the sub-agent's id, but tell its parent."""

_TASKS_REMEMBERED = 64
_LONGEST_DESCRIPTION = 500


def thread_of(kind: str, agent: Any, data: Record, state: LogState) -> str:
    """Return the thread of a line, which is new if it is a sub-agent's first one."""
    if kind in _OF_THE_PARENT:
        return ""
    thread = identifier(agent) or identifier(data.get("parentToolCallId")) or ""
    if thread and thread not in state.sessions:
        state.sessions[thread] = _begun(thread, state)
    return thread


def note_task(call_id: str | None, name: str, arguments: Json, state: LogState) -> None:
    """Remember what a sub-agent is started for, until its first line."""
    if call_id and name == AGENT_TOOL:
        given = fields(arguments)
        noted = [_shown(given.get("description")), _shown(given.get("agent_type"))]
        remember(state.memory.setdefault("tasks", {}), call_id, noted, _TASKS_REMEMBERED)


def started(entry: Entry, state: LogState) -> list[Said]:
    """Read that a sub-agent starts; one that says nothing leaves no session."""
    call_id = identifier(entry.data.get("toolCallId"))
    if call_id:
        facts = state.sessions.get(call_id) or _begun(call_id, state)
        facts.agent_type = text(entry.data.get("agentName")) or facts.agent_type
        facts.model = text(entry.data.get("model")) or facts.model
        state.sessions[call_id] = facts
    return [notice(entry, _named_agent(entry.data))]


def ended(entry: Entry, state: LogState) -> list[Said]:
    """Read that a sub-agent ended; why, if it failed."""
    told = {key: value for key, value in entry.data.items() if key in ("durationMs", "totalTokens", "totalToolCalls")}
    error = entry.data.get("error")
    failure = error if isinstance(error, str) else readable(error)
    return [notice(entry, ": ".join(filter(None, (_named_agent(entry.data), failure or readable(told)))))]


def session_of(call_id: str | None, state: LogState) -> str | None:
    """Return the id of the sub-agent that a call started; None if it started none."""
    facts = state.sessions.get(call_id) if call_id else None
    return None if facts is None else facts.id


def _begun(thread: str, state: LogState) -> SessionFacts:
    main = state.sessions[""]
    facts = SessionFacts(id=thread, kind="subagent", parent_id=main.id, started_call=thread)
    facts.cwd, facts.branch, facts.version = main.cwd, main.branch, main.version
    facts.description, facts.agent_type = state.memory.get("tasks", {}).pop(thread, (None, None))
    return facts


def _named_agent(data: Record) -> str:
    return text(data.get("agentDisplayName")) or text(data.get("agentName")) or ""


def _shown(value: Any) -> str | None:
    return masked(value)[:_LONGEST_DESCRIPTION] if isinstance(value, str) and value else None


# -- tool calls ------------------------------------------------------------------------------------
# Tool calls: requests in a model's message, executions that no message asked for, commands of the human.

_CALLS_REMEMBERED = 256


def requested(entry: Entry, step: str, state: LogState) -> list[Said]:
    """Return the calls of a message, without those that were known before it: a message may be written twice."""
    said: list[Said] = []
    for request in map(fields, items(entry.data.get("toolRequests"))):
        name = first_text(request.get("name"), request.get("toolName")) or "unknown"
        said += _call(request, name, entry, step, state)
    return said


def begun(entry: Entry, state: LogState) -> list[Said]:
    """Read the start of an execution, which repeats its request unless there was none."""
    name = first_text(entry.data.get("toolName"), entry.data.get("mcpToolName")) or "unknown"
    step = state.memory.get("steps", {}).get(entry.thread) or f"call/{identifier(entry.data.get('toolCallId'))}"
    return _call(entry.data, name, entry, step, state) or [*skip(entry.kind, state)]


def requested_by_user(entry: Entry, state: LogState) -> list[Said]:
    """Read a command that the human typed after `!`: no response asked for it."""
    name = first_text(entry.data.get("toolName")) or "unknown"
    return _call(entry.data, name, entry, None, state) or [*skip(entry.kind, state)]


def call_of(call_id: str | None, state: LogState) -> tuple[str, str | None]:
    """Return the tool of a call and the shell that it asks about, `""` and None if the call isn't remembered."""
    name, shell = state.memory.get("calls", {}).get(call_id, ("", None))
    return name, shell


def _call(request: Record, name: str, entry: Entry, step: str | None, state: LogState) -> list[Said]:
    call_id, arguments = identifier(request.get("toolCallId")), _decoded(request.get("arguments"))
    calls = state.memory.setdefault("calls", {})
    if call_id in calls:
        return []
    if call_id:
        remember(calls, call_id, [name[:_LONGEST_NAME], _shell(arguments)], _CALLS_REMEMBERED)
        note_task(call_id, name, arguments, state)
    return [Draft(ToolCall(call_id, name, arguments), entry.at, step, entry.thread)]


_LONGEST_NAME = 64


def _shell(arguments: Json) -> str | None:
    """Return the id of the shell that a call names: a text or a number."""
    named = fields(arguments).get("shellId")
    return identifier(str(named)) if isinstance(named, (str, int)) else None


def _decoded(value: Any) -> Json:
    """Decode arguments that are JSON in a string; any other text is returned unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value  # type: ignore[no-any-return]  # a value of a decoded record is JSON
    try:
        decoded: Json = loads(value)
    except ValueError:
        return value
    return decoded


# -- tool results ----------------------------------------------------------------------------------
# Results of tool executions: what the model was given, and the outcome. A command that fails is still a success in the
# log: its exit code says otherwise, in the telemetry, in a part of the result, or on its last line, which the CLI
# writes. The last one only counts for the tools that run commands.

_DECISIONS_REMEMBERED = 256
_REFUSED = frozenset({"denied", "rejected"})
_LAST_LINE = later(r"<(?:shellId: \S{1,64} completed with exit code|exited with exit code) (-?\d{1,10})>\s*\Z")
_TRAILER = 200  # more than the longest last line


class _Told(NamedTuple):
    outcome: Outcome
    source: OutcomeSource | None
    exit_code: int | None = None


def completed(entry: Entry, state: LogState) -> list[Said]:
    """Read the result of an execution; some tell how another one ended, which their call asked about."""
    call_id = identifier(entry.data.get("toolCallId"))
    tool, shell = call_of(call_id, state)
    said = _shown_output(entry.data)
    outcome, source, exit_code = _outcome(entry.data, said, call_id, tool, state)
    agent = session_of(call_id, state) if tool == AGENT_TOOL else None
    result = ToolResult(call_id, said, outcome, source, exit_code, agent_id=agent)
    if outcome is Outcome.RUNNING:
        if tool not in POLLING:
            note_running(result, entry, state)
        ends = []
    else:
        ends = settled_by_result(result, tool, shell, entry, state)
    return [Draft(result, entry.at, thread=entry.thread, reports=bool(ends)), *ends]


def decided(entry: Entry, state: LogState) -> list[Said]:
    """Read what became of a request for permission: the result of the call may not say it."""
    call_id, kind = identifier(entry.data.get("toolCallId")), text(fields(entry.data.get("result")).get("kind")) or ""
    outcome = Outcome.REJECTED if kind.startswith("denied") else Outcome.INTERRUPTED if kind == "cancelled" else None
    if call_id and outcome:
        remember(state.memory.setdefault("decided", {}), call_id, outcome, _DECISIONS_REMEMBERED)
    return [*skip(entry.kind, state)]


def _outcome(data: Record, said: str, call_id: str | None, tool: str, state: LogState) -> _Told:
    decision = state.memory.get("decided", {}).pop(call_id, None)
    succeeded = data.get("success")
    if succeeded is not True:
        if decision is None and text(fields(data.get("error")).get("code")) in _REFUSED:
            decision = Outcome.REJECTED
        if decision:
            return _Told(Outcome(decision), OutcomeSource.STRUCTURE)
        if succeeded is not False:
            return _Told(Outcome.UNKNOWN, None)
        return _Told(Outcome.FAILED, OutcomeSource.STRUCTURE, _recorded_code(data))
    if running := still_running(data, said, tool):
        return _Told(Outcome.RUNNING, running)
    recorded = _recorded_code(data)
    if recorded is not None:
        return _Told(Outcome.FAILED if recorded else Outcome.OK, OutcomeSource.STRUCTURE, recorded)
    found = _LAST_LINE.search(said[-_TRAILER:]) if tool in SHELLS or tool in POLLING else None
    if found:
        code = int(found[1])
        return _Told(Outcome.FAILED if code else Outcome.OK, OutcomeSource.TEXT, code)
    return _Told(Outcome.OK, OutcomeSource.STRUCTURE)


def _recorded_code(data: Record) -> int | None:
    """Return the exit code in the telemetry, where it is only if it isn't zero, or in a part of the result."""
    metrics = fields(fields(data.get("toolTelemetry")).get("metrics"))
    parts = map(fields, items(fields(data.get("result")).get("contents")))
    codes = [metrics.get("exit_code"), *(part.get("exitCode") for part in parts if part.get("type") == "shell_exit")]
    return next((code for code in codes if type(code) is int and abs(code) < 2**53), None)


def _shown_output(data: Record) -> str:
    """Return what the model saw: the content of the result, else the message of the error."""
    result, error = data.get("result"), data.get("error")
    if isinstance(result, str):
        return result
    given = fields(result)
    said = [text(given.get("content")), *map(_binary, items(given.get("binaryResultsForLlm")))]
    shown = "\n".join(filter(None, said))
    if shown or data.get("success") is True:
        return shown or _structure(given)
    return error if isinstance(error, str) else text(fields(error).get("message")) or readable(error)


def _structure(given: Record) -> str:
    """Return the parts of a result without a text of its own."""
    texts = (text(fields(part).get("text")) for part in items(given.get("contents")))
    return "\n".join(filter(None, texts)) or readable(given.get("structuredContent"))


def _binary(part: Any) -> str | None:
    found = fields(part)
    return image_placeholder(found.get("mimeType"), found.get("data")) if found else None
