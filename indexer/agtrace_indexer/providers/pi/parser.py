"""Pi: `sessions/<folder>/<time>_<id>.jsonl`, a format that oh-my-pi and OpenClaw share (README.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

import zstandard
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
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Draft, LogState, Record, Rollback, SessionFacts
from agtrace_indexer.events.json_values import (
    as_list,
    compact_json,
    count,
    fields,
    items,
    milliseconds,
    text,
)
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.logs.decoding import decode
from agtrace_indexer.logs.discovery import Container, LogFile
from agtrace_indexer.logs.foreign_database import as_bytes, ask, columns_of, tables_of
from agtrace_indexer.providers.beside import small_file
from agtrace_indexer.providers.notes import (
    block_text,
    block_type,
    check_usage,
    dollars,
    empty_state,
    identify,
    joined_text,
    known,
    no_document,
    numbered,
    readable_json,
    requester,
    skip,
    unknown,
)
from agtrace_indexer.providers.provider import LogInside, Row

# -- sessions --------------------------------------------------------------------------------------
# The session: what its first line says about it, and the entries that another log has as well.

_SEPARATORS = later(r"[/\\]")
_NAME_RANK = 3
"""Above 2, the rank of a title from another log."""

_SINCE = "forked at"


def begin_session(record: Record, state: LogState) -> None:
    """Take the facts from the first line; those of a later one, in logs that were joined, are another session's."""
    facts = state.sessions[""]
    if facts.id is not None:
        return
    facts.id = identifier(record.get("id"))
    facts.cwd = facts.cwd or text(record.get("cwd"))
    note_name(record.get("title"), state)
    note_model(record, state)
    origin = text(record.get("parentSession"))
    if origin and facts.parent_id is None:
        facts.parent_id = session_named(origin)
        state.memory[_SINCE] = milliseconds(record.get("timestamp"))


def session_named(path: str) -> str | None:
    """Return the id of a session whose log is at a path, `<time>_<id>.jsonl` or `<id>.jsonl`; an id is itself."""
    name = _SEPARATORS.split(path)[-1].partition(".jsonl")[0]
    return identifier(name.rpartition("_")[2] if name[:4].isdigit() else name)


def note_place(record: Record, state: LogState) -> None:
    """Call a session a fork if its first entry is older than itself: it is then a copy of its parent's.

    An extension may also name a parent whose entries are not copied.
    """
    if _SINCE not in state.memory or record.get("type") == "session":
        return
    since, written = state.memory.pop(_SINCE), milliseconds(record.get("timestamp"))
    if since is not None and written is not None and written < since and state.sessions[""].kind == "main":
        state.sessions[""].kind = "fork"


def note_model(record: Record, state: LogState) -> None:
    """Take the model, which oh-my-pi writes with its provider (`anthropic/claude-opus-4-5`) when it changes."""
    named = text(record.get("modelId")) or text(record.get("model"))
    if named and record.get("type") == "model_change":
        named = named.partition("/")[2] or named if "modelId" not in record else named
    state.sessions[""].model = named or state.sessions[""].model


def note_name(name: Any, state: LogState) -> None:
    """Take the name that the user or the agent gave the session; an empty one takes it back."""
    if isinstance(name, str):
        facts = state.sessions[""]
        facts.title, facts.title_rank = (name, _NAME_RANK) if name.strip() else (None, 0)


# -- tokens ----------------------------------------------------------------------------------------
# Token counts and costs of a response, which Pi writes with each of them.


_FIGURES = ("input", "output", "cacheRead", "cacheWrite")
_KNOWN = known(
    *_FIGURES, "cacheWrite1h", "totalTokens", "reasoning", "reasoningTokens", "cost.total",
    *(f"cost.{name}" for name in _FIGURES),
)  # fmt: skip


def usage_of(message: Record, state: LogState, *, says_something: bool) -> TokenUsage | None:
    """Read `usage`, whose input excludes what was cached, and whose output includes reasoning.

    A response that failed or was stopped has only zeros: its figures are unknown, if it said anything at all.
    """
    usage = fields(message.get("usage"))
    figures = {key: count(usage.get(key)) for key in _FIGURES}
    check_usage(usage, _KNOWN, state)
    response, model = identifier(message.get("responseId")), text(message.get("model"))
    if not any(figures.values()):
        return TokenUsage(response, model, complete=False) if says_something else None
    hour = count(usage.get("cacheWrite1h"))
    written = figures["cacheWrite"]
    return TokenUsage(
        response_id=response,
        model=model,
        input_tokens=figures["input"],
        cache_creation_5m_tokens=written if written is None else max(written - (hour or 0), 0),
        cache_creation_1h_tokens=hour,
        cache_read_tokens=figures["cacheRead"],
        output_tokens=figures["output"],
        reasoning_tokens=count(usage.get("reasoning", usage.get("reasoningTokens"))),
        cost_usd=dollars(fields(usage.get("cost")).get("total")),
    )


# -- tool results ----------------------------------------------------------------------------------
# Results of tool executions: a flag says whether they failed, and the text how.

COMMAND_RAN = "Command exited with code {}"
"""The last line of what a failed command printed, written by Pi."""

_ENDED = later(r"(?:\A|\n)Command exited with code (-?[0-9]{1,9})\s*\Z")
_STOPPED = later(r"(?:\A|\n)(?:Command|Operation) aborted\s*\Z|\ASkipped due to queued user message\.")
_BLOCKED = later(r"\ATool execution was blocked")
_TAIL = 200
"""Characters in which the last line is searched for."""


def tool_result(message: Record) -> ToolResult:
    """Read a result. Pi's shell fails if a command does, so its flag is that of the command (`bash.ts`)."""
    said = joined_text(message.get("content"))
    outcome, source = _outcome(message.get("isError"), said)
    ended = _ENDED.search(said[-_TAIL:]) if outcome is Outcome.FAILED else None
    code = int(ended[1]) if ended else None
    return ToolResult(identifier(message.get("toolCallId")), said, outcome, source, code)


def _outcome(failed: object, said: str) -> tuple[Outcome, OutcomeSource | None]:
    if failed is False:
        return Outcome.OK, OutcomeSource.STRUCTURE
    if failed is not True:
        return Outcome.UNKNOWN, None
    if _STOPPED.search(said[:_TAIL]) or _STOPPED.search(said[-_TAIL:]):
        return Outcome.INTERRUPTED, OutcomeSource.TEXT
    if _BLOCKED.match(said):
        return Outcome.REJECTED, OutcomeSource.TEXT
    return Outcome.FAILED, OutcomeSource.STRUCTURE


# -- user texts ------------------------------------------------------------------------------------
# Texts in the user's role: who speaks in them.

Speakers: TypeAlias = Callable[[str, LogState], list[User]]
"""Divides a text of the user's role by who speaks in it."""


def plain(said: str, state: LogState) -> list[User]:
    """Return a text as the user's own, or in a sub-agent, as that of the agent that started it."""
    return [User(said, requester(state))] if said.strip() else []


# -- messages --------------------------------------------------------------------------------------
# Messages, by the role in which they are in the context: the user, the model, a tool, a command, an extension.

MIRRORS = ("delivery-mirror", "gateway-injected")
"""The models of lines in the model's role that OpenClaw writes itself: no API call was made for them."""

_OF_CODEX = "codex-app-server:"
"""The beginning of the key of an answer that OpenClaw copies from Codex, with the figures of its last response alone:
Codex's own log, `agent/codex-home/sessions`, has those of all."""


def read_message(record: Record, state: LogState, speakers: Speakers) -> list[Draft]:
    """Read an entry with a message."""
    message = fields(record.get("message"))
    time = milliseconds(record.get("timestamp")) or milliseconds(message.get("timestamp"))
    role = message.get("role")
    if role == "assistant":
        return _response(record, message, time, state)
    if role == "user":
        kinds = map(block_type, as_list(message.get("content")))
        state.unknown += [f"user.{kind}" for kind in kinds if kind not in ("text", "image")]
        payloads: list[Payload] = [*speakers(joined_text(message.get("content")), state)]
    elif isinstance(role, str) and role in _OF_OTHERS:
        payloads = _OF_OTHERS[role](message)
    else:
        payloads = [unknown(f"message.{text(role) or 'untyped'}", record, state)]
    return [Draft(payload, time) for payload in payloads] or skip(f"message.{role}", state)


def _response(record: Record, message: Record, time: int | None, state: LogState) -> list[Draft]:
    """Read a response of the model: its blocks, its tokens, and how it failed or was stopped."""
    synthetic = message.get("model") in MIRRORS or message.get("api") == "openclaw-transcript"
    reason, key = message.get("stopReason"), text(message.get("idempotencyKey")) or ""
    step = None if synthetic else identifier(record.get("id")) or numbered("entry", state)
    said = [Draft(_said(block, state), time, step) for block in as_list(message.get("content")) if block != ""]
    if not synthetic:
        note_model(message, state)
        if key.startswith(_OF_CODEX):
            message = {**message, "usage": None}
        usage = usage_of(message, state, says_something=bool(said))
        said += [Draft(usage, time, step)] if usage else []
    if reason in ("error", "aborted"):  # calls in it have no results then
        told = Notification(reason, text(message.get("errorMessage")) or "")
        said.append(Draft(told, time, ends_turn=reason == "aborted"))
    return said or skip("message.assistant", state)


def _said(block: Any, state: LogState) -> Payload:
    kind = block_type(block)
    if kind in ("text", "image"):
        return Message(block_text(block))
    if kind in ("thinking", "redactedThinking"):
        return Reasoning(text(block.get("thinking")) or "")
    if kind == "toolCall":
        return ToolCall(identifier(block.get("id")), text(block.get("name")) or "unknown", block.get("arguments"))
    return unknown(f"assistant.{kind}", block, state)


def _command(message: Record) -> list[Payload]:
    """Read a command that the user ran with `!`, and what it printed; with `!!` the model doesn't see either."""
    marks = "!!" if message.get("excludeFromContext") is True else "!"
    given = text(message.get("command")) or text(message.get("code")) or ""
    ended = "(cancelled)" if message.get("cancelled") is True else ""
    code = message.get("exitCode")
    if not ended and isinstance(code, int) and code != 0:
        ended = COMMAND_RAN.format(code)
    printed = "\n".join(filter(None, (text(message.get("output")), ended)))
    ran: list[Payload] = [User(f"{marks}{given}", UserKind.COMMAND)]
    return [*ran, User(printed, UserKind.INJECTED)] if printed else ran


def _injected(message: Record) -> list[Payload]:
    said = joined_text(message.get("content"))
    return [User(said, UserKind.INJECTED)] if said.strip() else []


def _summary(message: Record) -> list[Payload]:
    said = text(message.get("summary"))
    return [User(said, UserKind.COMPACTION_SUMMARY)] if said else []


def _mentioned(message: Record) -> list[Payload]:
    """Read the files that a user named with `@`, which are put into the context."""
    files = map(fields, items(message.get("files")))
    said = "\n\n".join(f"{text(file.get('path')) or ''}\n{joined_text(file.get('content'))}" for file in files)
    return [User(said, UserKind.INJECTED)] if said.strip() else []


_OF_OTHERS: dict[str, Callable[[Record], list[Payload]]] = {
    "toolResult": lambda message: [tool_result(message)],
    **dict.fromkeys(("bashExecution", "pythonExecution"), _command),
    **dict.fromkeys(("custom", "developer", "hookMessage", "system"), _injected),
    **dict.fromkeys(("branchSummary", "compactionSummary"), _summary),
    "fileMention": _mentioned,
}
"""The readers of messages that neither the user nor the model says, by role."""

OTHER_ROLES = frozenset(_OF_OTHERS) - {"custom", "developer", "system"}
"""The roles that only Pi knows."""


# -- entries ---------------------------------------------------------------------------------------
# Every type of entry, with its reader.

_ENVELOPE = {"type", "id", "parentId", "timestamp", "summary", "usage", "retainedTail", "preserveData"}
"""The keys of an entry that say nothing about a compaction, or repeat the messages that it keeps."""

_LEFT_OUT = (
    "archive", "credential_pin", "custom", "label", "mode_change", "reset_boundary", "service_tier_change",
    "session_init", "thinking_level_change", "ttsr_injection",
)  # fmt: skip
"""The types of entries that say nothing to a reader: settings, the state of extensions, marks in the tree."""


def read_entry(record: Record, state: LogState, speakers: Speakers) -> list[Draft]:
    """Read a line: the session, or an entry; `speakers` tells who speaks in a text of the user's role."""
    kind, time = record.get("type"), milliseconds(record.get("timestamp"))
    payloads: list[Payload] = []
    match kind:
        case "message" | "model_usage" | "branch_summary":
            pass
        case "session":
            begin_session(record, state)
        case "model_change":
            note_model(record, state)
        case "session_info" | "title" | "title_change":
            note_name(record.get("name", record.get("title")), state)
        case "compaction":
            about = {key: value for key, value in record.items() if key not in _ENVELOPE}
            payloads.append(Notification("compaction", readable_json(about)))
        case "custom_message":  # a text that an extension puts into the context
            payloads += _injected(record)
        case _ if kind not in _LEFT_OUT:
            payloads.append(unknown(text(kind) or "untyped", record, state))
    if kind in ("compaction", "branch_summary"):  # a summary in the user's role, of the context or of a branch
        payloads += _summary(record)
    result = [Draft(payload, time) for payload in payloads]
    if kind == "message":
        result = read_message(record, state, speakers)
    elif not result and kind != "model_usage":  # which has only tokens
        skip(str(kind), state)
    result += _usage(record, state)
    note_place(record, state)
    entry, written = identifier(record.get("id")), text(record.get("timestamp"))
    identify(result, f"{entry}@{written}" if entry and written else None)  # an id is unique in a log only
    return result


def _usage(record: Record, state: LogState) -> list[Draft]:
    """Read the tokens of a call to the model that any entry but a response has: of a summary, or within a tool.

    What an extension tells of its own calls may be in a log of theirs, or nowhere: it isn't counted, but noted.
    """
    holder = record if isinstance(record.get("usage"), dict) else fields(record.get("message"))
    if holder.get("role") == "assistant":
        return []
    if _tells_usage(record.get("data")) or _tells_usage(holder.get("details")):
        state.unknown.append("usage/extension")
    usage = usage_of({"model": state.sessions[""].model} | holder, state, says_something=False)
    return [Draft(usage, milliseconds(record.get("timestamp")))] if usage else []


def _tells_usage(value: Any, levels: int = 4) -> bool:
    """Whether there are figures in the objects and lists of an extension's data."""
    inside = value if isinstance(value, list) else fields(value).values()
    return levels > 0 and (
        any(count(fields(fields(value).get("usage")).get(name)) for name in _FIGURES)
        or any(_tells_usage(inner, levels - 1) for inner in inside if isinstance(inner, (dict, list)))
    )


# -- sub-agents ------------------------------------------------------------------------------------
# The log of a sub-agent is in a folder with the name of its parent's log, at any depth. Its parent's id is in that name
# or, in oh-my-pi, if that is a sub-agent as well, in the first lines of that log.

_OF_A_LOG = later(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-?[0-9]*Z?_.+")
"""The name of a main session's log, `<time>_<id>`."""

_HEAD = 4096


def _session_of(folder: PurePath) -> str | None:
    """Return the id of the session whose log is next to a folder of its name; None if there is none."""
    try:
        head = small_file(folder.with_name(f"{folder.name}.jsonl"), _HEAD, cut=True)
    except (OSError, ValueError):
        return None
    for line in head.split(b"\n"):
        for record in decode(line) or ():
            if isinstance(record, dict) and record.get("type") == "session":
                return identifier(record.get("id"))
    return None


# -- parser ----------------------------------------------------------------------------------------

_OWN = {"api": str, "stopReason": str, "timestamp": int}
"""Keys of messages of the model and the user, which other agents write without them."""


def recognizes(record: Record) -> bool:
    """Whether only Pi, or a fork of it, writes such a record: the session or an entry with a message."""
    kind = record.get("type")
    if kind == "session":
        return all(isinstance(record.get(key), str) for key in ("id", "timestamp", "cwd"))
    message = record.get("message")
    if kind != "message" or not isinstance(message, dict) or "parentId" not in record:
        return False
    return text(message.get("role")) in OTHER_ROLES or any(isinstance(message.get(key), of) for key, of in _OWN.items())


unroll = no_document


def begin(path: PurePath) -> LogState:
    """Return the state before the first record: a log in a folder named like another one is its sub-agent's.

    It is oh-my-pi's `<log>/<agent>.jsonl`, or `<log>/<run>/run-0/session.jsonl` of Pi's extension pi-subagents.
    """
    above = [folder for folder in path.parents if _OF_A_LOG.fullmatch(folder.name)]
    if not above:
        return LogState()
    agent = text(path.name.partition(".")[0])
    told = path.parent in above or agent == "session"
    parent = session_named(above[0].name) if told else _session_of(path.parent)
    agent = None if agent == "session" else agent
    return LogState({"": SessionFacts(parent_id=parent, kind="subagent", agent_type=agent)})


def drafts(record: Record, state: LogState) -> Sequence[Draft]:
    """Return the events of the next record; see `Parser.drafts`."""
    return read_entry(record, state, plain)


# -- OpenClaw --------------------------------------------------------------------------------------
# Pi's format, with schedules, heartbeats, events and metadata in texts of the user's role.

_INJECTED = ("[cron:", "Read HEARTBEAT.md", "A new session was started via /new or /reset")
"""The beginnings of texts that nobody typed."""

_PREFIX = later(
    r"\s*(?:System: \[[^\n]{0,2000}(?:\n|\Z)"
    r"|[A-Z][A-Za-z ]{0,60} \(untrusted[^)\n]{0,60}\):\s{0,9}```(?:json)?\n.{0,20000}?\n```\s{0,9})",
    re.DOTALL,
)
"""An event, or metadata in a fence, before what somebody wrote."""

_MOST_PREFIXES = 16


def speakers(said: str, state: LogState) -> list[User]:
    """Divide a text into what OpenClaw put before it, and what somebody wrote."""
    before, rest = _peeled(said)
    result = [User(before, UserKind.INJECTED)] if before.strip() else []
    if not rest.strip():
        return result
    kind = UserKind.INJECTED if rest.lstrip().startswith(_INJECTED) else requester(state)
    return [User(said, UserKind.INJECTED)] if result and kind is UserKind.INJECTED else [*result, User(rest, kind)]


def _peeled(said: str) -> tuple[str, str]:
    end = 0
    for _ in range(_MOST_PREFIXES):
        match = _PREFIX.match(said, end)
        if match is None:
            break
        end = match.end()
    return said[:end].rstrip(), said[end:].lstrip() if end else said


_PRINT = "count(*), coalesce(sum(created_at % 1000003), 0)"
_AT_ONCE = 500
_MOST = 64 * 1024 * 1024
_REWRITTEN = "$openclaw"
_ARCHIVED = -1
_NEEDED = {"transcript_events": {"session_id", "seq", "event_json", "created_at"}}
_ZSTD = zstandard.FRAME_HEADER


class OpenClaw:
    """The parser of OpenClaw, and the source of its databases since 2026.8, whose rows are the lines of its logs.

    A record is always Pi's, and the place of a log shows that OpenClaw wrote it.
    """

    unroll, begin = staticmethod(unroll), staticmethod(empty_state)

    @staticmethod
    def recognizes(_record: Record) -> bool:
        """Return False: the record is Pi's."""
        return False

    @staticmethod
    def drafts(record: Record, state: LogState) -> Sequence[Draft | Rollback]:
        """Return the events of the next record; the figures of an entry that comes again count once."""
        if _REWRITTEN in record:
            return [Rollback(None)]
        result = read_entry(record, state, speakers)
        for draft in result:
            if isinstance(draft.payload, TokenUsage):
                draft.key = draft.identity
        return result

    @staticmethod
    def logs(container: Container) -> Iterator[LogInside]:
        """Yield a log for each session, also for those that were deleted and that the database archives.

        Raises `OSError` if the tables aren't OpenClaw's. Before 2026.8 the database has no conversations.
        """
        columns = _columns(container.path)
        if not columns["transcript_events"]:
            return
        marks = "transcript_rewrite_watermarks"
        told = f"(SELECT generation FROM {marks} w WHERE w.session_id = t.session_id)"
        generation = told if "generation" in columns[marks] else "''"
        sql = f"SELECT session_id, {_PRINT}, max(seq), {generation} FROM transcript_events t GROUP BY session_id"
        archived = "SELECT session_id, max(archive_name) FROM session_transcript_archives GROUP BY session_id"
        has_archives = "archive_blob" in columns["session_transcript_archives"]
        found = ask(container.path, (sql, ()), *([(archived, ())] if has_archives else []))
        held = {str(session): rest for rows in reversed(found) for session, *rest in rows}
        for session, rest in held.items():
            if session and "/" not in session:
                yield LogInside(session, "/".join(map(str, rest)))

    @staticmethod
    def rows(file: LogFile, position: Any) -> Iterator[Row]:
        """Yield the new lines of a session; all of them if those before were rewritten."""
        path, session = file.container, file.path[len(file.container) + 1 :]
        columns = _columns(path)
        last, *before = position or (-1, 0, 0)
        of_session = "FROM transcript_events WHERE session_id = ? AND seq"
        ((now,), ((newest,),)) = ask(
            path,
            (f"SELECT {_PRINT} {of_session} <= ?", (session, last)),
            (f"SELECT max(seq) {of_session} >= 0", (session,)),
        )
        archived = _archived(path, session, columns) if newest is None else []
        if [*now] != before and before != [_ARCHIVED, len(archived)]:
            last, before = -1, [0, 0]
            yield Row(0, compact_json({_REWRITTEN: True}).encode(), [last, *before])
        for number, line in enumerate(archived if before == [0, 0] else (), 1):
            yield Row(number, line, [-1, _ARCHIVED, number])
        packed = "event_zstd" if "event_zstd" in columns["transcript_events"] else "NULL"
        values = f"seq, coalesce(created_at, 0), event_json, {packed}"
        sql = f"SELECT {values} {of_session} > ? ORDER BY seq LIMIT {_AT_ONCE}"
        while newest is not None and (events := ask(path, (sql, (session, last)))[0]):
            for last, created, plain, compressed in events:
                before = [before[0] + 1, before[1] + created % 1000003]
                yield Row(last + 1, _unpacked(compressed if plain is None else plain), [last, *before])


def _archived(path: str, session: str, columns: dict[str, set[str]]) -> list[bytes]:
    """Return the lines of a session that was deleted or reset."""
    if "archive_blob" not in columns["session_transcript_archives"]:
        return []
    sql = "SELECT archive_blob FROM session_transcript_archives WHERE session_id = ? ORDER BY archive_name"
    (blobs,) = ask(path, (sql, (session,)))
    return [line for (blob,) in blobs for line in _unpacked(blob).splitlines()]


def _columns(path: str) -> dict[str, set[str]]:
    """Return the columns of each table: before 2026.8 there are none of conversations."""
    has_events = bool(columns_of(path)["transcript_events"])
    return tables_of(path, _NEEDED if has_events else {}, "OpenClaw's sessions")


def _unpacked(data: Any) -> bytes:
    """Return what was compressed with zstd; anything else as it is."""
    data = as_bytes(data)
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=_MOST) if data[:4] == _ZSTD else data


# -- oh-my-pi --------------------------------------------------------------------------------------
# oh-my-pi: Pi's format, with the title in the first line.


class OhMyPi:
    """The parser of oh-my-pi."""

    unroll, begin, drafts = staticmethod(unroll), staticmethod(begin), staticmethod(drafts)

    @staticmethod
    def recognizes(record: Record) -> bool:
        """Whether it is the title, which is padded to the same length whatever it is; the rest is Pi's format."""
        return record.get("type") == "title" and isinstance(record.get("title"), str) and "pad" in record
