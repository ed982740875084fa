"""GitHub Copilot CLI: `session-state/<session id>/events.jsonl`, one event a line (README.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple, TypeAlias

from agtrace_schema.events import (
    Json,
    Message,
    Notification,
    Outcome,
    OutcomeSource,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from agtrace_schema.patterns import later

from agtrace_indexer.events.clues import remote
from agtrace_indexer.events.drafts import Draft, LogState, Record, Said, SessionFacts, Settlement
from agtrace_indexer.events.json_values import (
    compact_json,
    count,
    digest,
    fields,
    first_text,
    image_placeholder,
    items,
    milliseconds,
    remember,
    text,
)
from agtrace_indexer.events.strings import first_identifier, identifier, masked
from agtrace_indexer.logs.decoding import loads
from agtrace_indexer.providers.beside import small_file
from agtrace_indexer.providers.copilot import AGENT_TOOL, POLLING, SHELLS
from agtrace_indexer.providers.notes import (
    check_usage,
    identify,
    known,
    no_document,
    numbered,
    skip,
    unknown,
)

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


def settled_by_result(
    result: ToolResult, tool: str, shell: str | None, entry: Entry, state: LogState
) -> list[Settlement]:
    """Return the end of an execution that a call asked about or stopped."""
    if tool == "read_agent":
        outcome = _ENDS.get(text(_properties(entry.data).get("status")))
        return _settled(_agent_of(entry.data), outcome, None, state)
    if tool not in POLLING or shell is None:
        return []
    if _STOPPED.search(result.text[:_LOOKED_AT]) or _properties(entry.data).get("shell_status") == "stopped":
        return _settled(shell, Outcome.INTERRUPTED, entry.at, state)
    return [] if result.exit_code is None else _settled(shell, result.outcome, None, state)


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
            return _settled(_agent(kind.get("agentId")), outcome_of_agent, entry.at, state)
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


def _agent(*ids: Any) -> str | None:
    """Return what an agent is called here, by the name that its call gave it."""
    id = first_identifier(*ids)
    return id and f"agent {id}"


def _agent_of(data: Record) -> str | None:
    """Return the agent that a result is about."""
    restricted = fields(fields(data.get("toolTelemetry")).get("restrictedProperties"))
    return _agent(restricted.get("agent_id"), _properties(data).get("agent_id"))


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


def agent_started(entry: Entry, state: LogState) -> list[Said]:
    """Read that a sub-agent starts; one that says nothing leaves no session."""
    call_id = identifier(entry.data.get("toolCallId"))
    if call_id:
        facts = state.sessions.get(call_id) or _begun(call_id, state)
        facts.agent_type = text(entry.data.get("agentName")) or facts.agent_type
        facts.model = text(entry.data.get("model")) or facts.model
        state.sessions[call_id] = facts
    return [notice(entry, _named_agent(entry.data))]


def agent_ended(entry: Entry, state: LogState) -> list[Said]:
    """Read that a sub-agent ended; why, if it failed."""
    told = {key: value for key, value in entry.data.items() if key in ("durationMs", "totalTokens", "totalToolCalls")}
    error = entry.data.get("error")
    failure = error if isinstance(error, str) else readable(error)
    return [notice(entry, ": ".join(filter(None, (_named_agent(entry.data), failure or readable(told)))))]


def _begun(thread: str, state: LogState) -> SessionFacts:
    main = state.sessions[""]
    facts = SessionFacts(id=thread, kind="subagent", parent_id=main.id, started_call=thread)
    facts.cwd, facts.branch, facts.version = main.cwd, main.branch, main.version
    facts.description, facts.agent_type = state.memory.get("tasks", {}).pop(thread, (None, None))
    return facts


def _named_agent(data: Record) -> str:
    return first_text(data.get("agentDisplayName"), data.get("agentName")) or ""


def _shown(value: Any) -> str | None:
    return masked(value, _LONGEST_DESCRIPTION) if isinstance(value, str) and value else None


# -- tool calls ------------------------------------------------------------------------------------
# Tool calls: requests in a model's message, executions that no message asked for, commands of the human.

_CALLS_REMEMBERED = 256


def requested(entry: Entry, step: str, state: LogState) -> list[Said]:
    """Return the calls of a message, without those that were known before it: a message may be written twice."""
    result: list[Said] = []
    for request in map(fields, items(entry.data.get("toolRequests"))):
        name = first_text(request.get("name"), request.get("toolName")) or "unknown"
        result += _call(request, name, entry, step, state)
    return result


def begun(entry: Entry, state: LogState) -> list[Said]:
    """Read the start of an execution, which repeats its request unless there was none.

    No response asked for a command that the human typed after `!`.
    """
    name = first_text(entry.data.get("toolName"), entry.data.get("mcpToolName")) or "unknown"
    step = None
    if entry.kind != "tool.user_requested":
        step = state.memory.get("steps", {}).get(entry.thread) or f"call/{identifier(entry.data.get('toolCallId'))}"
    return _call(entry.data, name, entry, step, state)


def _call(request: Record, name: str, entry: Entry, step: str | None, state: LogState) -> list[Said]:
    call_id, arguments = identifier(request.get("toolCallId")), _decoded(request.get("arguments"))
    calls = state.memory.setdefault("calls", {})
    if call_id in calls:
        return []
    if call_id:
        shell = identifier(_named(fields(arguments).get("shellId")))
        remember(calls, call_id, [masked(name, _LONGEST_NAME), shell], _CALLS_REMEMBERED)
        if name == AGENT_TOOL:  # what a sub-agent is started for, until its first line
            noted = [_shown(fields(arguments).get(key)) for key in ("description", "agent_type")]
            remember(state.memory.setdefault("tasks", {}), call_id, noted, _TASKS_REMEMBERED)
    return [Draft(ToolCall(call_id, name, arguments), entry.at, step, entry.thread)]


_LONGEST_NAME = 64


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
    tool, shell = state.memory.get("calls", {}).get(call_id, ("", None))  # the shell is one that the call asks about
    said = _shown_output(entry.data)
    outcome, source, exit_code = _outcome(entry.data, said, call_id, tool, state)
    agent = state.sessions.get(call_id or "-") if tool == AGENT_TOOL else None
    result = ToolResult(call_id, said, outcome, source, exit_code, agent_id=agent.id if agent else None)
    if outcome is Outcome.RUNNING:
        named = _agent_of(entry.data) or _running_shell(said)
        if tool not in POLLING and named and call_id:
            remember(state.memory.setdefault("running", {}), named, [call_id, entry.thread], _REMEMBERED)
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
    return []


def _outcome(data: Record, said: str, call_id: str | None, tool: str, state: LogState) -> _Told:
    decision = state.memory.get("decided", {}).pop(call_id, None)
    succeeded, recorded = data.get("success"), _recorded_code(data)
    if succeeded is not True:
        if decision is None and text(fields(data.get("error")).get("code")) in _REFUSED:
            decision = Outcome.REJECTED
        if decision:
            return _Told(Outcome(decision), OutcomeSource.STRUCTURE)
        failed = succeeded is False
        return _Told(Outcome.FAILED, OutcomeSource.STRUCTURE, recorded) if failed else _Told(Outcome.UNKNOWN, None)
    if running := still_running(data, said, tool):
        return _Told(Outcome.RUNNING, running)
    if recorded is not None:
        return _Told(Outcome.FAILED if recorded else Outcome.OK, OutcomeSource.STRUCTURE, recorded)
    found = _LAST_LINE.search(said[-_TRAILER:]) if tool in SHELLS or tool in POLLING else None
    if found:
        code = int(found[1])
        return _Told(Outcome.FAILED if code else Outcome.OK, OutcomeSource.TEXT, code)
    return _Told(Outcome.OK, OutcomeSource.STRUCTURE)


def _recorded_code(data: Record) -> int | None:
    """Return the exit code: beside the result, in a part of it, or in the telemetry, where it is only if it isn't 0."""
    metrics, result = fields(fields(data.get("toolTelemetry")).get("metrics")), fields(data.get("result"))
    parts = (part for part in map(fields, items(result.get("contents"))) if part.get("type") == "shell_exit")
    codes = [*(part.get("exitCode") for part in parts), metrics.get("exit_code")]
    codes += [fields(of.get("shellExecution")).get("exitCode") for of in (data, result)]
    return next((code for code in codes if type(code) is int and abs(code) < 2**53), None)


def _shown_output(data: Record) -> str:
    """Return what the model saw: the content of the result, else the message of the error."""
    result, error = data.get("result"), data.get("error")
    if isinstance(result, str):
        return result
    given = fields(result)
    images = (fields(part) for part in items(given.get("binaryResultsForLlm")))
    placed = (image_placeholder(image.get("mimeType"), image.get("data")) for image in images if image)
    said = [text(given.get("content")), *placed]
    shown = "\n".join(filter(None, said))
    if shown or data.get("success") is True:
        parts = (text(fields(part).get("text")) for part in items(given.get("contents")))
        return shown or "\n".join(filter(None, parts)) or readable(given.get("structuredContent"))
    return error if isinstance(error, str) else text(fields(error).get("message")) or readable(error)


# -- tokens ----------------------------------------------------------------------------------------
# Token counts (README.md). A message has the tokens of its output. What went in, and what came from the cache,
# is only known when the CLI ends: `session.shutdown` sums it up by model. So a run of the CLI has one more record of
# usage for each model, without a step, whose output is what no message had. Until the end it is incomplete. A session
# that is resumed has several such sums. From 1.0.78 they go on; until about May 2026 each run began at zero. The log
# itself decides: sums with less output than all messages so far had are those of one run. What the run cost, its
# sub-agents and compactions included, is in the same record: the AI units by model at the end, before that those of
# the last checkpoint, which go on from run to run. Sums that lack what messages of the run had are a floor: an
# earlier process was killed.

_UNITS = "totalNanoAiu"
_FIGURES = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens", "reasoningTokens", _UNITS)
_INPUT, _READ, _WRITTEN, _OUTPUT, _REASONING, _PAID = range(6)
_UNITS_PER_DOLLAR = 1e11
_DETAILS = ("input", "output", "cache_read", "cache_write")
_OF_A_MODEL = known(
    *(f"usage.{name}" for name in _FIGURES), *(f"tokenDetails.{name}.tokenCount" for name in _DETAILS),
    "requests.count", "requests.cost", _UNITS,
)  # fmt: skip
_BILLED = ("batchSize", "costPerBatch", "tokenCount", "tokenType")
_OF_A_COMPACTION = known(
    *_FIGURES, "model", "duration", f"copilotUsage.{_UNITS}", *(f"copilotUsage.tokenDetails.{it}" for it in _BILLED)
)
_RESPONSES_REMEMBERED = 32
_MODELS = 64
_LONGEST_MODEL = 200


def begin_counting(session: str | None, state: LogState) -> None:
    """Begin with nothing: the first line of a session."""
    zero: dict[str, Any] = dict.fromkeys(("run", "said", "told", "paid", "spent"), 0)
    state.memory["used"] = {"session": session, "by": {}, "sums": {}, "of": {}, **zero}


def response_usage(entry: Entry, step: str, state: LogState) -> list[Said]:
    """Return the output of a response; a later chunk of it replaces the figure. Zero is unknown: no answer is empty.

    What went into a sub-agent's responses is only known together with that of the session. Since 1.0.83 messages have
    no figures: all of them are then known together at the end of the run.
    """
    output, used, said = count(entry.data.get("outputTokens")), _used(state), list[Said]()
    response = first_identifier(entry.data.get("apiCallId"), entry.data.get("messageId"))
    model = text(entry.data.get("model")) or state.sessions[entry.thread].model
    if output is not None:
        _note_output(response, model, output, state)
        whole = bool(output and not entry.thread)
        usage = TokenUsage(response, model, output_tokens=output or None, complete=whole)
        said.append(Draft(usage, entry.at, step, entry.thread, response and f"usage/{response}"))
    if not used.get("awaited"):  # of the first response of a run: it is replaced when the run ends
        used["awaited"] = True
        said.append(_run_so_far(entry, model, used))
    return said


def checkpoint(entry: Entry, state: LogState) -> list[Said]:
    """Read what the session has cost so far; for how many tokens isn't said."""
    used = _used(state)
    spent = _spent(entry, used)
    if spent <= used["spent"]:
        return []
    used.update(spent=spent, awaited=True)
    return [_run_so_far(entry, state.sessions[""].model, used)]


def shutdown(entry: Entry, state: LogState) -> list[Said]:
    """Read the end of a run: the sums by model, less what was counted before."""
    used = _used(state)
    for told in ({"tokenDetails": entry.data.get("tokenDetails")}, *fields(entry.data.get("modelMetrics")).values()):
        check_usage(told, _OF_A_MODEL, state)
    grown = _growth(_sums(entry.data.get("modelMetrics")), used)
    grown = {model: sums for model, sums in grown.items() if any(sums)}
    output, paid = (sum(sums[figure] for sums in grown.values()) for figure in (_OUTPUT, _PAID))
    spent = max(paid, used["spent"], _spent(entry, used))
    whole = output >= used["told"] and (paid >= spent if paid else not used.get("cut"))
    if spent and used["run"] and not used["paid"]:
        whole = False  # nobody says what earlier runs cost
    spoken, unsaid = dict(used["by"]), max(output - used["told"], 0)
    ending = ": ".join(filter(None, (text(entry.data.get(name)) for name in ("shutdownType", "errorReason"))))
    result: list[Said] = [notice(entry, ending, ends_turn=True)]
    if spent > used["spent"] and not grown:
        result.append(_run_so_far(entry, state.sessions[""].model, used | {"spent": spent}))
    for number, (model, sums) in enumerate(grown.items()):
        more = min(max(sums[_OUTPUT] - spoken.get(model, 0), 0), unsaid)
        unsaid -= more
        if number == 0:
            sums[_PAID] += spent - paid
        usage = _usage(model, sums, more)
        usage.complete, usage.cost_usd = whole, sums[_PAID] / _UNITS_PER_DOLLAR or None
        result.append(_of_a_run(usage, entry, used, number))
    used.update(run=used["run"] + 1, told=0, by={}, awaited=False, cut=False, paid=used["paid"] + spent, spent=0)
    return result


def _used(state: LogState) -> dict[str, Any]:
    if "used" not in state.memory:
        begin_counting(state.sessions[""].id, state)
    used: dict[str, Any] = state.memory["used"]
    return used


def _note_output(response: str | None, model: str | None, output: int, state: LogState) -> None:
    """Add to the output of all messages and of this run; of a response that comes again, only the difference."""
    used = _used(state)
    more = output - (used["of"].get(response, 0) if response else 0)
    if response:
        remember(used["of"], response, output, _RESPONSES_REMEMBERED)
    used["said"] += more
    used["told"] += more
    if model is not None and (model in used["by"] or len(used["by"]) < _MODELS):
        name = _model(model)
        used["by"][name] = used["by"].get(name, 0) + more


def _run_so_far(entry: Entry, model: str | None, used: dict[str, Any]) -> Draft:
    usage = TokenUsage(None, model, complete=False)
    usage.cost_usd = used["spent"] / _UNITS_PER_DOLLAR or None
    return _of_a_run(usage, entry, used, 0)


def _spent(entry: Entry, used: dict[str, Any]) -> int:
    """Return the AI units of this run: those told now, less those of earlier runs unless they began at zero again."""
    told = count(entry.data.get(_UNITS)) or 0
    return told - used["paid"] if told >= used["paid"] else told


def _of_a_run(usage: TokenUsage, entry: Entry, used: dict[str, Any], number: int) -> Draft:
    return Draft(usage, entry.at, key=f"run/{used['session']}/{used['run']}/{number}", of_session=True)


def _growth(sums: dict[str, list[int]], used: dict[str, Any]) -> dict[str, list[int]]:
    """Return what the sums add to those counted before, which they contain unless the run began at zero."""
    before: dict[str, list[int]] = used["sums"]
    goes_on = sum(found[_OUTPUT] for found in sums.values()) >= used["said"]
    grown: dict[str, list[int]] = {}
    for model, found in sums.items():
        counted = before.get(model, [0] * len(_FIGURES))
        grown[model] = [max(one - other, 0) for one, other in zip(found, counted, strict=True)] if goes_on else found
        before[model] = [one + other for one, other in zip(counted, grown[model], strict=True)]
    return grown


def _sums(metrics: Any) -> dict[str, list[int]]:
    """Return the figures of each model."""
    told = [(_model(model), fields(it)) for model, it in fields(metrics).items()][:_MODELS]
    return {model: _figures(fields(it.get("usage")) | {_UNITS: it.get(_UNITS)}) for model, it in told}


def _figures(usage: dict[str, Any]) -> list[int]:
    return [count(usage.get(name)) or 0 for name in _FIGURES]


def _usage(model: str | None, sums: list[int], output: int) -> TokenUsage:
    """Convert Copilot's figures, whose input includes tokens read from and written to the cache."""
    fresh = max(sums[_INPUT] - sums[_READ] - sums[_WRITTEN], 0)
    reasoning = min(sums[_REASONING], output) if output else None
    return TokenUsage(None, model, fresh, sums[_WRITTEN], None, sums[_READ], output, reasoning)


def _model(name: str) -> str:
    return masked(name, _LONGEST_MODEL)


# -- user texts ------------------------------------------------------------------------------------
# Texts in the user's role: who speaks in them.

_INJECTED = ("<skill-context", "<reminder>", "<system_reminder>")
_NOTIFICATION = "<system_notification>"
_OF_A_HUMAN = (None, "user")
_OF_AN_AGENT = "agent-"


def user_kind(said: str, entry: Entry) -> UserKind:
    """Tell requests from what was injected: by its source, by a flag, or by the beginning of its text.

    A source is `user`, `agent-<session id>`, `skill-<name>`, `system`, `command-<...>` or a schedule; most texts of
    humans have none. In a sub-agent, its parent speaks.
    """
    start, source = said.lstrip(), text(entry.data.get("source"))
    if start.startswith(_NOTIFICATION):
        return UserKind.NOTIFICATION
    if entry.data.get("isAutopilotContinuation") is True or start.startswith(_INJECTED):
        return UserKind.INJECTED
    if entry.thread:
        return UserKind.TASK if source in _OF_A_HUMAN or source.startswith(_OF_AN_AGENT) else UserKind.INJECTED
    return UserKind.HUMAN if source in _OF_A_HUMAN else UserKind.INJECTED


# -- messages --------------------------------------------------------------------------------------
# What users and models say.

_THREADS_REMEMBERED = 64


def user_message(entry: Entry, state: LogState) -> list[Said]:
    """Read a text in the user's role: what was typed, without the reminders that the model was given with it."""
    state.memory.get("ahead", {}).pop(entry.thread, None)
    named = map(fields, items(entry.data.get("attachments")))
    names = (text(one.get("displayName")) or text(one.get("path")) for one in named)
    said = text(entry.data.get("content")) or "\n".join(f"[attachment: {name}]" for name in names if name)
    return [Draft(User(said, user_kind(said, entry)), entry.at, thread=entry.thread)] if said else []


def assistant_message(entry: Entry, state: LogState) -> list[Said]:
    """Read a response, or one chunk of it: thoughts, a text, calls, and the tokens of its output."""
    data = entry.data
    model = text(data.get("model"))
    if model:
        state.sessions[entry.thread].model = model
    step, message = _step(entry, state), identifier(data.get("messageId"))
    part = message and f"{message}/{count(data.get('chunkIndex')) or 0}"  # written again while it grows, or in chunks
    said: list[Said] = []
    thought = text(data.get("reasoningText"))
    hidden = thought is None and bool(text(data.get("reasoningOpaque")) or text(data.get("encryptedContent")))
    told = state.memory.get("ahead", {}).get(entry.thread)  # the same thoughts on a line of their own
    if hidden or (thought and not (told and told[1] == digest(thought))):
        said.append(_spoken(Reasoning(thought or ""), entry, step, part and f"{part}/thought"))
    if content := text(data.get("content")):
        said.append(_spoken(Message(content), entry, step, part))
    return [*said, *requested(entry, step, state), *response_usage(entry, step, state)]


def reasoning(entry: Entry, state: LogState) -> list[Said]:
    """Read thoughts on a line of their own; the message after them, which may repeat them, is the same response."""
    thought = text(entry.data.get("content"))
    if not thought:
        return []
    step = f"thought/{first_identifier(entry.data.get('reasoningId'), entry.id) or numbered('response', state)}"
    remember(state.memory.setdefault("ahead", {}), entry.thread, [step, digest(thought)], _THREADS_REMEMBERED)
    return [_spoken(Reasoning(thought), entry, step, None)]


def _spoken(payload: Message | Reasoning, entry: Entry, step: str, key: str | None) -> Draft:
    return Draft(payload, entry.at, step, entry.thread, key)


def _step(entry: Entry, state: LogState) -> str:
    """Return the response that a message belongs to: chunks of one have the same id of the call to the API."""
    response = first_identifier(entry.data.get("apiCallId"), entry.data.get("messageId"), entry.id)
    ahead = state.memory.get("ahead", {})
    step, *rest = ahead.get(entry.thread, (None,))
    if len(rest) == 1:  # thoughts that no message has taken up yet
        ahead[entry.thread] = [step, *rest, response]
    elif not rest or response is None or rest[1] != response:
        ahead.pop(entry.thread, None)
        step = response or numbered("response", state)
    remember(state.memory.setdefault("steps", {}), entry.thread, step, _THREADS_REMEMBERED)
    return str(step)


# -- notices ---------------------------------------------------------------------------------------
# Notifications that say more than their text: compactions, errors, and what the system tells the model.

_LEFT_OUT = frozenset({"summaryContent", "compactionTokensUsed", "requestId", "serviceRequestId"})


def compacted(entry: Entry, state: LogState) -> list[Said]:
    """Read a compaction: what it did, the summary that now stands for the older lines, what the summary cost."""
    shown = {key: value for key, value in entry.data.items() if key not in _LEFT_OUT}
    result: list[Said] = [notice(entry, readable(shown))]
    if summary := text(entry.data.get("summaryContent")):
        result.append(Draft(User(summary, UserKind.COMPACTION_SUMMARY), entry.at, thread=entry.thread))
    told = fields(entry.data.get("compactionTokensUsed"))  # its request is in no sum of the session
    check_usage(told, _OF_A_COMPACTION, state)
    if any(sums := _figures(told)):
        usage = _usage(text(told.get("model")), sums, sums[_OUTPUT])
        result.append(Draft(usage, entry.at, thread=entry.thread, of_session=True))
    return result


def failed(entry: Entry, state: LogState) -> list[Said]:
    """Read an error of the model's API, which ends the turn; the stack of the CLI is left out."""
    message = text(entry.data.get("message"))
    return [notice(entry, message or readable(entry.data))]


def system_texts(entry: Entry, state: LogState) -> list[Said]:
    """Read what the system tells the model in the user's role: a command or an agent has ended, a file has changed."""
    ends = settled_by_notice(entry, state)
    said = text(entry.data.get("content")) or text(fields(entry.data.get("kind")).get("type"))
    told = [Draft(User(said, UserKind.NOTIFICATION), entry.at, thread=entry.thread)] if said else []
    return [*told, *ends]


# -- recognition -----------------------------------------------------------------------------------
# Recognising Copilot's events: their envelope, and the producer that the first of them names.

_TYPES = frozenset({
    "session.start", "session.resume", "session.model_change", "user.message", "assistant.message",
    "assistant.turn_start", "tool.execution_start", "tool.execution_complete", "system.message", "hook.start",
})  # fmt: skip
"""The types of which one is among the first lines of every log."""


def is_event(record: Record) -> bool:
    """Whether this is an event of one of these types, in Copilot's envelope."""
    kind = record.get("type")
    return (
        isinstance(kind, str)
        and kind in _TYPES
        and isinstance(record.get("data"), dict)
        and isinstance(record.get("id"), str)
        and isinstance(record.get("timestamp"), str)
        and "parentId" in record
    )


def producer(record: Record) -> str | None:
    """Return the program that wrote a log, `copilot-agent` or `copilot-chat`; only the first line names it."""
    return text(fields(record.get("data")).get("producer")) if record.get("type") == "session.start" else None


# -- sessions --------------------------------------------------------------------------------------
# The session: its id, directory, branch, version and model.

_AUTO = "auto"
"""The model's name while the CLI chooses the model itself."""

_TITLE_RANK = 3


def started(entry: Entry, state: LogState) -> list[Said]:
    """Read the first line of a session; recordings that join several sessions have more than one."""
    facts, data = state.sessions[""], entry.data
    own = identifier(data.get("sessionId"))
    begin_counting(own, state)
    if facts.id is None:
        facts.id = own
        facts.parent_id = identifier(data.get("detachedFromSpawningParentSessionId"))
    _note_context(fields(data.get("context")), facts)
    facts.version = text(data.get("copilotVersion")) or facts.version
    _note_model(data.get("selectedModel"), facts)
    return [_described(entry)]


def resumed(entry: Entry, state: LogState) -> list[Said]:
    """Read that the session goes on, in another process: whatever the last one was doing was interrupted."""
    facts, used = state.sessions[""], _used(state)
    used["cut"] = bool(used.get("awaited"))
    _note_context(fields(entry.data.get("context")), facts)
    _note_model(entry.data.get("selectedModel"), facts)
    draft = _described(entry)
    draft.ends_turn = True
    return [draft]


def context_changed(entry: Entry, state: LogState) -> list[Said]:
    """Read a new directory or branch."""
    _note_context(entry.data, state.sessions[""])
    return [notice(entry, readable(entry.data))]


def model_changed(entry: Entry, state: LogState) -> list[Said]:
    """Read the choice of a model, or which one the CLI chose, without the scores it went by."""
    named = [text(entry.data.get(key)) for key in ("newModel", "chosenModel", "reasoningEffort")]
    _note_model(named[0] or named[1], state.sessions[""])
    return [notice(entry, " ".join(filter(None, named)))]


def title_changed(entry: Entry, state: LogState) -> list[Said]:
    """Read a name that was given to the session."""
    facts, title = state.sessions[""], text(entry.data.get("title"))
    if title:
        facts.title, facts.title_rank = title, _TITLE_RANK
    return [notice(entry, title or "")]


def _described(entry: Entry) -> Draft:
    """Return a notification of the place where the session works, with the repository that it names."""
    context = fields(entry.data.get("context"))
    name, host = text(context.get("repository")), text(context.get("repositoryHost"))
    host = host or ("github.com" if context.get("hostType") == "github" else None)
    address = f"https://{host}/{name}" if name and host else None
    return Draft(Notification(entry.kind, readable(context)), entry.at, clues=remote(address))


def _note_context(context: Record, facts: SessionFacts) -> None:
    facts.cwd = facts.cwd or text(context.get("cwd"))
    facts.branch = text(context.get("branch")) or facts.branch


def _note_model(named: object, facts: SessionFacts) -> None:
    if isinstance(named, str) and named and named != _AUTO:
        facts.model = named


# -- records ---------------------------------------------------------------------------------------
# The reader of every type of event, and what is the same for all of them: the thread, the identities.

READERS: dict[str, Reader] = {
    "session.start": started,
    "session.resume": resumed,
    "session.context_changed": context_changed,
    **dict.fromkeys(("session.model_change", "session.auto_mode_resolved"), model_changed),
    "session.title_changed": title_changed,
    "session.shutdown": shutdown,
    "session.usage_checkpoint": checkpoint,
    "session.compaction_start": notifying("trigger"),
    "session.compaction_complete": compacted,
    "session.error": failed,
    **dict.fromkeys(("session.warning", "session.info"), notifying("message")),
    **dict.fromkeys(("session.task_complete", "session.handoff"), notifying("summary")),
    "session.plan_changed": notifying("operation"),
    "session.mode_changed": notifying("newMode"),
    "session.workspace_file_changed": notifying("path"),
    "model.call_failure": notifying("errorMessage"),
    "abort": notifying("reason", ends_turn=True),
    "user.message": user_message,
    "system.notification": system_texts,
    "assistant.message": assistant_message,
    "assistant.reasoning": reasoning,
    **dict.fromkeys(("tool.execution_start", "tool.user_requested"), begun),
    "tool.execution_complete": completed,
    "permission.completed": decided,
    "subagent.started": agent_started,
    **dict.fromkeys(("subagent.completed", "subagent.failed"), agent_ended),
    **dict.fromkeys(("subagent.selected", "subagent.deselected"), notifying("agentDisplayName", "agentName")),
    "skill.invoked": notifying("name"),
    **dict.fromkeys((
        "session.truncation", "session.context_cleared", "session.permissions_changed", "session.canvas.recorded",
        "session.canvas.removed", "session.remote_steerable_changed", "session.autopilot_objective_changed",
        "session.managed_settings_enforced", "session.schedule_created", "session.schedule_cancelled",
        "session.schedule_rearmed", "session.session_limits_changed", "external_tool.requested",
        "external_tool.completed", "tool_search.activated",
    ), notifying()),
    **dict.fromkeys((
        "session.binary_asset", "system.message", "assistant.turn_start", "assistant.turn_end", "permission.requested",
        "hook.start", "hook.end", "model.call_start", "model.call_finished",
    ), lambda entry, state: ()),
}  # fmt: skip
"""The vendor's own schema describes each of them (`session-events.ts` of github/copilot-sdk, August 2026)."""

_is_unique = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next line, whatever it contains; see `Parser.drafts`.

    The events of a line have identities, the same wherever the line is copied to: its id and their place.
    """
    kind, data = record.get("type"), record.get("data")
    if not isinstance(kind, str) or not isinstance(data, dict):
        return [Draft(unknown(text(kind) or "untyped", _legible(record), state), milliseconds(record.get("timestamp")))]
    if record.get("ephemeral") is True:
        return skip(f"{kind} (ephemeral)", state)
    folder = state.memory.pop("folder", None)
    if folder is not None and kind != "session.start":  # the log doesn't begin with its first line
        state.sessions[""].id = folder
    id, thread = record.get("id"), thread_of(kind, record.get("agentId"), data, state)
    line = identifier(id) if isinstance(id, str) and _is_unique(id) else None  # others are in other logs as well
    entry = Entry(kind, data, milliseconds(record.get("timestamp")), thread, line)
    reader = READERS.get(kind)
    if reader is None:
        return [Draft(unknown(kind, _legible(record), state), entry.at, thread=entry.thread)]
    said = reader(entry, state)
    identify(said, line)
    return said or skip(kind, state)


# -- workspace -------------------------------------------------------------------------------------
# What is known of a session before its first line: its folder's name, and `workspace.yaml` next to the log. The file
# is flat, a key and a value a line, and is read when the log is read from its beginning. Whatever is wrong with it,
# the log is read without it.

_FILE = "workspace.yaml"
_TITLES = ("name", "summary")
_NAME_RANK = 3
_LONGEST_TITLE = 500
_LARGEST = 64 * 1024
_PLAIN = re.compile(rb"^(name|summary):[ \t]+([^\r\n]+)", re.MULTILINE)


def begin(path: PurePath) -> LogState:
    """Return the state before the first line; the folder's name is the session's id if no line tells it."""
    facts = SessionFacts()
    state = LogState({"": facts})
    if path.name == "events.jsonl":
        state.memory["folder"] = identifier(path.parent.name)
        facts.title = _title(path)
        facts.title_rank = _NAME_RANK if facts.title else 0
    return state


def _title(path: PurePath) -> str | None:
    """Return the name of a session, else its summary; None if the file has neither."""
    try:
        content = small_file(path.with_name(_FILE), _LARGEST)
    except (OSError, ValueError):
        return None
    found = {key.decode(): _scalar(value.decode("utf-8", "replace")) for key, value in _PLAIN.findall(content)}
    return next((found[key] for key in _TITLES if found.get(key)), None)


def _scalar(written: str) -> str:
    """Return the text of a value on one line: plain, or in quotes. A text of several lines gives an empty one."""
    value = written.strip()
    if value[:1] == '"':
        try:
            said = json.loads(value)
        except ValueError:
            said = value.strip('"')
        value = said if isinstance(said, str) else ""
    elif value[:1] == "'":
        value = value[1:].removesuffix("'").replace("''", "'")
    elif value[:1] in ("|", ">", "&", "*", "!", "~", "#") or value == "null":
        value = ""
    return masked(value, _LONGEST_TITLE)


# -- parser ----------------------------------------------------------------------------------------


def recognizes(record: Record) -> bool:
    """Whether only Copilot CLI writes such a record; Copilot Chat's first line names its producer."""
    return is_event(record) and producer(record) != "copilot-chat"


unroll = no_document  # `history-session-state/<id>.json`, before 0.0.342, isn't known


class Chat:
    """The parser of Copilot Chat in VS Code, which writes the same records: `GitHub.copilot-chat/transcripts`."""

    unroll, begin, drafts = staticmethod(unroll), staticmethod(begin), staticmethod(drafts)

    @staticmethod
    def recognizes(record: Record) -> bool:
        """Whether this is the first line of one of its logs."""
        return is_event(record) and producer(record) == "copilot-chat"
