"""Qwen Code: `projects/<folder>/chats/<session>.jsonl` and the logs of its sub-agents (README.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

from agtrace_schema.events import (
    Message,
    Notification,
    Outcome,
    OutcomeSource,
    Payload,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)

from agtrace_indexer.events.drafts import Draft, LogState, Record, Rollback, Said, SessionFacts
from agtrace_indexer.events.json_values import as_list, count, fields, milliseconds, remember, text
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.beside import object_beside
from agtrace_indexer.providers.gemini.parser import (
    INJECTED,
    answer_of,
    bodies,
    history_result,
    is_thought,
    joined_text,
    part_text,
)
from agtrace_indexer.providers.notes import (
    check_usage,
    identify,
    known,
    left_behind,
    no_document,
    note_requests,
    readable_json,
    requester,
    skip,
    unknown,
)

# -- tokens ----------------------------------------------------------------------------------------
# Token counts of a call to the API: in the telemetry, which has all calls, or else with the response. Telemetry comes
# first, then the response that it is about. As soon as a log has telemetry, figures with responses repeat it. Calls of
# internal agents (memory, titles) leave telemetry but no response.

_OF_TELEMETRY = tuple(f"{name}_token_count" for name in ("input", "cached_content", "output", "thoughts", "total"))
_OF_A_RESPONSE = tuple(f"{name}TokenCount" for name in ("prompt", "cachedContent", "candidates", "thoughts", "total"))
_DETAILS = ("promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails")
_KNOWN = known(
    *_OF_TELEMETRY, *_OF_A_RESPONSE, *(f"{name}.{of}" for name in _DETAILS for of in ("modality", "tokenCount"))
)


def usage_of_call(event: dict[str, Any], state: LogState) -> TokenUsage:
    """Read the telemetry of a response of the API."""
    figures = [count(event.get(key)) for key in _OF_TELEMETRY]
    check_usage({name: value for name, value in event.items() if "token" in name}, _KNOWN, state)
    return _usage(figures, identifier(event.get("response_id")), text(event.get("model")), state)


def usage_of_response(metadata: dict[str, Any], model: str | None, state: LogState) -> TokenUsage:
    """Read the figures with a response."""
    check_usage(metadata, _KNOWN, state)
    return _usage([count(metadata.get(key)) for key in _OF_A_RESPONSE], None, model, state)


def _usage(figures: list[int | None], response: str | None, model: str | None, state: LogState) -> TokenUsage:
    """Read figures in which input includes what was cached. Nothing but zeros means that they are unknown.

    Output includes thoughts, unless the total shows that they are beside it, as in Gemini's API.
    """
    sent, cached, answered, thoughts, total = figures
    if not (sent or answered):
        return TokenUsage(response, model, complete=False)
    beside = bool(thoughts) and total is not None and total == (sent or 0) + (answered or 0) + (thoughts or 0)
    return TokenUsage(
        response_id=response,
        model=model,
        input_tokens=None if sent is None else max(sent - (cached or 0), 0),
        cache_read_tokens=cached,
        output_tokens=None if answered is None else answered + ((thoughts or 0) if beside else 0),
        reasoning_tokens=thoughts,
        context_window=state.memory.get("window"),
    )


# -- tool results ----------------------------------------------------------------------------------
# Results of tool executions: a status says how they ended, the telemetry before them whether the user refused.

_CALLS_REMEMBERED = 64
_CANCELLED = "[Operation Cancelled]"


def results_of(parts: list[Any], record: Record, state: LogState) -> Iterator[ToolResult]:
    """Read the answers in a line, whose status is that of one of them; other parts belong to the last answer."""
    told, answers = fields(record.get("toolCallResult")), bodies(parts, "functionResponse")
    named = identifier(told.get("callId"))
    for answer in answers:
        call = identifier(answer.get("id")) or (named if len(answers) == 1 else None)
        if told.get("status") is not None and (len(answers) == 1 or call == named):
            result = answer_of(answer, told["status"], told.get("resultDisplay"))
        else:
            result = history_result(answer)
        result.call_id = call
        if answer is answers[-1]:
            others = (said for said in map(part_text, parts) if said.strip())
            result.text = "\n".join(filter(None, [result.text, *others]))
        rejected, duration = state.memory.get("executions", {}).pop(call, (False, None))
        if rejected:
            result.outcome, result.outcome_source = Outcome.REJECTED, OutcomeSource.STRUCTURE
        elif result.outcome is not Outcome.INTERRUPTED:
            result.duration_ms = duration
        yield result


# -- messages --------------------------------------------------------------------------------------
# Lines of the conversation: what the user, the model and its tools say, part by part.

_NOTIFYING = ("notification", "background_task_completed", "cron")
"""The subtypes of lines in the user's role by which the CLI tells the model something."""

_TYPED = (None, "mid_turn_user_message", "agent_launch_prompt", "realtime_message")
"""The subtypes of lines that somebody wrote to the model."""

_OWN = ("real_user", None)
"""Where what a user typed comes from; a goal speaks in the user's role, too."""

_INJECTED = (*INJECTED, "This is the Qwen Code. We are setting up the context for our chat.", "<system-reminder>")


def read_user(record: Record, state: LogState) -> list[Said]:
    """Read a line in the user's role. `displayText` is what was typed; the parts then have more that the model saw."""
    parts = _parts(record)
    subtype, shown = record.get("subtype"), text(fields(record.get("systemPayload")).get("displayText"))
    kind = _speaker(record, subtype, state)
    texts = [said for said in map(part_text, parts) if said.strip()]
    if shown is not None:
        others = [said for said in texts if said.strip() != shown.strip()]
        spoken = [User(shown, kind), *(User(said, UserKind.INJECTED) for said in others)]
    else:
        said = "\n".join(texts)
        spoken = [User(said, _by_its_beginning(said, kind))] if said else []
    return _drafts(spoken, record, None)


def _speaker(record: Record, subtype: Any, state: LogState) -> UserKind:
    if subtype in _NOTIFYING:
        return UserKind.NOTIFICATION
    if subtype not in _TYPED or record.get("provenance") not in _OWN:
        return UserKind.INJECTED if state.sessions[""].kind != "subagent" else UserKind.TASK
    return requester(state)


def _by_its_beginning(said: str, kind: UserKind) -> UserKind:
    start = said.lstrip()
    if start.startswith("<state_snapshot>"):
        return UserKind.COMPACTION_SUMMARY
    return UserKind.INJECTED if start.startswith(_INJECTED) else kind


def response(record: Record, state: LogState) -> list[Said]:
    """Read a response, or in a sub-agent's log a part of one, with its tokens if no telemetry before it has them."""
    facts, model = state.sessions[""], text(record.get("model"))
    facts.model = model or facts.model
    state.memory["window"] = count(record.get("contextWindowSize")) or state.memory.get("window")
    parts = _parts(record)
    payloads: list[Payload] = [payload for part in parts for payload in _said(part)]
    step, begins = _step(record, state)
    metadata = record.get("usageMetadata")
    begins = begins and facts.kind != "subagent"  # only one line of its response has the figures
    if "telemetry" not in state.memory and (begins or isinstance(metadata, dict)):
        payloads.append(usage_of_response(fields(metadata), model, state))
    return _drafts(payloads, record, step)


def _said(part: Any) -> list[Payload]:
    call = fields(part).get("functionCall")
    if isinstance(call, dict):
        return [ToolCall(identifier(call.get("id")), text(call.get("name")) or "unknown", call.get("args", {}))]
    if is_thought(part):
        return [Reasoning(text(part.get("text")) or "")]
    said = part_text(part)
    return [Message(said)] if said.strip() else []


def _step(record: Record, state: LogState) -> tuple[str, bool]:
    """Return the step of a response, and whether it begins with this line.

    It is that of the telemetry before it. A sub-agent's response is divided into lines that follow each other.
    """
    memory, uuid = state.memory, identifier(record.get("uuid"))
    step, last = memory.get("response", [None, None])
    pending = memory.pop("pending", None)
    goes_on = uuid is not None and uuid == last
    if state.sessions[""].kind == "subagent" and last is not None and record.get("parentUuid") == last:
        goes_on = True
    if pending is None and goes_on:
        memory["response"] = [step, uuid]
        return step, False
    begun = pending or first_identifier(uuid, record.get("timestamp")) or "nameless"
    memory["response"] = [begun, uuid]
    return begun, True


def first_text(history: Any) -> str:
    """Return the first text in a history of the API."""
    for content in as_list(history):
        result = joined_text(as_list(fields(content).get("parts")))
        if result.strip():
            return result
    return ""


def _parts(record: Record) -> list[Any]:
    return as_list(fields(record.get("message")).get("parts"))


def _drafts(payloads: list[Any], record: Record, step: str | None) -> list[Said]:
    time = milliseconds(record.get("timestamp"))
    return [Draft(payload, time, step) for payload in payloads]


# -- sessions --------------------------------------------------------------------------------------
# The session that a line belongs to, and the identity of lines that a branch copies.

_TITLE_RANKS = {"manual": 4, "auto": 3}


def begin(path: PurePath) -> LogState:
    """Take a sub-agent's id and its parent's from the path of its log, `subagents/<parent>/agent-<id>.jsonl`.

    A file next to it says what it is: its role, its task, and the sub-agent that started it if one did.
    """
    if not path.name.startswith("agent-") or path.parent.parent.name != "subagents":
        return LogState()
    beside = object_beside(path, ".meta.json")
    starter = identifier(beside.get("parentAgentId"))
    facts = SessionFacts(id=identifier(path.name.partition(".")[0]), kind="subagent")
    facts.parent_id = f"agent-{starter}" if starter else identifier(path.parent.name)
    facts.agent_type, facts.description = text(beside.get("agentType")), text(beside.get("description"))
    return LogState({"": facts})


def note_line(record: Record, state: LogState) -> None:
    """Take the facts that every line has; the lines of a sub-agent have its parent's id."""
    facts = state.sessions[""]
    session, agent = identifier(record.get("sessionId")), identifier(record.get("agentId"))
    if facts.id is None and record.get("isSidechain") is True and agent:
        facts.id, facts.kind, facts.parent_id = f"agent-{agent}", "subagent", session
        facts.agent_type = facts.agent_type or text(record.get("agentName"))
    facts.id = facts.id or session
    facts.cwd, facts.branch = facts.cwd or text(record.get("cwd")), facts.branch or text(record.get("gitBranch"))
    facts.version = text(record.get("version")) or facts.version
    origin = identifier(fields(record.get("forkedFrom")).get("sessionId"))
    if origin is not None and facts.kind == "main" and origin != facts.id:
        facts.kind, facts.parent_id = "fork", origin


# -- system ----------------------------------------------------------------------------------------
# Lines of the system, by their subtype: telemetry, compressions, commands, titles, rewinds, and much bookkeeping. A
# rewind names, as its parent, the line after which the conversation goes on: that before one of the user's requests
# (`rewindRecording`). This request and all later ones are dropped: none if it goes back into the middle of a turn.

_BOOKKEEPING = (
    "agent_bootstrap", "agent_retry", "agent_session_ready", "at_command", "attribution_snapshot", "branch_checkpoint",
    "file_history_snapshot", "goal_runtime", "goal_state", "goal_turn_end", "omni_recall", "session_approval_mode",
    "session_artifact_event", "session_artifact_snapshot", "session_execution_engine", "session_model",
    "session_notes", "session_source", "session_sources_snapshot", "turn_result", "user_text_elements",
)  # fmt: skip
"""The subtypes that repeat other lines, or say nothing to a reader."""


def read_system(record: Record, state: LogState) -> list[Said]:
    """Read a line of the system."""
    subtype, payload = text(record.get("subtype")) or "untyped", fields(record.get("systemPayload"))
    facts, said, dropped = state.sessions[""], list[Payload](), list[Said]()
    match subtype:
        case "ui_telemetry":
            dropped = _telemetry(record, fields(payload.get("uiEvent")), state)
        case "chat_compression":
            said.append(Notification("system/chat_compression", readable_json(fields(payload.get("info")))))
            if summary := first_text(payload.get("compressedHistory")):
                said.append(User(summary, UserKind.COMPACTION_SUMMARY))
        case "slash_command" if payload.get("phase") == "invocation" and text(payload.get("rawCommand")):
            said.append(User(payload["rawCommand"], UserKind.COMMAND))
        case "custom_title":  # one that the user gave is better than one that was made up
            title = text(payload.get("customTitle"))
            rank = _TITLE_RANKS.get(text(payload.get("titleSource")) or "manual", _TITLE_RANKS["auto"])
            if title and rank >= facts.title_rank:
                facts.title, facts.title_rank = title, rank
        case "rewind":
            requests = left_behind(record, state)
            dropped = [Rollback(len(requests))] if requests else []
            said.append(Notification("system/rewind", readable_json(payload)))
        case "parent_session":
            facts.parent_id = facts.parent_id or identifier(payload.get("parentSessionId"))
        case "notification" | "background_task_completed":  # which other versions write in the user's role
            said.append(User(text(payload.get("displayText")) or readable_json(payload), UserKind.NOTIFICATION))
        case _ if subtype not in (*_BOOKKEEPING, "slash_command"):
            said.append(unknown(f"system.{subtype}", record, state))
    return dropped + _drafts(said, record, None) or [*skip(f"system/{subtype}", state)]


def _telemetry(record: Record, event: dict[str, Any], state: LogState) -> list[Said]:
    """Read the tokens of a call to the API, its error, or what is known of an execution until its result."""
    name, call = (text(event.get("event.name")) or "").rpartition(".")[2], identifier(event.get("call_id"))
    if name == "api_error":
        said = text(event.get("error_message")) or text(event.get("error")) or readable_json(event)
        return _drafts([Notification("api_error", said)], record, None)
    if name == "tool_call" and call is not None:
        told = [event.get("decision") == "reject", count(event.get("duration_ms"))]
        remember(state.memory.setdefault("executions", {}), call, told, _CALLS_REMEMBERED)
    if name != "api_response":
        return []
    state.memory["telemetry"], step = True, None
    of_agent = (text(event.get("prompt_id")) or "").partition("#")[2].strip("#0123456789")  # <session>#<agent>#<number>
    if not (of_agent or text(event.get("subagent_name"))):  # a response in the conversation follows in the same step
        step = state.memory["pending"] = first_identifier(record.get("uuid"), event.get("response_id")) or "call"
    return _drafts([usage_of_call(event, state)], record, step)


# -- parser ----------------------------------------------------------------------------------------

_IDS = ("uuid", "sessionId", "timestamp")
_OF_SYSTEM = {"systemPayload", "managedSession"}


def recognizes(record: Record) -> bool:
    """Whether only Qwen Code writes such a record: Claude Code's keys around `parts`, or a payload of the system."""
    kind = record.get("type")
    if not isinstance(kind, str) or kind not in _READERS or "parentUuid" not in record:
        return False
    if not all(isinstance(record.get(key), str) for key in _IDS):
        return False
    if isinstance(fields(record.get("message")).get("parts"), list):
        return True
    return kind == "system" and isinstance(record.get("subtype"), str) and not _OF_SYSTEM.isdisjoint(record)


unroll = no_document


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next line; see `Parser.drafts`."""
    kind = record.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        told = unknown(text(kind) or "untyped", record, state)
        result: list[Said] = [Draft(told, milliseconds(record.get("timestamp")))]
    else:
        note_line(record, state)
        result = read(record, state)
        if not result and kind != "system":
            skip(str(kind), state)
    origin = fields(record.get("forkedFrom")).get("messageUuid")  # the line's id where it was first written
    identify(result, first_identifier(origin, record.get("uuid")))
    note_requests(result, record, state)
    return result


_READERS: dict[str, Callable[[Record, LogState], list[Said]]] = {
    "user": read_user,
    "assistant": response,
    "tool_result": lambda record, state: _drafts([*results_of(_parts(record), record, state)], record, None),
    "system": read_system,
}
