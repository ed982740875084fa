"""Where a log continues: whether what was read of it is still there, with which byte and line it goes on, and what is
noted for that while it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TypeAlias

from agtrace_indexer.events.assembly import Thread
from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.index.catalog import KnownFile
from agtrace_indexer.index.store import Store
from agtrace_indexer.logs.content import Content
from agtrace_indexer.logs.decoding import decode
from agtrace_indexer.logs.discovery import LogFile, stem
from agtrace_indexer.logs.files import ANCHOR, CountedFile, checksum_to, inode, read_up_to, start_of
from agtrace_indexer.logs.lines import Line, Lines
from agtrace_indexer.providers.registry import AGENTS, format_of, parser_of, writer_at
from agtrace_indexer.reader.log import Log, digest
from agtrace_indexer.reader.recognition import said_by
from agtrace_indexer.texts.blocks import Damaged

Place: TypeAlias = tuple[Content, bytes]
"""The content to continue with, and the bytes before it."""


def where_it_ended(store: Store, found: LogFile, row: KnownFile, file: CountedFile) -> Place | None:
    """Return the content after what was read of a log, if that is still at the beginning; None if it isn't.

    For a file that only grew, the last bytes that were read are compared. For one that was replaced, moved, or
    touched without growing, the checksum of everything that was read is compared.
    """
    try:
        stored = store.state(row.id)
    except Damaged:
        return None
    if stored is None:
        return None
    if file.pieces is not None:
        return _where_piece_ended(row, file, *(stored.get("piece") or (stem(row.path), 0)))
    grew = found.size > row.size and inode(found.stamp) == inode(row.stamp)
    if grew and AGENTS[row.provider or ""].rewrites and digest(start_of(file, row.head_size)) != row.head:
        return None
    content = Content(file)
    if grew:
        content.skip_to(row.read_to - row.anchor_size)
        anchor = read_up_to(content, row.anchor_size)
        return (content, anchor) if digest(anchor) == row.anchor else None
    checksum, anchor = checksum_to(content, row.read_to)
    return (content, anchor) if checksum == stored["checksum"] else None


def _where_piece_ended(row: KnownFile, file: CountedFile, piece: str, start: int) -> Place | None:
    """Return the same for a log in several files, of which only the one that was read last can have changed."""
    assert file.pieces is not None
    there = file.pieces.begin_with(piece, start, row.read_to)
    content = Content(file)
    content.skip_to(row.read_to - row.anchor_size * there)
    anchor = read_up_to(content, row.anchor_size * there)
    return (content, anchor) if not there or digest(anchor) == row.anchor else None


def known_log(store: Store, file: LogFile, row: KnownFile, anchor: bytes) -> Log:
    """Return a log as the last run left it; `anchor` is the last bytes before the place where it continues."""
    stored = store.state(row.id)
    assert stored is not None
    threads = {key: Thread(**thread) for key, thread in stored["threads"].items()}
    return Log(
        file, row.id, "log", None, row.provider or "", row.read_to, row.lines,
        row.records, row.unreadable_lines, 0, row.head, row.head_size, anchor,
        stored["checksum"], LogState.from_json(stored["parser"]), threads, long_tail=stored["long_tail"],
        unended=stored["unended"], position=stored.get("position"),
    )  # fmt: skip


def refreshed(log: Log) -> bool:
    """Take what is now said next to a log into its state; return whether it can then be continued."""
    agent = AGENTS[log.provider or ""]
    if agent.sidecar is None:
        return True
    return agent.sidecar.refresh()(log.state, agent.parser().begin(PurePath(log.found.path)))


def remaining_lines(log: Log, content: Content) -> Iterator[Line]:
    """Yield the lines after those that were read; a last line that had no end yet is read again."""
    return iter(Lines(content, log.read_to, log.lines - log.unended, log.checksum))


def note_position(log: Log, line: Line) -> None:
    """Note that the log was read up to the end of this line."""
    end = b"\n" * line.ended
    if not line.whole:
        log.anchor = end
    elif line.length >= ANCHOR:
        log.anchor = line.data[line.ended - ANCHOR :] + end
    else:
        empty_lines = b"\n" * min(line.offset - log.read_to, ANCHOR)  # before it: only the last of them is a `Line`
        log.anchor = (log.anchor + empty_lines + line.data + end)[-ANCHOR:]
    log.read_to = line.offset + line.length + line.ended
    log.lines, log.unended, log.checksum = line.number + line.breaks, not line.ended, line.checksum


def is_rewritten(store: Store, file: LogFile, row: KnownFile, head: bytes) -> bool:
    """Whether a log that has other content than before is still that of the same session: the new content counts alone.

    `head` is its beginning, which says which session it is.
    """
    stored = store.state(row.id)
    if stored is None:
        return False
    session = LogState.from_json(stored["parser"]).sessions[""].id
    return session_in(row.provider or "", file, head) == session


def session_in(provider: str, file: LogFile, head: bytes) -> str | None:
    """Return the session that the path of a log and its beginning name."""
    parser = parser_of(provider)
    state = parser.begin(PurePath(file.place))
    for line in head.split(b"\n"):
        for value in decode(line) or ():
            said_by(value, parser, state)
    return state.sessions[""].id


def begins_alike(row: KnownFile, path: str) -> bool:
    """Whether the new path of a log says the same about it as the old one: what lay next to it may be gone there."""
    provider = row.provider or ""
    if writer_at(row.path, format_of(provider)) != writer_at(path, format_of(provider)):
        return False
    begin = parser_of(provider).begin
    return _named_by(begin(PurePath(row.path))) == _named_by(begin(PurePath(path)))


def _named_by(state: LogState) -> tuple[object, ...]:
    """Return what a path says about a log."""
    facts = state.sessions[""]
    return state.memory, facts.id, facts.parent_id, facts.kind
