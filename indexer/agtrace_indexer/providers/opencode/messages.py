"""One version of a message, divided into its drafts: what the human, the model and OpenCode say."""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Message, Notification, Reasoning, TokenUsage, ToolCall, ToolResult, User, UserKind

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import compact_json, fields, items, milliseconds, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.notes import remember, unknown
from agtrace_indexer.providers.opencode.changes import Parts, known_as
from agtrace_indexer.providers.opencode.tokens import usage_of
from agtrace_indexer.providers.opencode.tool_parts import call_of, result_of
from agtrace_indexer.providers.opencode.user_texts import attachment, command, kind_of, runs_only_a_command

_LEFT_OUT = frozenset({"agent", "file", "snapshot", "step-finish", "step-start"})
"""Parts that repeat others: positions of snapshots, files and agents that a text names; figures of the message."""

_COMMANDS = "commands"
_COMMANDS_REMEMBERED = 256


def parts_of(info: Record, parts: list[Any], state: LogState, *, followed: bool) -> Parts:
    """Divide one version of a message; `followed` says that the model has gone on since."""
    if info.get("role") not in ("user", "assistant"):
        return {"info": _dated(unknown(text(info.get("role")) or "message", info, state), info)}
    identified = [(_part_id(part, number), fields(part)) for number, part in enumerate(parts)]
    if info["role"] == "user":
        found = _user_parts(info, identified, state)
    else:
        found = _model_parts(info, identified, state, followed=followed)
    for name, draft in found.items():
        draft.identity = _identity(info, name, draft)
    return found


def unknown_parts(record: Record, state: LogState) -> tuple[str, Parts]:
    """Keep a record of another shape, such as a row of a table that agtrace doesn't know; return its name with it."""
    row = fields(record.get("row"))
    table = text(record.get("table")) or next(iter(record), "empty")
    kind = f"{table}/{row['type']}" if isinstance(row.get("type"), str) else table
    draft = Draft(unknown(kind, row or record, state), milliseconds(row.get("time_created")))
    return f"{table}/{text(row.get('id')) or ''}", {"row": draft}


def _part_id(part: Any, number: int) -> str:
    """Return a part's id, by which its drafts are known: its position if it has none, or it isn't an object."""
    return identifier(fields(part).get("id")) or str(number)


def _identity(info: Record, name: str, draft: Draft) -> str | None:
    """Return what identifies an event in another log: the time of its message, as `/fork` makes new ids.

    With it go the text of the event, and for figures and calls what makes them unlike others of the same instant.
    """
    created = milliseconds(fields(info.get("time")).get("created"))
    if created is None:
        return None
    payload = draft.payload
    told = name.partition(":")[0] if isinstance(payload, (ToolCall, ToolResult)) else ""
    if isinstance(payload, TokenUsage):
        told = repr(payload).partition("model=")[2]
    return f"{created}/{info['role']}/{type(payload).__name__}/{told}"


def _dated(payload: Any, info: Record, when: Any = None, *, step: bool = False) -> Draft:
    """Return a draft with a time of its own, else that of its message."""
    at = milliseconds(when)
    if at is None:
        at = milliseconds(fields(info.get("time")).get("created"))
    return Draft(payload, at, step=info["id"] if step else None)


# --- the human's ---


def _user_parts(info: Record, parts: list[tuple[str, Record]], state: LogState) -> Parts:
    facts = state.sessions[""]
    if runs_only_a_command(part for _, part in parts):
        remember(state.memory.setdefault(_COMMANDS, {}), known_as(info["id"]), 1, _COMMANDS_REMEMBERED)
    asked, found = [], Parts()
    for name, part in parts:
        kind = kind_of(part, facts)
        if kind in (UserKind.HUMAN, UserKind.TASK):
            asked.append(part["text"])
            found.setdefault("said", _dated(User("", kind), info))
        elif kind is not None:
            found[name] = _dated(User(part["text"], kind), info)
        elif part.get("type") == "subtask":
            found[name] = _dated(User(command(part), UserKind.COMMAND), info)
        else:
            found |= _other_parts(name, part, info, state)
    images = [placed for _, part in parts if (placed := attachment(part))]
    if asked or images:
        kind = UserKind.TASK if facts.kind == "subagent" else UserKind.HUMAN
        found["said"] = _dated(User("\n".join([*asked, *images]), kind), info)
    return found


# --- the model's ---


def _model_parts(info: Record, parts: list[tuple[str, Record]], state: LogState, *, followed: bool) -> Parts:
    facts, time = state.sessions[""], fields(info.get("time"))
    facts.model = text(info.get("modelID")) or facts.model
    facts.cwd = facts.cwd or text(fields(info.get("path")).get("cwd"))
    summary = info.get("summary") is True or info.get("mode") == "compaction"
    error = fields(info.get("error"))
    over = followed or bool(error) or "completed" in time
    found = Parts()
    for name, part in parts:
        started = fields(part.get("time")).get("start")
        said = part.get("text") if isinstance(part.get("text"), str) else None
        match part.get("type"):
            case "text" if said is not None:
                if said.strip():
                    payload = User(said, UserKind.COMPACTION_SUMMARY) if summary else Message(said)
                    found[name] = _dated(payload, info, started, step=not summary)
            case "reasoning" if said is not None:
                if said.strip() or part.get("metadata"):
                    found[name] = _dated(Reasoning(said), info, started, step=True)
            case "tool":
                found |= _executed(name, part, info, over=over)
            case _:
                found |= _other_parts(name, part, info, state)
    if not _is_a_commands(info, state):
        figures = usage_of(info, (part for _, part in parts if part.get("type") == "step-finish"))
        found["usage"] = _dated(figures, info, time.get("completed"), step=True)
    if error:
        found["error"] = _failed(error, info)
    return found


def _executed(name: str, part: Record, info: Record, *, over: bool) -> Parts:
    """Return the call and the result of a tool; their keys begin with the agent's id of the call."""
    time = fields(fields(part.get("state")).get("time"))
    agents = identifier(part.get("callID")) or name
    call = _dated(call_of(part, name), info, time.get("start"), step=True)
    found = {f"{agents}:call:{name}": call}
    result = result_of(part, name, over=over)
    if result is not None:
        ended = milliseconds(time.get("end"))
        found[f"{agents}:result:{name}"] = _dated(
            result, info, time.get("start") if ended is None else ended, step=True
        )
    return found


def _is_a_commands(info: Record, state: LogState) -> bool:
    """Whether a message has only what a human's command ran, so that no model answered."""
    parent = info.get("parentID")
    if not isinstance(parent, str) or known_as(parent) not in state.memory.get(_COMMANDS, {}):
        return False
    return usage_of(info, ()).input_tokens is None


def _failed(error: Record, info: Record) -> Draft:
    """Return the error that ended a response: the human aborted it, or the API failed."""
    name, data = text(error.get("name")) or "error", error.get("data")
    why = text(fields(data).get("message")) or (compact_json(data) if data else "")
    if name == "MessageAbortedError":
        notice = Notification("aborted", why or name)
    else:
        status = fields(data).get("statusCode")
        notice = Notification("error", f"{name}{f' {status}' if type(status) is int else ''}: {why}".removesuffix(": "))
    draft = _dated(notice, info, fields(info.get("time")).get("completed"))
    draft.ends_turn = name == "MessageAbortedError"
    return draft


# --- of either ---


def _other_parts(name: str, part: Record, info: Record, state: LogState) -> Parts:
    """Return what other parts say: a compaction, a retry, the files that a step changed, a part of an unknown type."""
    kind = text(part.get("type")) or "part"
    if kind in _LEFT_OUT:
        state.skipped.append(kind)
        return {}
    match kind:
        case "compaction":
            notice = Notification("compaction", "automatic" if part.get("auto") else "asked for")
        case "retry":
            error = fields(part.get("error"))
            said = text(fields(error.get("data")).get("message")) or text(error.get("message"))
            notice = Notification("retry", said or compact_json(part.get("error")))
        case "patch":
            notice = Notification(
                "patch", "\n".join(file for file in items(part.get("files")) if isinstance(file, str))
            )
        case _:
            notice = unknown(kind, part, state)
    when = fields(part.get("time"))
    return {name: _dated(notice, info, when.get("created") or when.get("start"))}
