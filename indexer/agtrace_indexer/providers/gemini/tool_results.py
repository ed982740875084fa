"""Results of tool executions: their outcome, and what the model was given."""

from __future__ import annotations

import re
from typing import Any

from agtrace_schema.events import Outcome, OutcomeSource, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import compact_json, fields, listed
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.gemini.content import part_text

_UNFINISHED = ("validating", "scheduled", "executing", "awaiting_approval")
_FINISHED = ("success", "error", "cancelled")


def result_of(tool: Record, call_id: str) -> ToolResult | None:
    """Read the result in one of the `toolCalls` of a response; None if the execution hasn't finished."""
    status, given = tool.get("status"), listed(tool.get("result"))
    if status in _UNFINISHED or (status not in _FINISHED and not given):
        return None
    said = "\n".join(map(response_text, given)) if given else _display_text(tool.get("resultDisplay"))
    shell = tool.get("name") == "run_shell_command"
    exit_code = exit_code_of(said, tool.get("resultDisplay")) if shell else None
    outcome, source = outcome_of(status, said, exit_code, shell)
    return ToolResult(call_id, said, outcome, source, exit_code, agent_id=identifier(tool.get("agentId")))


def response_text(part: Any) -> str:
    """Read what the model was given: the output or the error of a functionResponse, or another part next to it."""
    response = fields(part).get("functionResponse")
    if not isinstance(response, dict):
        return part_text(part)
    given = fields(response.get("response"))
    said = given.get("output", given.get("error", response.get("response")))
    return _display_text(said)


def _display_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else compact_json(value)


def history_result(response: Record) -> ToolResult:
    """Read an answer without a status, in which an error is recognised by its key."""
    said = response_text({"functionResponse": response})
    given = fields(response.get("response"))
    shell = response.get("name") == "run_shell_command"
    exit_code = exit_code_of(said, None) if shell else None
    status = "success" if "output" in given else "error" if "error" in given else None
    if status == "error" and said.startswith("[Operation Cancelled]"):
        status = "cancelled"
    outcome, source = outcome_of(status, said, exit_code, shell)
    return ToolResult(identifier(response.get("id")), said, outcome, source, exit_code)


_BY_USER = later(
    r"user (?:cancel|decline|denied|reject|did not allow)|(?:cancell?ed|declined|rejected) by (?:the )?user", re.I
)
_SHELL_STOPPED = ("Command was cancelled by user", "Command was automatically cancelled")


def outcome_of(status: Any, said: str, exit_code: int | None, shell: bool) -> tuple[Outcome, OutcomeSource | None]:
    """Determine the outcome by the status, or by a shell command's exit code, as its status is always `success`."""
    if status == "error":
        return Outcome.FAILED, OutcomeSource.STRUCTURE
    if status == "cancelled":
        return Outcome.REJECTED if _BY_USER.search(said) else Outcome.INTERRUPTED, OutcomeSource.STRUCTURE
    if status != "success":
        return Outcome.UNKNOWN, None
    if exit_code:
        return Outcome.FAILED, OutcomeSource.TEXT
    if shell and said.startswith(_SHELL_STOPPED):
        return Outcome.INTERRUPTED, OutcomeSource.TEXT
    return Outcome.OK, OutcomeSource.STRUCTURE


_LINE = r"(?:\n|\\n)"  # one published fixture has its line ends escaped twice
_EXIT_CODE = later(
    rf"{_LINE}Exit Code: (-?\d{{1,10}})"
    rf"(?:{_LINE}Signal: [^\n\\]{{0,40}})?(?:{_LINE}Background PIDs: [^\n\\]{{0,400}})?"
    rf"(?:{_LINE}Process Group PGID: [^\n\\]{{0,20}})?\s*\Z"
)
_TRAILER = 1000  # more than the longest trailer


def exit_code_of(said: str, display: Any) -> int | None:
    """Read the exit code that the shell tool writes after the output, followed only by its own lines (`shell.ts`).

    Newer versions leave it out if it is 0; a last line `Exit Code: 3` printed by the command itself would then be
    taken for it, so the command's output, which is also in `resultDisplay`, is cut off first.
    """
    if not said.startswith(("Command: ", "Output: ")):
        return None
    output = f"Output: {display}" if isinstance(display, str) and display else ""
    trailer = said[len(output) :] if output and said.startswith(output) else said
    found = _EXIT_CODE.search(trailer[-_TRAILER:])
    return int(found[1]) if found else None
