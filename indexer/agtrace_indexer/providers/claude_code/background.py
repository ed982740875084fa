"""Executions that continue in the background: which ones a result leaves running, and how they ended later.

The result of such a call only says that a task was started. Its end is reported by a `<task-notification>`, which
occurs up to three times (queued, passed as an attachment, or as a user line: the first one counts), by a tool that
asks about it (`BashOutput`, `TaskOutput`; the time of the end is then unknown) or by one that stops it (`KillShell`,
`TaskStop`). A notice without the call's id is matched by the id of the task.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agtrace_schema.events import Outcome, Payload, ToolResult, User, UserKind
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import LogState, Settlement
from agtrace_indexer.events.json_values import fields, text
from agtrace_indexer.events.strings import first_identifier, identifier
from agtrace_indexer.providers.notes import remember

_TASKS_REMEMBERED = 64

_STARTED = later(
    r"(?:Command running in background with ID: |Async agent launched successfully\.\s+agentId: |"
    r"Workflow launched in background\. Task ID: |Monitor started \(task )([A-Za-z0-9_-]{1,64})"
)
_STOPPED = later(r"Successfully (?:killed shell|stopped task): ([A-Za-z0-9_-]{1,64})")

_OF_STARTS = frozenset({"status", "taskId", "backgroundTaskId"})
_OF_ENDS = frozenset({"message", "task", "shellId", "task_id"})
"""The keys of a result's structure that report a start or an end: nearly all structures have none of them."""

_NOTICE = "<task-notification>"
_TAG = later(r"<(task-id|tool-use-id|status)>\s*([^<\s]{1,128})\s*</")
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


def told_by_notice(said: str, time: int | None, thread: str, state: LogState) -> list[Settlement]:
    """Return the ends that a text of one or more notices reports; an agent's own words, in `<result>`, are ignored."""
    ends: list[Settlement] = []
    for notice in said.split("</task-notification>") if said.lstrip().startswith(_NOTICE) else ():
        if not notice.lstrip().startswith(_NOTICE):
            continue
        tags = _TAG.findall(notice.partition("<result>")[0])
        outcome = next((_ENDS.get(value) for tag, value in tags if tag == "status"), None)
        tasks, calls = (_ids(value for tag, value in tags if tag == wanted) for wanted in ("task-id", "tool-use-id"))
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
