"""Exports a session: all of it is written to a temporary file first, since only then it is known what was masked."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

from agtrace_indexer.index.queries.events import Event, StoredEvent, text_reader
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.reader.images import images_of
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.patterns import later
from msgspec import Struct, field

from agtrace import __version__
from agtrace.conversation import markdown
from agtrace.conversation.cleaning import Cleaner, home_in
from agtrace.conversation.items import Part, head, items, part_of, placed_in
from agtrace.sessions.events import token_usage
from agtrace.sessions.prices import PriceTable
from agtrace.text.lines import UNSEEN
from agtrace.times import iso

# -- as lines --------------------------------------------------------------------------------------

_UNSEEN = later(f"[{UNSEEN}\u2028\u2029\ud800-\udfff]")


def lines(connection: sqlite3.Connection, session: Session, part: Part, cleaner: Cleaner) -> Iterator[str]:
    """Yield a line for each event of a part of a session, in file order; retracted ones are left out."""
    read = text_reader(connection)
    for placed in placed_in(connection, session, part, answers=True):
        event = read(placed.event)
        row = event.row
        told = {
            "session_id": session.uid,
            "event_index": event.event_index,
            "turn_index": placed.turn_index,
            "step_index": None if placed.turn_index is None else row.step_index,
            "timestamp": iso(row.ts),
            "event_type": str(event.type),
            "payload": _payload(connection, event),
            "outcome": event.outcome and str(event.outcome),
            "duration_ms": row.duration_ms,
            "call_event": row.link if event.type == EventType.TOOL_RESULT else None,
            "result_event": row.link if event.type == EventType.TOOL_CALL else None,
            "copied": True if row.copy_of is not None else None,
        }
        if event.type != EventType.TOKEN_USAGE:
            told["payload"] = cleaner.value(told["payload"])
        told["session_id"] = cleaner.text(session.uid)
        present = {name: value for name, value in told.items() if value is not None}
        text = json.dumps(present, ensure_ascii=False, separators=(",", ":"))
        yield _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n"


def _payload(connection: sqlite3.Connection, event: StoredEvent) -> dict[str, Any]:
    """Return the payload with the fields of its class, without outcome and duration, which calls have, too."""
    name, rest = event.row.name, event.rest
    match event.type:
        case EventType.TOKEN_USAGE:
            return token_usage(connection, event.row.session_row, event.event_index)
        case EventType.TOOL_CALL:
            return {"name": name, **rest}
        case EventType.TOOL_RESULT:
            return {"text": event.text, **({"tool": name} if name else {}), **rest}
        case EventType.USER | EventType.NOTIFICATION:
            return {"kind": name, "text": event.text, **rest}
        case _:
            return {"text": event.text, **rest}


# -- exports -----------------------------------------------------------------------------------------

_IN_MEMORY = 4_000_000
"""Bytes beyond which the conversation is kept in a temporary file, which has no name and ends with the process."""

_READ = 1 << 18


class Form(StrEnum):
    """The forms of an export."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSONL = "jsonl"
    OTEL = "otel"


class ExportOptions(Struct, frozen=True):
    """What to export."""

    form: Form
    turns: tuple[int | None, int | None] = (None, None)
    """The first and the last turn; None for the first and the last one that there are."""
    thinking: bool = False
    """Whether Markdown has the model's thinking."""
    tools: bool = False
    """Whether Markdown has arguments and results of calls in full."""
    images_of: Path | None = None
    """The index whose logs have the images that a page shows, in which nothing is masked; None for a page without."""


class Exported(Struct, frozen=True):
    """An export that is ready to be written."""

    pieces: Iterable[str]
    masked: Mapping[str, int]
    """The number of secrets masked, by kind."""


def export(
    connection: sqlite3.Connection,
    session: Session,
    options: ExportOptions,
    *,
    home: str,
    now: float,
    prices: PriceTable,
) -> Exported:
    """Export a session, or some of its turns. `home` is the user's home folder, `now` seconds since 1970 UTC.

    Raises `InvalidRange` for turns that the session doesn't have.
    """
    part = part_of(connection, session, options.turns)
    homes = (home, home_in(session.cwd), home_in(session.root_path))
    cleaner = Cleaner(homes, of_anybody=True, verbatim=options.form is Form.JSONL)
    if options.form is Form.JSONL:
        return Exported(_fitting(lines(connection, session, part, cleaner)), cleaner.masked)
    if options.form is Form.OTEL:
        return Exported(_fitting(spans(connection, session, part, cleaner)), cleaner.masked)
    about = head(connection, session, part.turns, Cleaner(homes, of_anybody=True), now=now, prices=prices)
    images = None if options.images_of is None else partial(images_of, options.images_of, session.path)
    every = items(connection, session, part, cleaner, images)
    if options.form is Form.MARKDOWN:
        body = _fitting(markdown.body(about, every, thinking=options.thinking, tools=options.tools))
        return Exported(chain(markdown.head(about, cleaner.masked), body), cleaner.masked)
    from agtrace.conversation import html

    body = _fitting(html.body(about, every))
    return Exported(chain(html.head(about, cleaner.masked), body), cleaner.masked)


def _fitting(pieces: Iterable[str]) -> Iterator[str]:
    with ExitStack() as stack:
        file = stack.enter_context(
            SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", errors="replace", newline="")
        )
        for piece in pieces:
            file.write(piece)
        file.seek(0)
        return _read(file, stack.pop_all())


def _read(file: SpooledTemporaryFile[str], open_until: ExitStack) -> Iterator[str]:
    with open_until:
        while piece := file.read(_READ):
            yield piece


# -- as spans --------------------------------------------------------------------------------------
# A session as OpenTelemetry spans: lines of OTLP in JSON, by the semantic conventions for generative AI (1.41). The
# session is an `invoke_agent` span; each response of the model is a `chat` span below it, each call an `execute_tool`
# span. A log says when something was written, not when it began: a response begins when the last request or result
# before it was written. Texts, arguments and results are left out, as the conventions do unless asked.

_INTERNAL, _CLIENT = 1, 3
"""Kinds of spans."""

_ERROR = {"code": 2}
_ERRORS = {
    Outcome.FAILED: "tool_error", Outcome.REJECTED: "rejected", Outcome.INTERRUPTED: "cancelled",
}  # fmt: skip
"""Types of errors, by the outcome of a call; each is a short name, as the conventions ask."""

_WRITTEN = frozenset({EventType.MESSAGE, EventType.REASONING, EventType.TOOL_CALL, EventType.TOKEN_USAGE})
"""What a response consists of."""

_PROVIDERS = (("claude", "anthropic"), ("gemini", "gcp.gemini"), ("gpt-", "openai"), ("codex", "openai"))
"""What is in a model's name, and who serves it, by the conventions; any other name stands for its agent's."""

_NANOSECONDS = 1_000_000
_CACHED = ("cache_read_tokens", "cache_creation_5m_tokens", "cache_creation_1h_tokens")
_COUNTED = ("input_tokens", *_CACHED, "output_tokens", "reasoning_tokens")


class _Response(Struct):
    turn: int | None
    step: int | None
    first_event: int
    begin: int
    """Milliseconds since 1970 UTC, as below."""
    end: int
    model: str | None = None
    tokens: Counter[str] = field(default_factory=Counter)

    def add(self, usage: Mapping[str, Any]) -> None:
        self.model = self.model or usage.get("model")
        self.tokens.update({name: usage[name] for name in _COUNTED if name in usage})


def spans(connection: sqlite3.Connection, session: Session, part: Part, cleaner: Cleaner) -> Iterator[str]:
    """Yield a line for each span of a part of a session, the whole session last, as its end is only known then.

    A session whose log has no times has none.
    """
    telling = _SpanWriter(connection, session, cleaner)
    for placed in placed_in(connection, session, part, answers=True):
        for span in telling.read(placed.event):
            yield _span_line(telling.resource, span)
    for span in telling.closed():
        yield _span_line(telling.resource, span)


class _SpanWriter:
    """Makes spans of events in file order."""

    def __init__(self, connection: sqlite3.Connection, session: Session, cleaner: Cleaner) -> None:
        self._connection, self._session, self._cleaner = connection, session, cleaner
        self._agent = AGENTS[session.provider].title
        self._trace = _digest(16, session.uid)
        self._root = self._id("session")
        self._response: _Response | None = None
        self._calls: dict[int, Event] = {}
        """Calls without a result so far, by their event."""
        self._begun = self._last = 0
        self.resource = _attributes({"service.name": self._agent})

    def read(self, event: Event) -> Iterator[dict[str, Any]]:
        if event.ts:
            self._begun = self._begun or event.ts
        if event.type in _WRITTEN:
            current = self._response
            if current is None or (current.turn, current.step) != (event.turn_index, event.step_index):
                yield from self._close_response()
                begin = self._last or event.ts
                current = _Response(event.turn_index, event.step_index, event.event_index, begin, event.ts)
                self._response = current
            current.end = event.ts or current.end
            if event.type == EventType.TOKEN_USAGE and event.copy_of is None:  # a copy counts in the session it is from
                current.add(token_usage(self._connection, event.session_row, event.event_index))
        else:
            yield from self._close_response()
        if event.type == EventType.TOOL_CALL:
            self._calls[event.event_index] = event
        elif event.type == EventType.TOOL_RESULT and event.link in self._calls:
            yield from self._executed(self._calls.pop(event.link), event)
        self._last = event.ts or self._last

    def closed(self) -> Iterator[dict[str, Any]]:
        yield from self._close_response()
        for call in self._calls.values():
            yield from self._executed(call, None)
        if self._begun:
            told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": self._agent}
            span = self._span(f"invoke_agent {self._agent}", self._root, self._begun, self._last, told)
            del span["parentSpanId"]
            yield span

    def _close_response(self) -> Iterator[dict[str, Any]]:
        told, self._response = self._response, None
        if told is None or not told.end:
            return
        model = self._cleaner.text(str(told.model or self._session.model or "unknown"))
        provider = next((name for sign, name in _PROVIDERS if sign in model.lower()), self._session.provider)
        attributes = {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model,
            **_tokens(told.tokens),
        }  # fmt: skip
        yield self._span(f"chat {model}", self._id(str(told.first_event)), told.begin, told.end, attributes, _CLIENT)

    def _executed(self, call: Event, result: Event | None) -> Iterator[dict[str, Any]]:
        if not call.ts:
            return
        ended = max(call.ts + (call.duration_ms or 0), result.ts if result and not call.duration_ms else 0)
        tool = self._cleaner.text(call.name or "unknown")
        told: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        error = _ERRORS.get(call.outcome) if call.outcome else None
        if error:
            told["error.type"] = error
        span = self._span(f"execute_tool {tool}", self._id(f"call {call.event_index}"), call.ts, ended, told)
        yield span | ({"status": _ERROR} if error else {})

    def _span(
        self, name: str, span_id: str, begin: int, end: int, told: Mapping[str, Any], kind: int = _INTERNAL
    ) -> dict[str, Any]:
        conversation = {"gen_ai.conversation.id": self._cleaner.text(self._session.uid)}
        return {
            "traceId": self._trace, "spanId": span_id, "parentSpanId": self._root, "name": name, "kind": kind,
            "startTimeUnixNano": str(min(begin, end) * _NANOSECONDS), "endTimeUnixNano": str(end * _NANOSECONDS),
            "attributes": _attributes({**told, **conversation}),
        }  # fmt: skip

    def _id(self, of: str) -> str:
        return _digest(8, f"{self._session.uid}\n{of}")


def _digest(size: int, of: str) -> str:
    """Return an id that is the same whenever the same is exported."""
    return blake2b(of.encode("utf-8", "replace"), digest_size=size).hexdigest()


def _tokens(usage: Mapping[str, int]) -> dict[str, int]:
    """Return the token usage as attributes, whose input includes what was read from and written to the cache."""
    known = {name: usage[name] for name in ("input_tokens", *_CACHED) if name in usage}
    created = [known[name] for name in _CACHED[1:] if name in known]
    told = {
        "gen_ai.usage.input_tokens": sum(known.values()) if known else None,
        "gen_ai.usage.cache_read.input_tokens": known.get("cache_read_tokens"),
        "gen_ai.usage.cache_creation.input_tokens": sum(created) if created else None,
        "gen_ai.usage.output_tokens": usage.get("output_tokens"),
        "gen_ai.usage.reasoning.output_tokens": usage.get("reasoning_tokens"),
    }
    return {name: tokens for name, tokens in told.items() if tokens is not None}


def _attributes(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for name, value in told.items()
    ]


def _span_line(resource: list[dict[str, Any]], span: dict[str, Any]) -> str:
    scope = {"scope": {"name": "agtrace", "version": __version__}, "spans": [span]}
    told = {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scope]}]}
    return json.dumps(told, separators=(",", ":")) + "\n"
