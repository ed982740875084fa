"""Stories as sessions of Gemini CLI 0.39: a message with calls is written twice, the second time with their results."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from tests.health.stories import Execution, Remark, Response, Spoken, Tokens
from tests.health.writing import CWD, Log, absolute, counted, results, stopped_by_human

_TOOLS = {
    "run": "run_shell_command", "read": "read_file", "edit": "replace", "write": "write_file",
    "grep": "search_file_content",
}  # fmt: skip
_REFUSED = "[Operation Cancelled] Reason: User did not allow tool call"
_STOPPED = "Command was cancelled by user before it could complete."
_KINDS = {"user": "user", "inject": "user", "command": "user", "interrupt": "info", "api error": "error"}


def write(log: Log) -> str:
    """Write a session; return its path below the home."""
    head = {"sessionId": log.session, "projectHash": sha256(CWD.encode()).hexdigest(), "startTime": log.time(0)}
    log.records.append(head | {"lastUpdated": log.time(0), "kind": "main"})
    for scene, following, tokens in counted(log.story):
        if isinstance(scene, Remark):
            _remark(log, scene)
            continue
        _response(log, scene, tokens)
        if stopped_by_human(scene, following):
            _message(log, scene.ended_at, "info", "Request cancelled.")
    minute = log.time(0)[:16].replace(":", "-")
    return f"gemini/tmp/tidepool/chats/session-{minute}-{log.session[:8]}.jsonl"


def _message(log: Log, at: float, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    record = {"id": log.uuid(), "timestamp": log.time(at), "type": kind, "content": content, **more}
    log.records.append(record)
    return record


def _remark(log: Log, remark: Remark) -> None:
    text = "Request cancelled." if remark.kind == "interrupt" else remark.text
    if remark.kind == "inject":
        text = f"<hook_context>{text}</hook_context>"
    kind = _KINDS[remark.kind]
    _message(log, remark.at, kind, [{"text": text}] if kind == "user" else text)
    log.records.append({"$set": {"lastUpdated": log.time(remark.at)}})


def _response(log: Log, response: Response, tokens: Tokens | None) -> None:
    """Write a message; if it has calls, first without their results and figures."""
    told = [part for part in response.parts if not isinstance(part, Execution)]
    said = "\n".join(part.text for part in told if part.kind == "say")
    thoughts = [_thought(log, part) for part in told if part.kind == "think"]
    spoken = [part.at for part in response.parts if part.kind != "think"]
    calls = {id(execution): _call(log, execution) for execution in response.executions}
    more: dict[str, Any] = {"thoughts": thoughts, "tokens": _tokens(tokens), "model": log.story.model}
    at = spoken[0] if spoken else response.parts[0].at
    if not calls:
        _message(log, at, "gemini", said, **more)
        return
    first = _message(log, at, "gemini", said, **more | {"tokens": None, "toolCalls": list(calls.values())})
    for execution in results(response):
        calls[id(execution)] = calls[id(execution)] | _ended(log, execution, calls[id(execution)])
    log.records.append(first | {"tokens": _tokens(tokens), "toolCalls": list(calls.values())})


def _thought(log: Log, part: Spoken) -> dict[str, str]:
    subject, _, description = part.text.partition("\n")
    return {"subject": subject, "description": description, "timestamp": log.time(part.at)}


def _call(log: Log, execution: Execution) -> dict[str, Any]:
    name = execution.subject if execution.kind == "tool" else _TOOLS[execution.kind]
    return {
        "id": f"{name}-{log.name(12)}", "name": name, "args": _arguments(execution), "result": [],
        "status": "executing", "timestamp": log.time(execution.at), "resultDisplay": "",
    }  # fmt: skip


def _arguments(execution: Execution) -> Any:
    if execution.kind == "run":
        return {"command": execution.subject}
    if execution.kind == "grep":
        return {"pattern": execution.subject}
    if execution.kind == "tool":
        return execution.arguments
    path = {"file_path": absolute(execution.subject)}
    if execution.kind == "read":
        first, last = execution.part or (0, 0)
        return path | ({"start_line": first, "end_line": last} if execution.part else {})
    if execution.kind == "write":
        return path | {"content": execution.lines("+")}
    return path | {"old_string": execution.lines("-"), "new_string": execution.lines("+")}


def _ended(log: Log, execution: Execution, call: dict[str, Any]) -> dict[str, Any]:
    """Return a call with its end: to the CLI, a failed command is a success with an exit code after the output."""
    ended = execution.ended
    assert ended
    status, shown, key = "success", ended.text, "output"
    if ended.how == "refused":
        status, shown, key = "cancelled", _REFUSED, "error"
    elif execution.kind == "run":
        shown = _STOPPED if ended.how == "interrupted" else _shell_output(log, execution)
    elif ended.how == "failed":
        status, key = "error", "error"
    response = {"id": call["id"], "name": call["name"], "response": {key: shown}}
    display = ended.text if execution.kind == "run" else ""
    return {
        "result": [{"functionResponse": response}], "status": status, "timestamp": log.time(ended.at),
        "resultDisplay": display,
    }  # fmt: skip


def _shell_output(log: Log, execution: Execution) -> str:
    ended = execution.ended
    assert ended
    code = f"\nExit Code: {ended.exit_code or 1}" if ended.how == "failed" else ""
    group = 10_000 + int(log.name(4), 16)
    return f"Output: {ended.text or '(empty)'}{code}\nProcess Group PGID: {group}"


def _tokens(tokens: Tokens | None) -> dict[str, int] | None:
    if tokens is None:
        return None
    figures = {"input": tokens.whole, "output": tokens.out, "cached": tokens.cached, "thoughts": 0, "tool": 0}
    return figures | {"total": tokens.whole + tokens.out}
