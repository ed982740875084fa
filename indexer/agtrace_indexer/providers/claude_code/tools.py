"""Tool calls: results, executions in the background, landmarks that the log records."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agtrace_schema.events import Notification, Outcome, OutcomeSource, Payload, ToolResult, User, UserKind
from agtrace_schema.landmarks import Evidence, Landmark, LandmarkKind, Verdict
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import LogState, Record, Settlement
from agtrace_indexer.events.json_values import count, fields, first_text, remember, text
from agtrace_indexer.events.strings import first_identifier, identifier, masked
from agtrace_indexer.providers.notes import joined_text

# -- background ------------------------------------------------------------------------------------
# Executions that continue in the background: which ones a result leaves running, and how they ended later. The result
# of such a call only says that a task was started. Its end is reported by a `<task-notification>`, which occurs up to
# three times (queued, passed as an attachment, or as a user line: the first one counts), by a tool that asks about it
# (`BashOutput`, `TaskOutput`; the time of the end is then unknown) or by one that stops it (`KillShell`, `TaskStop`).
# A notice without the call's id is matched by the id of the task.

_TASKS_REMEMBERED = 64

_STARTED = later(
    r"(?:Command running in background with ID: |Async agent launched successfully\.\s+agentId: |"
    r"Workflow launched in background\. Task ID: |Monitor started \(task )([A-Za-z0-9_-]{1,64})"
)
_STOPPED = later(r"Successfully (?:killed shell|stopped task): ([A-Za-z0-9_-]{1,64})")

_OF_STARTS = frozenset({"status", "taskId", "backgroundTaskId"})
_OF_ENDS = frozenset({"message", "task", "shellId", "task_id"})
"""The keys of a result's structure that report a start or an end: nearly all structures have none of them."""

_NOTICE = later(r"\s*<[a-z]+-notification>")
_NOTICE_ENDS = later(r"</[a-z]+-notification>")
_TAG = later(r"<([a-z]+-id|tool-use-id|status)>\s*([^<\s]{1,128})\s*</")
_ENDS: dict[str | None, Outcome] = {
    "completed": Outcome.OK,
    "failed": Outcome.FAILED,
    "error": Outcome.FAILED,
    **dict.fromkeys(("killed", "stopped", "cancelled", "canceled", "interrupted"), Outcome.INTERRUPTED),
}
"""The outcome for each final state of a task; any other state, such as `running`, isn't an end."""


def is_started(output: str, detail: Any) -> bool:
    """Whether a result only says that something was started; its text counts only if it comes without a structure."""
    if detail is None:
        return _STARTED.match(output) is not None
    structure = fields(detail)
    if _OF_STARTS.isdisjoint(structure):
        return False
    launched = (text(structure.get("status")) or "").endswith("_launched")
    monitor = "taskId" in structure and "timeoutMs" in structure
    return launched or monitor or text(structure.get("backgroundTaskId")) is not None


def settlements(
    payloads: Iterable[Payload], detail: Any, time: int | None, thread: str, state: LogState
) -> list[Settlement]:
    """Remember the tasks that a line's results started, and return the ends that its results and notices report."""
    ends: list[Settlement] = []
    for payload in payloads:
        if isinstance(payload, ToolResult):
            _note_task(payload, detail, thread, state)
            ends += _told_by_result(detail, time, thread, state)
        elif isinstance(payload, User) and payload.kind is UserKind.NOTIFICATION:
            ends += told_by_notice(payload.text, time, thread, state)
    return ends


def is_notice(said: str) -> bool:
    """Whether a text begins with a notice of the end of a task: `<task-notification>`, `<agent-notification>`."""
    return _NOTICE.match(said) is not None


def told_by_notice(said: str, time: int | None, thread: str, state: LogState) -> list[Settlement]:
    """Return the ends that a text of one or more notices reports; an agent's own words, in `<result>`, are ignored."""
    ends: list[Settlement] = []
    for notice in filter(is_notice, _NOTICE_ENDS.split(said) if is_notice(said) else ()):
        tags = _TAG.findall(notice.partition("<result>")[0])
        outcome = next((_ENDS.get(value) for tag, value in tags if tag == "status"), None)
        calls = _ids(value for tag, value in tags if tag == "tool-use-id")
        tasks = _ids(value for tag, value in tags if tag not in ("tool-use-id", "status"))
        ends += _settled(tasks, calls, outcome, time, thread, state)
    return ends


def _note_task(result: ToolResult, detail: Any, thread: str, state: LogState) -> None:
    if result.outcome is not Outcome.RUNNING or result.call_id is None:
        return
    structure, found = fields(detail), _STARTED.match(result.text)
    named = first_identifier(structure.get("backgroundTaskId"), structure.get("taskId"), structure.get("agentId"))
    task = named or identifier(found and found.group(1))
    if task:
        remember(state.memory.setdefault("tasks", {}), task, [result.call_id, thread], _TASKS_REMEMBERED)


def _told_by_result(detail: Any, time: int | None, thread: str, state: LogState) -> list[Settlement]:
    if not isinstance(detail, dict) or _OF_ENDS.isdisjoint(detail):
        return []
    stopped = _STOPPED.match(text(detail.get("message")) or "")
    if stopped:
        return _settled(_ids([stopped.group(1)]), [], Outcome.INTERRUPTED, time, thread, state)
    asked = fields(detail.get("task")) or detail
    task = first_identifier(asked.get("shellId"), asked.get("task_id"))
    if task is None:
        return []
    outcome, code = _ENDS.get(text(asked.get("status"))), asked.get("exitCode")
    if outcome is Outcome.OK and isinstance(code, int) and code != 0:
        outcome = Outcome.FAILED
    return _settled([task], [], outcome, None, thread, state)


def _ids(named: Iterable[str]) -> list[str]:
    return [found for found in map(identifier, named) if found is not None]


def _settled(
    tasks: list[str], calls: list[str], outcome: Outcome | None, time: int | None, thread: str, state: LogState
) -> list[Settlement]:
    """Return the ends of the calls that started these tasks, and of these calls."""
    if outcome is None:
        return []
    known: dict[str, list[str]] = state.memory.get("tasks", {})
    threads = dict.fromkeys(calls, thread) | dict(known.pop(task) for task in tasks if task in known)
    return [Settlement(call, outcome, time, where) for call, where in threads.items()]


# -- tool results ----------------------------------------------------------------------------------
# Results of tool executions in Claude Code's logs: their outcome, text, and the agent they started. A result is a
# `tool_result` block; its line may also have a structured copy, `toolUseResult`, which is an object, or a string for
# errors, or a list for MCP tools (README.md).

_REJECTIONS = (
    "The user doesn't want to proceed",
    "The user doesn't want to take this action",
    "User rejected",
    "Permission to use ",
    "Claude requested permissions to ",
    "This command requires approval",
    "This Bash command contains multiple operations. The following part",
)
"""The beginnings of error texts if the user or the permission rules did not allow an execution."""

_BLOCKED = later(r"[^\n]{1,500} was blocked\. For security, Claude Code |Hook PreToolUse:\S{1,200} denied this tool")

_INTERRUPTION = later(r"(?:Exit code -?[0-9]{1,9}\s*)?\[Request interrupted by user")
_CANCELLED = later(
    r"(?:<tool_use_error>)?(?:Sibling tool call errored|Cancelled: parallel tool call .{0,200} errored)", re.DOTALL
)
"""What a call of the same response failed; this one was never run."""
_LONGEST_START = 300
_EXIT_CODE = later(r"Exit code (-?[0-9]{1,9})\b")
_AGENT_ID = later(r"(?:Async agent launched successfully\.\s+)?agentId: ([A-Za-z0-9_-]+)")

_Ending = tuple[Outcome, OutcomeSource]
_OK = (Outcome.OK, OutcomeSource.STRUCTURE)
_FAILED = (Outcome.FAILED, OutcomeSource.STRUCTURE)


def tool_result(block: dict[str, Any], line: dict[str, Any]) -> ToolResult:
    """Read a `tool_result` block, with what else its line says about it."""
    output = joined_text(block.get("content"))
    failed = block.get("is_error") is True
    outcome, source = _ending(output, failed, line)
    detail = line.get("toolUseResult")
    exit_code = _EXIT_CODE.match(output) if failed else None
    return ToolResult(
        call_id=identifier(block.get("tool_use_id")),
        text=output,
        outcome=outcome,
        outcome_source=source,
        exit_code=int(exit_code.group(1)) if exit_code else None,
        duration_ms=_duration(detail),
        agent_id=_agent_id(block, detail),
    )


def spilled_output(result: ToolResult, line: dict[str, Any]) -> list[Notification]:
    """Return a notification of the file with the rest of a large output, if only the structure names it."""
    detail = fields(line.get("toolUseResult"))
    path = text(detail.get("persistedOutputPath"))
    if path is None or path in result.text:
        return []
    size = count(detail.get("persistedOutputSize"))
    return [Notification("persisted-output", path if size is None else f"{path}\n{size} bytes")]


def bare_result(detail: dict[str, Any]) -> ToolResult:
    """Read a line that is nothing but a `toolUseResult`, as in early published samples."""
    failed = detail.get("is_error") is True or detail.get("status") == "error"
    block = {**detail, "content": detail.get("output", detail.get("content")), "is_error": failed}
    result = tool_result(block, {"toolUseResult": detail})
    if not failed and detail.get("status") != "completed":
        result.outcome, result.outcome_source = Outcome.UNKNOWN, None
    return result


def _ending(output: str, failed: bool, line: dict[str, Any]) -> _Ending:
    if text(line.get("toolDenialKind")):
        return Outcome.REJECTED, OutcomeSource.STRUCTURE
    detail = line.get("toolUseResult")
    if failed and (_is_refusal(output) or (isinstance(detail, str) and _is_refusal(detail))):
        return Outcome.REJECTED, OutcomeSource.TEXT
    if _INTERRUPTION.match(output, 0, _LONGEST_START) or (failed and _CANCELLED.match(output, 0, _LONGEST_START)):
        return Outcome.INTERRUPTED, OutcomeSource.TEXT
    if not failed and is_started(output, detail):
        return Outcome.RUNNING, OutcomeSource.TEXT if detail is None else OutcomeSource.STRUCTURE
    if isinstance(detail, dict) and detail.get("interrupted") is True:
        return Outcome.INTERRUPTED, OutcomeSource.STRUCTURE
    return _FAILED if failed else _OK


def _is_refusal(said: str) -> bool:
    return said.startswith(_REJECTIONS) or _BLOCKED.match(said) is not None


def _duration(detail: Any) -> int | None:
    if not isinstance(detail, dict):
        return None
    for key in ("totalDurationMs", "durationMs"):  # an agent's run, whose durationMs is only a part; any other
        duration = count(detail.get(key))
        if duration is not None:
            return duration
    seconds = detail.get("durationSeconds")
    return count(seconds * 1000) if isinstance(seconds, (int, float)) else None


def team_member(team: str | None, member: str | None) -> str | None:
    """Return an id for the member of a team: its own log and its lead's have the names of both in common."""
    return identifier(re.sub(r"[^A-Za-z0-9._-]", "-", masked(f"team-{team}-{member}", 64))) if team and member else None


def _agent_id(block: dict[str, Any], detail: Any) -> str | None:
    structure, content = fields(detail), block.get("content")
    if structure.get("status") == "teammate_spawned":
        member, _, team = (first_text(structure.get("teammate_id"), structure.get("agent_id")) or "").partition("@")
        return team_member(text(structure.get("team_name")) or team, text(structure.get("name")) or member)
    result = _named_agent(structure.get("agentId"))
    if result or not isinstance(content, list):
        return result
    texts = (written for part in content if isinstance(written := fields(part).get("text"), str))
    found = next(filter(None, map(_AGENT_ID.match, texts)), None)  # only agents' results have a block with nothing else
    return _named_agent(found[1]) if found else None


def _named_agent(agent: Any) -> str | None:
    named = identifier(agent)
    return named and f"agent-{named}"


# -- deeds -----------------------------------------------------------------------------------------
# What Claude Code itself says that a command did: commits and pull requests, in fields beside the result.

_DONE = {"created": Verdict.CREATED, "merged": Verdict.MERGED, "closed": Verdict.CLOSED, "reopened": Verdict.REOPENED}
_LINKS_REMEMBERED = 32
_LONGEST_DEED = 200


def deeds(detail: Any) -> tuple[Landmark, ...]:
    """Read `gitOperation` in the structure of a result: `{commit: {sha, kind}, pr: {number, url, action}}`."""
    operation = fields(detail).get("gitOperation")
    if not isinstance(operation, dict):
        return ()
    found = []
    if sha := text(fields(operation.get("commit")).get("sha")):
        found.append(Landmark(LandmarkKind.COMMIT, masked(sha, 40), None, Verdict.CREATED, Evidence.RECORD))
    request = fields(operation.get("pr"))
    if verdict := _DONE.get(request.get("action") or ""):
        found.append(_pull_request(request.get("number"), request.get("url"), verdict))
    return tuple(found)


def link(record: Record, state: LogState) -> tuple[Landmark, ...]:
    """Read a `pr-link`, which Claude Code writes again and again: the pull request that a session is about."""
    address = text(record.get("prUrl"))
    known = state.memory.setdefault("links", [])
    if address is None or address in known:
        return ()
    state.memory["links"] = [*known, address][-_LINKS_REMEMBERED:]
    return (_pull_request(record.get("prNumber"), address, Verdict.LINKED),)


def _pull_request(number: Any, address: Any, verdict: Verdict) -> Landmark:
    name, url = count(number), text(address)
    shown = None if name is None else str(name)
    return Landmark(LandmarkKind.PULL_REQUEST, shown, url and masked(url, _LONGEST_DEED), verdict, Evidence.RECORD)
