"""The one way out: every answer and every error becomes its text here, and nowhere else.

    reply -> redact -> fit to the budget -> serialize once -> check the size

Serialized JSON is never cut. What doesn't fit is left out by whole items (a cursor continues), by
whole lines of a long text (a cursor continues), or by shortening strings, in this order of rungs:

| rung | what changes |
|---|---|
| 0 | as asked |
| 1 | fewer items or lines on the page; `pagination` or `chunk` continues |
| 2 | strings of 120, then 60 characters in what isn't a text body; `truncation` tells |
| 3 | counts and a reference |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from agtrace_indexer.redact import redact, redact_json
from agtrace_schema.answers import Chunk, ErrorBody, IndexState, Pagination

from agtrace.index import Freshness
from agtrace.problems import Problem
from agtrace.settings import ABSOLUTE_MAX_BYTES

SUMMARY = 100
"""Characters of an answer's summary (R-002)."""

USER_MESSAGE = 200
"""Characters of a request or a snippet."""

LABEL = 50
"""Characters of a label (R-004)."""

LINES_PER_CHUNK = 200
"""Lines of a chunk of text at most (R-077)."""

_SHORTER_STRINGS = (120, 60)
_BUDGET_PART = 80  # bytes that `budget` takes
_CONTROLS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Pages:
    """A list that can end after any of its items."""

    size: int
    """Items at hand."""
    build: Callable[[int], dict[str, Any]]
    """Give the payload with the first n items."""
    cursor: Callable[[int], str]
    """Give the cursor that continues behind the first n items."""
    more: bool
    """Whether there are items beyond those at hand."""
    first: bool
    """Whether this is the first page."""
    total: int | None = None
    total_exact: bool = True


@dataclass(frozen=True, slots=True)
class Body:
    """A long text that can end after any line."""

    text: str
    """The canonical text from the chunk's beginning on."""
    build: Callable[[str, bool], dict[str, Any]]
    """Give the payload with this piece of the text; the flag says whether it is all of the text."""
    cursor: Callable[[int, int, int], str]
    """Give the cursor for (characters, lines, chunks) that lie before what follows."""
    offset: int = 0
    line: int = 0
    chunk: int = 0
    """What lies before `text`: characters, newlines, chunks."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool has to say, before it is fitted."""

    summary: str
    data: dict[str, Any] | Pages | Body
    budget: int
    """Bytes that the answer may take."""
    hint: str | None = None
    reference: str | None = None
    """`ax://` reference of the whole."""
    untrusted: bool = False
    """Whether text from a log is quoted."""
    counts: dict[str, int] = field(default_factory=dict)
    """Exact counts that stay even where nothing else fits."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What leaves agtrace: the JSON text that a model reads, and the same as a value."""

    text: str
    value: dict[str, Any]
    is_error: bool = False


def answer(reply: Reply, freshness: Freshness, most: int = ABSOLUTE_MAX_BYTES) -> Answer:
    """Fit a reply into its budget, clamped to `most` bytes, and serialize it."""
    budget = min(reply.budget, most, ABSOLUTE_MAX_BYTES)
    for rung in _rungs(reply, freshness, budget):
        text = _serialize(rung, budget)
        if len(text) <= budget:
            return Answer(text.decode(), orjson.loads(text))
    raise AssertionError("the last rung fits every budget")


def error_answer(problem: Problem) -> Answer:
    """The answer to a request that can't be answered (R-118)."""
    message = redact(problem.message)
    error = {
        "code": problem.code,
        "message": one_line(message, 600),
        "details": redact_json(_short_details(problem.details)),
        "retryable": problem.retryable,
    }
    value = {
        "summary": one_line(message, SUMMARY),
        "success": False,
        "error": _known(ErrorBody.model_validate(error)),
        "hint": None if problem.hint is None else one_line(redact(problem.hint), 400),
    }
    text = orjson.dumps({key: part for key, part in value.items() if part is not None})
    return Answer(text.decode(), orjson.loads(text), is_error=True)


def one_line(text: str, most: int) -> str:
    """Put a text on one line of at most this many characters, without control characters."""
    return cut(" ".join(without_controls(text).split()), most)


def cut(text: str, most: int) -> str:
    """Cut a text to at most this many characters, `...` included."""
    return text if len(text) <= most else text[: max(most - 3, 0)] + "..."


def without_controls(text: str) -> str:
    """Remove control characters and terminal escapes, newlines and tabs excepted."""
    return _CONTROLS.sub("", text)


def chunk_end(text: str, most_bytes: int) -> int:
    """Where the first chunk of a text ends: behind at most 200 lines that take at most this many bytes as JSON.

    A chunk ends behind a newline; only a line that is longer than the budget is cut, at a character.
    """
    end = size = 0
    for _ in range(LINES_PER_CHUNK):
        newline = text.find("\n", end)
        next_end = len(text) if newline < 0 else newline + 1
        size += escaped_size(text[end:next_end])
        if size > most_bytes:
            return end or _longest_prefix(text[:next_end], most_bytes)
        end = next_end
        if end == len(text):
            break
    return end


def escaped_size(text: str) -> int:
    """The bytes that a string takes inside JSON, without its quotes."""
    return len(orjson.dumps(text)) - 2


def _rungs(reply: Reply, freshness: Freshness, budget: int) -> Any:
    """Give the envelope as asked, then ever smaller ones; the last one fits every budget."""
    envelope = _Envelope(reply, freshness, budget)
    data = reply.data
    if isinstance(data, Pages):
        yield from _page_rungs(envelope, data, budget)
    elif isinstance(data, Body):
        yield envelope.chunk(data, budget)
    else:
        whole = redact_json(data)
        yield envelope.parts(whole)
        for most in _SHORTER_STRINGS:
            shorter, paths = _shorten(whole, most)
            yield envelope.parts(shorter, truncation={"reason": "bytes", "paths": paths[:10]})
    yield envelope.parts(dict(reply.counts), truncation={"reason": "bytes", "shown": 0}, bare=True)


def _page_rungs(envelope: _Envelope, pages: Pages, budget: int) -> Any:
    """As many items as fit, found by halving; a single item that doesn't fit is shortened."""
    if not pages.size or len(_serialize(envelope.page(pages, pages.size), budget)) <= budget:
        yield envelope.page(pages, pages.size)
        return
    fits, too_many = 0, pages.size
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if len(_serialize(envelope.page(pages, middle), budget)) <= budget:
            fits = middle
        else:
            too_many = middle
    if fits:
        yield envelope.page(pages, fits)
        return
    for most in _SHORTER_STRINGS:
        parts = envelope.page(pages, 1)
        shorter, paths = _shorten(parts["data"], most)
        yield {**parts, "data": shorter, "truncation": {"reason": "bytes", "paths": paths[:10]}}


@dataclass(frozen=True, slots=True)
class _Envelope:
    reply: Reply
    freshness: Freshness
    budget: int

    def parts(
        self,
        data: Any,
        *,
        pagination: Pagination | None = None,
        chunk: Chunk | None = None,
        truncation: dict[str, Any] | None = None,
        bare: bool = False,
    ) -> dict[str, Any]:
        """The envelope around a payload, in the order of the contract; absent parts are None."""
        reply, fresh = self.reply, self.freshness
        state = None
        if fresh.state != "ready":
            state = IndexState(
                state=fresh.state,
                files_behind=fresh.files_behind,
                bytes_behind=fresh.bytes_behind,
                problem=fresh.problem and one_line(redact(fresh.problem), 200),
            )
        return {
            "summary": one_line(redact(reply.summary), SUMMARY),
            "success": True,
            "data": data,
            "pagination": pagination and _pagination(pagination),
            "chunk": chunk and _known(chunk),
            "index": state and _known(state),
            "untrusted": True if reply.untrusted and not bare else None,
            "artifact_ref": reply.reference,
            "truncation": truncation,
            "hint": reply.hint and one_line(redact(reply.hint), 400),
        }

    def page(self, pages: Pages, count: int) -> dict[str, Any]:
        """The envelope of a page that ends behind `count` items."""
        more = pages.more or count < pages.size
        pagination = None
        if more or not pages.first:
            pagination = Pagination(
                total_in_page=count,
                total_count=pages.total,
                total_exact=None if pages.total is None else pages.total_exact,
                next_cursor=pages.cursor(count) if more and count else None,
                has_more=more,
            )
        return self.parts(redact_json(pages.build(count)), pagination=pagination)

    def chunk(self, body: Body, budget: int) -> dict[str, Any]:
        """The envelope of the first chunk of a text, with what the budget leaves for it."""
        text = body.text
        whole = self.parts(redact_json(body.build(text, True)))
        if body.offset == 0 and len(_serialize(whole, budget)) <= budget:
            return whole
        frame = self.parts(
            redact_json(body.build("", False)), chunk=self._chunk(body, 0, 9_999, 9_999_999), truncation=None
        )
        room = max(budget - len(_serialize(frame, budget)) - 40, 64)
        end = chunk_end(text, room)
        rest, chunks = text[end:], 1
        while rest:
            chunks, rest = chunks + 1, rest[chunk_end(rest, room) :]
        chunk = self._chunk(body, end, chunks, text.count("\n"))
        return self.parts(redact_json(body.build(text[:end], False)), chunk=chunk)

    def _chunk(self, body: Body, end: int, chunks: int, newlines: int) -> Chunk:
        lines = body.text.count("\n", 0, end)
        behind = body.line + lines
        ends_line = end > 0 and body.text[end - 1] == "\n"
        following = end < len(body.text) or end == 0
        return Chunk(
            chunk_index=body.chunk,
            total_chunks=body.chunk + chunks,
            start_line=body.line + 1,
            end_line=behind + (not ends_line),
            total_lines=body.line + newlines + (not body.text.endswith("\n")),
            next_cursor=body.cursor(body.offset + end, behind, body.chunk + 1) if following else None,
        )


def _serialize(parts: dict[str, Any], budget: int) -> bytes:
    """Serialize the known parts of an envelope with its measured size; the budget part comes before the hint."""
    known = {name: part for name, part in parts.items() if part is not None and name != "hint"}
    hint = {"hint": parts["hint"]} if parts.get("hint") else {}
    characters = len(orjson.dumps({**known, **hint}).decode()) + _BUDGET_PART
    tokens, most = estimated_tokens(characters), estimated_tokens(budget)
    measured = {
        "estimated_tokens": tokens,
        "budget_used": round(tokens / most, 2),
        "budget_remaining": max(most - tokens, 0),
    }
    return orjson.dumps({**known, "budget": measured, **hint})


def estimated_tokens(characters: int) -> int:
    """The seeds' estimate: four characters a token, a fifth more for safety (R-060)."""
    return math.ceil(characters / 4 * 1.2)


def _shorten(value: Any, most: int, path: str = "") -> tuple[Any, list[str]]:
    """Cut every longer string of a JSON value; give the value and where it was cut."""
    if isinstance(value, str):
        short = cut(value, most)
        return short, [] if short == value else [f"{path}: {most} of {len(value)} chars"]
    if isinstance(value, dict):
        pairs = {key: _shorten(item, most, f"{path}.{key}" if path else key) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, [p for _, paths in pairs.values() for p in paths]
    if isinstance(value, list):
        entries = [_shorten(item, most, f"{path}[{number}]") for number, item in enumerate(value)]
        return [item for item, _ in entries], [p for _, paths in entries for p in paths]
    return value, []


def _longest_prefix(line: str, most_bytes: int) -> int:
    """How many characters of a line take at most this many bytes as JSON, at least one."""
    fits, too_many = 1, len(line) + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if escaped_size(line[:middle]) <= most_bytes:
            fits = middle
        else:
            too_many = middle
    return fits


def _pagination(pagination: Pagination) -> dict[str, Any]:
    known = _known(pagination)
    known.setdefault("next_cursor", None)  # null on the last page
    return known


def _known(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return dumped


def _short_details(details: dict[str, Any]) -> dict[str, Any]:
    return {name: cut(value, 200) if isinstance(value, str) else value for name, value in details.items()}
