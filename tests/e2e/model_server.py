"""A model on loopback that makes the calls it is given, and records what it was shown.

An agent is configured to use it instead of its maker's service. It speaks the agents' three wire formats as much as a
scripted model needs: the tools offered to the model, the results of its calls, and its next step. It doesn't remember
its position in the script, as each request contains the conversation so far.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Protocol

Json = dict[str, Any]


class Call(NamedTuple):
    """The model's call of one of our tools."""

    tool: str
    arguments: Json


class Offered(NamedTuple):
    """A tool as described to the model."""

    name: str
    description: str
    schema: Json


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call as shown to the model."""

    text: str
    marked_as_error: bool = False


class Wire(Protocol):
    """A wire format: reading a request, and writing the model's next step."""

    def offered(self, request: Json) -> list[Offered]:
        """Return our tools in a request, wherever the client puts them."""

    def results(self, request: Json) -> list[Result]:
        """Return the results of our calls so far."""

    def reply(self, request: Json, calls: Sequence[Call]) -> Sequence[tuple[str, Json]]:
        """Return the next step, as the events of a stream."""


SERVER = "agtrace"


class Messages:
    """Anthropic's Messages API, as Claude Code uses it: tools are named first and loaded by ToolSearch."""

    def __init__(self, server: str = SERVER) -> None:
        """`server` is the name by which the client knows our server."""
        self._server = server

    def offered(self, request: Json) -> list[Offered]:
        tools = [tool for tool in request.get("tools", []) if tool["name"].startswith(f"mcp__{self._server}__")]
        return [Offered(tool["name"], tool["description"], tool["input_schema"]) for tool in tools]

    def results(self, request: Json) -> list[Result]:
        blocks = [block for block in _blocks(request["messages"]) if block.get("type") == "tool_result"]
        ours = [block for block in blocks if block["tool_use_id"].startswith("toolu_call")]
        return [Result(_joined(block["content"]), bool(block.get("is_error"))) for block in ours]

    def reply(self, request: Json, calls: Sequence[Call]) -> Sequence[tuple[str, Json]]:
        done = len(self.results(request))
        if not request.get("tools") or done == len(calls):
            return self._stream({"type": "text", "text": "done"}, "end_turn")
        searched = any(block.get("name") == "ToolSearch" for block in _blocks(request["messages"]))
        deferred = sorted(set(re.findall(rf"mcp__{self._server}__\w+", json.dumps(request["messages"]))))
        if deferred and not searched and not self.offered(request):
            search = {"query": "select:" + ",".join(deferred), "max_results": len(deferred)}
            return self._use("toolu_load", "ToolSearch", search)
        return self._use(f"toolu_call{done}", f"mcp__{self._server}__{calls[done].tool}", calls[done].arguments)

    def _use(self, use: str, name: str, arguments: Json) -> Sequence[tuple[str, Json]]:
        return self._stream({"type": "tool_use", "id": use, "name": name, "input": arguments}, "tool_use")

    def _stream(self, block: Json, stop: str) -> Sequence[tuple[str, Json]]:
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        return [
            ("message_start", {"message": message}),
            ("content_block_start", {"index": 0, "content_block": empty}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}}),
            ("message_stop", {}),
        ]


class Responses:
    """OpenAI's Responses API, as Codex uses it: tools in a namespace, found by a search that Codex runs."""

    def __init__(self, server: str = SERVER) -> None:
        """`server` is the name by which the client knows our server."""
        self._server = server

    def offered(self, request: Json) -> list[Offered]:
        found = [tool for item in request["input"] for tool in item.get("tools", [])]
        spaces = [tool for tool in [*request["tools"], *found] if tool.get("name") == f"mcp__{self._server}"]
        return [
            Offered(tool["name"], tool["description"], tool["parameters"])
            for space in spaces
            for tool in space["tools"]
        ]

    def results(self, request: Json) -> list[Result]:
        outputs = [item["output"] for item in request["input"] if item["type"] == "function_call_output"]
        return [Result(_joined(output)) for output in outputs]

    def reply(self, request: Json, calls: Sequence[Call]) -> Sequence[tuple[str, Json]]:
        done = len(self.results(request))
        if done == len(calls):
            text = {"type": "output_text", "text": "done", "annotations": []}
            return self._stream({"type": "message", "id": "msg_1", "role": "assistant", "content": [text]})
        searched = any(item["type"] == "tool_search_call" for item in request["input"])
        if not searched and not self.offered(request):
            search = {"type": "tool_search_call", "execution": "client", "id": "ts_1", "call_id": "search_1"}
            return self._stream({**search, "arguments": {"query": f"{self._server} sessions events", "limit": 50}})
        call = {"type": "function_call", "namespace": f"mcp__{self._server}", "name": calls[done].tool}
        arguments = json.dumps(calls[done].arguments)
        return self._stream({**call, "arguments": arguments, "id": f"fc_{done}", "call_id": f"call_{done}"})

    def _stream(self, item: Json) -> Sequence[tuple[str, Json]]:
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return [
            ("response.created", {"response": {"id": "resp_1"}}),
            ("response.output_item.done", {"output_index": 0, "item": {**item, "status": "completed"}}),
            ("response.completed", {"response": {"id": "resp_1", "usage": usage}}),
        ]


class GenerateContent:
    """Google's generateContent, as Gemini CLI uses it."""

    def offered(self, request: Json) -> list[Offered]:
        tools = [tool for group in request.get("tools", []) for tool in group.get("functionDeclarations", [])]
        ours = [tool for tool in tools if tool["name"].startswith(f"mcp_{SERVER}_")]
        return [Offered(tool["name"], tool["description"], tool["parametersJsonSchema"]) for tool in ours]

    def results(self, request: Json) -> list[Result]:
        parts = [part for content in request["contents"] for part in content["parts"]]
        answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        return [Result(answer.get("output", answer.get("error")), "error" in answer) for answer in answers]

    def reply(self, request: Json, calls: Sequence[Call]) -> Sequence[tuple[str, Json]]:
        done = len(self.results(request))
        part: Json = {"text": "done"}
        if request.get("tools") and done < len(calls):
            part = {"functionCall": {"name": f"mcp_{SERVER}_{calls[done].tool}", "args": calls[done].arguments}}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return [("", {"candidates": [candidate], "usageMetadata": usage})]


def _blocks(messages: Sequence[Json]) -> Iterator[Json]:
    for message in messages:
        if isinstance(message["content"], list):
            yield from message["content"]


def _joined(content: str | Sequence[Json]) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


class ModelServer:
    """A model that makes `calls` one after another, then says that it is done; for one conversation."""

    def __init__(self, wire: Wire, calls: Sequence[Call]) -> None:
        self.wire, self.calls = wire, calls
        self.requests: list[Json] = []
        """The client's requests to the model, in order."""
        self.unknown: list[str] = []
        """Requested addresses that no model has."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The address of the model."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def offered(self) -> list[Offered]:
        """Our tools as the model knew them at the end."""
        return max((self.wire.offered(request) for request in self.requests), key=len, default=[])

    @property
    def seen(self) -> list[Result]:
        """What the model was shown for each call, in the first request with it."""
        shown: list[Result] = []
        for request in self.requests:
            shown += self.wire.results(request)[len(shown) :]
        return shown

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_A_MODELS_ADDRESS = re.compile(r"/v1/messages|/v1/responses|:(stream)?[gG]enerateContent")


class _Handler(BaseHTTPRequestHandler):
    model: ModelServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer("application/json", b"{}")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "count_tokens" in self.path or ":countTokens" in self.path:
            tokens = len(json.dumps(request)) // 2  # the worst that real tokenizers make of JSON and ids
            self._answer("application/json", json.dumps({"input_tokens": tokens, "totalTokens": tokens}).encode())
        elif _A_MODELS_ADDRESS.search(self.path):
            self.model.requests.append(request)
            events = self.model.wire.reply(request, self.model.calls)
            self._answer("text/event-stream", b"".join(_event(kind, data) for kind, data in events))
        else:
            self.model.unknown.append(self.path)
            self._answer("application/json", b"{}")

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


def _event(kind: str, data: Json) -> bytes:
    named = f"event: {kind}\n" if kind else ""
    typed = {"type": kind, **data} if kind else data
    return f"{named}data: {json.dumps(typed)}\r\n\r\n".encode()
