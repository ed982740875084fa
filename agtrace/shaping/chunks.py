"""The chunks of a long text: each ends at an entry or a line if possible; joined, they are the text."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.redact import looked_at, redact
from agtrace_schema.answers import Chunk
from msgspec import Struct

from agtrace.settings.limits import limits
from agtrace.shaping.replies import Body, Stream
from agtrace.text.chunking import chunk_end, chunks_from, line_count, line_start

_LONGEST_CURSOR = "x" * 64
_WIDEST_NUMBER = 9_999_999

SHORT = 3_333
"""Characters of a thousand estimated tokens: a text no longer than this is returned whole whenever possible."""

WIDEST: dict[type[Any], Chunk] = {
    Body: Chunk(
        chunk_index=_WIDEST_NUMBER,
        total_chunks=_WIDEST_NUMBER,
        start_line=_WIDEST_NUMBER,
        end_line=_WIDEST_NUMBER,
        total_lines=_WIDEST_NUMBER,
        next_cursor=_LONGEST_CURSOR,
    ),
    Stream: Chunk(
        chunk_index=_WIDEST_NUMBER,
        start_line=_WIDEST_NUMBER,
        end_line=_WIDEST_NUMBER,
        first_event=_WIDEST_NUMBER,
        last_event=_WIDEST_NUMBER,
        next_cursor=_LONGEST_CURSOR,
    ),
}
"""The largest `chunk` that an answer can have, by kind of text."""


class BodyChunks:
    """The chunks of a body or of a span of its lines, from the requested position on."""

    def __init__(self, body: Body) -> None:
        self._body = body
        redacted = redact(body.text)
        self.untouched = redacted == body.text
        """Whether nothing in the text was redacted."""
        self._lines = line_count(redacted)
        self._text = redacted if body.end is None else redacted[: body.end]

    def whole(self) -> tuple[str, Chunk | None]:
        """Return everything requested; for a span of lines, also its chunk."""
        body = self._body
        if body.end is None:
            return self._text, None
        return self._text[body.offset :], self._chunk(len(self._text), 1)

    def next(self, room: int) -> tuple[str, Chunk]:
        """Return the next piece, of at most this many bytes as JSON, and its chunk."""
        body, text = self._body, self._text
        room = min(room, limits().chunk_bytes)
        end = chunk_end(text, body.offset, room, limits().chunk_lines)
        return text[body.offset : end], self._chunk(
            end, body.chunk + chunks_from(text, body.offset, room, limits().chunk_lines)
        )

    def _chunk(self, end: int, total: int) -> Chunk:
        body, text = self._body, self._text
        behind = body.line + text.count("\n", body.offset, end)
        ends_line = end > body.offset and text[end - 1] == "\n"
        return Chunk(
            chunk_index=body.chunk,
            total_chunks=total,
            start_line=body.line + 1,
            end_line=behind + (not ends_line),
            total_lines=self._lines,
            next_cursor=body.cursor(end, behind, body.chunk + 1) if end < len(text) else None,
        )


class _Begun(Struct, frozen=True):
    """An entry of a stream in the text at hand."""

    event_index: int
    start: int
    """The position in the text at which it begins."""
    given: int
    """Its offset at `start`, as `Stream.offset` counts."""


class StreamChunks:
    """The chunks of a stream, made from the redacted text of the entries at hand."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._begun: list[_Begun] = []
        pieces, size = [], 0
        entries = list(stream.entries)
        with looked_at(text for entry in entries for text in (entry.heading, entry.text)):
            entries = [entry._replace(heading=redact(entry.heading), text=redact(entry.text)) for entry in entries]
        for entry in entries:
            heading, text = entry.heading, entry.text
            offset = stream.offset if entry.event_index == stream.event else 0
            pieces.append(f"{text[offset - 1 :]}\n" if offset else f"{heading}\n{text}\n")
            self._begun.append(_Begun(entry.event_index, size, offset or -len(heading)))
            size += len(pieces[-1])
        self._text, self._more = "".join(pieces), stream.more
        if stream.until is not None:
            self._end_behind(stream.until - stream.line)

    def _end_behind(self, lines: int) -> None:
        """Drop everything after this many lines, if there are as many."""
        end = line_start(self._text, lines)
        if end is not None:
            self._text, self._more = self._text[:end], False

    def next(self, room: int) -> tuple[str, Chunk | None]:
        """Return the next piece, of at most this many bytes as JSON, and its chunk; None for the whole stream."""
        stream, end = self._stream, self._end(room)
        piece, more = self._text[:end], self._more or end < len(self._text)
        if not more and not stream.chunk and stream.until is None:
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
        """Return the end of the chunk: after an entry if that fills at least half of it, else as `chunk_end` says."""
        end = chunk_end(self._text, 0, min(room, limits().chunk_bytes), limits().chunk_lines)
        whole = max((entry.start for entry in self._begun if entry.start <= end), default=0)
        return whole if end < len(self._text) and whole * 2 >= end else end

    def _place(self, end: int) -> tuple[int, int]:
        """Return the event at which the next chunk begins, and the offset in it."""
        last = next(entry for entry in reversed(self._begun) if entry.start < end)
        ends = next((entry.start for entry in self._begun if entry.start > last.start), len(self._text))
        return (last.event_index + 1, 0) if end == ends else (last.event_index, last.given + end - last.start)
