"""The one way out: every answer and every error becomes its text here, and nowhere else.

    reply -> redact -> pick the requested fields -> fit to the budget -> serialize once -> check the size

Serialized JSON is never cut. An answer that doesn't fit is made smaller, in this order:

| answer | how it is made smaller |
|---|---|
| a page of a list | fewer items; `pagination` continues. A single item: down the ladder, then its essential fields |
| a long text | fewer lines; `chunk` continues. The data around it: down the ladder |
| a digest of it, or what a question is about | fewer lines, failing ones last; `hint` is the call for the rest |
| anything else | down the ladder (`agtrace/shaping/ladder.py`); `truncation` says what is missing |
| whatever still doesn't fit | counts and a reference |
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import orjson
from agtrace_indexer.redact import redact, redact_json
from agtrace_schema.answers import Chunk, ErrorBody, IndexState, Pagination
from agtrace_schema.model import dump
from msgspec import Struct
from msgspec.structs import replace

from agtrace.index.trouble import Freshness
from agtrace.problems import Problem
from agtrace.settings import ABSOLUTE_MAX_BYTES, UNPROTECTED_BYTES
from agtrace.shaping import ladder
from agtrace.shaping.replies import SHORT, WIDEST, Body, BodyChunks, Digest, Pages, Reply, Stream, StreamChunks
from agtrace.text.lines import SUMMARY, cut, one_line
from agtrace.text.next_call import Hint, NextCall, calls_in, complete, text_of

_BUDGET_PART = 80  # bytes that `budget` takes
_TRUNCATION_PART = 140  # that `truncation` takes next to a digest
_LARGE = 30_720
"""Bytes of an answer that warns of its size (seed 003)."""
_WARNING_PART = 120
_LONGEST_HINT = 400
_MORE = " More: cursor=next_cursor."
_LONGEST_MESSAGE = 600
_AROUND_ALL = 4_096
"""Bytes that the largest answer of all leaves free."""


class Answer(Struct, frozen=True):
    """An answer as it leaves agtrace: the JSON text that a model reads, and its value."""

    text: str
    value: dict[str, Any]
    is_error: bool = False
    budget: int = ABSOLUTE_MAX_BYTES
    """The bytes that it may take."""
    asked_bytes: int | None = None
    """The bytes that the requested answer would have taken; None if it fit."""
    attempt: int = 1
    """The number of the form that fit: 1 is as asked, or a page, which is fitted before."""
    calls: tuple[NextCall, ...] = ()
    """The calls in its hint as the tool made them; `next_calls` has those that leave."""

    @property
    def next_calls(self) -> tuple[NextCall, ...]:
        """The calls in its hint, without secrets."""
        return tuple(map(_redacted, self.calls))


class _Hint(Struct, frozen=True):
    """A hint as it leaves, and the calls in it."""

    text: str
    calls: tuple[NextCall, ...]

    @classmethod
    def of(cls, hint: Hint, *, onward: bool = False) -> _Hint:
        """Write a hint, and how a list goes on that isn't at its end."""
        whole, more = complete(hint), _MORE if onward else ""
        return cls(one_line(redact(text_of(whole)), _LONGEST_HINT - len(more)) + more, calls_in(whole))


def answer(reply: Reply, freshness: Freshness, most: int = ABSOLUTE_MAX_BYTES) -> Answer:
    """Fit a reply into its budget, at most `most` bytes, and serialize it."""
    budget = min(reply.budget, most)
    if reply.budget > ABSOLUTE_MAX_BYTES:  # a setting leaves it unprotected
        budget = UNPROTECTED_BYTES - _AROUND_ALL
    envelope = _Envelope(reply, freshness, budget)
    for attempt, rung in enumerate(envelope.rungs(), 1):
        text = _serialize(rung, budget)
        if len(text) <= budget:
            value, asked, hint = orjson.loads(text), envelope.asked_bytes, rung["hint"]
            calls = hint.calls if hint else ()
            return _leaving(
                Answer(text.decode(), value, budget=budget, asked_bytes=asked, attempt=attempt, calls=calls)
            )
        envelope.asked_bytes = envelope.asked_bytes or len(text)
    raise AssertionError("the last rung fits every budget")


def error_answer(problem: Problem, most: int = ABSOLUTE_MAX_BYTES) -> Answer:
    """Return the error for a request that can't be answered, in at most `most` bytes."""
    for details in _detail_rungs(redact_json(problem.details)):
        message = redact(problem.message)
        body = ErrorBody(
            code=problem.code,
            message=one_line(message, _LONGEST_MESSAGE if details else SUMMARY),
            details=details,
            retryable=problem.retryable,
        )
        longest = _LONGEST_HINT if details else SUMMARY
        hint = {} if problem.hint is None else {"hint": one_line(redact(text_of(complete(problem.hint))), longest)}
        quoted = {"untrusted": True} if problem.untrusted else {}
        value = {"summary": one_line(message, SUMMARY), "success": False, "error": dump(body), **quoted, **hint}
        text = orjson.dumps(value)
        if len(text) <= most:
            break
    return _leaving(Answer(text.decode(), orjson.loads(text), is_error=True, budget=most))


def _redacted(call: NextCall) -> NextCall:
    arguments: Any = redact_json(dict(call.arguments))
    return replace(call, arguments=arguments)


def _leaving(answer: Answer) -> Answer:
    """Check the size of an answer one last time."""
    if len(answer.text.encode()) > UNPROTECTED_BYTES:
        raise AssertionError("an answer exceeds the largest size allowed")
    return answer


def estimated_tokens(characters: int) -> int:
    """Estimate the tokens of a text: four characters per token, plus a fifth for safety."""
    return math.ceil(characters / 4 * 1.2)


class _Envelope(Struct):
    reply: Reply
    freshness: Freshness
    budget: int
    asked_bytes: int | None = None
    built: dict[int, dict[str, Any]] = {}
    """The payloads of pages that were tried, by number of items."""

    def rungs(self) -> Iterator[dict[str, Any]]:
        """Yield the requested envelope, then ever smaller ones; the last one fits every budget."""
        data = self.reply.data
        if isinstance(data, Pages):
            yield from self._page_rungs(data)
        elif isinstance(data, Body):
            yield from self._body_rungs(data)
        elif isinstance(data, Stream):
            chunks = StreamChunks(data)
            for frame, room in self._frames(data, data.frame, data.essential):
                piece, chunk = chunks.next(room)
                yield {**frame, "data": {**frame["data"], data.key: piece}, "chunk": chunk and dump(chunk)}
        elif isinstance(data, Digest):
            yield from self._digest_rungs(data)
        else:
            yield from self._smaller(self._parts(self._chosen(data)))
        bare = self._parts(dict(self.reply.counts), truncation={"reason": "bytes", "shown": 0})
        yield {**bare, "pruning": None}

    def _page_rungs(self, pages: Pages) -> Iterator[dict[str, Any]]:
        """Yield as many items as fit, found by bisection; a single item that doesn't fit is made smaller."""
        if not pages.size or self._fits(self._page(pages, pages.size)):
            yield self._page(pages, pages.size)
            return
        counts = range(1, pages.size)
        fits = bisect_left(counts, True, key=lambda count: not self._fits(self._page(pages, count)))
        yield from self._smaller(self._page(pages, max(fits, 1)))
        if pages.essential is not None:
            bare = self._page(pages, 1, redact_json(pages.essential(1)))
            for rung in self._smaller(bare):
                yield {**rung, "truncation": rung["truncation"] or {"reason": "bytes", "shown": 1}}

    def _body_rungs(self, body: Body) -> Iterator[dict[str, Any]]:
        """Yield the whole text, or the chunk of it that fits the budget."""
        chunks, around, hint = BodyChunks(body), body.frame, self.reply.hint
        if body.chunk == 0:
            text, chunk = chunks.whole()
            as_asked = body.whole if body.whole and chunks.untouched and chunk is None else {body.key: text}
            yield self._parts(_placed(self._chosen(around), body, as_asked), chunk=chunk)
            if len(text) <= SHORT:
                for frame in self._smaller(self._parts(self._chosen(around), chunk=chunk)):
                    yield {**frame, "data": _placed(frame["data"], body, {body.key: text})}
            if body.told:
                told, hint = body.told(self.budget // 4)
                around = {**around, **told}
        for frame, room in self._frames(body, around, body.frame, hint=hint):
            piece, chunk = chunks.next(room)
            yield {**frame, "data": _placed(frame["data"], body, {body.key: piece}), "chunk": dump(chunk)}

    def _digest_rungs(self, digest: Digest) -> Iterator[dict[str, Any]]:
        """Yield the digest, or the lines that a question is about, that fit the budget."""
        around = (digest.frame,) if digest.essential is None else (digest.frame, digest.essential)
        for frame, room in self._frames(digest, *around, hint="x" * _LONGEST_HINT):
            made = digest.make(room - _TRUNCATION_PART)
            data = _placed(frame["data"], digest, {digest.key: made.text})
            truncation = {**(frame["truncation"] or {}), **made.truncation} if made.truncation else frame["truncation"]
            told = {"truncation": truncation, "pruning": made.pruning, "hint": _Hint.of(made.hint)}
            yield {**frame, "data": data, **told}

    def _frames(
        self, text: Body | Stream | Digest, *around: dict[str, Any], hint: Hint | None = None
    ) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield the data around a text, ever smaller, with the bytes left for the text."""
        chunk = WIDEST.get(type(text))
        for data in around:
            for frame in self._smaller(self._parts(self._chosen(data), chunk=chunk, hint=hint)):
                warning = _WARNING_PART if self.budget > _LARGE else 0
                room = self.budget - len(_serialize(frame, self.budget)) - len(text.key) - 8 - warning
                if room >= self.budget // 4:
                    yield frame, room

    def _smaller(self, parts: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the same parts with ever smaller payloads."""
        for data, truncation in ladder.down(parts["data"], self.budget):
            yield {**parts, "data": data, "truncation": truncation}

    def _chosen(self, data: dict[str, Any]) -> dict[str, Any]:
        redacted: Any = redact_json(data)
        return self.reply.only(redacted) if self.reply.only else redacted

    def _page(self, pages: Pages, count: int, data: Any = None) -> dict[str, Any]:
        """Return the envelope of a page that ends after `count` items; `data` is another form of them."""
        more = pages.more or count < pages.size
        counted = pages.total is not None and (more or not pages.first)
        pagination = Pagination(
            order=pages.order,
            total_in_page=count,
            total_count=pages.total if counted else None,
            total_exact=pages.total_exact if counted else None,
            next_cursor=pages.cursor(count) if more and count else None,
            has_more=more,
        )
        if data is None and count not in self.built:
            self.built[count] = self._chosen(pages.build(count))
        pruning = pages.pruning(count) if pages.pruning else None
        return self._parts(data or self.built[count], pagination=pagination, pruning=pruning)

    def _parts(
        self,
        data: Any,
        *,
        pagination: Pagination | None = None,
        chunk: Chunk | None = None,
        truncation: dict[str, Any] | None = None,
        pruning: dict[str, Any] | None = None,
        hint: Hint | None = None,
    ) -> dict[str, Any]:
        """Return the envelope around a payload, in the order of the contract; absent parts are None."""
        reply = self.reply
        hint = hint or reply.hint
        if isinstance(reply.data, (Body, Stream, Digest)):
            pruning = reply.data.pruning
        return {
            "summary": one_line(redact(reply.summary), SUMMARY),
            "success": True,
            "data": data,
            "pagination": pagination and _pagination(pagination),
            "chunk": chunk and dump(chunk),
            "index": _index_state(self.freshness),
            "untrusted": reply.untrusted or None,
            "artifact_ref": reply.reference and cut(reply.reference, _LONGEST_HINT),
            "truncation": truncation,
            "pruning": pruning,
            "hint": _Hint.of(hint, onward=bool(pagination and pagination.has_more)) if hint else None,
        }

    def _fits(self, parts: dict[str, Any]) -> bool:
        return len(_serialize(parts, self.budget)) <= self.budget


def _placed(data: Any, text: Body | Digest, part: dict[str, Any]) -> dict[str, Any]:
    return {**data, **part} if text.within is None else {**data, text.within: {**data[text.within], **part}}


def _detail_rungs(details: Any) -> Iterator[dict[str, Any]]:
    """Yield the details of an error, ever smaller, and finally none."""
    left = ladder.Omission()
    yield ladder.shorter(details, left, 200)
    yield ladder.fewer(ladder.shorter(details, left, 60), left, 3)
    yield {}


def _serialize(parts: dict[str, Any], budget: int) -> bytes:
    """Serialize what an envelope has to say: a reference only to what it lacks, and its measured size."""
    chunk, pagination = parts["chunk"] or {}, parts["pagination"] or {}
    lacks = parts["truncation"] or chunk.get("next_cursor") or pagination.get("has_more")
    lacks = lacks or any(name.startswith("total_") for name in parts["data"])
    unsaid = {"hint"} if lacks else {"hint", "artifact_ref"}
    known = {name: part for name, part in parts.items() if part is not None and name not in unsaid}
    hint = {"hint": parts["hint"].text} if parts["hint"] else {}
    characters = len(orjson.dumps({**known, **hint}).decode()) + _BUDGET_PART
    tokens, most = estimated_tokens(characters), estimated_tokens(budget)
    measured = {
        "estimated_tokens": tokens,
        "budget_used": round(tokens / most, 2),
        "budget_remaining": max(most - tokens, 0),
    }
    known["budget"] = measured
    text = orjson.dumps({**known, **hint})
    if len(text) <= _LARGE:
        return text
    warning = f"This answer takes {len(text) // 1024} KB of your context: ask for fields, sections or fewer bytes."
    return orjson.dumps({**known, "warning": warning, **hint})


def _index_state(fresh: Freshness) -> dict[str, Any] | None:
    if fresh.state == "ready":
        return None
    state = IndexState(
        state=fresh.state,
        files_behind=fresh.files_behind,
        bytes_behind=fresh.bytes_behind,
        problem=fresh.problem and one_line(redact(fresh.problem), 200),
    )
    return dump(state)


def _pagination(pagination: Pagination) -> dict[str, Any]:
    result = dump(pagination)
    result.setdefault("next_cursor", None)  # null on the last page
    return result
