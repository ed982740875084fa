"""Claude Code: `projects/<folder>/<sessionId>.jsonl` and the logs of its sub-agents (README.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

from agtrace_schema.events import (
    Message,
    Notification,
    Payload,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from agtrace_schema.patterns import later

from agtrace_indexer.events.assembly import REQUESTS
from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction, Rollback, Said, SessionFacts
from agtrace_indexer.events.json_values import (
    as_list,
    count,
    digest,
    fields,
    first_text,
    items,
    milliseconds,
    remember,
    text,
)
from agtrace_indexer.events.strings import first_identifier, identifier, masked
from agtrace_indexer.providers.beside import object_beside, runs_agtrace, settings_in
from agtrace_indexer.providers.claude_code import AGENT_TOOLS, CLAUDE_CODE
from agtrace_indexer.providers.claude_code.tools import (
    bare_result,
    deeds,
    is_notice,
    link,
    settlements,
    spilled_output,
    team_member,
    told_by_notice,
    tool_result,
)
from agtrace_indexer.providers.notes import (
    block_text,
    block_type,
    check_usage,
    dollars,
    element_before,
    joined_text,
    known,
    left_behind,
    note_requests,
    numbered,
    readable_json,
    skip,
    unknown,
)
from agtrace_indexer.providers.provider import Retention
from agtrace_indexer.providers.setup import Setup

# -- identities ------------------------------------------------------------------------------------
# The identities of a line's events, which stay the same in every log that the line is copied to.


def identify(said: Iterable[Said], uuid: str | None, source: str = "") -> None:
    """Give the events of a line their identities: the line's uuid and their place in it; for token usage, the response.

    A response is identified by its message and request ids together; one of them alone isn't enough. `source` tells
    lines apart that repeat those of another log.
    """
    for number, draft in enumerate(said):
        if not isinstance(draft, Draft) or draft.identity is not None:
            continue
        if isinstance(draft.payload, TokenUsage):
            response = draft.payload.response_id
            named = response if response and "/" in response else uuid
            draft.identity = named and f"{source}usage/{named}"
        elif uuid is not None:
            draft.identity = f"{source}{uuid}#{number}" if number else f"{source}{uuid}"


# -- origins ---------------------------------------------------------------------------------------
# The origin of a log: its first chain line shows whether it continues another log or copies one. Nothing precedes that
# line, so the parent that it names is in another log, or nowhere. Only the first line decides: a later line with an
# unknown parent has lost it, which says nothing about the log.


def note_origin(record: Record, state: LogState) -> None:
    """Note the origin of a log by the first chain line of its own session."""
    if "began" in state.memory:
        return
    state.memory["began"] = True
    facts = state.sessions[""]
    parent = first_identifier(record.get("parentUuid"), record.get("logicalParentUuid"))
    facts.continues = None if parent == identifier(record.get("uuid")) else parent
    if facts.kind != "main":
        return
    origin = identifier(fields(record.get("forkedFrom")).get("sessionId"))
    if origin is not None or record.get("sessionKind") == "bg":
        facts.kind = "fork"
    if origin != facts.id:
        facts.parent_id = origin


# -- short texts -----------------------------------------------------------------------------------
# Short texts that describe a session: masked, then cut.

_LONGEST_SHORT = 200


def short_text(value: Any) -> str | None:
    """Return the beginning of a text on one line, without secrets; None if it isn't a text or is empty."""
    return " ".join(masked(text(value) or "").split())[:_LONGEST_SHORT] or None


# -- sidechains ------------------------------------------------------------------------------------
# Inline sidechains (until 1.0.12x): the lines of sub-agents among those of their session. A line belongs to the chain
# that has its parent uuid, so the last few uuids of each chain are remembered. A chain was started by the call whose
# prompt its first line repeats: the oldest such call without a result.

_SIDECHAINS_REMEMBERED = 16
_UUIDS_REMEMBERED = 8
_CALLS_REMEMBERED = 32


def chain_of(record: Record, state: LogState) -> str:
    """Return the thread of a sidechain's line, and remember the line for those that follow it."""
    agent, uuid = identifier(record.get("agentId")), identifier(record.get("uuid"))
    chains: dict[str, list[str]] = state.memory.setdefault("sidechains", {})
    thread = f"agent-{agent}" if agent else _chain_of_parent(record, chains)
    if thread is None:
        thread = f"sidechain-{uuid or identifier(record.get('parentUuid')) or 'root'}"
    uuids = chains.pop(thread, [])
    remember(chains, thread, [*uuids, uuid][-_UUIDS_REMEMBERED:] if uuid else uuids, _SIDECHAINS_REMEMBERED)
    return thread


def begun_by(record: Record, thread: str, state: LogState) -> SessionFacts:
    """Return the facts of a chain that begins with this line, including those of the call that started it."""
    facts = SessionFacts(id=thread, kind="subagent", parent_id=state.sessions[""].id)
    prompt = digest(joined_text(fields(record.get("message")).get("content")).strip())
    calls = _calls(state)
    found = next((call for call, noted in calls.items() if noted[0] == prompt), None)
    if found is not None:
        _, facts.agent_type, facts.description = calls.pop(found)
        facts.started_call = found
    return facts


def note_calls(payloads: list[Payload], state: LogState) -> None:
    """Remember the calls that start sub-agents, until they have a result."""
    for payload in payloads:
        if isinstance(payload, ToolResult) and payload.call_id:
            _calls(state).pop(payload.call_id, None)
        elif isinstance(payload, ToolCall) and payload.call_id and payload.name in AGENT_TOOLS:
            state.memory["agents"] = True
            given = fields(payload.arguments)
            prompt = text(given.get("prompt"))
            if prompt:
                noted = [
                    digest(prompt.strip()),
                    short_text(given.get("subagent_type")),
                    short_text(given.get("description")),
                ]
                remember(_calls(state), payload.call_id, noted, _CALLS_REMEMBERED)


def _calls(state: LogState) -> dict[str, list[Any]]:
    """Return call id -> digest of the prompt, role, description; JSON keeps the order."""
    calls: dict[str, list[Any]] = state.memory.setdefault("agent_calls", {})
    return calls


def _chain_of_parent(record: Record, chains: dict[str, list[str]]) -> str | None:
    """Return the open sidechain with the line's parent, or else the newest; None for a root or if none is open."""
    if record.get("parentUuid", "") is None or not chains:
        return None
    parent = identifier(record.get("parentUuid"))
    newest_first = list(reversed(chains))
    return next((thread for thread in newest_first if parent in chains[thread]), newest_first[0])


# -- sessions --------------------------------------------------------------------------------------
# The owners of the lines in a Claude Code log: the session itself, a sub-agent, or inline sidechains.
# README.md describes the three eras of sub-agents.

_UUID = later(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


_OF_AGENTS = ("subagent", "warmup")


def begin(path: PurePath) -> LogState:
    """Take a session's id from a name that is a uuid; for a sub-agent, take its id and its parent's from the path.

    The `.meta.json` next to a sub-agent's log has its role and task. Any other name says nothing.
    """
    name = identifier(path.name.partition(".")[0]) or ""
    if name.startswith("agent-"):
        beside = object_beside(path, ".meta.json")
        above = path.parts[:-1][::-1]
        folder = above.index("subagents") + 1 if "subagents" in above[:-1] else None
        facts = SessionFacts(id=name, kind="warmup", parent_id=None if folder is None else identifier(above[folder]))
        facts.agent_type, facts.description = short_text(beside.get("agentType")), short_text(beside.get("description"))
        return LogState({"": facts}, {"placed": True, "subagent": True})
    if _UUID.fullmatch(name):
        return LogState({"": SessionFacts(id=name)}, {"placed": True})
    return LogState()


def place(record: Record, state: LogState) -> str:
    """Note what a chain line says about its session, and return the thread it belongs to."""
    if "placed" not in state.memory:
        _place_log(record, state)
    thread = ""
    if is_inline(record, state):
        thread = chain_of(record, state)
        if thread not in state.sessions:
            note_session(record, state.sessions[""])
            state.sessions[thread] = begun_by(record, thread, state)
    else:
        note_origin(record, state)
        if "asked" not in state.memory or "agentName" in record:
            _note_team(record, state)
    facts, version = state.sessions[thread], record.get("version")
    if facts.id is None or facts.kind in _OF_AGENTS:
        note_session(record, facts)
    facts.cwd = facts.cwd or text(record.get("cwd"))
    facts.branch = facts.branch or text(record.get("gitBranch"))
    if version != facts.version:
        facts.version = text(version) or facts.version
    return thread


def _note_team(record: Record, state: LogState) -> None:
    """Note the member of a team whose log this is, if it says so or begins with another member's message."""
    facts, member, team = state.sessions[""], text(record.get("agentName")), text(record.get("teamName"))
    told = "asked" not in state.memory and _FROM_TEAMMATE.fullmatch(
        joined_text(fields(record.get("message")).get("content")).strip()
    )
    if facts.kind == "main" and (told or (member and team and member != "team-lead")):
        state.memory["subagent"] = True
        facts.kind, facts.agent_type, facts.parent_id = "subagent", member, team_member(team, member)


def is_inline(record: Record, state: LogState) -> bool:
    """Whether a line belongs to a sub-agent whose lines are among those of its session."""
    return record.get("isSidechain") is True and "subagent" not in state.memory


def _place_log(record: Record, state: LogState) -> None:
    """Find out by its first chain line whether a log, whatever its name, is a sub-agent's."""
    state.memory["placed"] = True
    agent = identifier(record.get("agentId"))
    if agent and record.get("isSidechain") is True:
        state.memory["subagent"] = True
        facts = state.sessions[""]
        facts.id, facts.kind = f"agent-{agent}", "warmup"


def note_session(record: Record, facts: SessionFacts) -> None:
    """Take the ids that a line names: `sessionId` is the parent's in the lines of a sub-agent."""
    if facts.id is None:
        facts.id = identifier(record.get("sessionId"))
    elif facts.kind in _OF_AGENTS and facts.parent_id is None:
        named = identifier(record.get("sessionId"))
        facts.parent_id = None if named == facts.id else named
    if facts.kind in _OF_AGENTS and facts.agent_type is None:
        facts.agent_type = text(record.get("attributionAgent"))


def request_kind(thread: str, state: LogState) -> UserKind:
    """Return the kind of a plain text in the user's role: in a sub-agent, the parent speaks."""
    return UserKind.TASK if thread or "subagent" in state.memory else UserKind.HUMAN


# -- user texts ------------------------------------------------------------------------------------
# Who really speaks in the user's role: the user, a parent agent, Claude Code, the editor, a hook. README.md
# lists the beginnings of texts and the flags of lines. Only the beginning of a text is examined, as texts can be
# megabytes long.

_KINDS_BY_START: tuple[tuple[tuple[str, ...], UserKind], ...] = (
    (("<command-name>", "<command-message>", "<bash-input>", "<user-memory-input>"), UserKind.COMMAND),
    (
        (
            "<local-command-",
            "<bash-stdout>",
            "<bash-stderr>",
            "<system-reminder>",
            "<ide_",
            "<user-prompt-submit-hook>",
            "Caveat: The messages below were generated by the user while running local commands",
        ),
        UserKind.INJECTED,
    ),
    (("<teammate-message", "Another Claude session sent a message:"), UserKind.NOTIFICATION),
    (("[Request interrupted by user",), UserKind.INTERRUPTION),
    (("This session is being continued",), UserKind.COMPACTION_SUMMARY),
)
_LONGEST_START = 128

_ENVELOPES = ("<system-reminder>", "<ide_opened_file>", "<ide_selection>")
_FROM_TEAMMATE = later(r"(<teammate-message[^>]*>)\s*(.*?)\s*</teammate-message>", re.DOTALL)
_MOST_ENVELOPES = 8


def user_texts(content: list[Any], line: dict[str, Any], plain: UserKind) -> list[User]:
    """Determine who speaks in the blocks of a user line; adjacent blocks of one kind become one text.

    `line` has the flags (isMeta, isCompactSummary, origin); `plain` is the kind of a text that isn't marked as
    anything else: HUMAN, or TASK in a sub-agent.
    """
    flagged = _flagged_kind(line)
    if flagged is None and plain is UserKind.HUMAN and line.get("promptSource") == "system":
        plain = UserKind.INJECTED
    typed = "human" in (line.get("turnOrigin"), fields(line.get("origin")).get("kind"))
    spoken: list[tuple[str, UserKind]] = []
    for block in content:
        written = block_text(block)
        told = _FROM_TEAMMATE.match(written.lstrip()) if plain is UserKind.TASK else None
        if flagged is not None:
            spoken.append((written, flagged))
        elif told:  # the team's lead speaks to this agent
            spoken += [(told[1], UserKind.INJECTED), (told[2], plain)]
        else:
            spoken += _peeled(written, plain, typed=typed)
    return _merged(spoken)


_ORIGINS = {
    **dict.fromkeys(("task-notification", "peer", "coordinator"), UserKind.NOTIFICATION),
    **dict.fromkeys(("system", "scheduled", "auto-continuation"), UserKind.INJECTED),
}
"""Who began a turn according to `origin`, `turnOrigin` or `commandMode`, if neither a human nor a caller of the SDK."""


def _flagged_kind(line: dict[str, Any]) -> UserKind | None:
    if line.get("isCompactSummary") is True:
        return UserKind.COMPACTION_SUMMARY
    if line.get("isMeta") is True:
        return UserKind.INJECTED
    origins = (fields(line.get("origin")).get("kind"), line.get("turnOrigin"), line.get("commandMode"))
    told = (_ORIGINS.get(origin.replace("_", "-")) for origin in origins if isinstance(origin, str))
    return next(filter(None, told), None)


def _peeled(written: str, plain: UserKind, *, typed: bool) -> Iterator[tuple[str, UserKind]]:
    """Separate a text from the elements that programs put before it; `typed` if a human is said to have typed it."""
    for _ in range(_MOST_ENVELOPES):
        start = written[:_LONGEST_START].lstrip()
        known = next((kind for starts, kind in _KINDS_BY_START if start.startswith(starts)), None)
        known = UserKind.NOTIFICATION if is_notice(start) else known
        peels = start[:1] == "<" and (written.startswith(_ENVELOPES) or (known is None and not typed))
        found = element_before(written) if peels else None
        if found is None or (known is not None and not found[2]):
            break
        kind, envelope, rest = found
        yield (envelope, kind) if rest else (written, kind)
        if not rest:
            return
        written = rest
    yield written, known or plain


def _merged(spoken: list[tuple[str, UserKind]]) -> list[User]:
    users: list[User] = []
    for written, kind in spoken:
        if users and users[-1].kind is kind:
            users[-1] = User(f"{users[-1].text}\n{written}", kind)
        elif written:
            users.append(User(written, kind))
    return users


# -- queue -----------------------------------------------------------------------------------------
# Prompts typed while the agent works: they wait in a queue, whose operations are in the log. `enqueue` has the text.
# `dequeue` sends the first one, which is then repeated as a user line. `popAll` returns all to the editor. `remove` is
# written when the current run takes one up: since 2.1.91 it is then repeated in an attachment `queued_command`, before
# that nowhere.

_FIRST_WITH_ATTACHMENTS = (2, 1, 91)
_VERSION = later(r"([0-9]{1,6})\.([0-9]{1,6})\.([0-9]{1,6})")
_WAITING = 16
_LONGEST_QUEUED = 16_384
_NO_PROMPTS = ("/", '{"task_id"')
"""The beginnings of a queued command and of a queued notice of a task."""


def taken_up(operation: str | None, said: str, state: LogState) -> list[User]:
    """Follow the queue; return the prompt that a run took up if no other line has it."""
    waiting: list[Any] = state.memory.setdefault("queue", [])
    if operation == "enqueue":
        waiting.append(masked(said, _LONGEST_QUEUED))
        del waiting[:-_WAITING]
    elif operation == "popAll":
        waiting.clear()
    elif operation in ("dequeue", "remove") and waiting:
        first = waiting.pop(0)
        version = _VERSION.match(state.sessions[""].version or "")
        is_nowhere_else = version and tuple(map(int, version.groups())) < _FIRST_WITH_ATTACHMENTS
        if operation == "remove" and is_nowhere_else and not first.startswith(_NO_PROMPTS):
            plain = request_kind("", state)
            return [user for user in user_texts([first], {}, plain) if user.kind is plain]
    return []


# -- titles ----------------------------------------------------------------------------------------
# Titles of sessions: a log's own session has some, and a session that has a certain line can have others.

TITLES: dict[str, tuple[str, int]] = {
    "custom-title": ("customTitle", 4),
    "ai-title": ("aiTitle", 3),
    "summary": ("summary", 1),
    "agent-name": ("agentName", 1),
}
"""The keys of titles and how good they are (README.md); 2 is a title from another log."""

_PROMPTING = later(
    r"(?s)\s*<command-message>[^<]*</command-message>\s*<command-name>([^<]{1,200})</command-name>\s*"
    r"<command-args>\s*([^<\s].*?)</command-args>"
)
"""A command that is a prompt, with what it was given; one that Claude Code carries out itself begins with its name."""

_NAMINGS_REMEMBERED = 256
_LONGEST_TITLE = 500
_LONGEST_COMMAND = 20_000


def note_title(record: Record, state: LogState) -> None:
    """Take a session's title unless the known one is better; among equals the last one wins."""
    key, rank = TITLES[record["type"]]
    title, facts = text(record.get(key)), state.sessions[""]
    if title and rank >= facts.title_rank:
        facts.title, facts.title_rank = title, rank


def note_summary(record: Record, state: LogState) -> None:
    """Take a summary as the title of the session that has its leaf, which is often another one.

    A summary without a leaf can only be meant for its own session.
    """
    leaf, title = identifier(record.get("leafUuid")), text(record.get("summary"))
    if leaf is None:
        note_title(record, state)
    elif title:
        remember(state.sessions[""].namings, leaf, masked(title, _LONGEST_TITLE), _NAMINGS_REMEMBERED)


def note_request(said: Sequence[Payload], state: LogState) -> None:
    """Call a session by the command with arguments that it begins with, while nothing else names it.

    Such a command is what the human asks for, but only texts are requests (`User.kind`).
    """
    for user in said:
        if "asked" in state.memory or not isinstance(user, User):
            continue
        command = _PROMPTING.match(user.text[:_LONGEST_COMMAND]) if user.kind is UserKind.COMMAND else None
        facts = state.sessions[""]
        if command and not facts.title:
            facts.title = masked(" ".join(f"{command[1]} {command[2]}".split()), _LONGEST_TITLE)
        if command or user.kind in REQUESTS:
            state.memory["asked"] = True


# -- windows ---------------------------------------------------------------------------------------
# The size of the context window, which no line of Claude Code's tells, from its automatic compactions. A model that
# can have a million tokens may be run with 200,000 (README.md), under the same name.

_WINDOWS = (200_000, 1_000_000)
_NEAR_THE_END = 0.75
"""The part of a window that is full when Claude Code compacts by itself, at least: it keeps room for an answer."""


def note_window(compaction: Any, state: LogState) -> None:
    """Remember the window that an automatic compaction shows, and the model that had it."""
    facts = fields(compaction)
    held = count(facts.get("preTokens")) or 0
    shown = (window for window in _WINDOWS if window * _NEAR_THE_END <= held <= window)
    if facts.get("trigger") == "auto" and (window := next(shown, None)):
        state.memory["window"] = [state.sessions[""].model, window]


def window_of(model: str | None, held: int, state: LogState) -> int | None:
    """Return the window of a response that was given `held` tokens, if a compaction before it showed one."""
    noted, window = state.memory.get("window", (None, 0))
    return window if model == noted and held <= window else None


# -- notices ---------------------------------------------------------------------------------------
# The lines outside the conversation: system lines, attachments, progress, side lines, and unknown ones. They become
# notifications, or are left out by name if they repeat other lines or are only bookkeeping.

BOOKKEEPING: dict[str, tuple[str, ...]] = {
    "agent-name": ("sessionId", "agentName"),
    "ai-title": ("sessionId", "aiTitle"),
    "atis-latch": ("sessionId", "atis"),
    "bridge-session": ("sessionId", "bridgeSessionId"),
    "custom-title": ("sessionId", "customTitle"),
    "file-history-delta": ("messageId",),
    "file-history-snapshot": ("messageId", "snapshot"),
    "last-prompt": ("sessionId",),
    "mode": ("sessionId", "mode"),
    "permission-mode": ("sessionId", "permissionMode"),
    "worktree-state": ("sessionId", "worktreeSession"),
}
"""Lines that are left out, except for facts about the session, with the keys by which they are recognised."""

_MORE_BOOKKEEPING = """
    agent-color agent-setting api-request api-request-blob api-request-shape artifact-autoreact-ledger
    artifact-comment-monitor attribution-snapshot content-replacement dev-mods ended-by-model fork-context-ref
    history-suppression isolation-latch memory-mode observer-ref tag
""".split()  # noqa: SIM905
"""Further ones of 2.1.283, by which a log isn't recognised. Those of requests have the prompts of the system."""

POINTERS: dict[str, tuple[str, ...]] = {
    "continued-in": ("continuedInSessionId",),
    "pr-link": ("prUrl", "prNumber"),
    "frame-link": ("frameUrl", "title"),
    "relocated": ("relocatedCwd",),
}
"""Lines that become notifications, with the keys shown in them; the first is always there."""

_ENVELOPE = frozenset(
    {
        *("type", "subtype", "level", "timestamp", "uuid", "parentUuid", "logicalParentUuid", "toolUseID"),
        *("sessionId", "session_id", "sessionKind", "slug", "agentId", "isSidechain", "isMeta"),
        *("cwd", "gitBranch", "version", "entrypoint", "userType"),
    }
)
"""The keys of a system line that aren't its content."""

_OF_PROMPTS = frozenset({"systemPrompt", "snapshot", "context", "sections", "entries", "identity", "organizationUuid"})
"""The keys of attachments (from 2.1.25x) with parts of the system prompt, definitions of tools, or facts about the
account and the machine, as are files with their content."""


def unknown_line(record: Record, state: LogState, kind: str, thread: str = "") -> list[Draft]:
    """Keep a line of an unknown type, or whose content isn't where its type should have it."""
    return [Draft(unknown(kind, record, state), milliseconds(record.get("timestamp")), None, thread)]


def system(record: Record, state: LogState) -> list[Draft]:
    """Read a system line: its content, or else whatever it has besides its envelope."""
    thread = place(record, state)
    note_window(record.get("compactMetadata"), state)
    subtype = text(record.get("subtype"))
    if subtype == "compact_boundary":
        state.skipped.append("usage/compaction")
    said = text(record.get("content"))
    if said is None:
        rest = {key: record[key] for key in record if key not in _ENVELOPE and record[key] not in (None, "", [])}
        said = readable_json(rest)
    elif "compactMetadata" in record:
        said = f"{said}\n{readable_json(record['compactMetadata'])}"
    payload = Notification(f"system/{subtype}" if subtype else "system", said)
    return [Draft(payload, milliseconds(record.get("timestamp")), None, thread)]


def attachment(record: Record, state: LogState) -> Sequence[Said]:
    """Read an attachment to a prompt; a queued command is itself a prompt, what all sessions are told is left out."""
    thread = place(record, state)
    attached = record.get("attachment")
    if not isinstance(attached, dict):
        return unknown_line(record, state, "attachment", thread)
    payloads: list[Payload] = []
    kind = text(attached.get("type")) or "untyped"
    if not _OF_PROMPTS.isdisjoint(attached) or any("content" in fields(file) for file in items(attached.get("files"))):
        return skip(f"attachment/{kind}", state)
    if kind == "queued_command":
        payloads += user_texts(as_list(attached.get("prompt")), attached, request_kind(thread, state))
    if not payloads:
        rest = {key: value for key, value in attached.items() if key != "type"}
        payloads.append(Notification(f"attachment/{kind}", readable_json(rest)))
    time = milliseconds(record.get("timestamp"))
    ends = settlements(payloads, None, time, thread, state)
    return [*(Draft(payload, time, None, thread) for payload in payloads), *ends]


def progress(record: Record, state: LogState) -> Sequence[Said]:
    """Read what a sub-agent said meanwhile, whose own log may be gone (README.md), and leave out other progress."""
    if not is_inline(record, state):
        note_origin(record, state)
    data, main = fields(record.get("data")), state.sessions[""]
    agent, message = identifier(data.get("agentId")), fields(data.get("message"))
    kind = text(data.get("type")) or "untyped"
    if kind != "agent_progress" or agent is None or message.get("type") not in ROLES or "subagent" in state.memory:
        return skip(f"progress/{kind}", state)
    thread = f"agent-{agent}"
    if thread not in state.sessions:
        call = identifier(record.get("parentToolUseID"))
        facts = SessionFacts(id=thread, kind="subagent", parent_id=main.id, started_call=call)
        _, facts.agent_type, facts.description = _calls(state).get(call or "") or [None] * 3
        state.sessions[thread] = facts
    outer: Record = {name: record[name] for name in ("cwd", "gitBranch", "version") if name in record}
    line: Record = {**outer, **message, "isSidechain": True, "agentId": agent}
    result = READERS[message["type"]](line, state)
    identify(result, identifier(message.get("uuid")), "progress/")
    return result


def _last_answer(detail: Record, record: Record, state: LogState) -> list[Draft]:
    """Read the last response of a sub-agent that is known by its progress alone: the result of its call has it."""
    usage, thread = detail.get("usage"), f"agent-{identifier(detail.get('agentId'))}" if "usage" in detail else ""
    facts = state.sessions.get(thread) if thread else None
    if facts is None or not isinstance(usage, dict):
        return []
    message = {"model": facts.model, "usage": usage, "stop_reason": "end_turn"}
    payloads: list[Payload] = [
        Message(joined_text(detail.get("content"))),
        *token_usage({"uuid": record.get("uuid")}, message, state),
    ]
    return [Draft(one, milliseconds(record.get("timestamp")), f"last-{thread}", thread) for one in payloads]


def bookkeeping(record: Record, state: LogState) -> list[Draft]:
    """Leave out a bookkeeping line, and take its title if it has one."""
    note_session(record, state.sessions[""])
    if record["type"] in TITLES:
        note_title(record, state)
    return skip(record["type"], state)


def summary(record: Record, state: LogState) -> list[Draft]:
    """Read the summary of a conversation: a title for the session that has its last line."""
    note_summary(record, state)
    message = fields(record.get("message"))  # instead of `summary` if a tool rewrote the log
    said = first_text(record.get("summary"), record.get("text"), message.get("content"))
    return _side_line(record, state, "summary", readable_json(record) if said is None else said)


def queue_operation(record: Record, state: LogState) -> Sequence[Said]:
    """Keep what was queued: it is repeated when sent, as a user line, an attachment or here (`queue`).

    A notice of an execution's end is queued when it ends.
    """
    operation = text(record.get("operation"))
    kind = f"queue-operation/{operation}" if operation else "queue-operation"
    said, time = joined_text(record.get("content")), milliseconds(record.get("timestamp"))
    prompts = [Draft(prompt, time) for prompt in taken_up(operation, said, state)]
    if said:
        return [*_side_line(record, state, kind, said), *prompts, *told_by_notice(said, time, "", state)]
    note_session(record, state.sessions[""])
    return prompts or skip(kind, state)


def pointer(record: Record, state: LogState) -> list[Draft]:
    """Read a line that refers to something outside: a pull request, a frame, another directory."""
    named = (record.get(key) for key in POINTERS[record["type"]])
    said = " ".join(value if isinstance(value, str) else readable_json(value) for value in named if value is not None)
    (draft,) = _side_line(record, state, record["type"], said)
    draft.landmarks = link(record, state) if record["type"] == "pr-link" else ()
    return [draft]


def _side_line(record: Record, state: LogState, kind: str, said: str) -> list[Draft]:
    note_session(record, state.sessions[""])
    return [Draft(Notification(kind, said), milliseconds(record.get("timestamp")))]


# -- tokens ----------------------------------------------------------------------------------------
# Token counts of model responses in Claude Code's logs (README.md).

SYNTHETIC: Final = "<synthetic>"
"""The model of assistant lines that Claude Code wrote itself, without asking a model."""

_RESPONSES_REMEMBERED = 32
_OUTPUT, _COMPLETE, _COST = 4, 6, 7
"""Places in what is noted of a response: its figures, its searches in the web, whether they are complete, its cost."""
_WHOLE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_WRITTEN = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_COUNTED = (*_WHOLE, *(f"cache_creation.{name}" for name in _WRITTEN))
_KNOWN = known(
    *_COUNTED,
    *(f"iterations.{name}" for name in ("type", "model", *_COUNTED)),
    *("speed", "inference_geo", "service_tier", "output_tokens_details.thinking_tokens"),
    *(f"server_tool_use.web_{what}_requests" for what in ("fetch", "search")),
)
_ITERATIONS = (None, "message", "compaction", "advisor_message", "fallback_message")
_PRICED = {"inference_geo": ("global", "not_available", "us"), "service_tier": ("standard",)}
"""The values that cost nothing more, or have a price; others are noted as unknown."""


def token_usage(record: Record, message: Record, state: LogState) -> Iterator[TokenUsage]:
    """Read the usage on a line by the models that ran, the response's own last; all of it that is news.

    A response's usage is repeated on each of its lines, and the first ones may only have what was known when it began.
    The figures from the line with the most output are kept, as a whole (another model may have taken over in the
    middle, with figures of its own), but of a response whose lines are repeated later than that they are returned
    again, with the same `response_id`. What the model used in further requests for it comes as a sum (`_MORE`).
    """
    usage, model, unknown = message.get("usage"), text(message.get("model")), len(state.unknown)
    if not isinstance(usage, dict) or model == SYNTHETIC:
        return
    begun = message.get("stop_reason") is None and bool(record.get("version"))
    line = [message.get("id"), record.get("requestId"), model, begun, record.get("costUSD"), usage]
    if state.recent == line:
        return
    check_usage(usage, _KNOWN, state)
    state.unknown += (f"usage/{name}" for name, free in _PRICED.items() if usage.get(name) and usage[name] not in free)
    state.recent = line if line[0] and len(state.unknown) == unknown else []
    response, place = _response_id(record, message, state.memory), "us" if usage.get("inference_geo") == "us" else None
    searches = count(fields(usage.get("server_tool_use")).get("web_search_requests")) or 0
    reasoning = count(fields(usage.get("output_tokens_details")).get("thinking_tokens"))
    for name, part, of in _by_model(usage, model, state):
        figures = _figures(part)
        fresh, written_5m, written_1h, read, output = figures
        complete = output is not None and any(figures[:_OUTPUT]) and not begun
        cost, own = (None, 0) if of else (dollars(record.get("costUSD")), searches)
        told = response and response + of
        if told is not None and not _is_news(told, name, [*figures, own, complete, cost], state.memory):
            continue
        speed = text(part.get("speed"))
        yield TokenUsage(
            told, name, fresh, written_5m, written_1h, read, output,
            reasoning if not of and output is not None else None, complete,
            window_of(name, sum(filter(None, figures[:_OUTPUT])), state),
            speed=_paid_for(speed if speed != "standard" else None, place, own, sums=of == _MORE), cost_usd=cost,
        )  # fmt: skip


def _paid_for(speed: str | None, place: str | None, searches: int, *, sums: bool) -> str | None:
    words = speed, place, f"{searches}_searches" if searches else None, "sum" if sums else None
    return " ".join(filter(None, words)) or None


_MORE = "/more"


def _by_model(usage: Record, model: str | None, state: LogState) -> list[tuple[str | None, Record, str]]:
    """Return the usage of each model that ran for a response, by `iterations`, each of which is billed as its own.

    The figures beside them are those of the response's model: without an advisor's or a compaction's, of the last
    attempt, or all together (platform.claude.com/docs). The attempt of another model that ended before any output isn't
    billed. Each comes with what the identity of its figures ends with; what the response's model used in all but its
    largest request is `_MORE`.
    """
    if not usage.get("iterations"):
        return [(model, usage, "")]
    parts: dict[str | None, list[Record]] = {}
    each = [fields(part) for part in items(usage.get("iterations"))]
    for part in each:
        kind = text(part.get("type"))
        if kind not in _ITERATIONS or (kind == "advisor_message" and not part.get("model")):
            state.unknown.append(f"usage/iterations.{identifier(kind)}")
        parts.setdefault(text(part.get("model")) or model, []).append(part)
    if len(each) == 1 and model in parts and all(each[0].get(name) == usage.get(name) for name in _WHOLE):
        return [(model, usage, "")]
    sums = {name: _sum(mine) for name, mine in parts.items()}
    beside, everything = _sum([usage]), _sum([*sums.values()])
    same = model if model in sums else next((name for name, one in sums.items() if _is_within(beside, one)), None)
    own = sums.pop(same, beside)
    others = [(name, one, f"/{name}") for name, one in sums.items() if one["output_tokens"]]
    if parts and (same not in parts or not (_is_within(beside, own) or beside == everything)):
        state.unknown.append("usage/iterations")
    is_whole = _is_within(own, beside) and not (others and beside == everything)
    whole = usage if is_whole else {**usage, **own}
    mine = sorted((_sum([part]) for part in parts.get(same, ())), key=lambda one: sum(one[kind] for kind in _WHOLE[:3]))
    if len(mine) < 2 or not _is_within(_sum(mine), _sum([whole])):
        return [*others, (model, whole, "")]
    return [*others, (model, {**whole, **_sum(mine[:-1])}, _MORE), (model, {**whole, **mine[-1]}, "")]


def _sum(parts: list[Record]) -> Record:
    """Return the sums of usages; with the details of what was written to the cache."""
    details = [fields(part.get("cache_creation")) for part in parts]
    return {
        **{name: sum(count(part.get(name)) or 0 for part in parts) for name in _WHOLE},
        "cache_creation": {name: sum(count(part.get(name)) or 0 for part in details) for name in _WRITTEN},
    }


def _is_within(one: Record, other: Record) -> bool:
    """Whether no sum of a usage is greater than that of another one."""
    return all(one.get(name, 0) <= other.get(name, 0) for name in _WHOLE)


def _figures(usage: dict[str, Any]) -> list[int | None]:
    """Return uncached input, cache written for 5 minutes, for 1 hour, cache read, output.

    A zero that is impossible counts as unknown: no request is empty, and no response. Gateways to other models write
    zeros instead of counting. Uncached input alone may be zero, if all input was cached.
    """
    fresh, read = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    written = _cache_written(count(usage.get("cache_creation_input_tokens")), usage.get("cache_creation"))
    sent = [fresh, *written, read]
    return [*(sent if any(sent) else [None] * _OUTPUT), count(usage.get("output_tokens")) or None]


def _cache_written(whole: int | None, detail: Any) -> tuple[int | None, int | None]:
    """Return the tokens written for 5 minutes and for 1 hour; those not in the detail are short-lived."""
    if not isinstance(detail, dict):
        return whole, None
    short, long = count(detail.get("ephemeral_5m_input_tokens")), count(detail.get("ephemeral_1h_input_tokens"))
    return (whole - (long or 0) if whole and whole >= (long or 0) else short), long


def _response_id(record: Record, message: Record, memory: dict[str, Any]) -> str | None:
    """Return the identity of a response; a line without the request's id is of the request that another one names."""
    response, request = identifier(message.get("id")), identifier(record.get("requestId"))
    if response is None:
        return request or identifier(record.get("uuid"))
    named: dict[str, str] = memory.setdefault("named", {})
    result = named.get(response)
    if result is None or (request and result != response):
        result = f"{response}/{request}" if request else response
        remember(named, response, result, _RESPONSES_REMEMBERED)
    return result


def _is_news(response: str, model: str | None, noted: list[Any], memory: dict[str, Any]) -> bool:
    responses = memory.setdefault("responses", {})
    earlier = responses.get(response)
    if earlier is not None and (earlier == noted or _rank(noted) < _rank(earlier)):
        return False
    sums = memory.setdefault("counted", {}).setdefault(model or "", [0] * _COMPLETE)
    for place in range(_COMPLETE):
        sums[place] += (noted[place] or 0) - ((earlier and earlier[place]) or 0)
    remember(responses, response, noted, _RESPONSES_REMEMBERED)
    return True


def _rank(noted: list[Any]) -> tuple[int, bool, bool]:
    return noted[_OUTPUT] or 0, noted[_COMPLETE], noted[_COST] is not None


# -- cost state ------------------------------------------------------------------------------------
# From 2.1.25x, a `cost-state` has the sums of all runs of a session by model when it is closed, also of calls that no
# line tells of (titles, retries). What it has more than the lines and records before it counts as a sum without a step.
# Until the next one, more may be missing. It includes sub-agents, whose logs count themselves: with these, the total is
# partial.

_CUMULATED = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens", "webSearchRequests")
_OF_A_MODEL = known(*_CUMULATED, "thinkingTokens", "costUSD", "contextWindow", "maxOutputTokens")
_OPEN = "after cost-state"


def cost_state(record: Record, state: LogState) -> Sequence[Said]:
    """Read the cumulative usage of a session."""
    note_session(record, state.sessions[""])
    memory, said = state.memory, list[Said](skip("cost-state", state))
    if identifier(record.get("sessionId")) != state.sessions[""].id:
        return said
    for name, told in fields(record.get("modelUsage")).items():
        check_usage(told, _OF_A_MODEL, state)
        model = name.removesuffix("[1m]")
        counted = memory.setdefault("counted", {}).setdefault(model, [0] * _COMPLETE)
        fresh, short, long, *others = counted
        now = [count(fields(told).get(key)) or 0 for key in _CUMULATED]
        more = [one - before for one, before in zip(now, (fresh, short + long, *others), strict=True)]
        whole = "agents" not in memory and state.sessions[""].kind != "fork"
        if min(more) < 0 or (any(more) and not whole):  # it began anew, or has more than this log
            state.unknown.append("usage/cost-state")
        elif any(more):
            brief, lasting = (0, more[1]) if long > short else (more[1], 0)
            figures = more[0], brief, lasting, more[2], more[3]
            counted[:] = [before + one for before, one in zip(counted, (*figures, more[4]), strict=True)]
            usage = TokenUsage(None, model, *figures, None, speed=_paid_for(None, None, more[4], sums=True))
            said.append(Draft(usage, memory.get("counted_at")))
    memory["closed"] = True
    return [*said, Retraction([_OPEN])] if memory.pop("open", False) else said


# -- messages --------------------------------------------------------------------------------------
# The lines of the conversation: texts, tool calls and results, block by block.

ROLES = ("user", "assistant")


def assistant_line(record: Record, state: LogState) -> list[Draft]:
    """Read a part of a response, with the response's token usage if it is new."""
    thread = place(record, state)
    message = record.get("message")
    if not isinstance(message, dict):
        return unknown_line(record, state, "assistant", thread)
    time = milliseconds(record.get("timestamp"))
    content = message.get("content")
    if record.get("isApiErrorMessage") is True:
        said = joined_text(content) or text(record.get("error")) or ""
        return [Draft(Notification("api_error", said), time, thread=thread)]
    model, step = text(message.get("model")), None
    if model != SYNTHETIC:
        state.sessions[thread].model = model or state.sessions[thread].model
        step = first_identifier(message.get("id"), record.get("requestId"), record.get("uuid")) or numbered(
            "nameless", state
        )
    payloads = [_response_block(block, state) for block in as_list(content)]
    if not thread:
        note_calls(payloads, state)
    made = [Draft(payload, time, step, thread) for payload in payloads]
    if content is None:
        made += unknown_line(record, state, "assistant", thread)
    for usage in token_usage(record, message, state):
        sums = (usage.response_id or "").endswith(_MORE)
        made.append(
            Draft(usage, time, None if sums else step, thread, usage.response_id and f"usage/{usage.response_id}")
        )
        state.memory["counted_at"] = time
        if not sums and (missed := _missed(message, usage, state)):
            made.append(Draft(missed, time, step, thread))
        if state.memory.pop("closed", False):
            state.memory["open"] = True
            nothing = TokenUsage(None, model, None, None, None, None, None, None, complete=False, speed="sum")
            made.append(Draft(nothing, time, key=_OPEN))
    return made or skip("assistant", state)


def _missed(message: Record, usage: TokenUsage, state: LogState) -> Notification | None:
    """Read why a response read less from the cache than it could have, and for how many tokens (from 2.1.119)."""
    reason = fields(fields(message.get("diagnostics")).get("cache_miss_reason"))
    kind, known = text(reason.get("type")), state.memory.setdefault("missed", [])
    if kind in (None, "none") or usage.model != message.get("model") or usage.response_id in known:
        return None
    state.memory["missed"] = [*known, usage.response_id][-_RESPONSES_REMEMBERED:]
    return Notification("cache_miss", f"{kind} {count(reason.get('cache_missed_input_tokens')) or ''}".rstrip())


def _response_block(block: Any, state: LogState) -> Payload:
    """Read one block of a response, which can also be the result of a tool that the API runs."""
    kind = block_type(block)
    if kind == "text":
        return Message(block_text(block))
    if kind in ("thinking", "redacted_thinking"):
        return Reasoning(text(block.get("thinking")) or "")
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return ToolCall(identifier(block.get("id")), text(block.get("name")) or "", block.get("input"))
    if kind.endswith("tool_result"):
        return tool_result(block, {})
    if kind == "fallback":
        models = [text(fields(block.get(end)).get("model")) or "?" for end in ("from", "to")]
        return Notification("fallback", " -> ".join(models))
    return unknown(f"assistant.{kind}", block, state)


def user_line(record: Record, state: LogState) -> Sequence[Said]:
    """Read a line in the user's role: tool results, and texts from whoever speaks in that role."""
    thread = place(record, state)
    message = record.get("message")
    if not isinstance(message, dict) or message.get("content") is None:
        return unknown_line(record, state, "user", thread)
    payloads, spoken = _returned(as_list(message["content"]), record, state)
    if spoken:
        speaker = UserKind.INJECTED if "toolUseResult" in record else request_kind(thread, state)
        payloads += user_texts(spoken, record, speaker)  # nobody types next to a result
    if not payloads:
        state.skipped.append("user")
    if not thread:
        note_calls(payloads, state)
        note_request(payloads, state)
    time = milliseconds(record.get("timestamp"))
    ends = settlements(payloads, record.get("toolUseResult"), time, thread, state)
    drafts = [Draft(payload, time, None, thread) for payload in payloads]
    for draft in drafts:
        if isinstance(draft.payload, ToolResult):
            draft.landmarks = deeds(record.get("toolUseResult"))
    return [*drafts, *_last_answer(fields(record.get("toolUseResult")), record, state), *ends]


def _returned(content: list[Any], record: Record, state: LogState) -> tuple[list[Payload], list[Any]]:
    """Separate tool results and unknown blocks from the blocks that somebody says."""
    payloads: list[Payload] = []
    spoken: list[Any] = []
    for block in content:
        kind = block_type(block)
        if kind == "tool_result":
            result = tool_result(block, record)
            payloads += [result, *spilled_output(result, record)]
        elif kind in ("text", "image", "document"):
            spoken.append(block)
        else:
            payloads.append(unknown(f"user.{kind}", block, state))
    return payloads, spoken


def wrapped_message(record: Record, state: LogState) -> Sequence[Said]:
    """Read a line of either role whose type is `message`, as in early published samples."""
    role = fields(record.get("message")).get("role")
    if role not in ROLES:
        return unknown_line(record, state, "message")
    return user_line(record, state) if role == "user" else assistant_line(record, state)


def bare_result_line(record: Record, state: LogState) -> list[Draft]:
    """Read a line that is nothing but a `toolUseResult`, as in early published samples."""
    detail = record.get("toolUseResult")
    thread = place(record, state)
    if not isinstance(detail, dict):
        return unknown_line(record, state, "tool_result", thread)
    return [Draft(bare_result(detail), milliseconds(record.get("timestamp")), None, thread)]


_PASSED_REMEMBERED = 32


def rewound(said: Sequence[Said], record: Record, state: LogState) -> list[Said]:
    """Return what is dropped by going on from an earlier line: the first request after it, and what followed that.

    A request goes on from the line that it answers, not from a notice, a command or an injected text between them;
    the last leaf is such a line, too.
    """
    asks = talks = False
    for one in said:
        if isinstance(one, Draft):
            if isinstance(one.payload, User):
                asks = asks or one.payload.kind in REQUESTS
            elif not isinstance(one.payload, Notification):
                talks = True
    if talks and not asks:
        return []
    passed: dict[str, str] = state.memory.setdefault("passed", {})
    parent, uuid, kind = identifier(record.get("parentUuid")), identifier(record.get("uuid")), record.get("type")
    above = passed.get(parent, parent) if parent else None
    if uuid and above and not asks:
        remember(passed, uuid, above, _PASSED_REMEMBERED)
    place = record if kind == "user" and asks and above else None
    if kind == "last-prompt" and (leaf := identifier(record.get("leafUuid"))):
        place = {"parentUuid": leaf, "uuid": leaf}
    dropped = left_behind(place, state, above) if place else []
    if asks:
        note_requests(said, record, state, above)
    if not place or not dropped:
        return []
    told = Notification("rewind", "left behind:\n" + "\n".join(dropped))
    at = milliseconds(record.get("timestamp"))
    return [Rollback(len(dropped)), Draft(told, at, identity=f"{place.get('uuid')}#rewind")]


# -- recognition -----------------------------------------------------------------------------------
# Recognising Claude Code's lines by type and keys: other agents write the same types with other keys.

_SIDE_LINES: dict[str, tuple[str, ...]] = {
    "summary": ("leafUuid",),
    "queue-operation": ("sessionId", "operation"),
    "cost-state": ("sessionId", "modelUsage"),
    **BOOKKEEPING,
    **{kind: ("sessionId", keys[0]) for kind, keys in POINTERS.items()},
}
"""The types of lines outside the chain, with the keys by which they are recognised."""


def _has_identity(record: Record) -> bool:
    return any(isinstance(record.get(key), str) for key in ("timestamp", "sessionId", "uuid"))


def _is_spoken(record: Record) -> bool:
    message = record.get("message")
    if not isinstance(message, dict) or message.get("role", record["type"]) not in ROLES:
        return False
    return isinstance(message.get("content"), (str, list)) and "parts" not in message and _has_identity(record)


_CHAIN_LINES: dict[str, Callable[[Record], bool]] = {
    "user": _is_spoken,
    "assistant": _is_spoken,
    "message": lambda record: bool(identifier(record.get("uuid")) and record.get("sessionId")) and _is_spoken(record),
    "tool_result": lambda record: isinstance(record.get("toolUseResult"), dict) and "uuid" in record,
    "system": lambda record: {"isSidechain", "uuid"} <= record.keys() and "systemPayload" not in record,
    "attachment": lambda record: bool(text(fields(record.get("attachment")).get("type"))) and _has_identity(record),
    "progress": lambda record: "parentToolUseID" in record and isinstance(record.get("data"), dict),
}


# -- records ---------------------------------------------------------------------------------------
# Every type of line, with its reader.

READERS: dict[str, Callable[[Record, LogState], Sequence[Said]]] = {
    "assistant": assistant_line,
    "attachment": attachment,
    "cost-state": cost_state,
    "message": wrapped_message,
    "progress": progress,
    "queue-operation": queue_operation,
    "summary": summary,
    "system": system,
    "tool_result": bare_result_line,
    "user": user_line,
    **dict.fromkeys((*BOOKKEEPING, *_MORE_BOOKKEEPING), bookkeeping),
    **dict.fromkeys(POINTERS, pointer),
}


# -- parser ----------------------------------------------------------------------------------------


def recognizes(record: Record) -> bool:
    """Whether only Claude Code writes such a record: a chain line, or a side line with its keys."""
    kind = record.get("type")
    if not isinstance(kind, str):
        return False
    if kind in _SIDE_LINES:
        return all(key in record for key in _SIDE_LINES[kind])
    return kind in _CHAIN_LINES and _CHAIN_LINES[kind](record)


def unroll(document: Any) -> list[Record] | None:
    """Return the lines of a session that was downloaded as one document, `{"loglines": [...]}`."""
    lines = [line for line in as_list(fields(document).get("loglines")) if isinstance(line, dict)]
    return lines if any(map(recognizes, lines)) else None


def drafts(record: Record, state: LogState) -> Sequence[Said]:
    """Return the events of the next line; see `Parser.drafts`. Lines keep their uuid wherever they are copied."""
    kind = record.get("type")
    read = READERS.get(kind) if isinstance(kind, str) else None
    said = unknown_line(record, state, text(kind) or "untyped") if read is None else read(record, state)
    silent = (isinstance(one, Draft) and isinstance(one.payload, Notification) for one in said)
    if kind in ("attachment", "progress", "system") and all(silent) and _has_usage(record):
        state.unknown.append(f"{kind}/usage")
    copied = fields(record["forkedFrom"]).get("messageUuid") if "forkedFrom" in record else None
    identify(said, first_identifier(copied, record.get("uuid")))
    if state.sessions[""].kind == "warmup" and any(
        isinstance(one, Draft) and not one.thread and isinstance(one.payload, (User, ToolCall, TokenUsage))
        for one in said
    ):
        state.sessions[""].kind = "subagent"
    dropped = [] if is_inline(record, state) else rewound(said, record, state)
    return [*dropped, *said] if dropped else said


# -- retention -------------------------------------------------------------------------------------
# How long Claude Code keeps its logs: `cleanupPeriodDays`, 30 unless it is set (code.claude.com/docs, settings). It
# deletes logs that haven't changed for that long when it starts. Settings of a project, or those that an organization
# manages, may differ; they aren't read.

_SETTING, _DAYS = "cleanupPeriodDays", 30
_TO_KEEP = f"set {_SETTING} to 3650"


def retention(environment: Mapping[str, str], home: Path) -> list[Retention]:
    """Return how long it keeps the logs of each of its folders."""
    return [_of(root.parent / "settings.json") for root in CLAUDE_CODE.home.roots(environment, home)]


def _of(file: Path) -> Retention:
    settings = settings_in(file)
    days: Any = settings.get(_SETTING)
    is_set = isinstance(days, (int, float)) and not isinstance(days, bool) and days >= 0
    kept = float(days) if is_set else _DAYS
    return Retention(kept, True, _SETTING, str(file), is_set, _TO_KEEP, _is_refreshed(settings))


def _is_refreshed(settings: dict[str, Any]) -> bool:
    """Whether a hook runs agtrace: one of the settings' own, or the one of our plugin, which indexes ended sessions."""
    plugins = settings.get("enabledPlugins")
    ours = isinstance(plugins, dict) and any(
        is_on is True and name.partition("@")[0] == "agtrace" for name, is_on in plugins.items()
    )
    return ours or runs_agtrace(settings)


def _has_usage(value: Any, levels: int = 4) -> bool:
    """Whether there is a usage with a figure in a record: no other line may have it."""
    return levels > 0 and any(
        any(map(count, inner.values())) if name.lower().endswith("usage") else _has_usage(inner, levels - 1)
        for name, inner in fields(value).items()
        if isinstance(inner, dict)
    )


SETUP = Setup(
    title="Claude Code",
    executable="claude",
    home_variable="CLAUDE_CONFIG_DIR",
    config_file=".claude.json",
    moved_config_file=".claude.json",
    replaces=False,
    entry={"type": "stdio"},
)
"""Claude Code as a client of our server; its snippet also works in a project's `.mcp.json`."""
