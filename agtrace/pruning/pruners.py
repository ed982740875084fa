"""Pruners: which lines of an output a question is about, by the built-in one, or by a service over HTTP.

A service is sent `{"code": OUTPUT, "query": QUESTION}`, and `threshold` if the user set one. Of its reply the first
text among `pruned_code`, `content` and `text` counts, as in SWE-Pruner (`swe-pruner` on PyPI) and services like it.

`agtrace pruner` is such a service with the built-in pruner: `POST /prune` answers with `pruned_code`, in which left-out
lines appear as `(filtered N lines)`, and with the figures that the original gives. Fields of the request that only a
model can use, such as `threshold`, are taken and have no effect. `GET /health` says that it is well.
"""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import anyio
import anyio.to_thread
import httpx2
from agtrace_schema.patterns import later
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agtrace.answers.log import capture_library_logs, log_to_stderr
from agtrace.serving.connections import listen, run
from agtrace.serving.http_auth import KnownNames, known_names
from agtrace.settings.model import Pruner
from agtrace.text.focus import Focused, Unfocused, focus

BUILT_IN = "builtin"
NONE = "none"

_DEFAULT_PATH = "/prune"
_MOST_AROUND, _MOST_TIMES = 4 * 1_048_576, 12
"""Bytes of a reply in addition to so many times the input: scores of tokens are far longer than the tokens."""
_GAP = later(r"\s*(?:\(filtered \d+ lines?\)|\(\d+ lines? left out: \d+-\d+\))\s*")

Failure = Literal["timeout", "http_error", "invalid_response"]


class Pruned(NamedTuple):
    """The lines of an output that a question is about."""

    text: str
    kept_lines: int


class PrunerFailed(Exception):
    """A pruner gave nothing that can be used."""

    def __init__(self, failure: Failure, summary: str, status: int | None = None) -> None:
        super().__init__(summary)
        self.failure, self.summary, self.status = failure, summary, status


class Pruners:
    """Asks pruners, few at a time: a reply may be many times as large as what it is about."""

    def __init__(self) -> None:
        self._places = anyio.CapacityLimiter(4)
        self._alone = anyio.CapacityLimiter(1)
        self._client: httpx2.AsyncClient | None = None

    async def ask(self, settings: Pruner, text: str, question: str, first_line: int) -> Pruned | Focused | Unfocused:
        """Return the pruned text; `Unfocused` if the built-in pruner leaves it as it is. Raises `PrunerFailed`."""
        if settings.endpoint == BUILT_IN:
            work = partial(focus, text, question, first_line=first_line, clock=time.thread_time)
            async with self._places:
                result = await anyio.to_thread.run_sync(work)
            if isinstance(result, Unfocused) and result.reason == "too_slow":
                raise PrunerFailed("timeout", "the built-in pruner took too long")
            return result
        try:
            with anyio.fail_after(settings.timeout_ms / 1000):
                async with self._places:
                    body = await self._sent(settings, text, question)
                return await anyio.to_thread.run_sync(_read, body, text, limiter=self._alone)
        except (TimeoutError, httpx2.TimeoutException):
            raise PrunerFailed("timeout", f"no reply within {settings.timeout_ms:,} ms") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, ValueError) as error:
            raise PrunerFailed("http_error", type(error).__name__) from None

    async def _sent(self, settings: Pruner, text: str, question: str) -> bytes:
        """Send an output and its question; return the body of the reply. Raises also what the client does."""
        asked: dict[str, Any] = {"code": text, "query": question}
        if settings.threshold is not None:
            asked["threshold"] = settings.threshold
        body = json.dumps(asked, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._client is None:  # making one takes longer than asking: it loads certificates
            unkept = httpx2.Limits(max_keepalive_connections=0)  # a service that was restarted must not cost a question
            self._client = httpx2.AsyncClient(timeout=None, trust_env=False, limits=unkept)
        client = self._client
        async with client.stream("POST", address(settings.endpoint), content=body, headers=headers) as reply:
            if not reply.is_success:
                raise PrunerFailed("http_error", f"HTTP status {reply.status_code}", reply.status_code)
            most = _MOST_AROUND + _MOST_TIMES * len(text)
            read = bytearray()
            async for piece in reply.aiter_bytes():
                read += piece
                if len(read) > most:
                    raise PrunerFailed("invalid_response", f"the reply has more than {most:,} bytes")
            return bytes(read)


def address(endpoint: str) -> str:
    """Return the URL that is asked: one without a path has a default one."""
    parts = urlsplit(endpoint)
    return urlunsplit(parts._replace(path=_DEFAULT_PATH)) if parts.path in ("", "/") else endpoint


def endpoint_label(endpoint: str) -> str:
    """Return an endpoint as the log may name it: without user, password, query and fragment."""
    if endpoint in (BUILT_IN, NONE):
        return endpoint
    try:
        parts = urlsplit(address(endpoint))
    except ValueError:
        return "not a URL"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Reply(BaseModel):
    """What a service answers: the first text counts. What else it says is ignored."""

    pruned_code: Any = None
    content: Any = None
    text: Any = None
    error_msg: Any = None


def _read(body: bytes, text: str) -> Pruned:
    """Return what a reply says. Raises `PrunerFailed` if it can't be about this text."""
    try:
        reply = Reply.model_validate_json(body)
    except ValidationError as error:
        raise PrunerFailed("invalid_response", f"the reply: {error.errors()[0]['msg']}") from None
    pruned = next((one for one in (reply.pruned_code, reply.content, reply.text) if isinstance(one, str)), None)
    kept = sum(not _GAP.fullmatch(line) for line in (pruned or "").rstrip("\n").split("\n"))
    wrong = (
        "reports an error of the pruner" if isinstance(reply.error_msg, str) and reply.error_msg.strip()
        else "has no text in pruned_code, content or text" if pruned is None
        else "is empty" if not pruned.strip()
        else "is longer than what it is about" if len(pruned) > len(text)
        else "keeps no line" if not kept
        else None
    )  # fmt: skip
    if wrong or pruned is None:
        raise PrunerFailed("invalid_response", f"the reply {wrong}")
    return Pruned(pruned, kept)


# -- the service -----------------------------------------------------------------------------------

LARGEST_CODE = 4_194_304
"""The most bytes of a request."""
SECONDS = 5.0
"""How long a text may take; the original needs as long for texts of that size."""

_CHARACTERS_OF_A_TOKEN = 4
_AT_ONCE = 2


class PruneQuery(BaseModel):
    """What is asked; a service for models takes more, which is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    query: str
    code: str


def pruned(asked: PruneQuery) -> dict[str, Any]:
    """Return the reply to a question, as the original service gives it; `score` is the share of lines left out."""
    found = focus(asked.code, asked.query, seconds=SECONDS)
    if isinstance(found, Focused):
        lines, written, last = asked.code.removesuffix("\n").split("\n"), list[str](), 0
        for first, end in [*found.kept, (len(lines) + 1, len(lines))]:
            if first > last + 1:
                written.append(f"(filtered {first - last - 1} lines)")
            written += lines[first - 1 : end]
            last = end
        text = "\n".join(written)
        kept = [number for first, last in found.kept for number in range(first, last + 1)]
        score = 1 - found.kept_lines / found.total_lines
    else:
        text, kept, score = asked.code, list(range(1, len(asked.code.removesuffix("\n").split("\n")) + 1)), 0.0
    before, after = _tokens(asked.code), _tokens(text)
    return {
        "score": round(score, 4),
        "pruned_code": text,
        "token_scores": [],
        "kept_frags": kept,
        "origin_token_cnt": before,
        "left_token_cnt": after,
        "model_input_token_cnt": before,
        "error_msg": None,
    }


def serve(host: str, port: int) -> int:
    """Serve on this address until SIGTERM or SIGINT; return the exit code. Raises `SettingError`."""
    capture_library_logs()
    with listen(host, port) as listening:
        port = listening.getsockname()[1]
        log_to_stderr({"event": "listening", "url": f"http://{host}:{port}/prune"})
        return run(application(host, port), listening)


def application(host: str, port: int) -> Starlette:
    """Return the routes, for known hosts only."""
    places = anyio.CapacityLimiter(_AT_ONCE)

    async def prune(request: Request) -> Response:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_CODE:
                return JSONResponse({"detail": f"a request may have {LARGEST_CODE:,} bytes"}, 413)
        try:
            asked = PruneQuery.model_validate_json(bytes(body))
        except ValidationError as error:
            wrong = [{"loc": ["body", *one["loc"]], "msg": one["msg"], "type": one["type"]} for one in error.errors()]
            return JSONResponse({"detail": wrong}, 422)
        return JSONResponse(await anyio.to_thread.run_sync(pruned, asked, limiter=places))

    routes = [Route("/prune", prune, methods=["POST"]), Route("/health", _health), Route("/healthz", _health)]
    return Starlette(routes=routes, middleware=[Middleware(KnownNames, known_names(host, port))])


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "healthy", "model_loaded": True})


def _tokens(text: str) -> int:
    """Return an estimate: the original counts with its model's tokenizer."""
    return -(-len(text) // _CHARACTERS_OF_A_TOKEN)
