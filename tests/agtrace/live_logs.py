"""Logs of sessions that are going on, written line by line: each line has the time at which it is written, or `ago`."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = "/home/mira/projects/tidepool"


def _stamp(ago: float) -> str:
    return datetime.fromtimestamp(time.time() - ago, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Log:
    """A log to which lines are added, as its agent does."""

    def __init__(self, path: Path, ago: float = 5) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.ago, self.count = path, ago, 0

    def add(self, record: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def next(self) -> int:
        self.count += 1
        return self.count


class Claude(_Log):
    """A session of Claude Code."""

    def __init__(self, home: Path, number: int = 1, *, ago: float = 5, stop_reasons: bool = True) -> None:
        self.uid = f"{number:08x}-6c0e-4b8e-9a37-2f5e81c0b944"
        super().__init__(home / ".claude" / "projects" / "-home-mira-projects-tidepool" / f"{self.uid}.jsonl", ago)
        self._parent: str | None = None
        self._stop_reasons = stop_reasons

    def _line(self, kind: str, **more: Any) -> None:
        number = self.next()
        uuid = f"{self.uid[:8]}-0000-4000-8000-{number:012x}"
        self.add({
            "parentUuid": self._parent, "isSidechain": False, "userType": "external", "cwd": FOLDER,
            "sessionId": self.uid, "version": "2.1.212", "gitBranch": "main", "type": kind, "uuid": uuid,
            "timestamp": _stamp(self.ago), **more,
        })  # fmt: skip
        self._parent = uuid

    def asked(self, text: str) -> None:
        self._line("user", message={"role": "user", "content": text})

    def _says(self, content: list[dict[str, Any]], stop: str) -> None:
        number = self.count
        message = {
            "id": f"msg_{self.uid[:8]}_{number}", "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5-20250929", "content": content,
            "stop_reason": stop if self._stop_reasons else None,
            "usage": {"input_tokens": 1_000, "cache_read_input_tokens": 99_000, "output_tokens": 50},
        }  # fmt: skip
        self._line("assistant", requestId=f"req_{self.uid[:8]}_{number}", message=message)

    def says(self, text: str, stop: str = "end_turn") -> None:
        self._says([{"type": "text", "text": text}], stop)

    def calls(self, tool: str, call: str = "toolu_1", **arguments: Any) -> None:
        self._says([{"type": "tool_use", "id": call, "name": tool, "input": arguments}], "tool_use")

    def returns(self, text: str, call: str = "toolu_1", *, failed: bool = False) -> None:
        result = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed}
        self._line("user", message={"role": "user", "content": [result]}, toolUseResult={"stdout": text})

    def system(self, subtype: str) -> None:
        self._line("system", subtype=subtype, content="", level="info")

    def fails(self) -> None:
        content = [{"type": "text", "text": "API Error: 529 overloaded"}]
        message = {"id": "msg_error", "type": "message", "role": "assistant", "model": "<synthetic>",
                   "content": content, "stop_reason": "stop_sequence",
                   "usage": {"input_tokens": 0, "output_tokens": 0}}  # fmt: skip
        self._line("assistant", isApiErrorMessage=True, message=message)


class Codex(_Log):
    """A session of Codex."""

    def __init__(self, home: Path, number: int = 1, *, ago: float = 5) -> None:
        self.uid = f"01a17cc4-7420-7c0b-b9e9-{number:012x}"
        name = f"rollout-2026-10-27T09-50-12-{self.uid}.jsonl"
        super().__init__(home / ".codex" / "sessions" / "2026" / "10" / "27" / name, ago)
        self._write("session_meta", {
            "id": self.uid, "timestamp": _stamp(ago), "cwd": FOLDER, "originator": "codex_cli_rs",
            "cli_version": "0.120.0", "source": "cli", "model_provider": "openai",
        })  # fmt: skip
        self._write("turn_context", {"cwd": FOLDER, "approval_policy": "on-request", "model": "gpt-5.3-codex"})

    def _write(self, kind: str, payload: dict[str, Any]) -> None:
        self.next()
        self.add({"timestamp": _stamp(self.ago), "type": kind, "payload": payload})

    def event(self, kind: str, **more: Any) -> None:
        self._write("event_msg", {"type": kind, **more})

    def asked(self, text: str) -> None:
        self.event("task_started", model_context_window=258_400)
        content = [{"type": "input_text", "text": text}]
        self._write("response_item", {"type": "message", "role": "user", "content": content})
        self.event("user_message", message=text)

    def says(self, text: str) -> None:
        content = [{"type": "output_text", "text": text}]
        self._write("response_item", {"type": "message", "role": "assistant", "content": content})

    def calls(self, tool: str, call: str = "call_1", **arguments: Any) -> None:
        self._write("response_item", {
            "type": "function_call", "name": tool, "arguments": json.dumps(arguments), "call_id": call,
        })  # fmt: skip

    def returns(self, text: str, call: str = "call_1") -> None:
        self._write("response_item", {"type": "function_call_output", "call_id": call, "output": text})


class Copilot(_Log):
    """A session of Copilot CLI."""

    def __init__(self, home: Path, *, ago: float = 5) -> None:
        self.uid = "7d3c1f58-92ab-4e06-b7d4-5e80a1c6f329"
        super().__init__(home / ".copilot" / "session-state" / self.uid / "events.jsonl", ago)
        self._parent: str | None = None
        self.event("session.start", sessionId=self.uid, version=1, producer="copilot-agent", copilotVersion="1.0.78",
                   startTime=_stamp(ago), context={"cwd": FOLDER})  # fmt: skip

    def event(self, kind: str, **data: Any) -> None:
        id = f"110f6673-829f-571b-ad04-{self.next():012x}"
        self.add({"type": kind, "data": data, "id": id, "timestamp": _stamp(self.ago), "parentId": self._parent})
        self._parent = id

    def asked(self, text: str) -> None:
        self.event("user.message", content=text, attachments=[])

    def calls(self, tool: str, call: str = "call_1", **arguments: Any) -> None:
        request = {"toolCallId": call, "name": tool, "arguments": arguments, "type": "function"}
        self.event("assistant.message", messageId=call, content="", toolRequests=[request])
        self.event("tool.execution_start", toolCallId=call, toolName=tool, arguments=arguments)


class Gemini(_Log):
    """A session of Gemini CLI."""

    def __init__(self, home: Path, *, ago: float = 5) -> None:
        self.uid = "338b9da1-26c9-498e-82bb-cd6777c17d3a"
        name = "session-2026-11-10T08-30-338b9da1.jsonl"
        super().__init__(home / ".gemini" / "tmp" / "tidepool" / "chats" / name, ago)
        self.add({
            "sessionId": self.uid, "projectHash": "31cc823004beb646b8bf1f3a0ecfb9912a35fa3e7cf0de2275a8dc8b6bba7470",
            "startTime": _stamp(ago), "lastUpdated": _stamp(ago), "kind": "main",
        })  # fmt: skip

    def _write(self, kind: str, content: Any, **more: Any) -> None:
        self.add({"id": f"m{self.next()}", "timestamp": _stamp(self.ago), "type": kind, "content": content, **more})

    def asked(self, text: str) -> None:
        self._write("user", [{"text": text}])

    def says(self, text: str, *calls: dict[str, Any]) -> None:
        self._write("gemini", text, model="gemini-3-pro-preview", tokens=None, toolCalls=list(calls))

    def info(self, text: str) -> None:
        self._write("info", text)

    def call(self, tool: str, status: str, **arguments: Any) -> dict[str, Any]:
        return {"id": f"{tool}-1", "name": tool, "args": arguments, "result": [], "status": status,
                "timestamp": _stamp(self.ago)}  # fmt: skip
