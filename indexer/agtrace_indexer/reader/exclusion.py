"""Keeping the logs of forgotten sessions out, before anything in them is stored; only if any session is forgotten.

The id is in a log's name or its first records. If it comes later, what was read until then is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import PurePath
from typing import Any

from agtrace_schema.events import Provider

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.strings import plain_id
from agtrace_indexer.families.belonging import STARTED, known_as
from agtrace_indexer.index.tombstones import Tombstones, digest_of
from agtrace_indexer.logs.decoding import single
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.logs.files import CountedFile
from agtrace_indexer.logs.lines import BROKEN, Line, records_in
from agtrace_indexer.providers.registry import parser_of, unroll
from agtrace_indexer.reader.recognition import begin, document_in, said_by

_SURE = 64
"""Records after which an id is considered final: Claude Code's side lines may name another one at first."""


class KeptOut(Exception):
    """A log belongs to a forgotten session, or to a sub-agent that one started."""

    def __init__(self, sub_agent: str | None = None) -> None:
        super().__init__("the log of a forgotten session")
        self.sub_agent = sub_agent
        """The digest of a sub-agent that has no tombstone yet, but needs one to keep out those that it starts."""


def kept_out(found: Found, file: CountedFile, forgotten: Tombstones) -> KeptOut | None:
    """Return why a file isn't read: it is the log of a forgotten session, or of a sub-agent that one started."""
    provider, read, lines, _ = begin(file, found.path)
    if provider is not None:
        return _told(found, provider, _records(chain(read, lines)), forgotten)
    data, _ = document_in(file, read)
    unrolled = None if data is None else unroll(single(data))
    return None if unrolled is None else _told(found, unrolled[0], iter(unrolled[1]), forgotten)


def kept_out_inside(found: Found, provider: Provider, lines: Iterator[Line], forgotten: Tombstones) -> KeptOut | None:
    """Return the same for a log in a container, by its lines."""
    return _told(found, provider, _records(lines), forgotten)


def kept_out_so_far(forgotten: Tombstones, found: Found, provider: Provider | None, state: LogState) -> KeptOut | None:
    """Return the same by what is known so far about a log's session."""
    if provider is None:
        return None
    facts, written = state.sessions[""], found.mtime_ns / 1e9
    own_id = known_as(plain_id(facts.id or PurePath(found.path).name.partition(".")[0]), found.path)
    if forgotten.keep_out(provider, own_id, written):
        return KeptOut()
    if facts.kind not in STARTED or facts.parent_id is None:
        return None
    parent = plain_id(facts.parent_id)
    if forgotten.keep_out(provider, parent):
        return KeptOut(digest_of(provider, own_id))
    return KeptOut() if forgotten.keep_out(provider, parent, written) else None


def _records(lines: Iterator[Line]) -> Iterator[Any]:
    return (value for _, value in records_in(lines) if value is not BROKEN)


def _told(found: Found, provider: Provider, records: Iterator[Any], forgotten: Tombstones) -> KeptOut | None:
    parser = parser_of(provider)
    state = parser.begin(PurePath(found.place))
    named = state.sessions[""].id is not None
    for number, record in enumerate(records):
        facts = state.sessions[""]
        has_parent = facts.kind not in STARTED or facts.parent_id is not None
        if facts.id is not None and has_parent and (named or number >= _SURE):
            break
        said_by(record, parser, state)
    return kept_out_so_far(forgotten, found, provider, state)
