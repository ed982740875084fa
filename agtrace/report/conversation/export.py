"""Exports a session: all of it is written to a temporary file first, since only then it is known what was masked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from enum import StrEnum
from itertools import chain
from tempfile import SpooledTemporaryFile

from agtrace_indexer.index.questions.sessions import Session
from msgspec import Struct

from agtrace.report.conversation import as_lines, as_markdown
from agtrace.report.conversation.cleaning import Cleaner, home_in
from agtrace.report.conversation.head import head
from agtrace.report.conversation.telling import part_of, told
from agtrace.sessions.prices import PriceTable

_IN_MEMORY = 4_000_000
"""Bytes beyond which the conversation is kept in a temporary file, which has no name and ends with the process."""

_READ = 1 << 18


class Form(StrEnum):
    """The forms of an export."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSONL = "jsonl"
    OTEL = "otel"


class Wanted(Struct, frozen=True):
    """What to export."""

    form: Form
    turns: tuple[int | None, int | None] = (None, None)
    """The first and the last turn; None for the first and the last one that there are."""
    thinking: bool = False
    """Whether Markdown has the model's thinking."""
    tools: bool = False
    """Whether Markdown has arguments and results of calls in full."""


class Exported(Struct, frozen=True):
    """An export that is ready to be written."""

    pieces: Iterable[str]
    masked: Mapping[str, int]
    """The number of secrets masked, by kind."""


def export(
    connection: sqlite3.Connection, session: Session, wanted: Wanted, *, home: str, prices: PriceTable
) -> Exported:
    """Export a session, or some of its turns. `home` is the user's home folder.

    Raises `InvalidRange` for turns that the session doesn't have.
    """
    part = part_of(connection, session, wanted.turns)
    homes = (home, home_in(session.cwd), home_in(session.root_path))
    cleaner = Cleaner(homes, of_anybody=True, verbatim=wanted.form is Form.JSONL)
    if wanted.form is Form.JSONL:
        return Exported(_kept(as_lines.lines(connection, session, part, cleaner)), cleaner.masked)
    if wanted.form is Form.OTEL:
        from agtrace.report.conversation import as_spans

        return Exported(_kept(as_spans.spans(connection, session, part, cleaner)), cleaner.masked)
    about = head(connection, session, part.turns, Cleaner(homes, of_anybody=True), prices=prices)
    items = told(connection, session, part, cleaner)
    if wanted.form is Form.MARKDOWN:
        body = _kept(as_markdown.body(about, items, thinking=wanted.thinking, tools=wanted.tools))
        return Exported(chain(as_markdown.head(about, cleaner.masked), body), cleaner.masked)
    from agtrace.report.conversation import as_page

    body = _kept(as_page.body(about, items))
    return Exported(chain(as_page.head(about, cleaner.masked), body), cleaner.masked)


def _kept(pieces: Iterable[str]) -> Iterator[str]:
    """Write pieces to a temporary file now, and return what reads them."""
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
