"""Sessions as Claude Code 2.1 writes them: one line per block, results with a structured copy, sub-agents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import IO, Any

import orjson

from benchmarks.corpus.chance import Clock, binary, hexadecimal, uuid4
from benchmarks.corpus.plan import Planned
from benchmarks.corpus.project import Project, encoded
from benchmarks.corpus.work import Call, Response, Work

_VERSIONS = ("2.1.108", "2.1.128", "2.1.150", "2.1.178", "2.1.199", "2.1.212")
_MODELS = ("claude-opus-4-8", "claude-sonnet-5", "claude-haiku-4-5")
_REJECTION = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
    "the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to "
    "proceed."
)
_AGENT_CHANCE = 0.012
_AGENT_SIZE = (20_000, 120_000)

Json = dict[str, Any]


def write(folder: Path, session: Planned, project: Project, rng: Random) -> int:
    """Write a session and its sub-agents below `projects/`, and return the bytes written."""
    uid = uuid4(rng)
    home = folder / "projects" / re.sub(r"[^A-Za-z0-9]", "-", project.root)
    home.mkdir(parents=True, exist_ok=True)
    with (home / f"{uid}.jsonl").open("wb", buffering=1 << 18) as file:
        log = _Log(file, uid, Work(rng, project, session.language), Clock(session.start), home)
        log.begin()
        log.fill(session.size)
    return log.written


class _Log:
    """One file. `agent_id` is set in the log of a sub-agent."""

    def __init__(
        self, file: IO[bytes], uid: str, work: Work, clock: Clock, home: Path, agent_id: str | None = None
    ) -> None:
        self.file, self.uid, self.work, self.clock, self.home, self.agent_id = file, uid, work, clock, home, agent_id
        self.rng = work.rng
        self.written = 0
        self._parent: str | None = None
        self._cached = self.rng.randrange(9_000, 24_000)
        self._model = _MODELS[int(self.rng.random() ** 2 * 3)]
        self._readable_thoughts = self.rng.random() < 0.5
        self._envelope: Json = {
            "isSidechain": agent_id is not None,
            "userType": "external",
            "entrypoint": "cli",
            "cwd": work.project.root,
            "sessionId": uid,
            "version": self.rng.choice(_VERSIONS),
            "gitBranch": self.rng.choice(("main", f"fix/{self.rng.choice(work.project.words)}")),
        }
        if agent_id is not None:
            self._envelope["agentId"] = agent_id

    def begin(self) -> None:
        """Write the lines outside the chain with which a session begins."""
        self._put({"type": "mode", "mode": "normal", "sessionId": self.uid})
        self._put({"type": "permission-mode", "permissionMode": "default", "sessionId": self.uid})

    def fill(self, size: int) -> None:
        """Write responses until the log has this size."""
        for response in self.work.responses():
            self.work.now = self.clock.now
            if response.prompt:
                self._prompt(response.prompt)
            self._response(response)
            if response.last:
                self._end_of_turn(response)
            if self.written >= size:
                return

    def _put(self, record: Json) -> None:
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self.file.write(line)
        self.written += len(line)

    def _chain(self, record: Json) -> str:
        """Write a line of the chain, and return its uuid."""
        uid = uuid4(self.rng)
        self._put(
            {"parentUuid": self._parent, **record, "uuid": uid, "timestamp": self.clock.stamp(), **self._envelope}
        )
        self._parent = uid
        return uid

    def _prompt(self, text: str) -> None:
        self.clock.pass_about(self.rng, 90_000)
        if self.rng.random() < 0.3 and self.agent_id is None:
            self._snapshot()
        record = {"promptId": uuid4(self.rng), "type": "user", "message": {"role": "user", "content": text}}
        self._chain({**record, "permissionMode": "default", "promptSource": "typed"})

    def _snapshot(self) -> None:
        message = uuid4(self.rng)
        snapshot = {"messageId": message, "trackedFileBackups": {}, "timestamp": self.clock.stamp()}
        self._put(
            {"type": "file-history-snapshot", "messageId": message, "snapshot": snapshot, "isSnapshotUpdate": False}
        )

    def _response(self, response: Response) -> None:
        rng = self.rng
        calls = [("toolu_01" + hexadecimal(rng, 22), call) for call in response.calls]
        lines = self._answer(self._blocks(response, calls), "tool_use" if calls else "end_turn")
        for (call_id, call), line in zip(calls, lines[-len(calls) :], strict=False):
            self.clock.pass_about(rng, 300 + call.duration_ms)
            self._result(call_id, call, line)
        if response.calls and self.agent_id is None and rng.random() < _AGENT_CHANCE:
            self._delegate()

    def _answer(self, blocks: Iterable[Json], stop_reason: str) -> list[str]:
        """Write a response of the model, one line per block, and return the lines' uuids."""
        message = {
            "model": self._model,
            "id": "msg_01" + hexadecimal(self.rng, 22),
            "type": "message",
            "role": "assistant",
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": self._usage(),
        }
        request = "req_011" + hexadecimal(self.rng, 22)
        lines = []
        for block in blocks:
            self.clock.pass_about(self.rng, 1_500)
            record = {"message": {**message, "content": [block]}, "requestId": request, "type": "assistant"}
            lines.append(self._chain(record))
        return lines

    def _usage(self) -> Json:
        rng = self.rng
        new, out = rng.randrange(100, 6_000), rng.randrange(30, 900)
        self._cached = self._cached + new if self._cached < 150_000 else 20_000
        return {
            "input_tokens": rng.randrange(1, 12),
            "cache_creation_input_tokens": new,
            "cache_read_input_tokens": self._cached,
            "cache_creation": {"ephemeral_5m_input_tokens": new, "ephemeral_1h_input_tokens": 0},
            "output_tokens": out,
            "service_tier": "standard",
        }

    def _blocks(self, response: Response, calls: Iterable[tuple[str, Call]]) -> list[Json]:
        blocks: list[Json] = []
        if response.thought:
            text = response.thought if self._readable_thoughts else ""
            signature = binary(self.rng, 200 + len(response.thought))
            blocks.append({"type": "thinking", "thinking": text, "signature": signature})
        if response.saying:
            blocks.append({"type": "text", "text": response.saying})
        blocks += [{"type": "tool_use", "id": uid, "name": call.tool, "input": call.arguments} for uid, call in calls]
        return blocks

    def _result(self, call_id: str, call: Call, line: str) -> None:
        content, detail, failed = _told(call)
        block: Json = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        if failed or call.kind == "shell":
            block["is_error"] = failed
        self._chain(
            {
                "type": "user",
                "message": {"role": "user", "content": [block]},
                "toolUseResult": detail,
                "sourceToolAssistantUUID": line,
            }
        )

    def _end_of_turn(self, response: Response) -> None:
        if self.agent_id is not None:
            return
        took = self.rng.randrange(5_000, 400_000)
        self._chain({"type": "system", "subtype": "turn_duration", "durationMs": took, "isMeta": False})
        self._put({"type": "ai-title", "aiTitle": response.saying[:60], "sessionId": self.uid})

    def _delegate(self) -> None:
        """Let a sub-agent do some work, with its log next to the session's."""
        rng, agent_id = self.rng, "a" + hexadecimal(self.rng, 16)
        task, call_id = self.work.say(3), "toolu_01" + hexadecimal(self.rng, 22)
        answer = self._agent(agent_id, task)
        arguments = {"description": task[:40], "prompt": task, "subagent_type": "general-purpose"}
        call = {"type": "tool_use", "id": call_id, "name": "Agent", "input": arguments}
        [line] = self._answer([call], "tool_use")
        self.clock.pass_about(rng, 60_000)
        detail = {
            "status": "completed",
            "prompt": task,
            "agentId": agent_id,
            "content": [{"type": "text", "text": answer}],
            "totalDurationMs": rng.randrange(20_000, 90_000),
            "totalTokens": rng.randrange(20_000, 90_000),
            "totalToolUseCount": rng.randrange(5, 60),
        }
        content = [
            {"type": "text", "text": answer},
            {"type": "text", "text": f"agentId: {agent_id} (for resuming to continue this agent's work if needed)"},
        ]
        block = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        record = {"type": "user", "message": {"role": "user", "content": [block]}, "toolUseResult": detail}
        self._chain({**record, "sourceToolAssistantUUID": line})

    def _agent(self, agent_id: str, task: str) -> str:
        folder = self.home / self.uid / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        meta = {"agentType": "general-purpose", "description": task[:40]}
        (folder / f"agent-{agent_id}.meta.json").write_bytes(orjson.dumps(meta))
        with (folder / f"agent-{agent_id}.jsonl").open("wb") as file:
            log = _Log(file, self.uid, self.work, Clock(self.clock.now), self.home, agent_id)
            log.fill(self.rng.randrange(*_AGENT_SIZE))
        self.written += log.written
        return self.work.say(6)


def _told(call: Call) -> tuple[Any, Any, bool]:
    """Return the parts of a result: the model's content, the structured copy, whether it is an error."""
    if call.rejected:
        return _REJECTION, "User rejected tool use", True
    if call.failed:
        shown = f"Exit code {call.exit_code}\n{call.output}" if call.kind == "shell" else call.output
        content = shown if call.kind == "shell" else f"<tool_use_error>{shown}</tool_use_error>"
        return content, f"Error: {shown}", True
    return (*_TOLD.get(call.kind, _told_other)(call), False)


def _told_read(call: Call) -> tuple[Any, Any]:
    window = call.window
    assert window is not None
    file = {
        "filePath": call.path,
        "content": window.encoded,
        "numLines": window.count,
        "startLine": window.start,
        "totalLines": window.total,
    }
    return window.numbered, {"type": "text", "file": file}


def _told_shell(call: Call) -> tuple[Any, Any]:
    text = encoded(call.output)
    return text, {"stdout": text, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}


def _told_search(call: Call) -> tuple[Any, Any]:
    text = encoded(call.output)
    return text, {"mode": "content", "numFiles": 0, "filenames": [], "content": text, "numLines": 1}


def _told_edit(call: Call) -> tuple[Any, Any]:
    old, new = call.arguments["old_string"].split("\n"), call.arguments["new_string"].split("\n")
    patch = {
        "oldStart": call.at + 1,
        "oldLines": len(old),
        "newStart": call.at + 1,
        "newLines": len(new),
        "lines": [*(f"-{line}" for line in old), *(f"+{line}" for line in new)],
    }
    detail = {
        "filePath": call.path,
        "oldString": call.arguments["old_string"],
        "newString": call.arguments["new_string"],
        "originalFile": None,
        "structuredPatch": [patch],
        "userModified": False,
        "replaceAll": False,
    }
    return f"The file {call.path} has been updated successfully.", detail


def _told_write(call: Call) -> tuple[Any, Any]:
    detail = {"type": "create", "filePath": call.path, "content": call.arguments["content"], "structuredPatch": []}
    return f"File created successfully at: {call.path}", detail


def _told_image(call: Call) -> tuple[Any, Any]:
    data = encoded(call.output)
    source = {"type": "base64", "media_type": "image/png", "data": data}
    file = {"base64": data, "type": "image/png", "originalSize": len(call.output) * 3 // 4}
    return [{"type": "image", "source": source}], {"type": "image", "file": file}


def _told_other(call: Call) -> tuple[Any, Any]:
    if call.tool.startswith("mcp__"):
        return [{"type": "text", "text": call.output}], [{"type": "text", "text": call.output}]
    return call.output, {"result": call.output, "durationMs": call.duration_ms}


_TOLD = {
    "read": _told_read,
    "shell": _told_shell,
    "search": _told_search,
    "edit": _told_edit,
    "write": _told_write,
    "image": _told_image,
}
