"""Sessions as Codex 0.139 writes them: rollouts of enveloped lines, each text also as an event."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import IO, Any

import orjson

from benchmarks.corpus.chance import Clock, binary, hexadecimal, pick, uuid7
from benchmarks.corpus.plan import Planned
from benchmarks.corpus.project import Project
from benchmarks.corpus.work import Call, Response, Work

_VERSIONS = ("0.118.0", "0.130.0", "0.139.0")
_MODELS = ("gpt-5.5", "gpt-5.5-codex")
_WINDOW = 258_400

Json = dict[str, Any]


def write(folder: Path, session: Planned, project: Project, rng: Random) -> int:
    """Write a rollout below `sessions/YYYY/MM/DD`, and return the bytes written."""
    uid = uuid7(rng, session.start)
    moment = time.gmtime(session.start // 1000)
    home = folder / "sessions" / time.strftime("%Y/%m/%d", moment)
    home.mkdir(parents=True, exist_ok=True)
    name = f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', moment)}-{uid}.jsonl"
    with (home / name).open("wb", buffering=1 << 18) as file:
        log = _Log(file, uid, Work(rng, project, session.language), Clock(session.start))
        log.begin()
        log.fill(session.size)
    return log.written


class _Log:
    def __init__(self, file: IO[bytes], uid: str, work: Work, clock: Clock) -> None:
        self.file, self.uid, self.work, self.clock = file, uid, work, clock
        self.rng = work.rng
        self.written = 0
        self._model = pick(self.rng, _MODELS)
        self._turn = ""
        self._turn_began = 0
        self._total = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens"), 0)

    def begin(self) -> None:
        """Write the session's metadata and the environment."""
        rng, project = self.rng, self.work.project
        git = {"commit_hash": hexadecimal(rng, 40), "branch": "main", "repository_url": f"git@host:{project.name}.git"}
        meta = {
            "id": self.uid,
            "timestamp": self.clock.stamp(),
            "cwd": project.root,
            "originator": "codex-tui",
            "cli_version": pick(rng, _VERSIONS),
            "source": "cli",
            "model_provider": "openai",
            "base_instructions": {"text": "You are a coding agent that runs in a terminal."},
            "git": git,
        }
        self._put("session_meta", meta)
        environment = (
            f"<environment_context>\n  <cwd>{project.root}</cwd>\n  <shell>bash</shell>\n</environment_context>"
        )
        self._item(_message("user", "input_text", environment))

    def fill(self, size: int) -> None:
        """Write responses until the log has this size."""
        for response in self.work.responses():
            self.work.now = self.clock.now
            if response.prompt:
                self._prompt(response.prompt)
            self._response(response)
            if self.written >= size:
                return

    def _put(self, kind: str, payload: Json) -> None:
        record = {"timestamp": self.clock.stamp(), "type": kind, "payload": payload}
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self.file.write(line)
        self.written += len(line)

    def _item(self, payload: Json) -> None:
        self._put("response_item", payload)

    def _event(self, kind: str, **fields: Any) -> None:
        self._put("event_msg", {"type": kind, **fields})

    def _prompt(self, text: str) -> None:
        self.clock.pass_about(self.rng, 90_000)
        self._turn, self._turn_began = uuid7(self.rng, self.clock.now), self.clock.now
        self._event("task_started", turn_id=self._turn, model_context_window=_WINDOW)
        self._put(
            "turn_context",
            {
                "turn_id": self._turn,
                "cwd": self.work.project.root,
                "approval_policy": "on-request",
                "sandbox_policy": {"type": "workspace-write", "network_access": False},
                "model": self._model,
                "effort": "high",
                "summary": "auto",
            },
        )
        self._item(_message("user", "input_text", text))
        self._event("user_message", message=text, images=[], local_images=[], text_elements=[])

    def _response(self, response: Response) -> None:
        rng = self.rng
        self.clock.pass_about(rng, 3_000)
        if response.thought:
            summary = [{"type": "summary_text", "text": response.thought}] if rng.random() < 0.3 else []
            self._item({"type": "reasoning", "summary": summary, "encrypted_content": binary(rng, 400)})
        if response.saying:
            phase = "final_answer" if response.last else "commentary"
            self._event("agent_message", message=response.saying, phase=phase)
            self._item({**_message("assistant", "output_text", response.saying), "phase": phase})
        calls = [("call_" + hexadecimal(rng, 24), call) for call in response.calls]
        for call_id, call in calls:
            self._item(_call(call_id, call, self.work.project.root))
        for call_id, call in calls:
            self.clock.pass_about(rng, 200 + call.duration_ms)
            custom = "custom_tool_call_output" if call.kind in ("edit", "write") else "function_call_output"
            self._item({"type": custom, "call_id": call_id, "output": _output(rng, call)})
        self._tokens()
        if response.last:
            took = self.clock.now - self._turn_began
            self._event("task_complete", turn_id=self._turn, last_agent_message=response.saying, duration_ms=took)

    def _tokens(self) -> None:
        fresh, cached, out = self.rng.randrange(200, 5_000), self.rng.randrange(5_000, 90_000), self.rng.randrange(900)
        last = {"input_tokens": fresh + cached, "cached_input_tokens": cached, "output_tokens": out}
        self._total = {key: value + last[key] for key, value in self._total.items()}
        info = {
            "total_token_usage": _with_sum(self._total),
            "last_token_usage": _with_sum(last),
            "model_context_window": _WINDOW,
        }
        used = {"used_percent": 12.0, "window_minutes": 300, "resets_at": self.clock.now // 1000 + 9_000}
        self._event("token_count", info=info, rate_limits={"limit_id": "codex", "primary": used, "plan_type": "team"})


def _with_sum(figures: Json) -> Json:
    return {**figures, "reasoning_output_tokens": 0, "total_tokens": figures["input_tokens"] + figures["output_tokens"]}


def _message(role: str, kind: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _call(call_id: str, call: Call, root: str) -> Json:
    if call.kind in ("edit", "write"):
        return {
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": call_id,
            "name": "apply_patch",
            "input": _patch(call),
        }
    name, arguments = "exec_command", {"cmd": _command(call), "workdir": root, "yield_time_ms": 1000}
    if call.kind == "other":
        name, arguments = _OWN_NAMES.get(call.tool, call.tool), call.arguments
    encoded = orjson.dumps(arguments).decode()
    return {"type": "function_call", "name": name, "arguments": encoded, "call_id": call_id}


_OWN_NAMES = {
    "TaskCreate": "update_plan",
    "WebFetch": "fetch_page",
    "mcp__tracker__create_issue": "tracker__create_issue",
}


def _command(call: Call) -> str:
    if call.kind == "shell":
        return str(call.arguments["command"])
    if call.kind == "search":
        return f"rg -n '{call.arguments['pattern']}' {call.arguments['path']}"
    if call.kind == "image":
        return f"file {call.path}"
    first = call.arguments.get("offset", 1)
    return f"sed -n '{first},{first + call.arguments.get('limit', 200)}p' {call.path}"


def _patch(call: Call) -> str:
    if call.kind == "write":
        added = "\n".join([f"+{line}" for line in call.arguments["content"].split("\n")])
        return f"*** Begin Patch\n*** Add File: {call.path}\n{added}\n*** End Patch"
    old = [f"-{line}" for line in call.arguments["old_string"].split("\n")]
    new = [f"+{line}" for line in call.arguments["new_string"].split("\n")]
    body = "\n".join([*old, *new])
    return f"*** Begin Patch\n*** Update File: {call.path}\n@@\n{body}\n*** End Patch"


def _output(rng: Random, call: Call) -> str:
    if call.rejected:
        return "exec command rejected by user"
    if call.kind in ("edit", "write"):
        if call.failed:
            return f"apply_patch verification failed: Failed to find expected lines in {call.path}"
        done = f"Success. Updated the following files:\n{'A' if call.kind == 'write' else 'M'} {call.path}\n"
        return f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{done}"
    if call.kind == "other":
        return call.output
    text = call.window.text if call.window else "PNG image data" if call.kind == "image" else call.output
    return (
        f"Chunk ID: {hexadecimal(rng, 6)}\nWall time: {call.duration_ms / 1000:.4f} seconds\n"
        f"Process exited with code {call.exit_code or int(call.failed)}\n"
        f"Original token count: {len(text) // 4}\nOutput:\n{text}"
    )
