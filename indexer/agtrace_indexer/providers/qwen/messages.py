"""Lines of the conversation: what the user, the model and its tools say, part by part."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Message, Payload, Reasoning, ToolCall, User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import count, fields, listed, milliseconds, text
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.gemini.content import is_thought, joined_text, part_text
from agtrace_indexer.providers.gemini.user_texts import INJECTED
from agtrace_indexer.providers.notes import skip
from agtrace_indexer.providers.qwen.tokens import usage_of_response
from agtrace_indexer.providers.qwen.tool_results import results_of

_NOTIFYING = ("notification", "background_task_completed", "cron")
"""The subtypes of lines in the user's role by which the CLI tells the model something."""

_TYPED = (None, "mid_turn_user_message", "agent_launch_prompt")
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
        spoken = [User(shown, kind)] + [
            User(said, UserKind.INJECTED) for said in texts if said.strip() != shown.strip()
        ]
    else:
        said = "\n".join(texts)
        spoken = [User(said, _by_its_beginning(said, kind))] if said else []
    return _drafts(spoken, record, None) or [*skip("user", state)]


def _speaker(record: Record, subtype: Any, state: LogState) -> UserKind:
    if subtype in _NOTIFYING:
        return UserKind.NOTIFICATION
    if subtype not in _TYPED or record.get("provenance") not in _OWN:
        return UserKind.INJECTED if state.sessions[""].kind != "subagent" else UserKind.TASK
    return UserKind.TASK if state.sessions[""].kind == "subagent" else UserKind.HUMAN


def _by_its_beginning(said: str, kind: UserKind) -> UserKind:
    start = said.lstrip()
    if start.startswith("<state_snapshot>"):
        return UserKind.COMPACTION_SUMMARY
    return UserKind.INJECTED if start.startswith(_INJECTED) else kind


def response(record: Record, state: LogState) -> list[Said]:
    """Read a response, or in a sub-agent's log a part of one, with its tokens if no telemetry has them.

    The calls of a sub-agent are in the telemetry of the session that started it: in its own log they would count twice.
    """
    facts, model = state.sessions[""], text(record.get("model"))
    facts.model = model or facts.model
    state.memory["window"] = count(record.get("contextWindowSize")) or state.memory.get("window")
    parts = _parts(record)
    payloads: list[Payload] = [payload for part in parts for payload in _said(part)]
    step, begins = _step(record, state)
    metadata = record.get("usageMetadata")
    told = "telemetry" in state.memory or facts.kind == "subagent"
    if not told and (begins or isinstance(metadata, dict)):
        payloads.append(usage_of_response(fields(metadata), model, state))
    return _drafts(payloads, record, step) or [*skip("assistant", state)]


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


def read_results(record: Record, state: LogState) -> list[Said]:
    """Read the results of tool executions."""
    return _drafts([*results_of(_parts(record), record, state)], record, None) or [*skip("tool_result", state)]


def first_text(history: Any) -> str:
    """Return the first text in a history of the API."""
    for content in listed(history):
        said = joined_text(listed(fields(content).get("parts")))
        if said.strip():
            return said
    return ""


def _parts(record: Record) -> list[Any]:
    return listed(fields(record.get("message")).get("parts"))


def _drafts(payloads: list[Any], record: Record, step: str | None) -> list[Said]:
    time = milliseconds(record.get("timestamp"))
    return [Draft(payload, time, step) for payload in payloads]
