"""Plants a text in a log of each agent, wherever the log has texts: a session for each case and agent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.depth import depth
from tests.health import claude_code, codex, gemini
from tests.health.stories import DAY, PROVIDERS, Ended, Execution, Remark, Response, Spoken, Story
from tests.health.writing import CWD, NOW, Log
from tests.secrets.corpus import Case

_WRITERS: dict[str, Callable[[Log], str]] = {
    "claude_code": claude_code.write,
    "codex": codex.write,
    "gemini": gemini.write,
}


@dataclass(frozen=True)
class Planted:
    """A session with a case in it."""

    case: Case
    provider: str
    session: str
    path: Path


_THINLY = depth(6, 3)
"""Of so many parts of the scenes, a log that is planted thinly has one."""


def plant(home: Path, cases: Sequence[Case], age: float = DAY) -> list[Planted]:
    """Write the logs of all cases for all agents, with all scenes; the first of them ended so many seconds ago."""
    return [_write(home, case, provider, number, 1, age) for number, case in enumerate(cases) for provider in PROVIDERS]


def plant_thinly(home: Path, cases: Sequence[Case], age: float = DAY) -> list[Planted]:
    """Write one log per case, for the agents in turn, with a part of the scenes, a different one in the next log."""
    names = list(PROVIDERS)
    return [_write(home, case, names[number % 3], number, _THINLY, age) for number, case in enumerate(cases)]


def later(planted: Planted) -> None:
    """Append what the agent would write later: a request and an output, both with the text."""
    log = Log(_story(planted.case, planted.provider, f"{planted.case.id} later", DAY, _afterwards(planted.case.text)))
    log.session = planted.session
    _WRITERS[planted.provider](log)
    heads = {"session_meta", None}
    lines = [record for record in log.records if record.get("type") not in heads or "$set" in record]
    with planted.path.open("a", encoding="utf-8") as file:
        file.write(_lines(lines))


def _write(home: Path, case: Case, provider: str, number: int, share: int, age: float) -> Planted:
    """Write a log with the request and one of `share` other scenes."""
    request, *others = _scenes(case.text)
    scenes = [request, *others[number // 3 % share :: share]]
    log = Log(_story(case, provider, case.id, age + 60 * number, scenes))
    path = home / _WRITERS[provider](log)
    _MORE[provider](log, case)
    lines = _lines(log.records) + _unreadable(case.text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines, "utf-8", errors="replace")
    os.utime(path, (NOW, NOW))
    return Planted(case, provider, log.session, path)


def _story(case: Case, provider: str, name: str, age: float, scenes: list[Remark | Response]) -> Story:
    story = Story(provider, name, 0, provider=provider, model=PROVIDERS[provider], age=age)
    story.scenes = list(scenes)
    return story


def _lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _unreadable(text: str) -> str:
    """Return a line that isn't JSON, as left by a process killed while writing, followed by another one."""
    return json.dumps({"type": "user", "message": text})[:-1] + "\n"


def _scenes(text: str) -> list[Remark | Response]:
    """Return scenes with the text in every kind of remark, argument, result and thought."""
    one_line = text.replace("\\\n", "").replace("\n", " ")
    nested = {"items": [{"note": text, "n": 1}, {"deeper": {"still": [text]}}]}
    wrapped = {"body": json.dumps({"note": text, "n": [1, 2]}), "kind": "json"}
    return [
        Remark("user", 0, text),
        Response([Spoken("think", 3, f"Where does this come from?\n{text}"), Spoken("say", 4, f"I see:\n{text}\n")]),
        _did("run", 5, text, output=text),
        _did("tool", 7, "mcp__tides__note", arguments=nested, output=f"refused: {text}", failed=True),
        _did("tool", 9, "mcp__tides__send", arguments=wrapped, output=json.dumps({"stdout": text, "code": 0})),
        _did("write", 11, "notes/found.md", changes=[f"+{line}" for line in text.split("\n")], output="written"),
        _did("edit", 13, "notes/found.md", changes=["-none", f"+{one_line}"], output=f"1\t{one_line}\n2\tend"),
        _did("grep", 15, one_line, output=f"notes/found.md:1:{one_line}"),
        _did("read", 17, f"notes/{one_line[:200]}", output="no such file", failed=True),
        _did("run", 19, "make", output=f"make: *** [all] Error 2\nerror: {text}", failed=True),
        Remark("inject", 21, f"Remember: {text}"),
        Remark("api error", 23, f"API Error: 500 {text}"),
        Remark("user", 25, f"Go on, in spite of this:\n\n{text}\n\nThat is all."),
        Response([Spoken("say", 27, f"Done. In short: {text}")]),
    ]


def _afterwards(text: str) -> list[Remark | Response]:
    return [Remark("user", 100, f"Once more: {text}"), _did("run", 102, "cat notes", output=f"{text}\n", failed=True)]


def _did(
    kind: str,
    at: float,
    subject: str,
    *,
    output: str,
    failed: bool = False,
    arguments: Any = None,
    changes: Sequence[str] = (),
) -> Response:
    ended = Ended("failed" if failed else "ok", at + 1, output, 1 if failed else 0)
    return Response([Execution(kind, at, subject, arguments, changes=list(changes), ended=ended)])


# -- what only one agent's log has -----------------------------------------------------------------


def _more_of_claude_code(log: Log, case: Case) -> None:
    """Add titles, the structured result, a hook's output, an unknown record and block, a sub-agent, paths."""
    text, records = case.text, log.records
    last = records[-1]
    known = {"sessionId": log.session, "timestamp": log.time(40), "cwd": CWD, "version": "2.1.212"}
    for record in records:
        if "toolUseResult" not in record and any("tool_use_id" in block for block in _blocks(record)):
            record["toolUseResult"] = {"stdout": text, "stderr": "", "interrupted": False}
            break
    prompt = {"description": text[:400], "prompt": text, "subagent_type": "general-purpose"}
    block = {"type": "tool_use", "id": "toolu_agent", "name": "Agent", "input": prompt}
    unknown = {"type": "a new kind of block", "tree": {"note": text}}
    records += [
        {"type": "summary", "summary": text, "leafUuid": last["uuid"]},
        {"type": "custom-title", "customTitle": f"About {text}", "sessionId": log.session},
        {"type": "tide-report", "note": text, "tree": [{"note": [text]}]} | known,
        {"type": "system", "subtype": "hook", "content": f"hook said {text}", "level": "info", "uuid": log.uuid()}
        | known,
        {"type": "queue-operation", "operation": "enqueue", "content": text} | known,
        _of_assistant(log, [block, unknown]) | known,
    ]
    _cut_titles(log, case)
    if case.is_token:
        for record in records:
            record |= {"cwd": f"{CWD}/{case.pieces[0]}", "gitBranch": f"fix/{case.pieces[0]}"}


def _cut_titles(log: Log, case: Case) -> None:
    """Add titles that are cut in the middle of the secret, where it wouldn't be recognised any more."""
    at = case.text.find(case.pieces[0]) + len(case.pieces[0]) // 2
    for longest in (500, 200, 120, 80):
        title = ("tide " * longest)[: max(longest - at - 1, 0)] + " " + case.text
        log.records.append({"type": "summary", "summary": title, "leafUuid": log.uuid()})
        log.records.append({"type": "ai-title", "aiTitle": title, "sessionId": log.session})


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    content = record.get("message", {}).get("content", "")
    return content if isinstance(content, list) else []


def _of_assistant(log: Log, content: list[dict[str, Any]]) -> dict[str, Any]:
    message = {"model": log.story.model, "id": f"msg_{log.name()}", "type": "message", "role": "assistant"}
    return {"type": "assistant", "message": message | {"content": content}, "uuid": log.uuid(), "isSidechain": False}


def _more_of_codex(log: Log, case: Case) -> None:
    """Add instructions, the repository's address, the thread's name, a diff, an unknown item."""
    text = case.text
    head = log.records[0]["payload"]
    head |= {"instructions": text, "base_instructions": {"text": text}}
    head["git"] = {"branch": "main", "repository_url": "https://git.example.org/tide.git", "commit_hash": log.name(40)}
    if case.is_token:
        head["git"] = {
            "branch": f"fix/{case.pieces[0]}",
            "repository_url": f"https://{case.pieces[0]}@example.org/t.git",
        }
        head["cwd"] = f"{CWD}/{case.pieces[0]}"
    for kind, payload in (
        ("event_msg", {"type": "thread_name_updated", "thread_id": log.session, "thread_name": text}),
        ("event_msg", {"type": "turn_diff", "unified_diff": f"+{text}"}),
        ("event_msg", {"type": "tide_report", "note": text}),
        ("event_msg", {"type": "stream_error", "message": f"stream broke: {text}"}),
        ("response_item", {"type": "tide_item", "tree": [{"note": text}]}),
        ("tide-report", {"note": text, "tree": [{"note": text}]}),
    ):
        log.records.append({"timestamp": log.time(40), "type": kind, "payload": payload})


def _more_of_gemini(log: Log, case: Case) -> None:
    """Add the summary, an unknown message and part, a display that is a structure."""
    text = case.text
    display = {"fileName": "found.md", "fileDiff": f"+{text}", "newContent": text}
    for record in log.records:
        for call in record.get("toolCalls", []):
            if call["name"] == "replace" and call["result"]:
                call["resultDisplay"] = display
    log.records += [
        {"$set": {"summary": text}},
        {"id": log.uuid(), "timestamp": log.time(40), "type": "tide", "content": text},
        {"id": log.uuid(), "timestamp": log.time(41), "type": "user", "content": [{"newPart": {"note": text}}]},
        {"id": log.uuid(), "timestamp": log.time(42), "type": "error", "content": f"error: {text}"},
        {"tideReport": {"note": [text]}},
    ]
    if case.is_token:
        log.records.append({"$set": {"directories": [f"{CWD}/{case.pieces[0]}"]}})


_MORE: dict[str, Callable[[Log, Case], None]] = {
    "claude_code": _more_of_claude_code,
    "codex": _more_of_codex,
    "gemini": _more_of_gemini,
}
