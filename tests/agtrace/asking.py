"""Calling tools in tests: an index of given logs, the checks that every answer must pass, following cursors and hints.

The checks are the answer contract: every answer to `Asker` is checked for it, so every test of a tool also tests the
sizes, the summary, the schema, and that text and structured content agree.
"""

from __future__ import annotations

import ast
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, Union

import jsonschema
from agtrace_indexer.run import index
from agtrace_schema.wire import McpError, McpResponse, output_schema

from agtrace.answers.service import Service
from agtrace.answers.telemetry.recorder import Origin
from agtrace.sessions.quotes import line_of
from agtrace.settings import ABSOLUTE_MAX_BYTES
from agtrace.settings.model import Settings
from agtrace.shaping.shape import Answer
from agtrace.tools import ANSWERED
from tests.conftest import LOGS, SAMPLES

PORTABLE = 10_240
"""The most bytes of an answer to default arguments."""

HOUR = 3600
YEAR = 366 * 24 * HOUR
"""A lifetime of cursors so long that two calls in a row return the same cursor, as its time is equally coarse."""
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@cache
def schema_of(tool: str) -> jsonschema.Draft202012Validator:
    """Return what checks the answers of a tool."""
    return jsonschema.Draft202012Validator(output_schema(ANSWERED[tool].payloads))


def read(tool: str, text: str) -> McpResponse[Any] | McpError:
    """Read an answer of a tool as a client does that knows its models."""
    value = json.loads(text)
    if not value["success"]:
        return McpError.model_validate_json(text, strict=True)
    shrunk = value.get("truncation", {}).get("reason") == "bytes"
    data = dict[str, Any] if shrunk else Union[ANSWERED[tool].payloads]  # noqa: UP007
    return McpResponse[data].model_validate_json(text, strict=True)  # type: ignore[valid-type]


def best_in(value: dict[str, Any]) -> dict[str, Any]:
    """Return what a ranked search found, each session with its hits as [event_index, who, text]."""
    data = value["data"]
    sessions = [
        one | {"hits": [[*line_of(match)] for match in data["matches"] if match["session_id"] == one["session_id"]]}
        for one in data.get("sessions", ())
    ]
    return data | {"others": data.get("others", []), "sessions": sessions}


class Asker:
    """Answers from an index of its own, of the logs below `roots`; in a connection, if it has one."""

    def __init__(
        self,
        folder: Path,
        *roots: Path,
        most: int = ABSOLUTE_MAX_BYTES,
        ttl: int = HOUR,
        now: Callable[[], float] = time.time,
        still: bool = False,
        connection: str | None = None,
    ) -> None:
        self._still, self._origin = still, Origin(connection=connection)
        self.settings = Settings(
            data_dir=folder,
            max_response_bytes=most,
            cursor_ttl_seconds=ttl,
            environment={"HOME": str(folder / "nobody")},
        )
        self.index(*roots)
        self.answers = Service(self.settings, now=now, log=self._note)

    def index(self, *roots: Path) -> None:
        """Bring the index up to date; folders that no test changes (`still`) aren't checked before every answer."""
        index(self.settings.database, [str(root) for root in roots], otherwise=[])
        still = [
            (str(root),) for root in roots if self._still or root.is_relative_to(SAMPLES) or root.is_relative_to(LOGS)
        ]
        with closing(sqlite3.connect(self.settings.database)) as connection, connection:
            connection.executemany("DELETE FROM root WHERE path = ?", still)

    def with_most(self, most: int) -> Asker:
        """Return an asker of the same index with another AGTRACE_MAX_RESPONSE_BYTES."""
        return Asker(self.settings.data_dir, most=most, ttl=self.settings.cursor_ttl_seconds)

    def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the value of an answer, which must not be an error, checked."""
        given = self.anything(name, **arguments)
        assert not given.is_error, given.text
        return given.value

    def error(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the error of a call that must be refused, checked."""
        given = self.anything(name, **arguments)
        assert given.is_error, given.text
        return given.value["error"]

    def anything(self, name: str, **arguments: Any) -> Answer:
        """Return an answer or an error, checked."""
        given = self.answers.ask(name, arguments, self._origin)
        schema_of(name).validate(given.value)
        check(given, min(budget(name, arguments), self.settings.max_response_bytes))
        check_shape(name, given)
        return given

    def pages(self, name: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Yield the answer and those that follow by cursor."""
        seen: set[str] = set()
        while True:
            value = self.ask(name, **arguments)
            yield value
            following = value.get("pagination", value.get("chunk", {})).get("next_cursor")
            if following is None:
                return
            assert following not in seen, "a cursor that leads back"
            seen.add(following)
            arguments["cursor"] = following

    def items(self, name: str, key: str, **arguments: Any) -> list[dict[str, Any]]:
        """Return all items of a list, its pages joined."""
        return [item for page in self.pages(name, **arguments) for item in page["data"][key]]

    def body(self, session_id: str, event_index: int, **arguments: Any) -> str:
        """Return the whole text of an event, its chunks joined."""
        pages = self.pages("get_event_details", session_id=session_id, event_index=event_index, **arguments)
        return "".join(text_of(page["data"]["payload"]) for page in pages)

    def run(self, hint: str) -> dict[str, Any]:
        """Make the call that a hint names, and return its answer."""
        name, arguments = call_in(hint)
        return self.ask(name, **arguments)

    def _note(self, record: Mapping[str, Any]) -> None:
        assert record["event"] != "internal_error", record["trace"]


def query(asker: Asker, sql: str, *arguments: Any) -> list[tuple[Any, ...]]:
    """Query the tables of the index."""
    with closing(sqlite3.connect(asker.settings.database)) as connection:
        return connection.execute(sql, arguments).fetchall()


def check(given: Answer, most: int) -> None:
    """Check what must hold for every answer and every error."""
    value = given.value
    assert json.loads(given.text) == value, "the text and the structured content are the same"
    assert len(given.text.encode()) <= most, f"{len(given.text.encode())} of {most} bytes: {given.text[:300]}"
    assert value["success"] is not given.is_error
    assert ("warning" in value) is (len(given.text.encode()) > 30_720)
    assert 0 < len(value["summary"]) <= 100
    assert len(value["summary"].splitlines()) == 1 and not CONTROLS.search(value["summary"]), "one line"
    if not given.is_error:
        assert isinstance(value["data"], dict)
    following = value.get("pagination", {}).get("next_cursor") or value.get("chunk", {}).get("next_cursor")
    if following is not None:
        assert len(following) <= 64, "a model reads every character of a cursor"


def check_shape(name: str, given: Answer) -> None:
    """Check the depth of an answer and the length of its strings, except for requested texts, which are verbatim."""
    deepest = 4 if name in _FLAT else 8
    data = given.value.get("data", {})
    assert max(map(_depth, _items(data)), default=0) <= deepest, f"{name}: deeper than {deepest}"
    for path, text in _strings(data):
        assert path in _VERBATIM or len(text) <= LONGEST_STRING, f"{name}: {path} has {len(text)} characters"
    assert len(given.value.get("hint", "")) <= 400


_FLAT = ("list_sessions", "get_project_info", "analyze_session", "search_event_previews")
_VERBATIM = ("payload", "text", "chain.text", "around")
LONGEST_STRING = 500


def _items(data: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values whose depth counts: the items of lists, and values that aren't lists."""
    for value in data.values():
        yield from value if isinstance(value, list) else [value]


def _depth(value: Any) -> int:
    """Return how deeply objects are nested."""
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string with the names above it; those in a payload with `payload` only."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, path if path == "payload" else f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, path)


def budget(name: str, arguments: Mapping[str, Any]) -> int:
    """Return the most bytes of the answer to a call (schema/README.md)."""
    limit, asked = arguments.get("limit", 10), arguments.get("max_bytes")
    digest = {"minimal": PORTABLE, "standard": 40_960, "verbose": 102_400}.get(str(arguments.get("mode")))
    if digest is not None:
        return min(asked, digest) if isinstance(asked, int) and asked >= 2048 else digest
    if isinstance(asked, int) and 2048 <= asked <= 102_400:
        return asked
    if name == "analyze_session":
        return 5_120
    if name == "get_session_details":
        levels = {"turns": 30_720, "steps": 32_000, "full": 32_000}
        return levels.get(str(arguments.get("detail_level")), PORTABLE)
    if name == "get_reasoning_chain":
        return 51_200 if isinstance(limit, int) and 10 < limit <= 50 else PORTABLE
    return 20_480 if isinstance(limit, int) and 10 < limit <= 50 else PORTABLE


def text_of(payload: Mapping[str, Any]) -> str:
    """Return the text body of a payload, under the name that the chunks of a long one use."""
    if "arguments" in payload:
        return json.dumps(payload["arguments"], ensure_ascii=False, indent=2)
    return next((payload[key] for key in ("text", "content", "arguments_json") if key in payload), "")


def call_in(hint: str) -> tuple[str, dict[str, Any]]:
    """Return the tool and the arguments of the call in a hint."""
    end = next(end for end in range(len(hint), 0, -1) if hint[end - 1] == ")" and _is_call(hint[:end]))
    call = ast.parse(hint[:end], mode="eval").body
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    return call.func.id, {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


def _is_call(text: str) -> bool:
    try:
        return isinstance(ast.parse(text, mode="eval").body, ast.Call)
    except SyntaxError:
        return False


# -- small authored logs -------------------------------------------------------------------------


class ClaudeLog:
    """A growing Claude Code log: one `write` per record."""

    def __init__(self, path: Path, session_id: str, *, cwd: str = "/home/mira/projects/tidepool") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.session_id, self.cwd = path, session_id, cwd
        self.lines, self.last = 0, None
        self.clock = 1_790_000_000

    def write(self, kind: str, content: Any, **more: Any) -> ClaudeLog:
        """Append a record of this type with a message of this content."""
        self.lines += 1
        self.clock += 7
        uuid = f"{self.session_id[:8]}-0000-4000-8000-{self.lines:012x}"
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"model": "claude-opus-4-5", "id": f"msg_{self.session_id[:8]}_{self.lines}", "type": "message"}
        record = {
            "parentUuid": self.last, "isSidechain": False, "userType": "external", "cwd": self.cwd,
            "sessionId": self.session_id, "version": "2.1.212", "type": kind, "message": message, "uuid": uuid,
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.clock)),
        } | more  # fmt: skip
        with self.path.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
        self.last = uuid
        return self

    def prompt(self, text: str) -> ClaudeLog:
        """Append a human request."""
        return self.write("user", text)

    def say(self, text: str) -> ClaudeLog:
        """Append a message of the model."""
        return self.write("assistant", [{"type": "text", "text": text}])

    def call(self, name: str, arguments: Any, result: str | None = "", *, failed: bool = False) -> ClaudeLog:
        """Append a tool call with its result, or without one if that is None."""
        call_id = f"toolu_{self.session_id[:8]}_{self.lines}"
        self.write("assistant", [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}])
        if result is not None:
            answer = {"type": "tool_result", "tool_use_id": call_id, "content": result, "is_error": failed}
            self.write("user", [answer])
        return self

    def used(self, input_tokens: int, output_tokens: int, **more: Any) -> ClaudeLog:
        """Append a short message of the model whose response used so many tokens."""
        usage = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        message = {
            "role": "assistant", "content": [{"type": "text", "text": "Used."}], "usage": usage, "type": "message",
            "model": "claude-opus-4-5", "id": f"msg_{self.path.stem}_{self.lines}", "stop_reason": "end_turn",
        }  # fmt: skip
        return self.write("assistant", message["content"], message=message | more)

    def raw(self, record: Any) -> ClaudeLog:
        """Append any record unchanged."""
        self.lines += 1
        with self.path.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
        return self

    def fork(self, session_id: str, **more: Any) -> ClaudeLog:
        """Return a copy of the log under another session id, as `--fork-session` writes it."""
        copy = ClaudeLog(self.path.with_name(f"{session_id}.jsonl"), session_id)
        for line in self.path.read_bytes().splitlines():
            copy.raw(json.loads(line) | {"sessionId": session_id} | more)
        copy.clock, copy.last = self.clock + 1_000, self.last
        return copy


def claude_log(folder: Path, session_id: str, **more: Any) -> ClaudeLog:
    """Return an empty log of this session."""
    return ClaudeLog(folder / "projects" / "-home-mira-projects-tidepool" / f"{session_id}.jsonl", session_id, **more)
