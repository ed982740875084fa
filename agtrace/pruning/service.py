"""`agtrace pruner`: the built-in pruner as a service, for clients that were written for SWE-Pruner.

`POST /prune` takes `{"query": ..., "code": ...}` and answers with `pruned_code`, in which left-out lines appear as
`(filtered N lines)`, and with the figures that the original service gives. Fields of the request that only a model can
use, such as `threshold`, are taken and have no effect. `GET /health` says that it is well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import anyio.to_thread
import pydantic_core
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agtrace.answers.library_log import take_libraries
from agtrace.answers.log import log_to_stderr
from agtrace.serving.connections import listen
from agtrace.serving.http_door import KnownNames, known_names
from agtrace.serving.http_process import run
from agtrace.text.focus import Focused, focus

LARGEST_CODE = 4_194_304
"""The most bytes of a request."""
SECONDS = 5.0
"""How long a text may take; the original needs as long for texts of that size."""

_CHARACTERS_OF_A_TOKEN = 4
_AT_ONCE = 2


class Asked(BaseModel):
    """What is asked; a service for models takes more, which is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    query: str
    code: str


def pruned(asked: Asked) -> dict[str, Any]:
    """Return the reply to a question, as the original service gives it; `score` is the share of lines left out."""
    found = focus(asked.code, asked.query, seconds=SECONDS)
    if isinstance(found, Focused):
        text = _with_filtered(asked.code, found.kept)
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
    take_libraries()
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
                return _refused(413, f"a request may have {LARGEST_CODE:,} bytes")
        try:
            asked = Asked.model_validate(pydantic_core.from_json(bytes(body)))
        except ValidationError as error:
            wrong = [{"loc": ["body", *one["loc"]], "msg": one["msg"], "type": one["type"]} for one in error.errors()]
            return JSONResponse({"detail": wrong}, 422)
        except ValueError:
            return _refused(422, "the body isn't JSON")
        return JSONResponse(await anyio.to_thread.run_sync(pruned, asked, limiter=places))

    routes = [Route("/prune", prune, methods=["POST"]), Route("/health", _health), Route("/healthz", _health)]
    return Starlette(routes=routes, middleware=[Middleware(KnownNames, known_names(host, port))])


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "healthy", "model_loaded": True})


def _refused(status: int, why: str) -> Response:
    return JSONResponse({"detail": why}, status)


def _with_filtered(code: str, kept: Sequence[tuple[int, int]]) -> str:
    """Return the kept lines, with the gaps between them as the original writes them."""
    lines, written, last = code.removesuffix("\n").split("\n"), list[str](), 0
    for first, end in [*kept, (len(lines) + 1, len(lines))]:
        if first > last + 1:
            written.append(f"(filtered {first - last - 1} lines)")
        written += lines[first - 1 : end]
        last = end
    return "\n".join(written)


def _tokens(text: str) -> int:
    """Return an estimate: the original counts with its model's tokenizer."""
    return -(-len(text) // _CHARACTERS_OF_A_TOKEN)
