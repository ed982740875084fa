"""The reply of a tool, before it is fitted: a payload, pages of a list, a text in chunks, or a digest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field

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


class Made(Struct, frozen=True):
    """A text made to fit the room available."""

    text: str
    truncation: dict[str, Any] | None
    hint: Hint
    pruning: dict[str, Any] | None = None
    """How much a question left of it; None if there was none."""


class Digest(Struct, frozen=True):
    """A text made as long as there is room for."""

    make: Callable[[int], Made]
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
