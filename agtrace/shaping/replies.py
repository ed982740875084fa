"""What a tool has to say, before it is fitted: a payload, pages of a list, a text given in chunks, or a digest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from agtrace.text.next_call import Hint

Item = TypeVar("Item")


def fitting(found: Iterable[Item], size: Callable[[Item], int], budget: int) -> tuple[list[Item], bool]:
    """Take more items than fit into a budget, and whether there are others: nothing is read for nothing."""
    taken: list[Item] = []
    total = 0
    for item in found:
        if total > budget:
            return taken, True
        taken.append(item)
        total += size(item)
    return taken, False


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
    """The data around it; the text goes into `frame[within][key]`."""
    key: str
    cursor: Callable[[int, int, int], str]
    """Give the cursor for (characters, newlines, chunks) that lie before what follows."""
    whole: dict[str, Any] = field(default_factory=dict)
    """What stands in the payload instead of the text where all of it fits and nothing of it is redacted."""
    offset: int = 0
    line: int = 0
    chunk: int = 0
    """Characters, newlines and chunks that lie before what is asked for."""
    end: int | None = None
    """Where a range of lines ends in the redacted text; None where no range is asked for."""
    within: str | None = "payload"
    """The part of the frame that holds the text; None where the frame itself does."""
    told: Callable[[int], tuple[dict[str, Any], Hint]] | None = None
    """Give, in at most so many bytes, what the first of several chunks has beside the frame, and its hint."""


class Entry(NamedTuple):
    """A piece of a stream."""

    event_index: int
    heading: str
    """The line above the text: short enough for every chunk."""
    text: str
    """It may be of any length; it is redacted before it is cut."""
    output: bool = False
    """Whether it is what a tool gave back."""


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
    until: int | None = None
    """The last line that is asked for; None where no range is."""


class Made(NamedTuple):
    """A text that was made for the room there is."""

    text: str
    truncation: dict[str, Any] | None
    hint: Hint


@dataclass(frozen=True, slots=True)
class Digest:
    """A text that is made as large as there is room for."""

    make: Callable[[int], Made]
    """Give the text in at most so many bytes as JSON; it is of redacted lines."""
    frame: dict[str, Any]
    key: str
    within: str | None = "payload"
    """The text goes into `frame[within][key]`, or into `frame[key]`."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool has to say, before it is fitted."""

    summary: str
    data: dict[str, Any] | Pages | Body | Stream | Digest
    budget: int
    """Bytes that the answer may take."""
    hint: Hint | None = None
    reference: str | None = None
    """`ax://` reference of the whole."""
    untrusted: bool = False
    """Whether text from a log is quoted."""
    counts: dict[str, int] = field(default_factory=dict)
    """Exact counts that stay even where nothing else fits."""
    only: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Keeps the fields of the payload that are asked for."""
