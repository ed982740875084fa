"""What a tool has to say, before it is fitted: a payload, pages of a list, or a text that is given in chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


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
    only: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Keeps the fields of the payload that are asked for (R-072)."""
