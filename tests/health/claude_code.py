"""Stories as logs of Claude Code 2.1: a line for each block, in the chain of their uuids."""

from __future__ import annotations

from typing import Any

from tests.health.stories import Execution, Remark, Response, Spoken, Tokens
from tests.health.writing import CWD, Log, absolute, counted, results, stopped_by_human

_REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)
_INTERRUPTED = "[Request interrupted by user]"
_INTERRUPTED_TOOL = "[Request interrupted by user for tool use]"
_TOOLS = {"run": "Bash", "read": "Read", "edit": "Edit", "write": "Write", "grep": "Grep"}


def write(log: Log) -> str:
    """Write a session; return its path below the home."""
    _Writer(log).all()
    return f"claude/projects/{CWD.replace('/', '-')}/{log.session}.jsonl"


class _Writer:
    """The chain of lines of one session."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.last: str | None = None
        self.retries = self.whole = 0

    def all(self) -> None:
        """Write every scene."""
        for scene, following, tokens in counted(self.log.story):
            if isinstance(scene, Remark):
                self._remark(scene)
                continue
            self.retries, self.whole = 0, tokens.whole if tokens else self.whole
            self._response(scene, tokens)
            if stopped_by_human(scene, following):
                self._user(scene.ended_at, [{"type": "text", "text": _INTERRUPTED_TOOL}])

    def _line(self, kind: str, at: float, **more: Any) -> str:
        uuid = self.log.uuid()
        record = {"parentUuid": self.last, "isSidechain": False, "type": kind, **more}
        self.log.records.append(
            record | {
                "uuid": uuid, "timestamp": self.log.time(at), "userType": "external", "entrypoint": "cli",
                "cwd": CWD, "sessionId": self.log.session, "version": "2.1.212", "gitBranch": "main",
            }
        )  # fmt: skip
        self.last = uuid
        return uuid

    def _user(self, at: float, content: Any, **more: Any) -> None:
        self._line("user", at, message={"role": "user", "content": content}, **more)

    def _remark(self, remark: Remark) -> None:
        at, text = remark.at, remark.text
        if remark.kind == "user":
            self._user(at, text, origin={"kind": "human"}, promptSource="typed")
        elif remark.kind == "inject":
            self._user(at, [{"type": "text", "text": text}], isMeta=True)
        elif remark.kind == "command":
            name, _, given = text.partition(" ")
            said = f"<command-message>{name[1:]}</command-message>\n<command-args>{given}</command-args>"
            self._user(at, f"<command-name>{name}</command-name>\n{said}")
        elif remark.kind == "interrupt":
            self._user(at, [{"type": "text", "text": _INTERRUPTED}])
        elif remark.kind == "compaction":
            self._compaction(at, text)
        elif remark.kind == "api error":
            self._api_error(at, text)
        else:
            self._retry(at, text)

    def _compaction(self, at: float, trigger: str) -> None:
        before, self.last = self.last, None
        metadata = {"trigger": trigger, "preTokens": self.whole, "postTokens": 900, "durationMs": 1000}
        self._line(
            "system", at, logicalParentUuid=before, subtype="compact_boundary", content="Conversation compacted",
            isMeta=False, level="info", compactMetadata=metadata,
        )  # fmt: skip
        summary = (
            "This session is being continued from a previous conversation that ran out of context. The summary below "
            "covers the earlier portion of the conversation.\n\nWhat was asked for is being worked on."
        )
        self._user(at, summary, isVisibleInTranscriptOnly=True, isCompactSummary=True)

    def _api_error(self, at: float, text: str) -> None:
        message = {
            "id": self.log.uuid(), "model": "<synthetic>", "role": "assistant", "type": "message",
            "content": [{"type": "text", "text": text}], "stop_reason": "stop_sequence", "stop_sequence": "",
            "usage": _usage(Tokens()),
        }  # fmt: skip
        self._line("assistant", at, message=message, error="unknown", isApiErrorMessage=True)

    def _retry(self, at: float, text: str) -> None:
        self.retries += 1
        error = {"message": text, "formatted": text, "connection": None, "isNetworkDown": False, "rateLimits": None}
        self._line(
            "system", at, subtype="api_error", level="error", error=error, retryInMs=500 * 2**self.retries,
            retryAttempt=self.retries, maxRetries=10,
        )  # fmt: skip

    def _response(self, response: Response, tokens: Tokens | None) -> None:
        """Write the blocks of a response, which share its id and its figures, then the results."""
        message_id, request_id = f"msg_{self.log.name()}", f"req_{self.log.name()}"
        calls: dict[int, tuple[str, str]] = {}
        for part in response.parts:
            block, call_id = _block(part), f"toolu_{self.log.name()}"
            if isinstance(part, Execution):
                block["id"] = call_id
            message: dict[str, Any] = {
                "model": self.log.story.model, "id": message_id, "type": "message", "role": "assistant",
                "content": [block], "stop_reason": "tool_use" if response.executions else "end_turn",
                "stop_sequence": None,
            }  # fmt: skip
            if tokens:
                message["usage"] = _usage(tokens)
            calls[id(part)] = call_id, self._line("assistant", part.at, message=message, requestId=request_id)
        for execution in results(response):
            self._result(execution, *calls[id(execution)])

    def _result(self, execution: Execution, call_id: str, called_by: str) -> None:
        ended = execution.ended
        assert ended
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": ended.text}
        if ended.how == "refused":
            block |= {"content": _REFUSED, "is_error": True}
        elif ended.how == "interrupted":
            block |= {"content": f"Exit code 137\n{_INTERRUPTED_TOOL}", "is_error": True}
        elif ended.how == "failed":
            code = f"Exit code {ended.exit_code or 1}\n" if execution.kind == "run" else ""
            block |= {"content": f"{code}{ended.text}", "is_error": True}
        more: dict[str, Any] = {"sourceToolAssistantUUID": called_by}
        detail: Any = f"Error: {block['content']}" if "is_error" in block else _detail(execution, ended.text)
        if detail is not None:
            more["toolUseResult"] = detail
        if ended.how == "refused":
            more["toolDenialKind"] = "user-rejected"
        self._user(ended.at, [block], **more)


def _block(part: Spoken | Execution) -> dict[str, Any]:
    if isinstance(part, Execution):
        name = part.subject if part.kind == "tool" else _TOOLS[part.kind]
        return {"type": "tool_use", "id": "", "name": name, "input": _input(part)}
    if part.kind == "think":
        return {"type": "thinking", "thinking": part.text, "signature": "EqRuyS5XTPRu7F2c963xYaF4zZKMAgfDJbwVWCTXR9VA"}
    return {"type": "text", "text": part.text}


def _input(execution: Execution) -> Any:
    if execution.kind == "run":
        return {"command": execution.subject}
    if execution.kind == "grep":
        return {"pattern": execution.subject, "output_mode": "content"}
    if execution.kind == "tool":
        return execution.arguments
    path = {"file_path": absolute(execution.subject)}
    if execution.kind == "read":
        first, last = execution.part or (0, 0)
        return path | ({"offset": first, "limit": last - first + 1} if execution.part else {})
    if execution.kind == "write":
        return path | {"content": execution.lines("+")}
    return path | {"old_string": execution.lines("-"), "new_string": execution.lines("+")}


def _detail(execution: Execution, text: str) -> Any:
    """Return the structured copy of a result that isn't an error."""
    if execution.kind == "run":
        return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    if execution.kind == "grep":
        return {"mode": "content", "numFiles": 0, "filenames": [], "content": text, "numLines": text.count("\n") + 1}
    if execution.kind == "read":
        start = execution.part[0] if execution.part else 1
        lines = text.count("\n") + 1
        shown = {"content": text, "numLines": lines, "startLine": start, "totalLines": start + lines - 1}
        return {"type": "text", "file": {"filePath": absolute(execution.subject), **shown}}
    if execution.kind == "write":
        new = {"filePath": absolute(execution.subject), "content": execution.lines("+"), "structuredPatch": []}
        return {"type": "create", **new}
    if execution.kind == "edit":
        old, new_text = execution.lines("-"), execution.lines("+")
        path = absolute(execution.subject)
        return {"filePath": path, "oldString": old, "newString": new_text, "userModified": False, "replaceAll": False}
    return [{"type": "text", "text": text}] if execution.subject.startswith("mcp__") else None


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.fresh,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": tokens.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": tokens.out,
        "service_tier": "standard",
    }
