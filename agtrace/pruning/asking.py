"""Asking a pruner which lines of an output a question is about: the built-in one, or a service over HTTP.

A service is sent `{"code": OUTPUT, "query": QUESTION}`, and `threshold` if the user set one. Of its reply the first
text among `pruned_code`, `content` and `text` counts, as in SWE-Pruner (`swe-pruner` on PyPI) and services like it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import anyio
import anyio.to_thread
import httpx2
import pydantic_core
from agtrace_schema.patterns import later

from agtrace.settings.model import Pruner
from agtrace.text.focus import Unfocused, focus

BUILT_IN = "builtin"
NONE = "none"

_REPLIES = ("pruned_code", "content", "text")
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


class NotPrunable(Exception):
    """The built-in pruner leaves this output as it is."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Pruners:
    """Asks pruners, few at a time: a reply may be many times as large as what it is about."""

    def __init__(self) -> None:
        self._places = anyio.CapacityLimiter(4)
        self._alone = anyio.CapacityLimiter(1)
        self._client: httpx2.AsyncClient | None = None

    async def ask(self, settings: Pruner, text: str, question: str, first_line: int) -> Pruned:
        """Return the pruned text. Raises `PrunerFailed`; `NotPrunable` if the built-in one leaves it as it is."""
        if settings.endpoint == BUILT_IN:
            async with self._places:
                return await anyio.to_thread.run_sync(_built_in, text, question, first_line)
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
            return await _body(reply, _MOST_AROUND + _MOST_TIMES * len(text))


def address(endpoint: str) -> str:
    """Return the URL that is asked: one without a path has a default one."""
    parts = urlsplit(endpoint)
    return urlunsplit(parts._replace(path=_DEFAULT_PATH)) if parts.path in ("", "/") else endpoint


def shown(endpoint: str) -> str:
    """Return an endpoint as the log may name it: without user, password, query and fragment."""
    if endpoint in (BUILT_IN, NONE):
        return endpoint
    try:
        parts = urlsplit(address(endpoint))
    except ValueError:
        return "not a URL"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _built_in(text: str, question: str, first_line: int) -> Pruned:
    found = focus(text, question, first_line=first_line, clock=time.thread_time)
    if not isinstance(found, Unfocused):
        return Pruned(found.text, found.kept_lines)
    if found.reason == "too_slow":
        raise PrunerFailed("timeout", "the built-in pruner took too long")
    raise NotPrunable(found.reason)


async def _body(reply: httpx2.Response, most: int) -> bytes:
    """Return the body of a reply. Raises `PrunerFailed` if it has more than this many bytes."""
    read = bytearray()
    async for piece in reply.aiter_bytes():
        read += piece
        if len(read) > most:
            raise PrunerFailed("invalid_response", f"the reply has more than {most:,} bytes")
    return bytes(read)


def _read(body: bytes, text: str) -> Pruned:
    """Return what a reply says. Raises `PrunerFailed` if it can't be about this text."""
    try:
        reply = pydantic_core.from_json(body)
    except ValueError:
        raise PrunerFailed("invalid_response", "the reply isn't JSON") from None
    if not isinstance(reply, Mapping):
        raise PrunerFailed("invalid_response", "the reply isn't an object")
    if isinstance(reply.get("error_msg"), str) and reply["error_msg"].strip():
        raise PrunerFailed("invalid_response", "the reply reports an error of the pruner")
    pruned = next((reply[name] for name in _REPLIES if isinstance(reply.get(name), str)), None)
    if pruned is None:
        raise PrunerFailed("invalid_response", f"the reply has no text in {', '.join(_REPLIES)}")
    if not pruned.strip():
        raise PrunerFailed("invalid_response", "the reply is empty")
    if len(pruned) > len(text):
        raise PrunerFailed("invalid_response", "the reply is longer than what it is about")
    kept = sum(not _GAP.fullmatch(line) for line in pruned.rstrip("\n").split("\n"))
    if not kept:
        raise PrunerFailed("invalid_response", "the reply keeps no line")
    return Pruned(pruned, kept)
