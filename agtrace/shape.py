"""The one way out: every answer and every error becomes its text here, and nowhere else.

    reply -> redact -> fit to the budget -> serialize once -> check the size

Serialized JSON is never cut. What doesn't fit leaves in this order of rungs:

| rung | what changes |
|---|---|
| 0 | as asked |
| 1 | fewer items or lines on the page; `pagination` or `chunk` continues |
| 2 | strings of 120, then 60 characters in what isn't a text body; `truncation` tells |
| 3 | the first 5, 3, 2, 1 items of lists that no cursor continues; `truncation` tells |
| 4 | one item of a page, or a piece of a stream, without what stands around it |
| 5 | counts and a reference |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from agtrace_indexer.redact import redact, redact_json
from agtrace_schema.answers import Chunk, ErrorBody, IndexState, Pagination

from agtrace.cutting import SUMMARY, chunk_end, chunks_from, cut, fewer, one_line, shortened
from agtrace.index import Freshness
from agtrace.problems import Problem
from agtrace.settings import ABSOLUTE_MAX_BYTES

_SHORTER_STRINGS = (120, 60)
_FEWER_ITEMS = (5, 3, 2, 1)
_PATHS_SHOWN = 10
_BUDGET_PART = 80  # bytes that `budget` takes
_LONGEST_HINT = 400
_LONGEST_MESSAGE = 600
_LONGEST_CURSOR = "x" * 64
_WIDEST_NUMBER = 9_999_999


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
    essential: Callable[[int], dict[str, Any]] | None = None
    """Give the first n items without what stands around them, for a page with room for nothing else."""


@dataclass(frozen=True, slots=True)
class Body:
    """A long text within a payload, that can be cut into chunks after any line."""

    text: str
    """The whole canonical text; it is redacted before it is cut."""
    frame: dict[str, Any]
    """The data around it; the text goes into `frame["payload"][key]`."""
    key: str
    cursor: Callable[[int, int, int], str]
    """Give the cursor for (characters, newlines, chunks) that lie before what follows."""
    whole: dict[str, Any] = field(default_factory=dict)
    """What stands in the payload instead of the text where all of it fits and nothing of it is redacted."""
    offset: int = 0
    line: int = 0
    chunk: int = 0
    """Characters, newlines and chunks that lie before what is asked for."""


class Entry(NamedTuple):
    """A piece of a stream."""

    event_index: int
    heading: str
    """The line above the text: short enough for every chunk."""
    text: str
    """It may be of any length; it is redacted before it is cut."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A text that is too long to be made as a whole: for each entry its heading, a newline, its text and a newline."""

    entries: Sequence[Entry]
    """The entries at hand, from the one on that is asked for: more than a chunk can hold, or all that are left."""
    more: bool
    """Whether there are entries beyond those at hand."""
    frame: dict[str, Any]
    """The data around it; the text goes into `frame[key]`."""
    key: str
    cursor: Callable[[int, int, int, int], str]
    """Give the cursor for (event_index, offset, newlines, chunks) that lie before what follows."""
    essential: dict[str, Any]
    """What stands around it where there is room for nothing else."""
    event: int = 0
    offset: int = 0
    """Of the entry of this event: 0 with its heading, n from character n - 1 of its redacted text on.

    The heading isn't counted: how an event ended may be known only later.
    """
    line: int = 0
    chunk: int = 0
    """Newlines and chunks that lie before what is asked for."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool has to say, before it is fitted."""

    summary: str
    data: dict[str, Any] | Pages | Body | Stream
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
    for rung in _Envelope(reply, freshness, budget).rungs():
        text = _serialize(rung, budget)
        if len(text) <= budget:
            return Answer(text.decode(), orjson.loads(text))
    raise AssertionError("the last rung fits every budget")


def error_answer(problem: Problem, most: int = ABSOLUTE_MAX_BYTES) -> Answer:
    """The answer to a request that can't be answered (R-118), in at most `most` bytes."""
    for details in _detail_rungs(redact_json(problem.details)):
        message = redact(problem.message)
        body = ErrorBody.model_validate(
            {
                "code": problem.code,
                "message": one_line(message, _LONGEST_MESSAGE if details else SUMMARY),
                "details": details,
                "retryable": problem.retryable,
            }
        )
        longest = _LONGEST_HINT if details else SUMMARY
        hint = {} if problem.hint is None else {"hint": one_line(redact(problem.hint), longest)}
        value = {"summary": one_line(message, SUMMARY), "success": False, "error": _known(body), **hint}
        text = orjson.dumps(value)
        if len(text) <= most:
            break
    return Answer(text.decode(), orjson.loads(text), is_error=True)


def estimated_tokens(characters: int) -> int:
    """An estimate: four characters a token, a fifth more for safety (R-060)."""
    return math.ceil(characters / 4 * 1.2)


@dataclass(frozen=True, slots=True)
class _Envelope:
    reply: Reply
    freshness: Freshness
    budget: int

    def rungs(self) -> Iterator[dict[str, Any]]:
        """The envelope as asked, then ever smaller ones; the last one fits every budget."""
        data = self.reply.data
        if isinstance(data, Pages):
            yield from self._page_rungs(data)
        elif isinstance(data, Body):
            yield from self._chunk_rungs(data)
        elif isinstance(data, Stream):
            yield from self._stream_rungs(data)
        else:
            yield from self._smaller(self._parts(redact_json(data)))
        yield self._parts(dict(self.reply.counts), truncation={"reason": "bytes", "shown": 0}, bare=True)

    def _page_rungs(self, pages: Pages) -> Iterator[dict[str, Any]]:
        """As many items as fit, found by halving; a single item that doesn't fit is made smaller."""
        if not pages.size or self._fits(self._page(pages, pages.size)):
            yield self._page(pages, pages.size)
            return
        fits, too_many = 0, pages.size
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if self._fits(self._page(pages, middle)):
                fits = middle
            else:
                too_many = middle
        yield from self._smaller(self._page(pages, max(fits, 1)))
        if pages.essential is not None:
            bare = self._page(pages, 1, redact_json(pages.essential(1)))
            yield from self._smaller({**bare, "truncation": {"reason": "bytes", "shown": 1}})

    def _chunk_rungs(self, body: Body) -> Iterator[dict[str, Any]]:
        """The whole text, or the chunk of it that the budget leaves room for."""
        text = redact(body.text)
        if body.offset == 0:
            as_asked = body.whole if body.whole and text == body.text else {body.key: text}
            yield self._parts(_with_payload(redact_json(body.frame), as_asked))
        for frame, room in self._frames(body, _WIDEST_CHUNK):
            end = chunk_end(text, body.offset, room)
            piece = {body.key: text[body.offset : end]}
            chunk = _chunk(body, text, end, room)
            yield {**frame, "data": _with_payload(frame["data"], piece), "chunk": _known(chunk)}

    def _stream_rungs(self, stream: Stream) -> Iterator[dict[str, Any]]:
        """As much of the stream as the budget leaves room for; `chunk` where that isn't all."""
        ahead = _Ahead(stream)
        for frame, room in self._frames(stream, _WIDEST_STREAM_CHUNK):
            piece, chunk = ahead.chunk(room)
            yield {**frame, "data": {**frame["data"], stream.key: piece}, "chunk": chunk and _known(chunk)}

    def _frames(self, text: Body | Stream, widest: Chunk) -> Iterator[tuple[dict[str, Any], int]]:
        """What stands around a text, ever smaller, with the bytes that are left for the text."""
        around = [text.frame, text.essential] if isinstance(text, Stream) else [text.frame]
        for data in around:
            for frame in self._smaller(self._parts(redact_json(data), chunk=widest)):
                room = self.budget - len(_serialize(frame, self.budget)) - len(text.key) - 8
                if room >= self.budget // 4:
                    yield frame, room

    def _smaller(self, parts: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The same parts, then with shorter strings, then with fewer items in lists."""
        yield parts
        for most in _SHORTER_STRINGS:
            data, paths = shortened(parts["data"], most)
            yield {**parts, "data": data, "truncation": _truncation(paths)}
        for items in _FEWER_ITEMS:
            few, left_out = fewer(data, items)
            yield {**parts, "data": few, "truncation": _truncation(left_out + paths)}

    def _page(self, pages: Pages, count: int, data: Any = None) -> dict[str, Any]:
        """The envelope of a page that ends behind `count` items; `data` is another form of them."""
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
        return self._parts(data or redact_json(pages.build(count)), pagination=pagination)

    def _parts(
        self,
        data: Any,
        *,
        pagination: Pagination | None = None,
        chunk: Chunk | None = None,
        truncation: dict[str, Any] | None = None,
        bare: bool = False,
    ) -> dict[str, Any]:
        """The envelope around a payload, in the order of the contract; absent parts are None."""
        reply = self.reply
        return {
            "summary": one_line(redact(reply.summary), SUMMARY),
            "success": True,
            "data": data,
            "pagination": pagination and _pagination(pagination),
            "chunk": chunk and _known(chunk),
            "index": _index_state(self.freshness),
            "untrusted": True if reply.untrusted and not bare else None,
            "artifact_ref": reply.reference and cut(reply.reference, _LONGEST_HINT),
            "truncation": truncation,
            "hint": reply.hint and one_line(redact(reply.hint), _LONGEST_HINT),
        }

    def _fits(self, parts: dict[str, Any]) -> bool:
        return len(_serialize(parts, self.budget)) <= self.budget


_WIDEST_CHUNK = Chunk(
    chunk_index=_WIDEST_NUMBER,
    total_chunks=_WIDEST_NUMBER,
    start_line=_WIDEST_NUMBER,
    end_line=_WIDEST_NUMBER,
    total_lines=_WIDEST_NUMBER,
    next_cursor=_LONGEST_CURSOR,
)
_WIDEST_STREAM_CHUNK = Chunk(
    chunk_index=_WIDEST_NUMBER,
    start_line=_WIDEST_NUMBER,
    end_line=_WIDEST_NUMBER,
    first_event=_WIDEST_NUMBER,
    last_event=_WIDEST_NUMBER,
    next_cursor=_LONGEST_CURSOR,
)


class _Begun(NamedTuple):
    """An entry of a stream in the text that lies ahead."""

    event_index: int
    start: int
    """Where in the text it begins."""
    given: int
    """Its offset at `start`, as `Stream.offset` counts."""


class _Ahead:
    """The redacted text of a stream's entries at hand."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._begun: list[_Begun] = []
        pieces, size = [], 0
        for entry in stream.entries:
            heading, text = redact(entry.heading), redact(entry.text)
            offset = stream.offset if entry.event_index == stream.event else 0
            pieces.append(f"{text[offset - 1 :]}\n" if offset else f"{heading}\n{text}\n")
            self._begun.append(_Begun(entry.event_index, size, offset or -len(heading)))
            size += len(pieces[-1])
        self._text = "".join(pieces)

    def chunk(self, room: int) -> tuple[str, Chunk | None]:
        """The next piece, of at most this many bytes as JSON; no chunk where it is the whole stream."""
        stream, end = self._stream, self._end(room)
        piece, more = self._text[:end], stream.more or end < len(self._text)
        if not more and not stream.chunk:
            return piece, None
        shown = [entry.event_index for entry in self._begun if entry.start < end]
        behind = stream.line + piece.count("\n")
        return piece, Chunk(
            chunk_index=stream.chunk,
            start_line=stream.line + 1,
            end_line=behind + (not piece.endswith("\n")),
            first_event=shown[0] if shown else None,
            last_event=shown[-1] if shown else None,
            next_cursor=stream.cursor(*self._place(end), behind, stream.chunk + 1) if more else None,
        )

    def _end(self, room: int) -> int:
        """Where the chunk ends: behind an entry if that fills at least half of it, else where `chunk_end` says."""
        end = chunk_end(self._text, 0, room)
        whole = max((entry.start for entry in self._begun if entry.start <= end), default=0)
        return whole if end < len(self._text) and whole * 2 >= end else end

    def _place(self, end: int) -> tuple[int, int]:
        """The event and its offset at which the next chunk begins."""
        last = next(entry for entry in reversed(self._begun) if entry.start < end)
        ends = next((entry.start for entry in self._begun if entry.start > last.start), len(self._text))
        return (last.event_index + 1, 0) if end == ends else (last.event_index, last.given + end - last.start)


def _chunk(body: Body, text: str, end: int, room: int) -> Chunk:
    """Which piece of the text lies between the body's offset and `end`."""
    behind = body.line + text.count("\n", body.offset, end)
    ends_line = end > body.offset and text[end - 1] == "\n"
    return Chunk(
        chunk_index=body.chunk,
        total_chunks=body.chunk + chunks_from(text, body.offset, room),
        start_line=body.line + 1,
        end_line=behind + (not ends_line),
        total_lines=text.count("\n") + (not text.endswith("\n")),
        next_cursor=body.cursor(end, behind, body.chunk + 1) if end < len(text) else None,
    )


def _with_payload(data: Any, part: dict[str, Any]) -> dict[str, Any]:
    return {**data, "payload": {**data["payload"], **part}}


def _truncation(paths: list[str]) -> dict[str, Any]:
    more = {"more_paths": len(paths) - _PATHS_SHOWN} if len(paths) > _PATHS_SHOWN else {}
    return {"reason": "bytes", "paths": [cut(path, 160) for path in paths[:_PATHS_SHOWN]], **more}


def _detail_rungs(details: Any) -> Iterator[dict[str, Any]]:
    """The details of an error, ever smaller, at last none."""
    yield shortened(details, 200)[0]
    yield fewer(shortened(details, 60)[0], 3)[0]
    yield {}


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


def _index_state(fresh: Freshness) -> dict[str, Any] | None:
    if fresh.state == "ready":
        return None
    state = IndexState(
        state=fresh.state,
        files_behind=fresh.files_behind,
        bytes_behind=fresh.bytes_behind,
        problem=fresh.problem and one_line(redact(fresh.problem), 200),
    )
    return _known(state)


def _pagination(pagination: Pagination) -> dict[str, Any]:
    known = _known(pagination)
    known.setdefault("next_cursor", None)  # null on the last page
    return known


def _known(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return dumped
