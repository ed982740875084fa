"""The reply of a tool, before it is fitted: a payload, pages of a list, a digest, or a text in chunks; its fields.

A chunk ends at an entry or a line if possible; joined, chunks are the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

from agtrace_indexer.redact import looked_at, redact
from agtrace_schema.answers import Chunk
from agtrace_schema.model import Model
from msgspec import Struct, field
from msgspec.structs import replace

from agtrace.problems import InvalidParameter
from agtrace.settings.limits import limits
from agtrace.text.chunking import chunk_end, chunks_from, line_count, line_start
from agtrace.text.lines import repeated, without_controls
from agtrace.text.next_call import Hint

Item = TypeVar("Item")


def fitting(found: Iterable[Item], size: Callable[[Item], int], budget: int) -> tuple[list[Item], bool]:
    """Read items until they exceed a budget; return them, and whether there are more."""
    taken: list[Item] = []
    total = 0
    for item in found:
        if total > budget:
            return taken, True
        taken.append(item)
        total += size(item)
    return taken, False


class Pages(Struct, frozen=True):
    """A list that can end after any of its items."""

    size: int
    """The number of items at hand."""
    build: Callable[[int], dict[str, Any]]
    """Return the payload with the first n items."""
    cursor: Callable[[int], str]
    """Return the cursor that continues after the first n items."""
    more: bool
    """Whether there are items beyond those at hand."""
    first: bool
    """Whether this is the first page."""
    order: str | None = None
    """What it is sorted by, where that can be asked for."""
    total: int | None = None
    total_exact: bool = True
    essential: Callable[[int], dict[str, Any]] | None = None
    """Return the first n items without the data around them, for a page that has no room for it."""
    pruning: Callable[[int], dict[str, Any]] | None = None
    """Return what became of a question about the texts of the first n items; None if there was none."""


class Body(Struct, frozen=True):
    """A long text in a payload that can be cut into chunks after any line."""

    text: str
    """The whole canonical text; redacted before it is cut."""
    frame: dict[str, Any]
    """The data around it; the text goes into `frame[within][key]`."""
    key: str
    cursor: Callable[[int, int, int], str]
    """Return the cursor for the (characters, newlines, chunks) before the rest."""
    whole: dict[str, Any] = field(default_factory=dict)
    """The fields that replace the text in the payload if all of it fits and nothing in it is redacted."""
    offset: int = 0
    line: int = 0
    chunk: int = 0
    """Characters, newlines and chunks before the requested part."""
    end: int | None = None
    """The end of the requested lines in the redacted text; None if no lines were requested."""
    within: str | None = "payload"
    """The part of the frame that holds the text; None for the frame itself."""
    told: Callable[[int], tuple[dict[str, Any], Hint]] | None = None
    """Return, in at most this many bytes, what the first of several chunks adds to the frame, and its hint."""
    pruning: dict[str, Any] | None = None
    """Why a question about the text was of no use; None if there was none. Likewise below."""


class Entry(NamedTuple):
    """An entry of a stream: an event with its heading and text."""

    event_index: int
    heading: str
    """The line above the text: short enough for every chunk."""
    text: str
    """Of any length; redacted before it is cut."""
    output: bool = False
    """Whether it is the output of a tool."""


class Stream(Struct, frozen=True):
    """A text too long to be made as a whole: for each entry its heading, a newline, its text and a newline."""

    entries: Sequence[Entry]
    """The entries at hand, from the requested one on: more than a chunk can hold, or all that are left."""
    more: bool
    """Whether there are entries beyond those at hand."""
    frame: dict[str, Any]
    """The data around it; the text goes into `frame[key]`."""
    key: str
    cursor: Callable[[int, int, int, int], str]
    """Return the cursor for the (event_index, offset, newlines, chunks) before the rest."""
    essential: dict[str, Any]
    """The data around it if there is no room for the whole frame."""
    event: int = 0
    offset: int = 0
    """The offset in the entry of this event: 0 includes its heading, n starts at character n - 1 of its redacted text.

    The heading isn't counted because it may change: the outcome of an event may become known later.
    """
    line: int = 0
    chunk: int = 0
    """Newlines and chunks before the requested part."""
    until: int | None = None
    """The last requested line; None if no lines were requested."""
    pruning: dict[str, Any] | None = None


class FittedText(Struct, frozen=True):
    """A text made to fit the room available."""

    text: str
    truncation: dict[str, Any] | None
    hint: Hint
    pruning: dict[str, Any] | None = None
    """How much a question left of it; None if there was none."""


class Digest(Struct, frozen=True):
    """A text made as long as there is room for."""

    make: Callable[[int], FittedText]
    """Return the text in at most this many bytes as JSON; its lines are redacted."""
    frame: dict[str, Any]
    key: str
    within: str | None = "payload"
    """The text goes into `frame[within][key]`, or into `frame[key]`."""
    essential: dict[str, Any] | None = None
    """The data around it if there is no room for the whole frame; None to make that smaller."""
    pruning: dict[str, Any] | None = None
    """The largest that `Made.pruning` can be."""


class Reply(Struct, frozen=True):
    """The reply of a tool, before it is fitted."""

    summary: str
    data: dict[str, Any] | Pages | Body | Stream | Digest
    budget: int
    """Bytes that the answer may take."""
    hint: Hint | None = None
    reference: str | None = None
    """The `ax://` reference to everything."""
    untrusted: bool = False
    """Whether it quotes text from a log."""
    counts: dict[str, int] = field(default_factory=dict)
    """Exact counts, which stay even if nothing else fits."""
    only: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Keep only the requested fields of the payload."""


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
            lines = stream.until - stream.line
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


# -- fields -------------------------------------------------------------------------------------------

Whole = TypeVar("Whole", bound=Model)


def printed(model: Whole) -> Whole:
    """Return a copy with every text redacted, without control characters and changes of the writing direction."""
    return _clean(model, {})  # type: ignore[no-any-return]


def _clean(value: Any, known: dict[str, str]) -> Any:
    """Return a cleaned value; the same object if there is nothing to remove. `known` are texts that were cleaned."""
    if isinstance(value, str):
        if value not in known:
            text = redact(without_controls(value))
            known[value] = value if text == value else text
        return known[value]
    if isinstance(value, Model):
        values = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {name: clean for name, one in values.items() if (clean := _clean(one, known)) is not one}
        return replace(value, **changed) if changed else value
    if isinstance(value, (list, tuple)):
        items = [_clean(item, known) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        return {_clean(key, known): _clean(item, known) for key, item in value.items()}
    return value


IDENTIFYING = frozenset({"id", "name", "session_id", "event_index"})
"""Fields that stay in every answer and in every item of a list."""

IDENTIFYING_WITHIN = frozenset(
    {
        "id", "turn_index", "step_index", "event_index", "first_event", "call_event", "result_event", "usage_event",
        "name", "path", "model",
    }
)  # fmt: skip
"""Fields that stay in a nested object of which another field is requested."""

_Tree = dict[str, Any]
"""Field -> the tree of its requested fields, or None for all of it."""


def projection(asked: Sequence[str], model: type[Model]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that keeps these fields of a dumped model: `title`, `stats.total_tokens`, `turns.outcome`.

    Raises `InvalidParameter` as `full_names` does.
    """
    tree: _Tree = {}
    for name in full_names(asked, model):
        _add(tree, name.split("."))
    return lambda data: {key: _selected(data[key], tree.get(key)) for key in data if key in tree or key in IDENTIFYING}


def of_rows(asked: Sequence[str] | None, model: type[Model], key: str) -> Callable[[dict[str, Any]], Any] | None:
    """Return a function that keeps these fields of a list's rows, and what says whose list it is; None to keep all.

    Raises `InvalidParameter` as `full_names` does.
    """
    if asked is None:
        return None
    kept = projection(asked, model)
    return lambda data: {name: data[name] for name in data if name in IDENTIFYING} | {key: [*map(kept, data[key])]}


def full_names(asked: Sequence[str], model: type[Model]) -> list[str]:
    """Return the whole names of these fields: the last part of one will do if only one ends so.

    Raises `InvalidParameter` for a name that the model doesn't have; it lists the known ones and the nearest.
    """
    known = list(_names(model))
    result = []
    for name in asked:
        whole = [name] if name in known else [other for other in known if other.endswith(f".{name}")]
        if len(whole) != 1:
            raise _unknown(name, model, known)
        result += whole
    return result


def _names(model: type[Model]) -> Iterator[str]:
    """Yield the fields of a model and, dotted, those of the models in it."""
    for name, kind in get_type_hints(model).items():
        yield name
        for inner in _models(kind):
            yield from (f"{name}.{deeper}" for deeper in _names(inner))


def _models(annotation: Any) -> Iterator[type[Model]]:
    """Yield the models in an annotation: `list[Item] | None` has `Item`."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _unknown(name: str, model: type[Model], known: list[str]) -> InvalidParameter:
    inside = name.rpartition(".")[0]
    siblings = [other for other in known if other.rpartition(".")[0] == inside] or list(model.__struct_fields__)
    same = [other for other in known if other.rpartition(".")[2] == name.rpartition(".")[2]]
    import difflib  # only if needed

    nearest = next(iter(same or difflib.get_close_matches(name, known, 1)), None)
    also = f"; did you mean {nearest}?" if nearest else "."
    return InvalidParameter(
        "fields", f"fields: {repeated(name, 60)!r} is unknown{also} Known: {', '.join(siblings)}", siblings, nearest
    )


def _add(tree: _Tree, path: list[str]) -> None:
    first, *rest = path
    if not rest:
        tree[first] = None
    elif tree.setdefault(first, {}) is not None:
        _add(tree[first], rest)


def _selected(value: Any, tree: _Tree | None) -> Any:
    """Return the requested part of a value, or of each item of a list."""
    if tree is None:
        return value
    if isinstance(value, list):
        return [_selected(item, tree) for item in value]
    return {key: _selected(value[key], tree.get(key)) for key in value if key in tree or key in IDENTIFYING_WITHIN}
