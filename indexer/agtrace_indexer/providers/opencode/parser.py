"""OpenCode: rows of its database, small files, exports (README.md).

All of these have the same JSON, so their sources return the same records: `{"session": ...}`, `{"info": ...,
"parts": [...], "followed": ...}` for each message, as in an export, `{"removed": [...]}` for messages that were
deleted, and `{"row": ..., "data": ..., "followed": ...}` for each message since 2.0, which is read as one of 1.x. A
message is one step; what it says comes again whenever it changed, and only the differences become events.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from os.path import basename
from pathlib import PurePath
from typing import Any, NamedTuple

import orjson
from agtrace_schema.events import (
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

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said, SessionFacts
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
from agtrace_indexer.events.strings import identifier, masked
from agtrace_indexer.logs.decoding import crowded, single
from agtrace_indexer.logs.discovery import Container, LogFile, walk
from agtrace_indexer.logs.files import open_regular
from agtrace_indexer.logs.foreign_database import Question, ask, columns_of
from agtrace_indexer.providers.notes import (
    Parts,
    check_usage,
    dollars,
    empty_state,
    forget_messages,
    known,
    known_as,
    plain_text,
    print_of,
    replace_message,
    requester,
    skip,
    unknown,
)
from agtrace_indexer.providers.provider import LogInside, Row

# -- tokens ----------------------------------------------------------------------------------------
# Token counts of a response: of its `step-finish` parts, or of its message if they have less, never of both. A
# message's tokens are those of its last step, but its cost is that of all (anomalyco/opencode#42324).

_COUNTS = ("input", "output", "reasoning", "read", "write")
_KNOWN = known("input", "output", "reasoning", "total", "cache.read", "cache.write")


def usage_of(info: Record, finished: Iterable[Record]) -> TokenUsage:
    """Read the figures of an assistant message; if all are zero or missing, they are unknown.

    `input` excludes what was read from or written to the cache.
    """
    steps = [found for step in finished if any((found := _counts(step.get("tokens"))).values())]
    sums = {name: sum(step.get(name, 0) for step in steps) for name in _COUNTS}
    if steps and all("total" in step for step in steps):
        sums["total"] = sum(step["total"] for step in steps)
    tokens = max(_counts(info.get("tokens")), sums, key=lambda told: sum(told.get(name, 0) for name in _COUNTS))
    known = any(tokens.values())
    return TokenUsage(
        response_id=info["id"],
        model=text(info.get("modelID")),
        input_tokens=tokens.get("input") if known else None,
        cache_creation_5m_tokens=tokens.get("write") if known else None,
        cache_read_tokens=tokens.get("read") if known else None,
        output_tokens=_output(tokens) if known else None,
        reasoning_tokens=tokens.get("reasoning") if known else None,
        complete=known,
        cost_usd=dollars(info.get("cost")),
    )


def _counts(told: Any) -> dict[str, int]:
    tokens = fields(told)
    values = {**tokens, **fields(tokens.get("cache"))}
    found = {name: count(values.get(name)) for name in (*_COUNTS, "total")}
    return {name: value for name, value in found.items() if value is not None}


def _output(tokens: dict[str, int]) -> int | None:
    """Return the output with its reasoning, which is part of it until about 1.3 and comes in addition since.

    The total shows which: it is the sum of the figures with or without reasoning.
    """
    output, reasoning, total = tokens.get("output"), tokens.get("reasoning", 0), tokens.get("total")
    if output is None or not reasoning or total is None:
        return output
    without = output + sum(tokens.get(name, 0) for name in ("input", "read", "write"))
    return output + reasoning if abs(total - without - reasoning) < abs(total - without) else output


# -- tool parts ------------------------------------------------------------------------------------
# Tool executions: one part has the call, and its result once there is one.

_ENDED = ("completed", "success")  # the second in a published fixture
_REJECTED = later(r"The user (?:rejected permission|dismissed this question|has specified a rule which prevents)", re.I)
_STARTED = later(r"(?:task_id: |<task id=\")(ses_[0-9A-Za-z]{1,60})")
_ABORTED = "User aborted the command"
_NOTE = later(r"<(?:bash|shell)_metadata>(.*?)(?:</(?:bash|shell)_metadata>|\Z)", re.S)
_NOTE_LOOKED_FOR = 4_000
"""Characters at the end of an output, among which is what the harness says about a command."""
_SHELL = "bash"
_SHELLS = (_SHELL, "shell")


def call_of(part: Record, call_id: str) -> ToolCall:
    """Read the call. A call that the model got wrong is one to the tool `invalid`, which names the one it meant."""
    given = fields(part.get("state")).get("input", {})
    name = text(part.get("tool")) or "unknown"
    if name == "invalid":
        name = text(fields(given).get("tool")) or name
    return ToolCall(call_id, name, given)


def result_of(part: Record, call_id: str, *, over: bool) -> ToolResult | None:
    """Read the result; `over` says that nothing in its message can still be running."""
    state = fields(part.get("state"))
    status, metadata = state.get("status"), fields(state.get("metadata"))
    said = plain_text(state.get("error") if status == "error" else state.get("output", metadata.get("output")))
    if status not in ("pending", "running", "error", *_ENDED) and not said:
        return None
    exit_code = metadata.get("exit")
    number = exit_code if type(exit_code) is int and abs(exit_code) < 2**31 else None
    outcome, source = _outcome(part, state, said, over=over)
    start, end = (milliseconds(fields(state.get("time")).get(name)) for name in ("start", "end"))
    duration = end - start if start is not None and end is not None and end >= start else None
    return ToolResult(call_id, said, outcome, source, number, duration, _agent(part, metadata, said))


def _outcome(part: Record, state: Record, said: str, *, over: bool) -> tuple[Outcome, OutcomeSource | None]:
    status, metadata = state.get("status"), fields(state.get("metadata"))
    if status in ("pending", "running"):
        return (Outcome.INTERRUPTED if over else Outcome.RUNNING), OutcomeSource.STRUCTURE
    if status == "error":
        if _REJECTED.search(said[:_NOTE_LOOKED_FOR]):
            return Outcome.REJECTED, OutcomeSource.TEXT
        if said.startswith("Tool execution aborted") or metadata.get("interrupted") is True:
            return Outcome.INTERRUPTED, OutcomeSource.STRUCTURE
        return Outcome.FAILED, OutcomeSource.STRUCTURE
    if status not in _ENDED:
        return Outcome.UNKNOWN, None
    if part.get("tool") not in _SHELLS or "exit" not in metadata:
        return (Outcome.FAILED if part.get("tool") == "invalid" else Outcome.OK), OutcomeSource.STRUCTURE
    if metadata["exit"] is not None:  # of a command that failed, which isn't an error
        return (Outcome.FAILED if metadata["exit"] else Outcome.OK), OutcomeSource.STRUCTURE
    note = _NOTE.search(said[-_NOTE_LOOKED_FOR:])  # of one that was ended: by a timeout, or by the user
    if note and _ABORTED in note[1]:
        return Outcome.INTERRUPTED, OutcomeSource.TEXT
    return (Outcome.FAILED if note else Outcome.OK), OutcomeSource.TEXT if note else OutcomeSource.STRUCTURE


def _agent(part: Record, metadata: Record, said: str) -> str | None:
    """Return the session of the sub-agent that an execution started; it is known while that is running."""
    if part.get("tool") not in ("task", "subagent"):
        return None
    named: Any = _STARTED.match(said)
    return identifier(first_text(metadata.get("sessionId"), metadata.get("sessionID"), named and named[1]))


# -- user texts ------------------------------------------------------------------------------------
# Texts in the user's role: who speaks in them.

_SHELL_TEXT = "The following tool was executed by the user"
"""What stands in place of a text if the human ran a command with `!`."""


def kind_of(part: Record, state: LogState) -> UserKind | None:
    """Return who says the text of a part; None if it has none.

    OpenCode marks what it added itself. A slash command leaves no trace: its template is an ordinary text.
    """
    said = part.get("text")
    if part.get("type") != "text" or not isinstance(said, str) or not said.strip():
        return None
    if part.get("synthetic"):
        return UserKind.COMMAND if said.startswith(_SHELL_TEXT) else UserKind.INJECTED
    if part.get("ignored"):  # shown to the human only
        return UserKind.NOTIFICATION
    return requester(state)


def command(part: Record) -> str:
    """Return a slash command that is run by a sub-agent, and what that is asked to do."""
    name, prompt = text(part.get("command")), text(part.get("prompt")) or ""
    return f"/{name}\n{prompt}".rstrip() if name else prompt


def attachment(part: Record) -> str | None:
    """Return a text that stands for an image of the human's; None for anything else.

    What other files contain follows as a text that OpenCode added.
    """
    kind: Any = part.get("mime")
    if part.get("type") != "file" or not isinstance(kind, str) or not kind.startswith("image/"):
        return None
    url = part.get("url")
    data = url.partition("base64,")[2] if isinstance(url, str) and url.startswith("data:") else ""
    return image_placeholder(kind, data) if data else f"[image: {kind}, {text(part.get('filename')) or 'unnamed'}]"


# -- messages --------------------------------------------------------------------------------------
# One version of a message, divided into its drafts: what the human, the model and OpenCode say.

_LEFT_OUT = frozenset({"agent", "file", "snapshot", "step-finish", "step-start"})
"""Parts that repeat others: positions of snapshots, files and agents that a text names; figures of the message."""

_COMMANDS = "commands"
_COMMANDS_REMEMBERED = 256


def parts_of(info: Record, parts: list[Any], state: LogState, *, followed: bool) -> Parts:
    """Divide one version of a message; `followed` says that the model has gone on since."""
    if info.get("role") not in ("user", "assistant"):
        return {"info": _dated(unknown(text(info.get("role")) or "message", info, state), info)}
    named = (identifier(fields(part).get("id")) for part in parts)
    identified = [
        (name or str(number), fields(part)) for number, (name, part) in enumerate(zip(named, parts, strict=True))
    ]
    if info["role"] == "user":
        result = _user_parts(info, identified, state)
    else:
        result = _model_parts(info, identified, state, followed=followed)
    for name, draft in result.items():
        draft.identity = _identity(info, name, draft)
    return result


def said_by(info: Record, parts: list[Record]) -> tuple[Any, ...]:
    """Return who says what in a message, which is the same in each form in which it is kept."""
    written = (part for part in parts if part.get("type") == "text" and not part.get("synthetic"))
    texts = (part["text"].strip() for part in written if isinstance(part.get("text"), str))
    tools = (text(part.get("tool")) for part in parts if part.get("type") == "tool")
    return info.get("role"), "\n".join(texts), *tools


_OF_USERS, _OF_MODELS = ("user", "synthetic", "skill"), ("assistant", "compaction", "shell")
_NO_MESSAGES = frozenset({"system", "idle", "agent-switched", "model-switched", "location-switched"})
_STOPPED = later(r"(?i)abort|interrupt")


def message_of(row: Record, data: Record) -> tuple[Record, list[Record]] | None:
    """Return a row of `session_message`, since 2.0, as a message of 1.x with its parts; None for any other row.

    `packages/schema/src/session-message.ts` of anomalyco/opencode (September 2026) describes its `data`.
    """
    kind = row.get("type")
    if kind not in (*_OF_USERS, *_OF_MODELS):
        return None
    time, error = {"created": row.get("time_created"), **fields(data.get("time"))}, fields(data.get("error"))
    info: Record = {**data, "time": time, "id": str(row["id"]), "role": "user" if kind in _OF_USERS else "assistant"}
    info |= {"modelID": fields(data.get("model")).get("id"), "tokens": fields(data.get("tokens"))}
    if info["tokens"]:  # by their total, output without reasoning is told from output with it
        figures = _counts(info["tokens"])
        info["tokens"] = {**info["tokens"], "total": sum(figures.values()) - figures.get("total", 0)}
    if error:
        name = "MessageAbortedError" if _is_stopped(error) else error.get("type")
        info["error"] = {"name": name, "data": {"message": error.get("message"), "statusCode": error.get("status")}}
    if kind in _OF_USERS:
        parts = [_file_of(fields(file)) for file in items(data.get("files"))]
        if text(data.get("text")):
            parts.insert(0, {"type": "text", "text": data["text"], "synthetic": kind != "user"})
    elif kind == "compaction":
        parts = [{"type": "compaction", "auto": data.get("reason") == "auto"}]
        parts += [{"type": "text", "text": data["summary"]}] if text(data.get("summary")) else []
        info["summary"] = True
    elif kind == "shell":
        state = {**data, "input": {"command": data.get("command")}, "metadata": {"exit": data.get("exit", 0)}}
        state["output"] = fields(data.get("output")).get("output", data.get("output"))
        state["status"] = {"running": "running", "timeout": "error"}.get(str(data.get("status")), "completed")
        if data.get("status") == "killed":
            state |= {"status": "error", "error": state["output"], "metadata": {"interrupted": True}}
        parts = [_part_of({"type": "tool", "id": data.get("shellID"), "name": _SHELL, "state": state, "time": time})]
    else:
        parts = [_part_of(fields(part)) for part in items(data.get("content"))]
        retry = fields(data.get("retry"))
        parts += [{"type": "retry", "error": retry.get("error"), "time": {"created": retry.get("at")}}] if retry else []
    return info, [{**part, "id": f"{row['id']}-{number}"} for number, part in enumerate(parts)]


def _is_stopped(error: Record) -> bool:
    """Whether an error since 2.0 is that somebody stopped the model."""
    return error.get("message") == "aborted" or _STOPPED.search(str(error.get("type"))) is not None


def _file_of(file: Record) -> Record:
    url = file.get("uri") or f"data:{file.get('mime')};base64,{file.get('data')}"
    return {**file, "type": "file", "url": url, "filename": file.get("name")}


def _part_of(part: Record) -> Record:
    """Return a part of a response since 2.0 as one of 1.x: a tool has other names, and its output may be a list."""
    if part.get("type") != "tool":
        return part
    state, time, error = fields(part.get("state")), fields(part.get("time")), fields(part.get("state")).get("error")
    output, metadata = state.get("output"), fields(state.get("metadata") or state.get("structured"))
    if output is None:
        texts = (text(fields(one).get("text")) for one in items(state.get("content")))
        output = "\n".join(filter(None, texts)) or state.get("result")
    told = {
        **state, "output": output, "metadata": metadata | ({"interrupted": True} if _is_stopped(fields(error)) else {}),
        "error": text(fields(error).get("message")) or error,
        "status": "pending" if state.get("status") == "streaming" else state.get("status"),
        "time": {"start": time.get("ran") or time.get("created"), "end": time.get("completed")},
    }  # fmt: skip
    return {"type": "tool", "callID": part.get("id"), "tool": part.get("name"), "state": told}


def unknown_parts(record: Record, state: LogState) -> tuple[str, Parts]:
    """Keep a record of another shape, such as a row of a table that agtrace doesn't know; return its name with it."""
    row, table = fields(record.get("row")), text(record.get("table")) or next(iter(record), "empty")
    kind = f"{table}/{row['type']}" if isinstance(row.get("type"), str) else table
    draft = Draft(unknown(kind, record, state), milliseconds(row.get("time_created")))
    return text(row.get("id")) or table, {"row": draft}


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
    if any(
        part.get("type") == "subtask" or (part.get("synthetic") and str(part.get("text")).startswith(_SHELL_TEXT))
        for _, part in parts
    ):  # no model answers: it starts a sub-agent, or reports what the human ran
        remember(state.memory.setdefault(_COMMANDS, {}), known_as(info["id"]), 1, _COMMANDS_REMEMBERED)
    asked, found = [], Parts()
    for name, part in parts:
        kind = kind_of(part, state)
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
        found["said"] = _dated(User("\n".join([*asked, *images]), requester(state)), info)
    return found


# --- the model's ---


def _model_parts(info: Record, parts: list[tuple[str, Record]], state: LogState, *, followed: bool) -> Parts:
    facts, time = state.sessions[""], fields(info.get("time"))
    facts.model = text(info.get("modelID")) or facts.model
    facts.cwd = facts.cwd or text(fields(info.get("path")).get("cwd"))
    summary = info.get("summary") is True or info.get("mode") == "compaction"
    error = fields(info.get("error"))
    over = followed or bool(error) or "completed" in time
    result = Parts()
    for name, part in parts:
        started = fields(part.get("time")).get("start")
        said = part.get("text") if isinstance(part.get("text"), str) else None
        match part.get("type"):
            case "text" if said is not None:
                if said.strip():
                    payload = User(said, UserKind.COMPACTION_SUMMARY) if summary else Message(said)
                    result[name] = _dated(payload, info, started, step=not summary)
            case "reasoning" if said is not None:
                if said.strip() or part.get("metadata") or part.get("native"):
                    result[name] = _dated(Reasoning(said), info, started, step=True)
            case "tool":
                result |= _executed(name, part, info, over=over)
            case _:
                result |= _other_parts(name, part, info, state)
    for told in (info, *(part for _, part in parts if part.get("type") == "step-finish")):
        check_usage(told.get("tokens"), _KNOWN, state)
    if not _is_a_commands(info, state) and "command" not in info:
        figures = usage_of(info, (part for _, part in parts if part.get("type") == "step-finish"))
        result["usage"] = _dated(figures, info, time.get("completed"), step=True)
    if error:
        result["error"] = _failed(error, info)
    return result


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


# -- order -----------------------------------------------------------------------------------------
# The order of a session's messages: whether the model went on after one of them.


def followed(assistants: Iterable[bool]) -> list[bool]:
    """Return for each message in order whether a later one is the model's: what still ran before it was interrupted."""
    later, found = False, []
    for assistant in reversed([*assistants]):
        found.append(later)
        later = later or assistant
    return found[::-1]


# -- sessions --------------------------------------------------------------------------------------
# The session: facts from its row, its file, or the head of an export.

_UNTITLED = later(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")
"""The beginning of the title that a session has until the model found one."""

_SUB_AGENT = later(r"(.*?)\s*\(@([^()\s]{1,80}) subagent\)\s*\Z", re.S)
_FORK = later(r"\(fork #\d+\)\s*\Z")
_LONGEST_TITLE = 2_000
_RANK = 3
"""Of a title that the log itself gives its session."""


def note_session(session: Record, facts: SessionFacts) -> None:
    """Take the facts about a session; one with a parent is a sub-agent's."""
    facts.id = facts.id or identifier(session.get("id"))
    facts.cwd = facts.cwd or text(session.get("directory"))
    facts.version = text(session.get("version")) or facts.version
    title = masked(text(session.get("title")) or "", _LONGEST_TITLE)
    if session.get("parentID"):
        facts.kind, parent = "subagent", identifier(session["parentID"])
        if parent != "REDACTED":  # by which Entire replaces some ids in exports
            facts.parent_id = parent
        if match := _SUB_AGENT.match(title):
            facts.description, facts.agent_type = match[1] or None, match[2]
        facts.agent_type = facts.agent_type or text(session.get("agent"))
    elif session.get("forkID") or _FORK.search(title):
        facts.kind, facts.parent_id = "fork", identifier(session.get("forkID") or None)
    if title and not _UNTITLED.match(title):
        facts.title, facts.title_rank = title, _RANK


_TOTALS = {
    "tokens_input": "input", "tokens_output": "output", "tokens_reasoning": "reasoning", "tokens_cache_read": "read",
    "tokens_cache_write": "write", "cost": "cost",
}  # fmt: skip
"""The columns of a session's row with its sums, since 1.16, and what they count."""


def note_counted(message: str, usage: Draft | None, state: LogState) -> None:
    """Remember the figures of a message, given what it is called in states, and their time and cost."""
    counted = state.memory.setdefault("counted", {})
    counted.pop(message, None)
    if usage is not None and isinstance(found := usage.payload, TokenUsage) and found.complete:
        figures = found.input_tokens, found.cache_creation_5m_tokens, found.cache_read_tokens, found.output_tokens
        counted[message] = [*(figure or 0 for figure in figures), usage.timestamp or 0, found.cost_usd]


def more_than_messages(record: Record, state: LogState) -> Parts:
    """Return what a session's own sums have more than its messages, as of titles or what was deleted: without a step.

    If they have more, but less of a kind, nobody knows how much is missing.
    """
    tokens, facts = _counts(record), state.sessions[""]
    known: list[list[Any]] = [*state.memory.get("counted", {}).values()]
    *counted, times, costs = map(list, zip(*known, strict=True)) if known else [[] for _ in range(6)]
    output = tokens.get("output", 0) + tokens.get("reasoning", 0)
    sums = tokens.get("input", 0), tokens.get("write", 0), tokens.get("read", 0), output
    more = [whole - sum(figures) for whole, figures in zip(sums, counted, strict=True)]
    if sum(more) <= 0:
        return {}
    usage = TokenUsage(None, facts.model, complete=False, speed="sum")
    if min(more) >= 0:
        cost = dollars(record.get("cost")) if None not in costs else None
        cost = None if cost is None else dollars(cost - sum(costs))
        fresh, wrote, read, made = more
        usage = TokenUsage(None, facts.model, fresh, wrote, None, read, made, speed="sum", cost_usd=cost)
    return {"usage": Draft(usage, max(times, default=0) or None, identity=f"totals/{facts.id}/{more}")}


# -- records ---------------------------------------------------------------------------------------
# The records that sources make of rows and small files, as JSON: what is in them is kept even if it isn't JSON.

LONGEST = 8 * 1024 * 1024
"""Bytes of a row or a file above which only its beginning is kept: one message has to fit into one record."""

LONGEST_MESSAGE = 24 * 1024 * 1024
"""Bytes of the parts of a message, above which only the beginnings of further ones are kept."""

HEAD = 64 * 1024
_LONGEST_WORD = 4096
_WORD = later(r"[^\s\"',;]+\Z")


def value_of(data: bytes, length: int | None = None, **own: Any) -> Record:
    """Return the object that a row or a file contains, with its own ids; `length` is its size if `data` is cut.

    Anything else becomes an object of the type `unreadable`, with its text, or `oversized`, with its beginning.
    """
    size = len(data) if length is None else length
    if size > len(data) or crowded(data):
        return {"type": "oversized", "bytes": size, "text": beginning(data), **own}
    value = single(data)
    return {**value, **own} if isinstance(value, dict) else {"type": "unreadable", "text": beginning(data), **own}


def beginning(data: bytes) -> str:
    """Return the beginning of a text without a cut word, as half a secret isn't recognised as one."""
    text = data[: HEAD + 1].decode("utf-8", "replace")
    if len(data) <= HEAD:
        return text
    cut = _WORD.search(text, len(text) - _LONGEST_WORD)
    return text[: cut.start() if cut else len(text)]


def as_json(record: Record) -> bytes:
    """Return a record as JSON; integers of any length are possible."""
    try:
        return orjson.dumps(record)
    except TypeError:
        return json.dumps(record).encode("utf-8", "replace")


# -- small files -----------------------------------------------------------------------------------
# OpenCode's sessions before 1.2: a tree with a small file for each session, message and part, rewritten in place.


# --- which sessions there are ---


def _logs_in_tree(container: Container) -> Iterable[LogInside]:
    """Yield a log for each session, which has changed if one of its files has, or if there are more or fewer."""
    heads, messages, parts = {}, dict[str, list[LogFile]](), dict[str, list[LogFile]]()
    for file in container.files:
        match PurePath(file.path[len(container.path) + 1 :]).parts:
            case ("session", _, _):
                heads[_stem(file)] = file
            case ("message", session, _):
                messages.setdefault(session, []).append(file)
            case ("part", *above, _):
                parts.setdefault(above[0] if above else "", []).append(file)
    heads = {(stem if stem in messages else _id_in(head)): head for stem, head in heads.items()}
    stems = {_stem(file) for files in messages.values() for file in files}
    shared = [file for name, files in parts.items() if name not in stems for file in files]
    for session in sorted(heads.keys() | messages.keys()):
        own = [*messages.get(session, ()), *([heads[session]] if session in heads else [])]
        own += [part for message in messages.get(session, ()) for part in parts.get(_stem(message), ())]
        yield LogInside(session, _stamp([*own, *shared]), 1 + sum(file.size for file in own))


def _id_in(head: LogFile) -> str:
    """Return the id in the file of a session, which is its name's unless somebody renamed it."""
    stem = _stem(head)
    with suppress(OSError):
        named = text(_content(head).get("id"))
        return named if named and "/" not in named else stem
    return stem


def _stamp(files: Iterable[LogFile]) -> str:
    return digest("\n".join(sorted(f"{file.path}/{file.stamp}" for file in files)))


# --- what is in one ---


def _rows_in_tree(found: LogFile, position: Any) -> Iterable[Row]:
    """Yield a record of the messages that vanished, one of the session, then the messages that changed, in order.

    Their numbers count the messages in the order in which they came. The position has them, and the fingerprint of each
    message: a session that changed is read for who speaks, then for what is new.
    """
    root, session = found.container, basename(found.path)
    facts: str
    known: dict[str, list[int]]
    facts, known = position or ("", {})
    files = [*_json_files(os.path.join(root, "message", session)).values()]
    told = [(info["id"], info.get("role") == "assistant") for info in map(_info, files)]
    present = {known_as(id) for id, _ in told}
    if gone := sorted(known.keys() - present):
        known = {name: about for name, about in known.items() if name in present}
        yield Row(0, as_json({"removed": gone}), (facts, known))
    head = _head(root, session)
    if head is not None and head.stamp != facts:
        facts = head.stamp
        yield Row(0, as_json({"session": _content(head)}), (facts, known))
    flat, newest = _flat_parts(root), max((number for number, _ in known.values()), default=0)
    for file, (id, _), past in zip(files, told, followed(assistant for _, assistant in told), strict=True):
        held = [*(_json_files(os.path.join(root, "part", id)).values() if _is_name(id) else ()), *flat.get(id, ())]
        number, before = known.get(known_as(id), (newest + 1, None))
        if before != (now := print_of(file.stamp, _stamp(held), past)):
            newest, known[known_as(id)] = max(newest, number), [number, now]
            record = {"info": _info(file), "parts": [*_parts(held)], "followed": past}
            yield Row(number, as_json(record), (facts, known))


def _info(file: LogFile) -> Record:
    info = _content(file)
    return {**info, "id": text(info.get("id")) or _stem(file)}


def _stem(file: LogFile) -> str:
    return PurePath(file.path).stem


def _parts(files: Iterable[LogFile]) -> Iterator[Record]:
    left = LONGEST_MESSAGE
    for file in files:
        with suppress(FileNotFoundError):  # deleted just now
            left -= file.size
            part = _content(file, LONGEST if left > 0 else HEAD)
            yield {**part, "id": text(part.get("id")) or _stem(file)}


def _flat_parts(root: str) -> dict[str, list[LogFile]]:
    """Return the parts that aren't in a folder of their message, by the message that they name."""
    result: dict[str, list[LogFile]] = {}
    folder = os.path.join(root, "part")
    with suppress(OSError), os.scandir(folder) as listing:
        names = sorted(entry.name for entry in listing if entry.name.endswith(".json") and not entry.is_dir())
        for name in names:
            for file in walk([os.path.join(folder, name)]):
                result.setdefault(str(_content(file).get("messageID")), []).append(file)
    return result


def _head(root: str, session: str) -> LogFile | None:
    """Return the file of a session: it is in the folder of its project."""
    with suppress(OSError), os.scandir(os.path.join(root, "session")) as projects:
        folders = sorted(project.path for project in projects)
        for folder in folders:
            for file in walk([os.path.join(folder, f"{session}.json")]):
                return file
        for file in walk(folders):
            if file.oddity is None and basename(file.path).startswith("ses_") and _id_in(file) == session:
                return file
    return None


def _json_files(folder: str) -> dict[str, LogFile]:
    """Return the JSON files in a folder in the order of their names, which is that of their ids."""
    files = sorted(walk([folder]), key=attrgetter("path"))
    return {_stem(file): file for file in files if file.oddity is None and file.path.endswith(".json")}


def _is_name(id: str) -> bool:
    """Whether an id may be the name of a folder: what a log says must not lead out of its tree."""
    return id not in (".", "..") and "/" not in id and "\0" not in id and os.sep not in id


def _content(file: LogFile, most: int = LONGEST) -> Record:
    with open_regular(file) as opened:
        data = opened.read(most + 1)
    return fields(value_of(data, file.size if len(data) > most else None))


class Tree:
    """The source of sessions that are trees of small files."""

    logs, rows = staticmethod(_logs_in_tree), staticmethod(_rows_in_tree)


# -- database --------------------------------------------------------------------------------------
# Tables `session`, `message`, `part`, since 2.0 `session_v2` and `session_message` (README.md). A session of 1.x is in
# the newer tables as well once 2.0 has moved it: their rows that repeat messages are left out. Rows are rewritten in
# place and deleted, so each message has a fingerprint: how many parts it has, their sizes, and when they were last
# changed. Messages whose fingerprint is another one are read again as a whole.

_NEEDED = {
    "session": {"id", "directory", "version"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}
"""The tables and columns of 1.x."""

_NEWER = {"id", "session_id", "type", "seq", "data"}
"""The columns of `session_message`, without which a database that lacks those of 1.x isn't OpenCode's."""

_FACTS = {
    "id": "id", "parent_id": "parentID", "directory": "directory", "title": "title", "version": "version",
    "agent": "agent", "fork_session_id": "forkID",
}  # fmt: skip
"""The columns of `session` and `session_v2` that say something, and their names in its JSON."""

_IMPORTED = ("external_import", "claude_import")
"""MiMo Code's tables of sessions that it copied from other agents, whose own logs are read."""

_RECENT = 64
"""The number of sessions, newest first, whose rows are looked at in each listing.

A session's row is written when a request begins and ends, but not whenever a part changes meanwhile. Looking at all
rows of a database of a gigabyte would take a second; counting them takes an index.
"""

_AT_ONCE = 400
"""The most messages that are read with one query."""

_BATCH = 4 * 1024 * 1024
"""Bytes of messages after which they are passed on."""


class _Message(NamedTuple):
    """A row that is to become a record."""

    table: str
    id: str
    number: int
    """Its rowid."""
    size: int
    """Of its data and those of its parts, in characters."""
    print: int
    """Its fingerprint."""
    followed: bool

    @property
    def known(self) -> str:
        """What it is called in states."""
        return known_as(self.id)


class _Tables:
    """The tables of a database, with their columns."""

    def __init__(self, path: str) -> None:
        self._columns = columns_of(path)
        missing = [table for table, needed in _NEEDED.items() if not needed <= self._columns[table]]
        moved = self.has("session_v2", "directory") or not (self.has("message") or self.has("part"))
        self.newer, self.older = self._columns["session_message"] >= _NEWER and (moved or not missing), not missing
        self.sessions = [table for table in ("session", "session_v2") if self.has(table, "directory")]
        if not self.sessions or not (self.newer or self.older):
            raise OSError(0, f"its tables aren't those of OpenCode 1.2 to 2.0 ({', '.join(missing)}): not read")
        self.messages = [*(("message", "part") if self.older else ()), *(("session_message",) if self.newer else ())]

    def has(self, table: str, column: str = "id") -> bool:
        """Whether there is a table with a column."""
        return column in self._columns[table]

    def column(self, table: str, name: str) -> str:
        """Return an expression for a column that not every version has."""
        return f"{table}.{name}" if self.has(table, name) else "0"

    @property
    def own(self) -> str:
        """A condition on `session`: those that weren't copied from another agent."""
        copied = [table for table in _IMPORTED if self.has(table, "session_id")]
        return " AND ".join(
            ["1", *(f"id NOT IN (SELECT session_id FROM {table} WHERE session_id IS NOT NULL)" for table in copied)]
        )


# --- which sessions there are ---


def logs(container: Container) -> Iterable[LogInside]:
    """Yield a log for each session, which has changed if its row has, or if there are more rows, or fewer, or newer."""
    path = container.path
    tables = _Tables(path)
    found = ask(path, *_listing(tables))
    told: dict[str, list[Any]] = {}
    for rows in found[: len(tables.sessions)]:
        for session, *facts in rows:
            told.setdefault(str(session), []).append(facts)
    counts = {table: dict(rows) for table, rows in zip(tables.messages, found[len(tables.sessions) :], strict=False)}
    stamps: dict[str, list[Any]] = {}
    for rows in found[len(tables.sessions) + len(tables.messages) :]:
        for session, *newest in rows:
            stamps.setdefault(session, []).append(newest)
    size = sum(file.size for file in container.files)
    total = sum(sum(counted.values()) for counted in counts.values()) or 1
    for session, facts in told.items():
        own = [counted.get(session, 0) for counted in counts.values()]
        yield LogInside(session, digest(repr((facts, own, stamps.get(session)))), 1 + size * sum(own) // total)


def _listing(tables: _Tables) -> Iterator[Question]:
    for table in tables.sessions:
        facts = ", ".join(tables.column(table, name) for name in (*_FACTS, *_TOTALS, "time_updated"))
        yield f"SELECT id, {facts} FROM {table} WHERE {tables.own} AND id > '' AND id NOT LIKE '%/%'", ()
    for table in tables.messages:
        yield f"SELECT session_id, count(*) FROM {table} GROUP BY session_id", ()
    if tables.has("event_sequence", "aggregate_id"):
        yield "SELECT aggregate_id, seq FROM event_sequence", ()
    for table in tables.messages:
        sessions = tables.sessions[-1 if table == "session_message" else 0]
        if tables.has(sessions, "time_updated") and tables.has(table, "time_updated"):
            recent = f"SELECT id FROM {sessions} ORDER BY time_updated DESC LIMIT {_RECENT}"
            sums = "max(time_updated), sum(time_updated % 1000003)"
            yield f"SELECT session_id, {sums} FROM {table} WHERE session_id IN ({recent}) GROUP BY session_id", ()


# --- what is in one ---


def rows(file: LogFile, position: Any) -> Iterable[Row]:
    """Yield a record of the messages that vanished, one of the session, then the messages that changed, in order, and
    one of the session's sums.
    """
    path, session = file.container, basename(file.path)
    tables = _Tables(path)
    questions = [
        (
            f"SELECT rowid, {', '.join(tables.column(table, name) for name in (*_FACTS, *_TOTALS))} "
            f"FROM {table} WHERE id = ?",
            (session,),
        )
        for table in tables.sessions
    ]
    *heads, older, newer = ask(path, *questions, *_prints(tables, session))
    told = [row for rows in heads for row in rows][-1:]
    repeated = _repeated(path, session) if older and newer else set()
    messages = [*_messages("message", older)]
    messages += [message for message in _messages("session_message", newer) if message.id not in repeated]
    facts: str
    known: dict[str, int]
    facts, known, *summed = position or ("", {})
    present = {message.known for message in messages}
    gone = sorted(known.keys() - present)
    if gone:
        known = {id: print for id, print in known.items() if id in present}
        yield Row(0, as_json({"removed": gone}), (facts, known, *summed))
    for number, *values in told:
        record = dict(zip(_FACTS.values(), map(_plain, values), strict=False))
        if (now := digest(repr(record))) != facts:
            facts = now
            yield Row(number, as_json({"session": record}), (facts, known, *summed))
    for message, data in _read(path, [message for message in messages if known.get(message.known) != message.print]):
        known[message.known] = message.print
        yield Row(message.number, data, (facts, known, *summed))
    for number, *values in told:
        totals = dict(zip(_TOTALS.values(), map(_plain, values[len(_FACTS) :]), strict=True))
        sums = print_of(totals, sorted(known.items()))
        if any(totals.values()) and [sums] != summed:
            yield Row(number, as_json({"totals": totals}), (facts, known, sums))


def _prints(tables: _Tables, session: str) -> Iterator[Question]:
    """Return the queries for the fingerprints of messages of 1.x and since 2.0."""
    part, message = (tables.column(table, "time_updated") for table in ("part", "message"))
    created = tables.column("message", "time_created")
    older = (
        f"SELECT message.id, message.rowid, {message}, coalesce(length(message.data), 0), "
        'instr(message.data, \'"role":"assistant"\') > 0, coalesce(n, 0), coalesce(newest, 0), coalesce(size, 0) '
        f"FROM message LEFT JOIN (SELECT message_id, count(*) n, max({part}) newest, "
        "sum(coalesce(length(data), 0)) size FROM part WHERE session_id = :session GROUP BY message_id) "
        f"ON message_id = message.id WHERE session_id = :session ORDER BY {created}, message.id"
    )
    newer = (
        f"SELECT id, rowid, {tables.column('session_message', 'time_updated')}, coalesce(length(data), 0), "
        "type = 'assistant' FROM session_message WHERE session_id = :session ORDER BY seq"
    )
    yield older if tables.older else "SELECT 1 WHERE 0", {"session": session}
    yield newer if tables.newer else "SELECT 1 WHERE 0", {"session": session}


def _messages(table: str, listed: Sequence[tuple[Any, ...]]) -> Iterator[_Message]:
    later = followed(bool(row[4]) for row in listed)
    for (id, number, *told), past in zip(listed, later, strict=True):
        yield _Message(table, str(id), number, told[1] + told[-1], print_of(told, past), past)


def _repeated(path: str, session: str) -> set[str]:
    """Return the ids of rows that repeat messages of 1.x: by their id, or by who says what.

    What a session was moved with begins with its first message: without that, equal texts are said again.
    """
    older, parts, newer = ask(
        path,
        ("SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (session,)),
        ("SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY message_id, id", (session,)),
        ("SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY seq", (session,)),
    )
    held: dict[Any, list[Record]] = {}
    for message, id, data in parts:
        held.setdefault(message, []).append(value_of(_value(0, data)[0], id=id))
    ids = {str(id) for id, _ in older}
    said = [said_by(value_of(_value(0, data)[0]), held.get(id, [])) for id, data in older]
    told = {}
    for id, kind, data in newer:
        if (message := message_of({"id": id, "type": kind}, value_of(_value(0, data)[0]))) is not None:
            told[str(id)] = said_by(*message)
    left = Counter(said if said[:1] == [*told.values()][:1] else ())
    repeated = ids & told.keys()
    for id, what in told.items():
        if id not in ids and left[what] > 0:
            left[what] -= 1
            repeated.add(id)
    return repeated


def _read(path: str, messages: Sequence[_Message]) -> Iterator[tuple[_Message, bytes]]:
    """Yield the records of rows, in order, a few megabytes at a time. A row that was deleted just now has none."""
    batch: list[_Message] = []
    size = 0
    for message in messages:
        if batch and (size + message.size > _BATCH or len(batch) == _AT_ONCE or message.table != batch[0].table):
            yield from _read_batch(path, batch)
            batch, size = [], 0
        batch.append(message)
        size += message.size
    if batch:
        yield from _read_batch(path, batch)


def _read_batch(path: str, batch: Sequence[_Message]) -> Iterator[tuple[_Message, bytes]]:
    table, numbers, marks = batch[0].table, [message.number for message in batch], ", ".join("?" * len(batch))
    data, kind = f"length(data), substr(data, 1, {LONGEST})", "0, 0" if table == "message" else "type, time_created"
    found = f"FROM {table} WHERE rowid IN ({marks})"
    parts = f"SELECT message_id, id, {data} FROM part WHERE message_id IN (SELECT id {found}) ORDER BY message_id, id"
    heads, *own = ask(
        path,
        (f"SELECT rowid, id, {kind}, {data} {found}", numbers),
        *([(parts, numbers)] if table == "message" else []),
    )
    rows, held = {number: told for number, *told in heads}, dict[Any, list[Any]]()
    for id, *told in (part for parts in own for part in parts):
        held.setdefault(id, []).append(told)
    for message in batch:
        if message.number not in rows:
            continue
        id, kind, at, *told = rows[message.number]
        if own:
            record = {"info": value_of(*_value(*told), id=id), "parts": [*_parts_of(held.get(id, ()))]}
        else:
            row = {"id": id, "type": kind, "time_created": at}
            record = {"table": table, "row": row, "data": value_of(*_value(*told))}
        yield message, as_json({**record, "followed": message.followed})


def _parts_of(found: Iterable[tuple[Any, ...]]) -> Iterator[Record]:
    left = LONGEST_MESSAGE
    for id, length, data in found:
        held, size = _value(length, data)
        left -= size
        yield value_of(held if left > 0 else held[:HEAD], size, id=id)


def _value(length: Any, data: Any) -> tuple[bytes, int]:
    """Return the bytes of a value, at most `LONGEST` characters, and its size: more than these if it was cut."""
    held = data if isinstance(data, bytes) else ("" if data is None else str(data)).encode("utf-8", "replace")
    return held, len(held) if (length or 0) <= LONGEST else max(int(length), len(held) + 1)


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, str)):
        data = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
        return data[:LONGEST].decode("utf-8", "replace") if len(data) <= LONGEST else value_of(b"", len(data))
    return value


# -- parser ----------------------------------------------------------------------------------------


def recognizes(record: Record) -> bool:
    """Recognize no record: no log of OpenCode's consists of lines."""
    return False


def unroll(document: Any) -> Iterable[Record] | None:
    """Return the session of an export and its messages; None for any other document."""
    info = fields(fields(document).get("info"))
    told = fields(document).get("messages")
    if not (isinstance(info.get("id"), str) and info["id"].startswith("ses_") and isinstance(told, list)):
        return None
    messages = [_message(value, number) for number, value in enumerate(told)]
    names = [message["info"]["id"] for message in messages]
    for number, message in enumerate(messages):
        if names.index(message["info"]["id"]) < number:  # ids that were blacked out are all the same
            message["info"]["id"] += f"-{number}"
    later = followed(message["info"].get("role") == "assistant" for message in messages)
    records: list[Record] = [{**message, "followed": past} for message, past in zip(messages, later, strict=True)]
    if totals := fields(info.get("tokens")):
        records.append({"totals": {**totals, **fields(totals.get("cache")), "cost": info.get("cost")}})
    return [{"session": info}, *records]


def _message(value: Any, number: int) -> Record:
    told = fields(value)
    info = told.get("info")
    if not isinstance(info, dict):
        return {"info": {"id": f"message-{number}", "value": value}, "parts": []}
    return {"info": {**info, "id": text(info.get("id")) or f"message-{number}"}, "parts": told.get("parts")}


begin = empty_state


def drafts(record: Record, state: LogState) -> Iterable[Said]:
    """Return what the next record changes."""
    if isinstance(record.get("session"), dict):
        note_session(record["session"], state.sessions[""])
        return skip("session", state)
    if isinstance(record.get("removed"), list):
        removed = [name for name in record["removed"] if isinstance(name, str)]
        for name in removed:
            note_counted(name, None, state)
        return forget_messages(removed, state)
    if isinstance(record.get("totals"), dict):
        return replace_message("totals", more_than_messages(record["totals"], state), state)
    info = record.get("info")
    if isinstance(info, dict) and isinstance(info.get("id"), str):
        return _changes(info, items(record.get("parts")), record, state)
    row = record.get("row")
    if isinstance(row, dict) and isinstance(row.get("id"), (str, int)):
        if row.get("type") in _NO_MESSAGES:
            return skip(row["type"], state)
        found = message_of(row, fields(record.get("data")))
        if found is not None:
            return _changes(*found, record, state)
    return replace_message(*unknown_parts(record, state), state)


def _changes(info: Record, told: list[Any], record: Record, state: LogState) -> Iterable[Said]:
    parts = parts_of(info, told, state, followed=record.get("followed") is True)
    note_counted(known_as(info["id"]), parts.get("usage"), state)
    return replace_message(info["id"], parts, state)
