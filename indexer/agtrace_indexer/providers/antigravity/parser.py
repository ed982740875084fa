"""Antigravity: `brain/<conversation>/.system_generated/logs/transcript_full.jsonl` (README.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from agtrace_schema.events import (
    Message,
    Notification,
    Outcome,
    OutcomeSource,
    Payload,
    Reasoning,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record, SessionFacts
from agtrace_indexer.events.json_values import fields, items, milliseconds, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.logs.decoding import loads
from agtrace_indexer.providers.notes import identify, no_document, numbered, plain_text, skip, unknown

# -- places ----------------------------------------------------------------------------------------
# The working directory: only commands and sub-agents name it.

_HEAD = 2_000
_WORKSPACE = later(r'"workspaceUris":\s{0,9}\[\s{0,99}"file://([^"\n]{1,1000})"')
_OWN = later(r"[/\\]\.gemini[/\\]antigravity[^/\\]*[/\\]")
"""A folder of Antigravity's own, in which it runs commands if no folder is open."""


def note_folder(folder: Any, state: LogState) -> None:
    """Take the first folder in which a command was run, if it is the user's."""
    facts = state.sessions[""]
    if facts.cwd is None and text(folder) and not _OWN.search(f"{folder}/"):
        facts.cwd = text(folder)


def note_place(said: str, state: LogState) -> None:
    """Take the folder that a sub-agent is told to work in."""
    if state.sessions[""].cwd is None and (match := _WORKSPACE.search(said[:_HEAD])):
        note_folder(unquote(match[1]), state)


# -- tool calls ------------------------------------------------------------------------------------
# Tool calls: their arguments are JSON in texts, and they have no ids, so that results are matched by order.

_MOST_WAITING = 64


def calls_of(calls: list[Any], response: str, state: LogState) -> list[ToolCall]:
    """Read the calls of a response, with ids that are made up from its number; they wait for the results after it."""
    result = []
    for number, call in enumerate(map(fields, calls)):
        name, given = text(call.get("name")) or "unknown", call.get("args", {})
        arguments = {key: _decoded(value) for key, value in given.items()} if isinstance(given, dict) else given
        if name == "run_command":
            note_folder(fields(arguments).get("Cwd"), state)
        result.append(ToolCall(f"{response}.{number}", name, arguments))
    state.memory["waiting"] = [[call.call_id, call.name] for call in result[:_MOST_WAITING]]
    return result


def call_of(kind: str, state: LogState) -> str | None:
    """Return the id of the call that a result of this type answers: one of its name, or the first that waits."""
    waiting: list[list[str]] = state.memory.get("waiting", [])
    if not waiting:
        return None
    named = next((call for call in waiting if call[1].upper() == kind), waiting[0])
    waiting.remove(named)
    return named[0]


def _decoded(value: Any) -> Any:
    """Decode an argument, which is written as JSON; a text that isn't JSON is itself."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except ValueError:
        return value


# -- tool results ----------------------------------------------------------------------------------
# Results of tool executions: the text says how a command ended, how long it took, and which agent was started.

_RESULT_HEAD = 2_000
"""Characters in which the harness's own lines are searched for."""

_TIMES = later(r"Created At: (\S{1,40})\s+Completed At: (\S{1,40})")
_FAILED = later(r"\s*The command failed with exit code: (-?[0-9]{1,9})")
_SUCCEEDED = later(r"\s*The command completed successfully\.")
_AGENT = later(r'"conversationId":\s{0,9}"([A-Za-z0-9-]{1,64})"')

_BY_STATUS = {
    "DONE": Outcome.OK,
    "ERROR": Outcome.FAILED,
    **dict.fromkeys(("CANCELED", "CANCELLED", "INTERRUPTED"), Outcome.INTERRUPTED),
    **dict.fromkeys(("PENDING", "RUNNING"), Outcome.RUNNING),
}


def tool_result(record: Record, call_id: str | None) -> ToolResult:
    """Read a result. A command whose end the text doesn't tell may still run."""
    said = plain_text(record.get("content"))
    head = said[:_RESULT_HEAD]
    times = _TIMES.match(head)
    outcome, source, exit_code = _ending(record, head[times.end() :] if times else head)
    started = _AGENT.search(head) if record.get("type") == "INVOKE_SUBAGENT" else None
    agent = identifier(started[1]) if started else None
    begun, ended = (milliseconds(times[1]), milliseconds(times[2])) if times else (None, None)
    lasted = None if begun is None or ended is None else max(ended - begun, 0)  # whole seconds, as the text has it
    return ToolResult(call_id, said, outcome, source, exit_code, lasted, agent)


def _ending(record: Record, head: str) -> tuple[Outcome, OutcomeSource | None, int | None]:
    failed = _FAILED.match(head)
    if failed:
        return Outcome.FAILED, OutcomeSource.TEXT, int(failed[1])
    if _SUCCEEDED.match(head):
        return Outcome.OK, OutcomeSource.TEXT, 0
    status = record.get("status")
    outcome = _BY_STATUS.get(status, Outcome.UNKNOWN) if isinstance(status, str) else Outcome.UNKNOWN
    if outcome is Outcome.UNKNOWN or (outcome is Outcome.OK and record.get("type") == "RUN_COMMAND"):
        return Outcome.UNKNOWN, None, None
    return outcome, OutcomeSource.STRUCTURE, None


# -- user texts ------------------------------------------------------------------------------------
# Texts in the user's role: a request in a tag, and what is put around it.

_BEGINNING, _END = "<USER_REQUEST>", "</USER_REQUEST>"
_MODEL = later(r"`Model Selection` from .{1,200}? to (.{1,200}?)\.(?:\s|\Z)")


def user_texts(said: str, kind: UserKind) -> list[User]:
    """Divide a text into the request, which has this kind, and the rest; without a tag, all of it is the request."""
    before, tag, after = said.partition(_BEGINNING)
    if not tag:
        return [User(said, kind)] if said.strip() else []
    request, _, rest = after.partition(_END)
    around = "\n".join(filter(None, (before.strip(), rest.strip())))
    told = [User(request.strip("\n"), kind)] if request.strip() else []
    return [*told, User(around, UserKind.INJECTED)] if around else told


def note_model(said: str, state: LogState) -> None:
    """Take the model that the user chose last, which is only in the text of the next request."""
    chosen = _MODEL.findall(said)
    if chosen:
        state.sessions[""].model = chosen[-1]


# -- steps -----------------------------------------------------------------------------------------
# The steps of a transcript, by who takes them: the user, the model with its tools, or the system.

_INJECTED = ("CONVERSATION_HISTORY", "EPHEMERAL_MESSAGE", "SYSTEM_MESSAGE")
"""The types of the system's steps that the model reads as if the user had said them."""

_TOLD = {"CHECKPOINT": "checkpoint", "ERROR_MESSAGE": "error_message"}
"""The types of the system's steps that become notifications, with their kinds."""


def drafts(record: Record, state: LogState) -> list[Draft]:
    """Return the events of the next line, a step; see `Parser.drafts`.

    A conversation that was copied into another home, as from the editor's to `antigravity-ide`, repeats its steps.
    """
    said, told = _said(record, state), "/".join(str(record.get(name)) for name in ("step_index", "created_at", "type"))
    identify(said, f"{state.sessions[''].id}/{told}" if state.sessions[""].id else None)
    return said


def _said(record: Record, state: LogState) -> list[Draft]:
    source, kind = text(record.get("source")), text(record.get("type")) or "untyped"
    if kind == "USER_INPUT":
        return _drafts(_input(record, source == "USER_EXPLICIT", state), record) or skip(kind, state)
    if source == "MODEL" and kind == "PLANNER_RESPONSE":
        return _response(record, state)
    if source == "MODEL" and kind.isupper():
        result = tool_result(record, call_of(kind, state))
        note_place(result.text, state)
        return _drafts([result], record)
    if source == "SYSTEM" and kind in _INJECTED:
        said = plain_text(record.get("content"))
        return _drafts([User(said, UserKind.INJECTED)], record) if said.strip() else skip(kind, state)
    if source == "SYSTEM" and kind in _TOLD:
        return _drafts([Notification(_TOLD[kind], plain_text(record.get("content")))], record)
    return _drafts([unknown(kind, record, state)], record)


def _input(record: Record, typed: bool, state: LogState) -> list[User]:
    """Read what the user says, and what is put around it."""
    state.memory.pop("waiting", None)  # calls without results
    said = plain_text(record.get("content"))
    note_model(said, state)
    return user_texts(said, UserKind.HUMAN if typed else UserKind.INJECTED)


def _response(record: Record, state: LogState) -> list[Draft]:
    """Read a response of the model: a step of its own, as nothing else tells responses apart."""
    number = numbered("response", state)
    thought, said = text(record.get("thinking")), text(record.get("content"))
    payloads: list[Payload] = [Reasoning(thought)] if thought else []
    payloads += [Message(said)] if said else []
    payloads += calls_of(items(record.get("tool_calls")), number, state)
    return _drafts(payloads, record, number) or skip("PLANNER_RESPONSE", state)


def _drafts(payloads: Sequence[Payload], record: Record, step: str | None = None) -> list[Draft]:
    time = milliseconds(record.get("created_at"))
    return [Draft(payload, time, step) for payload in payloads]


# -- parser ----------------------------------------------------------------------------------------

_TEXTS = ("source", "type", "status", "created_at")


def recognizes(record: Record) -> bool:
    """Whether only Antigravity writes such a record: the index, source, type, status and time of a step."""
    index, kind = record.get("step_index"), record.get("type")
    if not isinstance(index, int) or not all(isinstance(record.get(key), str) for key in _TEXTS):
        return False
    return isinstance(kind, str) and kind.isupper()


unroll = no_document


def begin(path: PurePath) -> LogState:
    """Return the state before the first line: only the folder of a conversation has its id."""
    if path.parts[-3:-1] != (".system_generated", "logs") or len(path.parts) < 4:
        return LogState()
    return LogState({"": SessionFacts(id=identifier(path.parts[-4]))})
