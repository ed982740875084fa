"""Sessions as Gemini CLI writes them: one JSON document until 0.38, lines since."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson

from benchmarks.corpus.chance import Clock, pick, uuid4
from benchmarks.corpus.plan import Planned
from benchmarks.corpus.project import Project
from benchmarks.corpus.work import Call, Response, Work

_MODELS = ("gemini-3-flash-preview", "gemini-3-pro-preview")
_TOOLS = {
    "read": ("read_file", "ReadFile"),
    "image": ("read_file", "ReadFile"),
    "shell": ("run_shell_command", "Shell"),
    "edit": ("replace", "Edit"),
    "search": ("search_file_content", "SearchText"),
    "write": ("write_file", "WriteFile"),
}
_OWN_NAMES = {"TaskCreate": "write_todos", "WebFetch": "web_fetch"}

Json = dict[str, Any]


def write(folder: Path, session: Planned, project: Project, rng: Random) -> int:
    """Write a chat below `tmp/<hash of the project>/chats`, half of them as documents; return the bytes written."""
    uid, clock = uuid4(rng), Clock(session.start)
    digest = hashlib.sha256(project.root.encode()).hexdigest()
    home = folder / "tmp" / digest / "chats"
    home.mkdir(parents=True, exist_ok=True)
    name = f"session-{time.strftime('%Y-%m-%dT%H-%M', time.gmtime(session.start // 1000))}-{uid[:8]}"
    head = {"sessionId": uid, "projectHash": digest, "startTime": clock.stamp(), "lastUpdated": clock.stamp()}
    messages = _messages(Work(rng, project, session.language), clock)
    if rng.random() < 0.5:
        content = _document(head, messages, session.size)
        (home / f"{name}.json").write_bytes(content)
    else:
        content = _lines(head, messages, session.size)
        (home / f"{name}.jsonl").write_bytes(content)
    return len(content)


def _document(head: Json, messages: Iterator[Json], size: int) -> bytes:
    kept: list[Json] = []
    written = 0
    while written < size:
        kept.append(next(messages))
        written += len(orjson.dumps(kept[-1], option=orjson.OPT_INDENT_2))
    document = {**head, "lastUpdated": kept[-1]["timestamp"], "messages": kept}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2)


def _lines(head: Json, messages: Iterator[Json], size: int) -> bytes:
    """Return a message as lines: with calls it is written again once these have ended, and the later version counts."""
    written = bytearray(_line({**head, "kind": "main"}))
    while len(written) < size:
        message = next(messages)
        if "tokens" in message:
            written += _line({key: value for key, value in message.items() if key not in ("toolCalls", "tokens")})
        written += _line(message)
        written += _line({"$set": {"lastUpdated": message["timestamp"]}})
    return bytes(written)


def _line(record: Json) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _messages(work: Work, clock: Clock) -> Iterator[Json]:
    rng = work.rng
    model = pick(rng, _MODELS)
    for response in work.responses():
        work.now = clock.now
        if response.prompt:
            clock.pass_about(rng, 90_000)
            yield {"id": uuid4(rng), "timestamp": clock.stamp(), "type": "user", "content": [{"text": response.prompt}]}
        clock.pass_about(rng, 3_000)
        yield _answer(rng, response, model, clock)


def _answer(rng: Random, response: Response, model: str, clock: Clock) -> Json:
    message: Json = {"id": uuid4(rng), "timestamp": clock.stamp(), "type": "gemini", "content": response.saying}
    thoughts = response.thought.split(". ")
    message["thoughts"] = [
        {"subject": thoughts[0][:60], "description": response.thought, "timestamp": clock.stamp()}
        for _ in range(bool(response.thought))
    ]
    read, out, cached = rng.randrange(8_000, 90_000), rng.randrange(20, 900), rng.randrange(8_000)
    message["tokens"] = {
        "input": read, "output": out, "cached": cached, "thoughts": 0, "tool": 0, "total": read + out,
    }  # fmt: skip
    message["model"] = model
    if response.calls:
        message["toolCalls"] = [_call(rng, call, clock) for call in response.calls]
    return message


def _call(rng: Random, call: Call, clock: Clock) -> Json:
    name, shown = _TOOLS.get(call.kind, (_OWN_NAMES.get(call.tool, call.tool), call.tool))
    call_id = f"{name}-{clock.now}-{rng.getrandbits(40):x}"
    clock.pass_about(rng, 200 + call.duration_ms)
    failed = call.failed and call.kind != "shell"
    response = {"error": call.output} if failed else {"output": _output(call)}
    return {
        "id": call_id,
        "name": name,
        "args": call.arguments,
        "result": [{"functionResponse": {"id": call_id, "name": name, "response": response}}],
        "status": "cancelled" if call.rejected else "error" if failed else "success",
        "timestamp": clock.stamp(),
        "resultDisplay": call.output[:200],
        "displayName": shown,
        "description": call.path or call.arguments.get("description", ""),
        "renderOutputAsMarkdown": False,
    }


def _output(call: Call) -> str:
    if call.window:
        return call.window.text
    if call.kind == "shell":
        ending = f"\nExit Code: {call.exit_code}" if call.exit_code else ""
        return f"Output: {call.output}{ending}\nProcess Group PGID: {call.duration_ms + 1000}"
    if call.kind in ("edit", "write"):
        return f"Successfully modified file: {call.path}."
    return "Binary content provided." if call.kind == "image" else call.output
